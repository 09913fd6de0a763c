"""Packet captures: each is a process that writes one bounded pcapng file."""
