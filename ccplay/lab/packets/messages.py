"""Orders to packet-holding processes and news from them, one JSON object per line."""

from __future__ import annotations

import msgspec


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order about one queue. The news that report its end repeat ``queue`` and ``do``."""

    queue: int
    """Number of the netfilter queue, from 1."""
    do: str = "open"
    """Action; each process has its own."""
    pid: int = 0
    """Process ID of a process in the queue's network namespace."""
    seed: int = 0
    """Seed of everything random in the queue."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report of an order's end, or, each second, of the packets' lateness."""

    queue: int = 0
    do: str = ""
    """Action of the order that was carried out or failed."""
    failed: str = ""
    """Reason why the order failed; empty if it did not."""
    late_p50_us: float | None = None
    """Median time in us from a packet's due moment to its release; None without packets."""
    late_p99_us: float | None = None
