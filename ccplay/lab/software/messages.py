"""Orders to the process of disciplines in software, and its news; one JSON object a line."""

from __future__ import annotations

import msgspec

from ccplay.lab.packets import messages
from ccplay.model.base import Option


class Order(messages.Order, frozen=True, omit_defaults=True):
    """An order about one queue. ``open`` binds it, whose packets then wait; ``begin`` sends them.

    ``change`` sets rate and discipline while packets wait. ``pass`` sends all of them at once, in
    the order of their arrival, and later ones as they come; ``close`` unbinds the queue.
    """

    kind: str = ""
    source: str = ""
    """Text of the file, for one of the user's own disciplines."""
    options: dict[str, Option] = msgspec.field(default_factory=dict)
    version: int = 0
    """Number of the discipline that is opened or changed to; the lab counts them."""
    rate: int = 0
    """Bits per second."""
    busy_s: float = 0.0
    """Seconds for which the link is still busy with what waits in the kernel."""


class News(messages.News, frozen=True, omit_defaults=True):
    """A report of the process."""

    fault: str = ""
    """What failed in a discipline, with its line: a FIFO has taken its place."""
    version: int = 0
    """Version of the discipline that failed."""
    printed: str = ""
    """What a discipline of the user's own has printed: a line, or several."""
    statistics: list[str] = msgspec.field(default_factory=list)
    """Names of what a discipline reports, in the order of its ``Board``."""
