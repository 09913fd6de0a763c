"""Orders to the process of disciplines in software, and its news; one JSON object a line."""

from __future__ import annotations

from typing import Literal

import msgspec

from ccplay.model.base import Option


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order about one queue."""

    queue: int
    """Number of the netfilter queue, from 1; 0 only has everything imported."""
    do: Literal["open", "begin", "change", "pass", "close"] = "open"
    """``open`` binds the queue, whose packets then wait; ``begin`` sends them.

    ``change`` sets rate and discipline while packets wait. ``pass`` sends all of them at once, in
    the order of their arrival, and later ones as they come; ``close`` unbinds the queue.
    """
    pid: int = 0
    """PID of a process in the namespace."""
    kind: str = ""
    source: str = ""
    """Of one of the user's own disciplines: the text of its file."""
    options: dict[str, Option] = {}
    rate: int = 0
    """Bits per second."""
    busy_s: float = 0.0
    """Seconds for which the link is still busy with what waits in the kernel."""
    seed: int = 0


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report: about a queue, or each second about its own lateness."""

    queue: int = 0
    done: str = ""
    """The order that was carried out."""
    failed: str = ""
    """Why an order was not."""
    fault: str = ""
    """What failed in a discipline, with its line: a FIFO has taken its place."""
    printed: str = ""
    """What a discipline of the user's own has printed: a line, or several."""
    statistics: list[str] = []
    """Names of what a discipline reports, in the order of its ``Board``."""
    late_p50_us: float | None = None
    """Microseconds from a packet's due moment to its sending; None if there were no packets."""
    late_p99_us: float | None = None
