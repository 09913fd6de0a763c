"""The newest messages to all browsers, each of which reads them at its own pace."""

from __future__ import annotations

import asyncio
from collections import deque

MOST_MESSAGES = 200
"""Largest number of messages kept, some 30 s of them; a browser further behind starts again."""

MOST_BYTES = 4 << 20
"""Largest size in bytes of all messages kept."""


class Broadcast:
    """The newest messages to all browsers; one more browser costs only its own transmission."""

    def __init__(self) -> None:
        self.first = 0
        """Number of the oldest message kept."""
        self.closed = False
        """Whether no more messages follow."""
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._news = asyncio.Event()

    @property
    def end(self) -> int:
        """Number of the next message."""
        return self.first + len(self._messages)

    def put(self, message: bytes) -> None:
        """Add a message and wake all browsers' tasks; discard old messages beyond the limits."""
        self._messages.append(message)
        self._bytes += len(message)
        while len(self._messages) > MOST_MESSAGES or (
            self._bytes > MOST_BYTES and len(self._messages) > 1
        ):
            self._bytes -= len(self._messages.popleft())
            self.first += 1
        self._wake()

    def close(self) -> None:
        """End the broadcast; no more messages follow."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> bytes | None:
        """Return all messages from ``number`` on; None if that one is no longer kept."""
        if number < self.first:
            return None
        return b"".join(self._messages[at - self.first] for at in range(number, self.end))

    async def more(self, number: int) -> bool:
        """Wait for the message with this number; return False if none will follow."""
        while number >= self.end and not self.closed:
            await self._news.wait()
        return number < self.end

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
