"""Pings: ping(8) over ICMP, a program of ours over UDP, and which missing answers are lost."""
