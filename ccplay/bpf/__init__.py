"""Congestion controls as BPF programs: built, loaded, and gone again with the process.

Nothing here knows links, traffic or the network: the lab does."""
