"""Flows over several paths: Multipath TCP (RFC 8684), managed by the lab or by the kernel."""
