"""Tests of disciplines in software against the pseudocode and figures of their sources."""
