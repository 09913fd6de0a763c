"""Commands, events and the values that they carry: all that crosses the lab's pipe.

Units, unless a name says otherwise: rates in bits per second, backlog in bytes, qlen and
limits in packets, cwnd and ssthresh in segments; names ending in ``_us`` are microseconds and
in ``_s`` seconds. ``t`` is seconds on the lab's monotonic clock since ``Hello``.

A link has two directions, ``r1->r2`` and ``r2->r1``; its name ``r1-r2`` stands for both, and
``bottleneck`` for both directions of the link under study.
"""
