"""Delay, jitter and loss where a link ends: by netem, or by ccplay's own delay line.

Nothing here touches the interface of a queue under study.
"""
