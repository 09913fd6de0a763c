"""The messages to a page: values of all lines on a grid of moments, and windows of the past."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from ccplay.session.session import Session
from ccplay.share.frames import Board, Shown
from ccplay.share.web import facts
from ccplay.share.web.facts import Drawn, columns, lesson, lines, value

# --- the messages to a page: facts that changed, all lines on a grid of moments -------------------

_encoder = msgspec.json.Encoder()

STEPS_MS = (50, 100, 200, 500, 1000)
"""Possible steps of the grid in ms; the shortest that keeps to ``VALUES_S`` is used."""

VALUES_S = 2400
"""Largest number of values per second of all lines together, which is some 6 kB/s per browser."""

_FACTS_S = 0.25
"""Interval in seconds at which facts are checked for changes."""

_APART_S = 0.05
"""Shortest time in seconds between checks if the log or the page of a lesson has changed."""

_MOST_BEHIND = 40
"""Largest number of moments in a frame; older moments are available in windows of the past."""


def message(kind: str, content: Any) -> bytes:
    """Return a server-sent event: a line with its kind, and a line of JSON."""
    return b"event: " + kind.encode() + b"\ndata: " + _encoder.encode(content) + b"\n\n"


class PageFeed:
    """The messages of a session to pages; a page needs the opening and all later messages."""

    def __init__(self, session: Session, *, votes: bool = False) -> None:
        """Make messages from ``session``; ``votes`` is whether browsers can vote in a lesson."""
        self.windows = Windows(session, self)
        """Windows of the past, for a page that looks back."""
        self._session = session
        self._votes = votes
        self.lines: list[Drawn] = []
        """The lines so far; a line's index is its number."""
        self._last: list[int | None] = []
        self._at = -1
        self._step_ms = STEPS_MS[0]
        self._sent: dict[str, bytes] = {}
        self._logged: dict[int, list[Any]] = {}
        self._looked = -math.inf
        self._shown: tuple[Board | None, int] = (None, 0)
        """The page of a lesson and the number of events at the last check."""
        self._view: Shown | None = None

    def opening(self) -> bytes:
        """Return the first message of a page: the whole state."""
        state = self._session.state
        return message(
            "opening",
            {
                "title": self._session.title,
                "recorded": self._session.recorded,
                "now": round(state.now, 3),
                "facts": {name: msgspec.Raw(each) for name, each in self._sent.items()},
                "lines": [facts.described(each) for each in self.lines],
                "last": self._last,
                "log": list(self._logged.values()),
                "view": self._view,
            },
        )

    def messages(self, now: float, view: Shown | None, board: Board | None = None) -> bytes:
        """Return new messages; ``now`` is a clock in seconds, ``board`` a lesson's page."""
        found = b""
        if view is not None and view is not self._view:
            self._view = view
            found += message("view", view)
        since, shown = now - self._looked, (board, len(self._session.state.log))
        if since >= _FACTS_S or (since >= _APART_S and shown != self._shown):
            self._looked, self._shown = now, shown
            found += self._changes(board)
        return found + self._frame()

    def _changes(self, board: Board | None) -> bytes:
        state = self._session.state
        changed: dict[str, Any] = {}
        known = {**facts.facts(state), "lesson": lesson(board, votes=self._votes)}
        for name, fact in known.items():
            encoded = _encoder.encode(fact)
            if self._sent.get(name) != encoded:
                self._sent[name] = encoded
                changed[name] = msgspec.Raw(encoded)
        found = message("facts", changed) if changed else b""
        announced = {each.key for each in self.lines}
        if fresh := [each for each in lines(state) if each.key not in announced]:
            self.lines += fresh
            self._last += [None] * len(fresh)
            found += message("lines", [facts.described(each) for each in fresh])
            least = len(self.lines) / VALUES_S * 1000
            step_ms = next((each for each in STEPS_MS if each >= least), STEPS_MS[-1])
            if step_ms != self._step_ms:
                self._step_ms, self._at = step_ms, -1
        logged = {each[0]: each for each in facts.log(state)}
        if rows := [each for at, each in logged.items() if self._logged.get(at) != each]:
            found += message("log", rows)
        self._logged = logged
        return found

    def _frame(self) -> bytes:
        """Return the values at the moments of the grid since the last frame."""
        state = self._session.state
        step = self._step_ms / 1000
        until = int(state.now / step)
        first = max(self._at + 1, until - _MOST_BEHIND + 1) if self._at >= 0 else until
        self._at = max(until, self._at)
        if first > until or state.hello is None:
            return b""
        moments = [at * step for at in range(first, until + 1)]
        rows: list[Any] = []
        for number, line in enumerate(self.lines):
            values = [value(state, line, t, step) for t in moments]
            rows.append(_steps(values, self._last[number]))
            self._last[number] = values[-1]
        return message("frame", [self._step_ms, first, len(moments), rows])


