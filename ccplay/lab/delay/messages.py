"""Orders to the delay line and news from it, one JSON object per line."""

from __future__ import annotations

from ccplay.lab.delay.engines import Impairment
from ccplay.lab.packets import messages


class Order(messages.Order, frozen=True, omit_defaults=True):
    """An order to the delay line: ``open`` or ``change`` sets what happens to later packets.

    ``drain`` releases held packets when they are due, and later packets at once; ``close`` unbinds
    the queue; ``count`` reports the packets lost.
    """

    path: Impairment = Impairment()


class News(messages.News, frozen=True, omit_defaults=True):
    """A report of the delay line."""

    lost: int = 0
    """Number of packets lost on purpose since the queue was opened."""
