"""Nodes, cables, addresses and routes: built with Mininet, configured by netlink.

Only ``building`` and ``mininet_file``, a program of its own, import Mininet; only ``netlink``
imports pyroute2.
"""
