"""Traffic: starts, switches, follows and stops it."""
