"""Delay, jitter and loss at the receiving end of a link: by netem, or by ccplay's delay line.

Nothing here touches the interface of a queue under study.
"""
