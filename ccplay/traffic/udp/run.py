"""Cross traffic: iperf3 sends UDP at a constant rate to its own iperf3 server."""

from __future__ import annotations

import asyncio
import contextlib
import re

from ccplay.errors import LabError, UnsupportedError
from ccplay.lab.htb import Keys, port_keys
from ccplay.lab.paths import DATAGRAMS, STREAMS, Packets
from ccplay.lab.traffic.gate import GateEntry, passed
from ccplay.lab.traffic.iperf import BEFORE_DATAGRAMS, server_argv, stops_in_time
from ccplay.lab.traffic.monitor import MonitoredStreams, Stream
from ccplay.lab.traffic.program import Program
from ccplay.lab.traffic.site import Running, Site
from ccplay.model.values import Monitored
from ccplay.traffic.udp import StartUdp, UdpEnded, UdpSample, UdpStarted

_SUMMARY = re.compile(r"-(\d+\.\d+)\s+sec.* (\d+\.\d+) ms\s+(\d+)/(\d+) \(.*(sender|receiver)")
"""Last line of either end: seconds, jitter in ms, lost packets, all packets, and which end."""

_INTERVAL = re.compile(r"\[ *\d+\] .* ms  *(-?\d+)/(\d+) \([^)]*\)\s*$")
"""Line of the receiver while it runs: lost packets of an interval, and all packets of it."""

_PATIENCE_S = (5.0, 10.0, 20.0)
"""Seconds to wait for the first packets, by attempt. iperf3 sends its first datagram only once: if
that is lost, iperf3 has to be restarted."""

_AGREED_S = 0.1
"""Seconds to allow between the sender's message that it is connected and the receiver's permission
to send. They are well below a millisecond apart, but the machine may be busy."""

_GRACE_S = 20.0
"""Seconds within which a receiver learns of the end: by TCP, through the queue that UDP filled. 100
packets at 100 kbit/s take 9 s."""

_HEED_S = 5.0
"""Seconds that iperf3 may take after an interrupt to print its counters: it needs milliseconds, but
the machine may be busy."""

_SAMPLE_S = 0.1
"""Interval between counts in seconds, the shortest that iperf3 supports."""


def client_argv(
    command: StartUdp, address: str, port: int, sport: int, *, itself: bool
) -> list[str]:
    """Return the sender's command line, which with ``itself`` ends after the command's duration."""
    limit = ("-t", "0")
    if itself and command.duration_s is not None:
        # Its own -t takes only whole seconds.
        limit = ("-n", str(_packets(command, command.duration_s) * command.packet_bytes))
    return [
        # Otherwise it reports only at its end that it has begun to send.
        *("stdbuf", "-oL"),
        *("iperf3", "-c", address, "-p", str(port), "--cport", str(sport)),
        *("-u", "--forceflush", "-i", "0"),
        *("-b", str(command.rate_bps), "-l", str(command.packet_bytes)),
        *limit,
    ]


def _packets(command: StartUdp, duration_s: float) -> int:
    """Return the number of packets that are due within a duration, the first at its beginning."""
    return max(round(command.rate_bps / 8 * duration_s / command.packet_bytes), 1)


def _sending_s(command: StartUdp, duration_s: float) -> float:
    """Return when to stop a sender that has no limit of its own, in seconds after its first packet.

    That is midway between the last packet due and the next one, which it would send at the end.
    """
    return (_packets(command, duration_s) - 0.5) * command.packet_bytes * 8 / command.rate_bps


class Lines:
    """Values in the lines of iperf3 at both ends."""

    def __init__(self) -> None:
        self.reached_so_far = 0
        """Packets sent up to the newest one received, while it runs."""
        self.received_so_far = 0
        self.sent: int | None = None
        self.received: int | None = None
        self.reached: int = 0
        """Packets sent up to the newest one received, at the end."""
        self.jitter_us: float | None = None
        self.sending_s: float | None = None

    def read(self, line: str, end: str) -> bool:
        """Process a line of the ``sender`` or the ``receiver``; return whether more arrived."""
        if end == "receiver" and (match := _INTERVAL.match(line)) is not None:
            self.reached_so_far += int(match[2])
            self.received_so_far += int(match[2]) - int(match[1])
            return self.reached_so_far > 0
        # A sender repeats the values of the receiver.
        if (match := _SUMMARY.search(line)) is None or match[5] != end:
            return False
        if end == "sender":
            self.sent, self.sending_s = int(match[4]), float(match[1])
        else:
            self.reached = int(match[4])
            self.received = self.reached - int(match[3])
            self.jitter_us = float(match[2]) * 1000
        return False


