"""Interrupts a call into the user's code that takes too long, by an exception at its current line.

While a discipline computes, no packet of any link leaves, so an endless loop would stop all links.
A timer checks twice per ``LIMIT_S`` whether the same call is still running. C code, such as ``sum``
of an endless iterator, can't be interrupted.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_S = 0.5
"""Seconds after which a call is interrupted, or up to half of that later."""


class _Call:
    """The state of the call that is running."""

    number = 0
    running = False
    seen = 0
    looks = 0
    watched = False


def watch() -> None:
    """Start watching calls; works only in the main thread of a process."""
    if not _Call.watched:
        _Call.watched = True
        signal.signal(signal.SIGALRM, _look)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S / 2, LIMIT_S / 2)


@contextmanager
def watched() -> Iterator[None]:
    """Watch calls during the block; works only in the main thread of a process."""
    before = signal.getsignal(signal.SIGALRM)
    watch()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _Call.watched = False


@contextmanager
def limited() -> Iterator[None]:
    """Limit the time of a block while calls are watched.

    Raises ``TimeoutError`` at the line that is running then.
    """
    _Call.number += 1
    _Call.running = True
    try:
        yield
    finally:
        _Call.running = False


def _look(_number: int, _frame: FrameType | None) -> None:
    if not _Call.running or _Call.seen != _Call.number:
        _Call.seen, _Call.looks = _Call.number, 0
        return
    _Call.looks += 1
    if _Call.looks >= 2:
        _Call.looks = 0
        raise TimeoutError(f"it is still computing after {LIMIT_S:g} s")
