"""Orders to the process of disciplines in software, and its news; one JSON object per line."""

from __future__ import annotations

import msgspec

from ccplay.lab.packets import messages
from ccplay.model.base import Option


class Order(messages.Order, frozen=True, omit_defaults=True):
    """An order about one queue. ``open`` binds it, so that packets wait; ``begin`` sends them.

    ``change`` sets rate and discipline while packets wait. ``pass`` sends all of them at once, in
    the order of their arrival, and later ones as they arrive; ``close`` unbinds the queue.
    """

    kind: str = ""
    source: str = ""
    """Text of the file, for one of the user's own disciplines."""
    options: dict[str, Option] = msgspec.field(default_factory=dict)
    version: int = 0
    """Number of the discipline that is opened or changed to, assigned by the lab."""
    rate: int = 0
    """Rate of the link in bits per second."""
    busy_s: float = 0.0
    """Seconds for which the link is still busy with packets in the kernel."""


class News(messages.News, frozen=True, omit_defaults=True):
    """A report of the process of disciplines."""

    fault: str = ""
    """Fault of a discipline that a FIFO has replaced, with the line of the source."""
    version: int = 0
    """Version of the discipline that failed."""
    printed: str = ""
    """Lines that a discipline of the user has printed."""
    statistics: list[str] = msgspec.field(default_factory=list)
    """Names of a discipline's values, in the order of its ``Board``."""
