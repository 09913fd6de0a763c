"""Reads a process's output line by line: as fast as it comes, or once per frame of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

CHUNK = 1 << 16
"""Bytes read at once."""

_MOST_WAITING = 1 << 14
"""Most bytes of a read after which the next read may wait; a pipe holds four times as many."""

LONGEST_WAIT_S = 0.25
"""Seconds after which a waiting reader resumes by itself."""


class Gate:
    """Makes the reader of a pipe sleep between two frames.

    Waking up for each sweep costs more than reading it.
    """

    def __init__(self) -> None:
        self._waits = False
        self._frame: asyncio.Future[None] | None = None

    def open(self, *, then_wait: bool) -> None:
        """Release the reader; with ``then_wait``, it pauses again after what has arrived."""
        self._waits = then_wait
        self._release()

    async def pass_through(self, read: int, pipe: asyncio.ReadTransport) -> None:
        """Pause ``pipe`` until the gate opens, unless ``read``, the bytes just read, were many."""
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
    """Yield the lines of a stream, each cut to ``longest`` bytes.

    ``last`` includes a final line without a newline; a ``gate`` may delay the next read. The
    sender may be an untrusted machine: an endless line takes no more memory.
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
    """Read a stream to its end and discard the content."""
    while stream is not None and await stream.read(CHUNK):
        pass
