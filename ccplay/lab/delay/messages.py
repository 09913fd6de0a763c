"""Orders to the delay line and its news, one JSON object a line."""

from __future__ import annotations

from ccplay.lab.delay.engines import Impairment
from ccplay.lab.packets import messages


class Order(messages.Order, frozen=True, omit_defaults=True):
    """An order: hold packets for a time from ``open`` or ``change`` on.

    ``drain`` releases what is held in time, and later packets at once; ``close`` unbinds the queue;
    ``count`` reports the packets lost.
    """

    path: Impairment = Impairment()


class News(messages.News, frozen=True, omit_defaults=True):
    """A report of the delay line."""

    lost: int = 0
    """Packets of the queue that were dropped on purpose since it was opened."""
