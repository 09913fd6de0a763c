"""Tests of the user's own queue disciplines."""