class RunningUdp(Running):
    """Running cross traffic. It ends after its duration, when stopped, or when a program dies."""

    def __init__(self, command: StartUdp, site: Site) -> None:
        """Prepare; no other traffic uses its ports."""
        super().__init__(command, site)
        self.port, (self.sport,) = site.ports.server(), site.ports.senders(1)
        self.watched: MonitoredStreams | None = None
        """Streams that are monitored; set before the start if monitoring was requested."""
        self._command, self._bypass = command, site.bypass
        self._account = Lines()
        self._sends = asyncio.Event()
        self._started: float | None = None
        self._stopped: float | None = None
        self._drained = True
        self._sampling: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, entry: GateEntry) -> None:
        """Start both programs; ``UdpStarted`` is emitted when the first packets are sent.

        Raises ``LabError`` with iperf3's own message if it does not start.
        """
        await self._start_programs(entry)
        self._attending = asyncio.create_task(self._attend())

    def begin_stop(self) -> None:
        """End the traffic without waiting."""
        if self._stopped is None and not self.ended.is_set():
            self._stopped = self._clock()
            self._sends.set()
            self._stopping = asyncio.create_task(self._program.stop(_HEED_S))

    async def stop(self) -> None:
        """End the traffic and wait until it has ended, but not for packets in flight."""
        self.begin_stop()
        await self._ask_server()
        await self.ended.wait()

    async def _start_programs(self, entry: GateEntry) -> None:
        self._server = await Program.start_server(
            self.receiver,
            server_argv(self.port, _SAMPLE_S),
            "iperf3",
            what=f"UDP {self.name}: iperf3 server",
            says="listening",
        )
        # Without a bypass it starts some round trips later.
        with contextlib.suppress(UnsupportedError):
            self._bypass.open(self.src, self.dst, self.port)
        self._ends_itself = await stops_in_time()
        address = self._site.network.address(self.dst)
        argv = client_argv(self._command, address, self.port, self.sport, itself=self._ends_itself)
        try:
            self._program, self._released_at = await entry.start(
                self.sender, argv, BEFORE_DATAGRAMS, "iperf3"
            )
        except BaseException:
            self._server.kill()
            self._bypass.close(self.src, self.dst, self.port)
            if self.watched is not None:
                self.watched.end()
            raise
        self._was_held = entry.holds
        self._reading = [
            asyncio.create_task(self._read(self._program, "sender")),
            asyncio.create_task(self._read(self._server, "receiver")),
        ]

    async def _read(self, program: Program, end: str) -> None:
        async for line in program.lines():
            if end == "sender" and " connected to " in line:
                # It reports this before it is held, and sends when it is released.
                self._report_start(self._released_at if self._was_held else self._clock())
            counted = self._account.read(line, end)
            if counted and self._started is not None and self.watched is None:
                self._report_counts()
        self._sends.set()

    # --- from the first packets to the last words -------------------------------------------

    async def _attend(self) -> None:
        try:
            await self._await_start()
        except LabError as error:
            self._report_end(str(error))
            return
        status = await self._program.wait()
        await self._end_server()
        account = self._account
        problem = None
        if self._stopped is None and (status or account.sent is None):
            problem = self._program.last_words()
        elif self._started is not None and account.received is None:
            problem = f"the receiver did not report what it received: {self._server.last_words()}"
        self._report_end(problem)

    async def _await_start(self) -> None:
        """Wait for the first packets, or an end before them; restart if nothing arrives."""
        for patience_s in _PATIENCE_S:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._sends.wait(), patience_s)
                return
            self._program.kill()
            self._server.kill()
            await asyncio.gather(*self._reading)
            if self._stopped is not None:
                return
            self._sends.clear()
            await self._start_programs(passed(self._clock))
            if self._stopped is not None:
                # Stopped meanwhile: the new programs have not been.
                self._program.kill()

    async def _end_server(self) -> None:
        """Wait for the receiver's last lines, unless it never learns of the end."""
        if self._started is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._server.wait()), _GRACE_S)
        if not self._server.ended:
            await self._ask_server()
        await asyncio.gather(*self._reading)

    async def _ask_server(self) -> None:
        """End the receiver; when interrupted, iperf3 reports what it has received."""
        self._drained = False
        await self._server.stop(_HEED_S)

    def _report_start(self, t: float) -> None:
        self._started = t
        shortest_s = (self._command.duration_s or _AGREED_S) / 2
        loop = asyncio.get_running_loop()
        self._agreed = loop.call_later(min(_AGREED_S, shortest_s), self._end_bypass)
        self._sends.set()
        if self._command.duration_s is not None and not self._ends_itself:
            stop_at = t + _sending_s(self._command, self._command.duration_s)
            self._timer = loop.call_later(stop_at - self._clock(), self.begin_stop)
        if self.watched is not None:
            self._sampling = asyncio.create_task(self._sample(self.watched))
        self._emit(
            UdpStarted(
                t=self._started,
                udp=self.name,
                src=self.src,
                dst=self.dst,
                rate_bps=self._command.rate_bps,
                packet_bytes=self._command.packet_bytes,
                port=self.port,
            )
        )

    async def _sample(self, watched: MonitoredStreams) -> None:
        """Report the monitor's counts until cancelled."""
        while True:
            await asyncio.sleep(_SAMPLE_S)
            seen = watched.so_far()
            self._emit(UdpSample(t=self._clock(), udp=self.name, monitored=seen))

    def _report_counts(self) -> None:
        """Report the receiver's counts."""
        lines = self._account
        seen = Monitored(
            sent=lines.reached_so_far,
            received=lines.received_so_far,
            received_bytes=lines.received_so_far * self._command.packet_bytes,
            delay_mean_us=None,
            delay_min_us=None,
            delay_max_us=None,
        )
        self._emit(UdpSample(t=self._clock(), udp=self.name, monitored=seen))

    def _end_bypass(self) -> None:
        self._bypass.close(self.src, self.dst, self.port)

    def _report_end(self, error: str | None) -> None:
        account = self._account
        end = self._stopped if self._stopped is not None else self._clock()
        sending_s = end - self._started if self._started is not None else 0.0
        under_way = 0 if self._drained else max((account.sent or 0) - account.reached, 0)
        self._end_bypass()
        if self._timer is not None:
            self._timer.cancel()
        if self._sampling is not None:
            self._sampling.cancel()
        self.ended.set()
        self._emit(
            UdpEnded(
                t=self._clock(),
                udp=self.name,
                sent=account.sent or 0,
                received=account.received or 0,
                under_way=under_way,
                jitter_us=account.jitter_us,
                duration_s=sending_s if account.sending_s is None else account.sending_s,
                error=error,
                monitored=self.watched.so_far(drained=self._drained) if self.watched else None,
            )
        )
        if self.watched is not None:
            self.watched.end()


def keys_of(address: str, port: int) -> tuple[Keys, ...]:
    """Return the keys of the packets to and from a port, and of iperf3's control connection."""
    return (*port_keys(DATAGRAMS, address, port), *port_keys(STREAMS, address, port))


async def start(command: StartUdp, site: Site, entry: GateEntry) -> tuple[StartUdp, RunningUdp]:
    """Start iperf3 and return; ``UdpStarted`` follows when it sends."""
    udp = RunningUdp(command, site)
    port, sport = udp.port, udp.sport
    packets = Packets((udp.src, udp.dst), DATAGRAMS, range(sport, sport + 1), port)
    site.follow(command, packets)
    site.connected(udp.name, udp.name, sport, port)
    if command.monitor:
        udp.watched = await site.watched(udp.src, udp.dst, [Stream(DATAGRAMS, sport, port)])
    with site.selected(command, *keys_of(site.network.address(udp.dst), port)):
        await udp.start(entry)
    return command, udp
