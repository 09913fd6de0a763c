"""Parts of what a screen shows, which a presenter sends too: the moment, and the flows listed."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.model.base import Moment

# --- the moment that the whole screen shows: live, frozen, scrolled back or replayed --------------

WIDTHS = (
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0),
    *(600.0, 1200.0, 3600.0, 7200.0, 21600.0),
)
"""Widths of the window in seconds; the smallest suit traces of every ACK."""

WINDOW_S = 30.0
"""Default width of the window in seconds."""

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Speeds of a replay: recorded seconds per second."""

_QUARTERS = 4


class Playhead(msgspec.Struct):
    """The moment shown, and the time window of the plots.

    While running, the playhead follows the session (live) or moves at ``speed`` (recorded);
    stopped, it stays where the keys put it. The window fills to the right and advances by a quarter
    when it is full, because a sliding window would repaint every cell at every step.
    """

    recorded: bool = False
    t: Moment = 0.0
    """The moment shown, in seconds since ``Hello``."""
    width: Annotated[float, msgspec.Meta(ge=0.01, le=1e6)] = WINDOW_S
    """Width of the window in seconds."""
    left: Moment = 0.0
    """Moment at the window's left edge, in seconds since ``Hello``."""
    seen: Moment = 0.0
    """Latest moment shown so far, in seconds since ``Hello``; later moments stay hidden."""
    running: bool = True
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=1000)] = 1.0

    @property
    def right(self) -> float:
        """The moment at the window's right edge."""
        return self.left + self.width

    @property
    def until(self) -> float:
        """The moment up to which the plots have data."""
        return self.t if self.running else max(self.t, min(self.seen, self.right))

    def advance(self, now: float, elapsed: float, *, done: bool) -> None:
        """Advance by ``elapsed`` seconds of wall time; the session has reached ``now``.

        If ``done``, the session ends at ``now``, and the playhead stops there.
        """
        if not self.running or (self.t > now and not done):
            return
        self._go(min(self.t + elapsed * self.speed, now) if self.recorded else max(now, self.t))
        if done and self.t >= now:
            self.running = False

    def toggle(self, now: float) -> None:
        """Stop, or resume: a live session jumps to its newest moment, a recorded one continues."""
        self.running = not self.running
        if self.running:
            if self.recorded and self.t >= now:
                self._go(0.0)
            elif not self.recorded:
                self._go(now)

    def scrub(self, seconds: float, now: float) -> None:
        """Stop and move by ``seconds``, within the session."""
        self.jump(self.t + seconds, now)

    def jump(self, t: float, now: float) -> None:
        """Stop at ``t``, or the nearest moment of the session."""
        self.running = False
        self._go(min(max(t, 0.0), now))

    def look_back(self, t: float, now: float) -> None:
        """Stop at ``t``, or the nearest moment of the session, near the window's right edge."""
        self.jump(t, now)
        self.left = self._page(self.t)

    def zoom(self, steps: int, now: float) -> None:
        """Zoom in (positive ``steps``) or out, at most to the whole session."""
        at = min(range(len(WIDTHS)), key=lambda i: abs(WIDTHS[i] - self.width))
        whole = next((i for i, width in enumerate(WIDTHS) if width >= now), len(WIDTHS) - 1)
        share = (self.t - self.left) / self.width
        width = WIDTHS[min(max(at - steps, 0), max(whole, at))]
        if width == self.width:
            return
        self.width = width
        quarter = width / _QUARTERS
        if self.running:
            self.left = self._page(self.t)
        else:
            left = max(0.0, math.floor((self.t - share * width) / quarter + 0.5) * quarter)
            # At most a quarter of the window is empty, for moments not seen yet.
            self.left = min(left, self._page(self.seen))
            self._go(self.t)

    def change_speed(self, steps: int) -> None:
        """Play faster (positive ``steps``) or slower, by as many entries of ``SPEEDS``."""
        at = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - self.speed))
        self.speed = SPEEDS[min(max(at + steps, 0), len(SPEEDS) - 1)]

    def _go(self, t: float) -> None:
        self.t = t
        self.seen = max(self.seen, t)
        if t >= self.right or (self.running and t < self.left):
            self.left = self._page(t)
        elif t < self.left:
            quarter = self.width / _QUARTERS
            self.left = max(0.0, (math.floor(t / quarter) - 1) * quarter)

    def _page(self, t: float) -> float:
        """Return the left edge of the window that has ``t`` in its last quarter."""
        quarter = self.width / _QUARTERS
        return max(0, math.floor(t / quarter) - _QUARTERS + 1) * quarter


# --- how the user lists the flows: sorted, filtered, grouped, stacked, or one alone ---------------

COLUMNS = ("", "flow", "cc", "cwnd", "rtt", "goodput", "retr", "path")
"""Columns to sort by; the empty name stands for the order in which flows started."""

_WORDS = ("", "flow", "cc", "path")
"""Columns in ascending order by default; columns of numbers are in descending order."""

_LONGEST = 40
"""Longest filter in characters."""


Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=250)]


class Listing(msgspec.Struct, frozen=True):
    """Which flows table and plots show, and in which order."""

    column: Word = ""
    """Column that the table is sorted by, one of ``COLUMNS``."""
    reverse: bool = False
    """Whether the order of the table is reversed."""
    text: Word = ""
    """Text that the name, algorithm or a host of a listed flow contains; empty lists all flows."""
    typing: bool = False
    """Whether typed keys extend the filter."""
    alone: bool = False
    """Whether plots draw the selected flow alone."""
    grouped: bool = False
    """Whether all flows of an algorithm share one line."""
    stacked: bool = False
    """Whether plots of rates and queues stack values that add up."""

    @property
    def descending(self) -> bool:
        """Whether the greatest value is listed first."""
        return (self.column not in _WORDS) != self.reverse

    def next_column(self) -> Listing:
        """Return this listing sorted by the next column, in that column's default order."""
        at = COLUMNS.index(self.column) + 1
        return replace(self, column=COLUMNS[at % len(COLUMNS)], reverse=False)

    def typed(self, key: str, character: str | None) -> Listing:
        """Return this listing after a key typed into the filter."""
        if key == "escape":
            return replace(self, text="", typing=False)
        if key == "enter":
            return replace(self, typing=False)
        if key == "backspace":
            return replace(self, text=self.text[:-1])
        if character and character.isprintable() and len(self.text) < _LONGEST:
            return replace(self, text=self.text + character)
        return self
