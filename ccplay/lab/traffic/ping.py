"""A ping: ping(8) on a host, its replies, and which missing ones are lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from ccplay.lab.network.netns import Namespace
from ccplay.lab.traffic.gate import Entry
from ccplay.lab.traffic.holding import Hold
from ccplay.model.base import Event
from ccplay.model.traffic_commands import StartPing
from ccplay.model.traffic_events import PingEnded, PingSample, PingStarted

_ANSWER = re.compile(r"icmp_seq=(\d+) .*time[=<]([\d.]+) ms")
_NO_ANSWER = re.compile(r"no answer yet for icmp_seq=(\d+)")
_SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+)(?: packets)? received")

_FINDS_ITS_ADDRESS = Hold("connect")
"""ping(8) asks the kernel by that from where it will send, just before it does."""

_LATER_ANSWERS = 3
"""Number of later replies that make a missing one lost, like duplicate ACKs in RFC 5681: jitter may
reorder a few."""

_PATIENCE_S = 5.0
"""Seconds without any reply after which a ping counts as lost."""


def argv(address: str, interval_s: float, count: int | None, identifier: int) -> list[str]:
    """Return the command line: numeric, with a line for every ping without a reply yet.

    ``-U`` times replies as they reach ping: the kernel's own timestamp is taken as they come off
    the wire, before the delay at the end of the link.
    """
    limit = [] if count is None else ["-c", str(count)]
    options = ["-n", "-O", "-U", "-i", f"{interval_s:g}", "-e", str(identifier)]
    return ["ping", *options, *limit, address]


class Ledger:
    """Which pings are in flight, and which are lost."""

    def __init__(self, interval_s: float) -> None:
        self.sent = 0
        self.lost = 0
        self._patience = max(int(_PATIENCE_S / interval_s), _LATER_ANSWERS)
        self._waiting: dict[int, int] = {}
        """Number of later replies, by sequence number."""

    def read(self, line: str) -> list[tuple[int, float | None]]:
        """Process a line of ping's output; return its results: (number, RTT in microseconds).

        An RTT of None means that the ping was lost.
        """
        if match := _ANSWER.search(line):
            number = int(match[1])
            self._send_up_to(number)
            answered = self._waiting.pop(number, None) is not None
            lost = self._overtaken(number)
            # A duplicate, or one already counted as lost, changes nothing.
            return [*lost, (number, float(match[2]) * 1000)] if answered else lost
        if match := _NO_ANSWER.search(line):
            self._send_up_to(int(match[1]))
            return self._give_up([n for n in self._waiting if n <= self.sent - self._patience])
        if match := _SUMMARY.search(line):
            self._send_up_to(int(match[1]))
        return []

    def close(self) -> list[tuple[int, float | None]]:
        """Count pings still in flight as lost: ping has waited long enough."""
        return self._give_up(list(self._waiting))

    def _send_up_to(self, number: int) -> None:
        # iputils numbers pings from 1, so the last number equals the count in its summary.
        for each in range(self.sent + 1, number + 1):
            self._waiting[each] = 0
        self.sent = max(self.sent, number)

    def _overtaken(self, number: int) -> list[tuple[int, float | None]]:
        for each in self._waiting:
            if each < number:
                self._waiting[each] += 1
        return self._give_up([n for n, later in self._waiting.items() if later >= _LATER_ANSWERS])

    def _give_up(self, numbers: list[int]) -> list[tuple[int, float | None]]:
        for number in numbers:
            del self._waiting[number]
        self.lost += len(numbers)
        return [(number, None) for number in numbers]


class Ping:
    """A running ping. It ends by its count, by ``stop`` or because the program dies."""

    def __init__(
        self,
        command: StartPing,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        *,
        identifier: int,
    ) -> None:
        """``command`` has all its names; ``identifier`` marks the packets of this ping."""
        assert command.ping is not None  # noqa: S101
        assert command.src is not None  # noqa: S101
        assert command.dst is not None  # noqa: S101
        self.name = command.ping
        self.src, self.dst = command.src, command.dst
        self.ended = asyncio.Event()
        self._command = command
        self._emit, self._clock = emit, clock
        self._ledger = Ledger(command.interval_s)
        self._identifier = identifier
        self._asked = False

    async def start(self, namespace: Namespace, address: str, entry: Entry) -> None:
        """Start ping(8). Raises ``LabError`` if that fails."""
        command = self._command
        line = argv(address, command.interval_s, command.count, self._identifier)
        self._program, began = await entry.start(namespace, line, _FINDS_ITS_ADDRESS)
        self._emit(
            PingStarted(
                t=began,
                ping=self.name,
                src=self.src,
                dst=self.dst,
                interval_s=command.interval_s,
            )
        )
        self._attending = asyncio.create_task(self._attend())

    def begin_stop(self) -> None:
        """End it without waiting; pings still in flight do not count as lost."""
        if not self._asked:
            self._asked = True
            self._stopping = asyncio.create_task(self._program.stop())

    async def stop(self) -> None:
        """End it and wait until it has."""
        self.begin_stop()
        await self.ended.wait()

    async def _attend(self) -> None:
        async for line in self._program.lines():
            self._tell(self._ledger.read(line))
        await self._program.wait()
        complete = self._command.count is not None and self._ledger.sent >= self._command.count
        if not self._asked:
            self._tell(self._ledger.close())
        self.ended.set()
        self._emit(
            PingEnded(
                t=self._clock(),
                ping=self.name,
                sent=self._ledger.sent,
                lost=self._ledger.lost,
                error=None if self._asked or complete else self._program.last_words(),
            )
        )

    def _tell(self, decided: list[tuple[int, float | None]]) -> None:
        for number, rtt_us in decided:
            self._emit(PingSample(t=self._clock(), ping=self.name, seq=number, rtt_us=rtt_us))
