"""Detects standstills of this process: suspended by Ctrl-Z or SIGSTOP, or starved of CPU."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

_BEAT_S = 0.1
MOST_STANDSTILL_S = 1.0
"""Seconds that a reported standstill exceeds: labs continue meanwhile, but not their timelines."""


@contextlib.asynccontextmanager
async def standstills(notice: Callable[[float], None]) -> AsyncIterator[None]:
    """Call ``notice`` with the length in seconds of every standstill during the block."""
    task = asyncio.create_task(_beat(notice))
    try:
        yield
    finally:
        task.cancel()


async def _beat(notice: Callable[[float], None]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(_BEAT_S)
        stood_s = time.monotonic() - before - _BEAT_S
        if stood_s > MOST_STANDSTILL_S:
            notice(stood_s)
