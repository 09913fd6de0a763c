"""The plots over time: their traces, axes and titles."""
