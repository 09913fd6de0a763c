"""Sampling: one sweep over all sockets and queues, and traces ACK by ACK."""
