"""Pings: ping(8) over ICMP, ccplay's own program over UDP, and which missing replies are lost."""
