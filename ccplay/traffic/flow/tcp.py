"""A long-lived transfer: an iperf3 client and its one-off iperf3 server."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ccplay.assets import SUFFIX
from ccplay.errors import CcplayError, UnsupportedError
from ccplay.lab.probe import Counters
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.iperf import BEFORE_DATA, COOKIE_OCTETS, client_argv, server_argv
from ccplay.lab.traffic.monitor import MonitoredStreams
from ccplay.lab.traffic.program import Program
from ccplay.lab.traffic.site import Connected, Site
from ccplay.model.base import Event
from ccplay.model.events import Log
from ccplay.model.values import Monitored
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow

# --- moments at which a flow sent its first data or reached its limit -----------------------------

CLOSE_S = 0.0005
"""Seconds between readings while a flow may begin or reach its limit. With epoll it becomes 1 ms,
which is the precision of a flow's times."""

_REST = 0.02
"""Shortest pause between readings, as a share of the time waited so far. A lost SYN takes a second,
and the kernel's count of the time with outstanding data corrects the result."""

_CLOCK_MONOTONIC_COARSE = 6
_TICK_S = time.clock_getres(_CLOCK_MONOTONIC_COARSE)
"""Length of the kernel's tick in seconds, 1 to 10 ms, in which ``tcp_info`` counts the time with
outstanding data."""

NOTHING = Counters(cc="", bytes_acked=0, total_retrans=0)
"""Reading of a connection that is not open yet."""


class Reading(NamedTuple):
    """A reading of a flow."""

    t: float
    """Moment of the reading in seconds."""
    acked: int
    """Acknowledged payload in bytes, all streams together."""


def opening(unseen: float, seen: float, busy_s: float) -> float:
    """Return when a connection sent its first data: after ``unseen``, but by ``seen``.

    Data has been outstanding since then, at ``seen`` for at most ``busy_s``, which the kernel
    counts in whole ticks. The middle of the remaining interval has the smallest error.
    """
    latest = max(unseen, min(seen, seen - busy_s + _TICK_S))
    earliest = min(latest, max(unseen, seen - busy_s - _TICK_S))
    return (earliest + latest) / 2


def reaching(limit: int, before: Reading, after: Reading) -> float:
    """Return when ``limit`` bytes were acknowledged, interpolated between two readings."""
    gained = after.acked - before.acked
    if gained <= 0:
        return after.t
    share = max(limit - before.acked, 0) / gained
    return before.t + share * (after.t - before.t)


def look_for_opening_after_s(waited_s: float) -> float:
    """Return the time until the next reading of a flow that has not begun within ``waited_s``."""
    return max(CLOSE_S, waited_s * _REST)


def look_after_s(remaining: int, window: int, least_rtt_s: float) -> float:
    """Return the time until the next reading, before which the flow can't reach its limit.

    Data acknowledged within an RTT was in the window at its beginning, and the window at most
    doubles from one RTT to the next. ``remaining`` and ``window`` are in bytes.
    """
    rtts = int(math.log2(1 + max(remaining, 0) / max(window, 1)))
    return max(CLOSE_S, rtts * least_rtt_s)


def shortest_busy_s(before: Sequence[Counters], now: Sequence[Counters]) -> float:
    """Return the least time since ``before`` for which a connection with data had some outstanding.

    Longer times may include that of an outstanding cookie, which is not data.
    """
    # A connection that was not open yet has no earlier reading.
    known = before if len(before) == len(now) else [NOTHING] * len(now)
    pairs = zip(known, now, strict=True)
    return min(each.busy_s - was.busy_s for was, each in pairs if has_sent_data(each))


def has_sent_data(connection: Counters) -> bool:
    """Return whether more than the cookie was sent, counting each copy of it."""
    return connection.bytes_sent > COOKIE_OCTETS * (1 + connection.total_retrans)


# --- A long-lived transfer: an iperf3 client and its one-off iperf3 server ------------------------

