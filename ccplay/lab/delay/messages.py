"""Orders to the delay line and its news, one JSON object a line."""

from __future__ import annotations

import msgspec


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order about one queue: hold its packets for a time, or with ``end`` drain or close it."""

    queue: int
    pid: int = 0
    """PID of a process in the namespace."""
    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    seed: int = 0
    end: str = ""
    """``drain`` releases packets at once, ``close`` unbinds the queue."""
    count: bool = False
    """Only report how many packets the queue has lost."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report of the delay line: about a queue, or each second about its own lateness."""

    ready: int = 0
    """Number of a queue that now takes packets."""
    drained: int = 0
    """Number of a queue that is now empty."""
    failed: int = 0
    """Number of a queue that could not be opened."""
    reason: str = ""
    counted: int = 0
    """Number of a queue that has lost ``lost`` packets in all."""
    late_p50_us: float | None = None
    """Microseconds from a packet's due moment to its release; None if there were no packets."""
    late_p99_us: float | None = None
    packets: int = 0
    """Packets released during the second."""
    lost: int = 0
    """Packets dropped on purpose during the second, or in all by the queue ``counted``."""
