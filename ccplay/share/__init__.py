"""Shares a session's stream with spectators, who join read-only over a private Unix socket.

The presenter's process feeds one server process, and only the server talks to spectators. Nothing
here draws, and nothing that a spectator sends reaches the lab.
"""
