"""Seats: which browsers may vote, each for itself, and how often."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from ccplay.share.frames import MOST_SEATS

_NAME = re.compile(r"[0-9a-f]{32}")
"""A random word of 128 bits, which a page chooses and no other page can know."""

VOTES_AT_ONCE = 10
"""Votes that a browser may send at once."""

VOTES_S = 1.0
"""Votes a second that it may send for long."""


class Seat(msgspec.Struct):
    """One browser's."""

    number: int
    """Number of the seat, from 1 on."""
    streams: int = 0
    """Number of times that the browser receives the stream now."""
    left: float = VOTES_AT_ONCE
    """Votes that it may send at once."""
    at: float = 0.0
    """Moment of ``left``, in seconds of a clock."""


class Seats:
    """Gives a seat to each browser that receives the stream; only there votes are taken.

    A browser keeps its seat while there are others. When none is left, the one that went longest
    ago loses it, and its vote is the next one's: so there are never more votes than seats.
    """

    def __init__(self, most: int = MOST_SEATS, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._seats: OrderedDict[str, Seat] = OrderedDict()

    def enter(self, name: str) -> Seat | None:
        """Seat a browser that begins to receive the stream; None where it can't vote."""
        if not _NAME.fullmatch(name):
            return None
        seat = self._seats.get(name) or self._new(name)
        if seat is not None:
            seat.streams += 1
        return seat

    def leave(self, name: str) -> None:
        """Note that a browser that has entered receives the stream no more."""
        self._seats[name].streams -= 1
        self._seats.move_to_end(name)

    def voting(self, name: str) -> Seat | None:
        """Return the seat of a browser that is there; None without one."""
        seat = self._seats.get(name)
        return seat if seat is not None and seat.streams else None

    def takes(self, seat: Seat) -> bool:
        """Return whether a browser may vote now, and count that it does."""
        now = self._clock()
        seat.left = min(seat.left + (now - seat.at) * VOTES_S, VOTES_AT_ONCE)
        seat.at = now
        if seat.left < 1:
            return False
        seat.left -= 1
        return True

    def _new(self, name: str) -> Seat | None:
        number = len(self._seats) + 1
        if number > self._most:
            gone = next((each for each, seat in self._seats.items() if not seat.streams), None)
            if gone is None:
                return None
            number = self._seats.pop(gone).number
        seat = self._seats[name] = Seat(number, at=self._clock())
        return seat
