"""Reads what a process writes, line by line: as fast as it comes, or once a frame of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

CHUNK = 1 << 16
"""Bytes read at once."""

_MOST_WAITING = 1 << 14
"""Bytes of one reading up to which the next may wait: a pipe holds four times as many."""

LONGEST_WAIT_S = 0.25
"""Seconds after which reading goes on without being asked to."""


class Gate:
    """Lets the reader of a pipe sleep between two frames.

    To wake up for each sweep costs more than to read it.
    """

    def __init__(self) -> None:
        self._waits = False
        self._frame: asyncio.Future[None] | None = None

    def open(self, *, then_wait: bool) -> None:
        """Have all read that has arrived, and with ``then_wait`` nothing more for a while."""
        self._waits = then_wait
        self._release()

    async def pass_through(self, read: int, pipe: asyncio.ReadTransport) -> None:
        """Wait until the pipe may be read on, after ``read`` bytes; much never waits."""
        if not self._waits or read > _MOST_WAITING:
            return
        loop = asyncio.get_running_loop()
        self._frame = loop.create_future()
        timer = loop.call_later(LONGEST_WAIT_S, self._release)
        pipe.pause_reading()
        try:
            await self._frame
        finally:
            timer.cancel()
            pipe.resume_reading()

    def _release(self) -> None:
        if self._frame is not None and not self._frame.done():
            self._frame.set_result(None)


async def lines(
    stream: asyncio.StreamReader | None,
    longest: int,
    *,
    last: bool = False,
    gate: tuple[Gate, asyncio.ReadTransport] | None = None,
) -> AsyncGenerator[bytes]:
    """Yield lines, each cut to its ``longest`` bytes, and the ``last`` one without an end or not.

    With a ``gate`` it waits for that between two readings. The other side may be an untrusted
    machine: an endless line takes no more memory.
    """
    rest = bytearray()
    while stream is not None and (chunk := await stream.read(CHUNK)):
        first, *others = chunk.split(b"\n")
        rest += first[: max(longest - len(rest), 0)]
        for other in others:
            yield bytes(rest)
            rest = bytearray(other[:longest])
        if gate is not None:
            await gate[0].pass_through(len(chunk), gate[1])
    if last and rest:
        yield bytes(rest)


async def drop(stream: asyncio.StreamReader | None) -> None:
    """Read to the end and discard it."""
    while stream is not None and await stream.read(CHUNK):
        pass
