"""A ping from one host to another, its replies, and which missing replies count as lost."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path

from ccplay.errors import LabError
from ccplay.lab.htb import datagrams, echo_packets
from ccplay.lab.netns import Namespace
from ccplay.lab.traffic.gate import Entry
from ccplay.lab.traffic.program import Hold, Program
from ccplay.lab.traffic.site import Site
from ccplay.model.algorithms import type_of_service
from ccplay.model.base import Event
from ccplay.traffic.ping import PingEnded, PingSample, PingStarted, StartPing

_ANSWER = re.compile(r"seq=(\d+) .*time[=<]([\d.]+) ms")
_NO_ANSWER = re.compile(r"no answer yet for (?:icmp_)?seq=(\d+)")
_SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+)(?: packets)? received")

_FINDS_ITS_ADDRESS = Hold("connect")
"""Hold just before a ping sends, at the call by which ping(8) and ``udp_echo`` find their source
address."""

_UDP_ECHO = Path(__file__).with_name("udp_echo.py")

_LATER_ANSWERS = 3
"""Number of later replies after which a missing one counts as lost, like duplicate ACKs in RFC
5681: jitter may reorder a few."""

_PATIENCE_S = 5.0
"""Seconds after which a ping without a reply counts as lost, even if no later reply arrives."""


def argv(address: str, command: StartPing, identifier: int) -> list[str]:
    """Return the command line: numeric, with a line for every ping without a reply yet.

    ``-U`` times replies as they reach ping: the kernel's own timestamp is taken as they come off
    the wire, before the delay at the end of the link.
    """
    limit = [] if command.count is None else ["-c", str(command.count)]
    tos = type_of_service(command.dscp)
    service = ["-Q", str(tos)] if tos else []
    options = ["-n", "-O", "-U", "-i", f"{command.interval_s:g}", "-e", str(identifier)]
    return ["ping", *options, *service, *limit, address]


class Ledger:
    """The pings in flight, and those that are lost."""

    def __init__(self, interval_s: float) -> None:
        self.sent = 0
        self.lost = 0
        self._patience = max(int(_PATIENCE_S / interval_s), _LATER_ANSWERS)
        self._waiting: dict[int, int] = {}
        """Number of later replies for each ping in flight, by sequence number."""

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
    """A running ping. It ends after its count, when stopped, or when the program dies."""

    def __init__(
        self,
        command: StartPing,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        *,
        identifier: int,
        sport: int,
    ) -> None:
        """Prepare a ping; ``command`` has all names, and ``identifier`` identifies its packets.

        Over UDP ``identifier`` is the destination port of datagrams, ``sport`` the source port.
        """
        assert command.ping is not None  # noqa: S101
        assert command.src is not None  # noqa: S101
        assert command.dst is not None  # noqa: S101
        self.name = command.ping
        self.src, self.dst = command.src, command.dst
        self.ended = asyncio.Event()
        self._command = command
        self._emit, self._clock = emit, clock
        self._ledger = Ledger(command.interval_s)
        self._identifier, self._sport = identifier, sport
        self._receiver: Program | None = None
        self._asked = False

    async def start(
        self, receiver: Namespace, address: str, sender: Namespace, entry: Entry
    ) -> None:
        """Start the programs of the ping. Raises ``LabError`` if that fails."""
        command = self._command
        line = argv(address, command, self._identifier)
        if command.protocol == "udp":
            line = await self._start_receiver(receiver, address)
        try:
            self._program, began = await entry.start(sender, line, _FINDS_ITS_ADDRESS)
        except BaseException:
            if self._receiver is not None:
                self._receiver.kill()
            raise
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

    async def _start_receiver(self, namespace: Namespace, address: str) -> list[str]:
        """Start the receiver of datagrams; return the command line of the sender."""
        command, port = self._command, str(self._identifier)
        tos = str(type_of_service(command.dscp))
        script = [sys.executable, "-I", "-S", str(_UDP_ECHO)]
        self._receiver = await Program.start(
            namespace, [*script, "receive", port, tos], _UDP_ECHO.stem
        )
        if not await self._receiver.prints("ready"):
            await self._receiver.stop()
            raise LabError(f"ping {self.name}: {self._receiver.last_words()}")
        self._receiver.ignore_output()
        to = [address, port, str(self._sport)]
        return [*script, "send", *to, f"{command.interval_s:g}", str(command.count or 0), tos]

    def begin_stop(self) -> None:
        """Stop the ping without waiting; requests in flight do not count as lost."""
        if not self._asked:
            self._asked = True
            self._stopping = asyncio.create_task(self._program.stop())

    async def stop(self) -> None:
        """Stop the ping and wait for its end."""
        self.begin_stop()
        await self.ended.wait()

    async def _attend(self) -> None:
        async for line in self._program.lines():
            self._report(self._ledger.read(line))
        await self._program.wait()
        if self._receiver is not None:
            await self._receiver.stop()
        complete = self._command.count is not None and self._ledger.sent >= self._command.count
        if not self._asked:
            self._report(self._ledger.close())
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

    def _report(self, decided: list[tuple[int, float | None]]) -> None:
        for number, rtt_us in decided:
            self._emit(PingSample(t=self._clock(), ping=self.name, seq=number, rtt_us=rtt_us))


async def start(command: StartPing, site: Site, entry: Entry) -> tuple[StartPing, Ping]:
    """Start the programs of a ping."""
    name, src, dst = command.ping or "", command.src or "", command.dst or ""
    address = site.address(dst)
    if command.protocol == "udp":
        identifier = site.ports.server()
        packets = datagrams("pings", name, address, identifier)
    else:
        identifier = site.ports.echo()
        packets = echo_packets(name, identifier)
    (sport,) = site.ports.senders(1)
    ping = Ping(command, site.emit, site.clock, identifier=identifier, sport=sport)
    with site.admitted(packets):
        await ping.start(site.namespace(dst), address, site.namespace(src), entry)
    return command, ping
