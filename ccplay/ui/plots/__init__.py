"""The plots over time: what each shows, its axes and titles."""
