"""Orders and news of every process that holds packets, one JSON object a line."""

from __future__ import annotations

import msgspec


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order about one queue. The news of its end repeat ``queue`` and ``do``."""

    queue: int
    """Number of the netfilter queue, from 1."""
    do: str = "open"
    """What to do; each process has its own verbs."""
    pid: int = 0
    """PID of a process in the namespace that has the queue."""
    seed: int = 0
    """Of what is random in it."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report: that an order is done, or each second how late packets left."""

    queue: int = 0
    do: str = ""
    """The order that was carried out, or failed."""
    failed: str = ""
    """Why it failed."""
    late_p50_us: float | None = None
    """Microseconds from a packet's due moment to its release; None if there were no packets."""
    late_p99_us: float | None = None
