"""Descriptions of all plots over time, for screen and report; nothing here draws or prints."""
