"""Seats, which limit the number of browsers that may vote, and how often each may."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from ccplay.share.frames import MOST_SEATS

_NAME = re.compile(r"[0-9a-f]{32}")
"""Pattern of a random word of 128 bits, which a page chooses and no other page can know."""

VOTES_AT_ONCE = 10
"""Number of votes that a browser may send at once."""

VOTES_S = 1.0
"""Number of votes per second that a browser may send on average."""


class Seat(msgspec.Struct):
    """The seat of one browser."""

    number: int
    """Number of the seat, from 1."""
    streams: int = 0
    """Number of streams that the browser receives at present."""
    left: float = VOTES_AT_ONCE
    """Number of votes that the browser may send at once, at the moment ``at``."""
    at: float = 0.0
    """Moment for which ``left`` was computed, in seconds of a clock."""


class Seats:
    """Assigns a seat to each browser that receives the stream; only these may vote.

    A browser keeps its seat while others are free. If none is free, the browser that left
    first loses its seat to the new one, whose vote replaces the earlier vote: so there are never
    more votes than seats.
    """

    def __init__(self, most: int = MOST_SEATS, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._seats: OrderedDict[str, Seat] = OrderedDict()

    def enter(self, name: str) -> Seat | None:
        """Assign a seat to a browser that starts receiving the stream; None if it can't vote."""
        if not _NAME.fullmatch(name):
            return None
        seat = self._seats.get(name) or self._new(name)
        if seat is not None:
            seat.streams += 1
        return seat

    def leave(self, name: str) -> None:
        """Record that a browser has stopped receiving the stream."""
        self._seats[name].streams -= 1
        self._seats.move_to_end(name)

    def voting(self, name: str) -> Seat | None:
        """Return the seat of a browser that receives the stream; None if it has none."""
        seat = self._seats.get(name)
        return seat if seat is not None and seat.streams else None

    def takes(self, seat: Seat) -> bool:
        """Return whether a browser may vote now, and count the vote."""
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
