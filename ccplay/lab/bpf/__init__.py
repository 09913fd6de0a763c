"""Congestion controls as BPF programs: built, loaded, and gone again with the process."""
