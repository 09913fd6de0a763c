"""Congestion controls as BPF programs: built, loaded, and removed with the process.

Nothing here knows links, traffic or topologies; the lab does.
"""
