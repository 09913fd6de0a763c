"""Traffic: what starts, switches, follows and stops it."""
