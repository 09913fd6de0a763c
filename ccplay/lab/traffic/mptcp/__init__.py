"""Flows over several paths: Multipath TCP (RFC 8684). What the kernel's path manager is asked."""