def deltas(values: Sequence[int | None]) -> list[int | None] | int | None:
    """Return each value's difference from the previous known one; one value if all are equal."""
    if not values or all(each == values[0] for each in values):
        return values[0] if values else None
    return _differences(values, 0)


def _steps(values: Sequence[int | None], last: int | None) -> list[int | None] | int | None:
    """Return differences, the first one from the ``last`` value sent; 0 if nothing changed."""
    if all(each == last for each in values):
        return None if last is None else 0
    return _differences(values, last or 0)


def _differences(values: Sequence[int | None], known: int) -> list[int | None]:
    found: list[int | None] = []
    for each in values:
        found.append(None if each is None else each - known)
        known = known if each is None else each
    return found


# --- the past for pages: values of each line in columns of a time window, shared by browsers ------

COLUMNS = 500
"""Largest number of columns in a window."""

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Possible lengths of a column in seconds."""

_KEPT = 40
"""Largest number of computed windows kept for further requests."""

_TURN = 8
"""Number of lines computed between two pauses, in which live messages are sent."""

MOST_WAITING = 100
"""Largest number of requests for windows that wait at a time."""


class TooBusyError(Exception):
    """Raised if too many requests for windows wait."""


class Windows:
    """Windows of the past, each computed once and cached."""

    def __init__(self, session: Session, feed: PageFeed) -> None:
        self._session = session
        self._feed = feed
        self._known: OrderedDict[tuple[float, ...], bytes] = OrderedDict()
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def get(self, since: float, until: float) -> bytes:
        """Return the lines of a window as JSON. Raises ``TooBusyError``."""
        if self._waiting >= MOST_WAITING:
            raise TooBusyError
        self._waiting += 1
        try:
            async with self._turn:
                return await self._get(since, until)
        finally:
            self._waiting -= 1

    async def _get(self, since: float, until: float) -> bytes:
        now = self._session.state.now
        since, until = max(min(since, now), 0.0), max(min(until, now), 0.0)
        least = max(until - since, 0.0) / (COLUMNS - 50)
        step = next((each for each in _STEPS if each >= least), least)
        # Most followers request the same window a moment apart: the rounded start makes it one.
        first = math.floor(since / step / 25) * 25
        count = min(max(math.floor(until / step) - first, 1), COLUMNS)
        key = (step, first, count, len(self._feed.lines))
        if key not in self._known:
            self._known[key] = await self._made(first * step, step, count)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    async def _made(self, start: float, step: float, count: int) -> bytes:
        rows: list[Any] = []
        for number, line in enumerate(list(self._feed.lines)):
            low, high = columns(self._session.state, line, start, step, count)
            row: list[Any] = [deltas(low)]
            if low is not high:
                row.append(deltas(high))
            rows.append(row)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        content = {"from": start, "step": step, "count": count, "rows": rows}
        return msgspec.json.encode(content)
