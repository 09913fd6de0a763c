"""The past for pages: values of each line in columns of a time window, shared by browsers."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from typing import Any

import msgspec

from ccplay.session.session import Session
from ccplay.web.feed import Feed, deltas
from ccplay.web.lines import columns

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

    def __init__(self, session: Session, feed: Feed) -> None:
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
