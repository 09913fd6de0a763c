"""Sampling: sweeps over all sockets and queues, and traces of flows at each ACK."""
