"""A ping from one host to another, its replies, and which missing replies count as lost."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from ccplay.lab.htb import Keys, port_keys, protocol_keys
from ccplay.lab.paths import DATAGRAMS
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.program import Hold, Program, script_argv
from ccplay.lab.traffic.site import Running, Site
from ccplay.model.algorithms import type_of_service
from ccplay.traffic.ping import PING_PROTOCOLS, PingEnded, PingSample, PingStarted, StartPing

_ANSWER = re.compile(r"seq=(\d+) .*time[=<]([\d.]+) ms")
_NO_ANSWER = re.compile(r"no answer yet for (?:icmp_)?seq=(\d+)")
_SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+)(?: packets)? received")

_FINDS_ITS_ADDRESS = Hold("connect")
"""Hold just before a ping sends, at the call by which ping(8) and ``echo`` find their source
address."""

_ECHO = Path(__file__).with_name("echo.py")

_ICMP = 1
"""Number of the protocol of echo requests and replies, whose identifier (RFC 792) is a ping's."""

_LATER_ANSWERS = 3
"""Number of later replies after which a missing one counts as lost, like duplicate ACKs in RFC
5681: jitter may reorder a few."""

_PATIENCE_S = 5.0
"""Seconds after which a ping without a reply counts as lost, even if no later reply arrives."""


def argv(address: str, command: StartPing, identifier: int) -> list[str]:
    """Return the command line of an ICMP ping, which prints a line for every missing reply.

    A limited number is sent by ``echo``: after the last, ping(8) waits for replies for two round
    trips or one interval only. ``-U`` times replies as they reach ping: the kernel's own timestamp
    is taken as they come off the wire, before the delay at the end of the link.
    """
    every, number, tos = f"{command.interval_s:g}", str(identifier), type_of_service(command.dscp)
    if command.count is None:
        return ["ping", "-n", "-O", "-U", "-i", every, "-e", number, "-Q", str(tos), address]
    return script_argv(_ECHO, "icmp", address, number, every, str(command.count), str(tos))


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
        # Pings are numbered from 1, so the last number equals the count in its summary.
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


class RunningPing(Running):
    """A running ping. It ends after its count, when stopped, or when the program dies."""

    def __init__(self, command: StartPing, site: Site, identifier: int) -> None:
        """Prepare a ping; ``identifier`` identifies its packets: over UDP, by their port."""
        super().__init__(command, site)
        self._command, self._identifier = command, identifier
        self._ledger = Ledger(command.interval_s)
        self._echo: Program | None = None

    async def start(self, entry: GateEntry) -> None:
        """Start the programs of the ping. Raises ``LabError`` if that fails."""
        command, address = self._command, self._site.network.address(self.dst)
        line = argv(address, command, self._identifier)
        if command.protocol != PING_PROTOCOLS[0]:
            line = await self._start_echo(address)
        try:
            self._program, began = await entry.start(self.sender, line, _FINDS_ITS_ADDRESS)
        except BaseException:
            if self._echo is not None:
                self._echo.kill()
            raise
        self._emit(
            PingStarted(
                t=began, ping=self.name, src=self.src, dst=self.dst, interval_s=command.interval_s
            )
        )
        self._attending = asyncio.create_task(self._attend())

    async def _start_echo(self, address: str) -> list[str]:
        """Start the program that returns datagrams; return the command line of the sender."""
        command, port = self._command, str(self._identifier)
        (sport,) = self._site.ports.senders(1)
        tos = str(type_of_service(command.dscp))
        receiving = script_argv(_ECHO, "receive", port, tos)
        self._echo = await Program.start_server(
            self.receiver, receiving, _ECHO.stem, what=f"ping {self.name}"
        )
        self._echo.ignore_output()
        often = f"{command.interval_s:g}", str(command.count or 0)
        return script_argv(_ECHO, "send", address, port, str(sport), *often, tos)

    async def _attend(self) -> None:
        async for line in self._program.lines():
            self._report(self._ledger.read(line))
        await self._program.wait()
        if self._echo is not None:
            await self._echo.stop()
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


async def start(command: StartPing, site: Site, entry: GateEntry) -> tuple[StartPing, RunningPing]:
    """Start the programs of a ping."""
    if command.protocol == PING_PROTOCOLS[0]:
        identifier = site.ports.echo()
        keys: tuple[Keys, ...] = ((*protocol_keys(_ICMP), f"{identifier:#x}/0xffff+24"),)
    else:
        identifier = site.ports.server()
        keys = port_keys(DATAGRAMS, site.network.address(command.dst or ""), identifier)
    ping = RunningPing(command, site, identifier)
    with site.selected(command, *keys):
        await ping.start(entry)
    return command, ping