_PATIENCE_S = 2.0
"""Seconds to wait for iperf3 to set the requested algorithm before the flow is reported anyway.
Setting it takes less than a millisecond, but the machine may be busy."""

_NETLINK_S = 0.01
"""Seconds that ending a bypass may keep the lab busy."""


class RunningFlow(Connected):
    """A running flow. It ends when it reaches a limit, is stopped, or a program dies."""

    hold, program = BEFORE_DATA, "iperf3"
    """Call at which the sender is held until its start, and name of both programs for messages."""

    def __init__(self, command: StartFlow, site: Site, emit: Callable[[Event], None]) -> None:
        """Prepare a flow with its own ports; ``emit`` receives its events."""
        super().__init__(command, site)
        self._emit, self._probe, self._bypass = emit, site.probe, site.bypass
        self.watched: MonitoredStreams | None = None
        """Streams that are monitored; set before the start if monitoring was requested."""
        self._command = command
        self.port, self.sports = site.ports.server(), site.ports.senders(command.streams)
        self.streams = [
            self.name if number == 1 else f"{self.name}/{number}"
            for number in range(1, command.streams + 1)
        ]
        self._read = Reading(0.0, 0)
        """Newest reading; before the first data, the latest moment at which none had been sent."""
        self._known: list[Counters] = []
        self._was_held = False
        self._opened: float | None = None
        """Moment of the first data, or of a stop before any was sent; None until then."""
        self._reported = False
        """Whether ``FlowStarted`` has been emitted."""
        self._settled = False
        """Whether sweeps need no attention: the start is reported and the bypass is closed."""
        self._stopped: float | None = None
        self._come_to: list[Counters] = []
        self._monitored: Monitored | None = None
        self._next_cc: str | None = None
        self._programs: list[Program] = []
        self._tasks: list[asyncio.Task[None] | asyncio.Task[int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None

    @property
    def asks_for_ecn(self) -> bool:
        """Whether the flow's connections request ECN even if its host does not."""
        return self._command.ecn or self._command.l4s

    @property
    def opening_under(self) -> str | None:
        """Algorithm requested for the flow's connections; None once they are open or have ended."""
        return None if self._reported or self.ended.is_set() else self._command.cc

    async def start(self, entry: GateEntry) -> None:
        """Start both programs; ``FlowStarted`` is emitted once data has been sent.

        Raises ``LabError`` with iperf3's own message if it does not start.
        """
        receiving, sending = self._commands(self._site.network.address(self.dst))
        server = await Program.start_server(
            self.receiver,
            receiving,
            self.program,
            what=f"flow {self.name}: {self.program} server",
            says="listening",
        )
        self._programs.append(server)
        server.ignore_output()
        if self.program == "iperf3":
            # Without a bypass it starts some round trips later.
            with contextlib.suppress(UnsupportedError):
                self._bypass.open(self.src, self.dst, self.port)
        ports = [(sport, self.port) for sport in self.sports]
        client, self.began = await entry.start(self.sender, sending, self.hold, self.program, ports)
        self._was_held = entry.holds
        self._read = Reading(self.began, 0)
        client.ignore_output()
        self._programs.append(client)
        self._track()
        self._tasks.append(asyncio.create_task(self._attend(server, client)))
        self._look_again(CLOSE_S)

    def _track(self) -> None:
        """Start sampling the connections, which may have been open but idle for seconds."""
        for number, (stream, sport) in enumerate(zip(self.streams, self.sports, strict=True)):
            self._probe.track(stream, self.src, sport=sport, dport=self.port)
            if self.watched is not None:
                self._probe.sample_delay(stream, partial(self.watched.delay_us, number))

    def abandon(self) -> None:
        """Remove everything that a failed start has left."""
        for program in self._programs:
            program.kill()
        self._bypass.close(self.src, self.dst, self.port)
        self._untrack()
        if self.watched is not None:
            self.watched.end()

    def connections(self) -> Iterable[tuple[str, int, tuple[str, str] | None]]:
        """Return each connection's name, source port and addresses; None for the hosts' own."""
        return [(*each, None) for each in zip(self.streams, self.sports, strict=True)]

    def _untrack(self) -> None:
        for stream in self.streams:
            self._probe.untrack(stream)

    def watch(self) -> None:
        """Process a sweep: data may have been sent, and the limit may be near."""
        if not self._settled and not self._over:
            self._take_reading()

    @property
    def _over(self) -> bool:
        return self.ended.is_set() or self._stopped is not None

    @property
    def _is_near(self) -> bool:
        """Whether the flow may reach its limit too soon to start a slow operation now."""
        return self._until_limit_s() < _NETLINK_S

    def _until_limit_s(self) -> float:
        """Return the shortest time in seconds until the flow's limit; infinite without one."""
        if self._command.bytes is None:
            return math.inf
        return look_after_s(
            self._command.bytes - self._read.acked,
            sum(each.window for each in self._known),
            min(each.least_rtt_s for each in self._known),
        )

    def _take_reading(self) -> None:
        before, t, known_before = self._read, self._probe.read_at(self.name), self._known
        if t <= before.t:
            return
        counters = [self._probe.counters(stream) for stream in self.streams]
        self._known = known = [each for each in counters if each is not None]
        self._read = now = Reading(t, sum(each.bytes_acked for each in known))
        if len(known) < len(counters) or not any(map(has_sent_data, known)):
            return
        if self._opened is None:
            busy_s = shortest_busy_s(known_before, known)
            self._opened = self.began if self._was_held else opening(before.t, now.t, busy_s)
            # It had sent nothing before, however old the previous reading is.
            before = Reading(self._opened, 0)
        if not self._reported and self._has_its_algorithm(known[0].cc):
            self._report_start(known[0])
        if any(each.bytes_acked > COOKIE_OCTETS for each in known) and not self._is_near:
            self._bypass.close(self.src, self.dst, self.port)
            self._settled = self._reported
        limit = self._command.bytes
        if limit is not None and now.acked >= limit:
            self._end_at(max(reaching(limit, before, now), self._opened), known)

    def _look(self) -> None:
        """Read the flow between two sweeps; schedule the next reading for when it may matter."""
        if self._over:
            return
        with contextlib.suppress(OSError):
            self._probe.glance(self.name)
            self._take_reading()
        if not self._reported:
            self._look_again(look_for_opening_after_s(self._clock() - self.began))
        elif self._command.bytes is not None:
            self._look_again(self._until_limit_s())

    def _look_again(self, after_s: float) -> None:
        self._looking = asyncio.get_running_loop().call_later(after_s, self._look)

    def _has_its_algorithm(self, cc: str) -> bool:
        """Return whether iperf3 has set the requested algorithm, or has had enough time to."""
        asked = self._command.cc
        if asked is None or self._opened is None or self._read.t - self._opened > _PATIENCE_S:
            return True
        return cc in (congestion.called(asked), f"{asked}-reno")

    def switch(self, cc: str) -> None:
        """Change the congestion control of all streams, now or when they open.

        Raises ``UnsupportedError`` or ``CommandError``.
        """
        if not self._reported:
            congestion.require(cc)
            self._next_cc = cc
        else:
            ports = [(sport, self.port) for sport in self.sports[: len(self.streams)]]
            congestion.switch(self._programs[-1].pid, ports, cc)

    async def stop(self) -> None:
        """End the flow and wait until it has ended."""
        self.begin_stop()
        # All values have been read, so its last messages are not needed.
        self._programs[-1].kill()
        await self.ended.wait()

    def begin_stop(self) -> None:
        """End the flow without waiting; bytes acknowledged so far count."""
        if self._over:
            return
        self._probe.glance(self.name)
        self._take_reading()
        if self._opened is None and self._known:
            # It has sent nothing yet, but connections are open.
            self._opened = self._read.t
        if self._stopped is None:
            self._end_at(self._read.t, self._counters())

    def _end_at(self, moment: float, counters: list[Counters]) -> None:
        """End the flow with these readings; its limit may be slightly before them."""
        if not self._reported and self._opened is not None:
            # It ran too briefly for its algorithm to be seen.
            self._report_start(counters[0])
        self._stopped, self._come_to = moment, counters
        self._monitored = self.watched.so_far() if self.watched else None
        self._tasks.append(asyncio.create_task(self._programs[-1].stop()))

    def _report_start(self, counters: Counters) -> None:
        assert self._opened is not None  # noqa: S101
        self._reported = True
        self._emit(
            FlowStarted(
                t=self._opened,
                flow=self.name,
                src=self.src,
                dst=self.dst,
                cc=counters.cc,
                port=self.port,
                streams=len(self.streams),
                ecn=counters.ecn,
                mptcp=self._command.mptcp,
            )
        )
        if self.asks_for_ecn and not counters.ecn:
            text = (
                f"flow {self.name} has no ECN: {self.dst} does not agree (sysctl net.ipv4.tcp_ecn) "
                "or its first SYN was lost, and the next one does not request it"
            )
            self._log("warning", text)
        asked = self._command.cc
        why = congestion.NEED_ECN.get((asked or "").removesuffix(SUFFIX))
        if why is not None and not counters.ecn:
            # The kernel's is then called dctcp-reno; ours keeps its name, and gets no CE marks.
            self._log("warning", f"flow {self.name} runs {counters.cc!r} like Reno: {why}")
        if self._command.duration_s is not None:
            left_s = self._opened + self._command.duration_s - self._clock()
            self._timer = asyncio.get_running_loop().call_later(max(left_s, 0.0), self.begin_stop)
        if self._next_cc is not None:
            try:
                self.switch(self._next_cc)
            except CcplayError as error:
                self._log("error", str(error))

    def _counters(self) -> list[Counters]:
        return [self._probe.counters(stream) or NOTHING for stream in self.streams]

    def _log(self, level: str, text: str) -> None:
        self._emit(Log(t=self._clock(), level=level, text=text))

    async def _attend(self, server: Program, client: Program) -> None:
        """Wait until the client has ended, end the server, and report the end of the flow."""
        await client.wait()
        error = None if self._stopped is not None else client.last_words()
        if error:
            # If the receiver died first, that may be reported a moment later.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(server.wait()), 0.2)
        if error and server.ended:
            error += f" (receiver: {server.last_words()})"
        # The reset that follows discards what is still in the sender's buffer.
        server.kill()
        await server.wait()
        self._bypass.close(self.src, self.dst, self.port)
        for timer in filter(None, (self._timer, self._looking)):
            timer.cancel()
        end = self._stopped if self._stopped is not None else self._clock()
        counters = self._come_to or self._counters()
        acked = sum(each.bytes_acked for each in counters)
        self._untrack()
        if self.watched is not None:
            self._monitored = self._monitored or self.watched.so_far()
            self.watched.end()
        self._emit(
            FlowEnded(
                t=self._clock(),
                flow=self.name,
                bytes=acked if self._command.bytes is None else min(acked, self._command.bytes),
                duration_s=end - self._opened if self._opened is not None else 0.0,
                retransmits=sum(each.total_retrans for each in counters),
                sent=sum(each.bytes_sent for each in counters),
                error=error,
                monitored=self._monitored,
            )
        )
        self.ended.set()

    def _commands(self, address: str) -> tuple[list[str], list[str]]:
        """Return the command lines of receiver and sender."""
        cc = congestion.require(self._command.cc) if self._command.cc else ""
        ports = self.port, self.sports[0]
        sending = client_argv(address, ports, len(self.streams), cc, self._command.dscp)
        return server_argv(self.port), sending
