"""Rules across the values of a scenario: names must exist, and the order must be possible."""
