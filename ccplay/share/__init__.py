"""Sharing a session: its stream for spectators, who join read-only over a private Unix socket.

The presenter's process feeds one server process, which alone talks to spectators. Nothing here
draws, and nothing that a spectator sends is passed on.
"""
