"""Nodes, cables, addresses and routes: built with Mininet, configured by netlink.

Only ``building`` imports Mininet, and only ``netlink`` imports pyroute2.
"""
