"""All traffic of the lab by name: starts it, alone or together, stops it, finds its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab.htb import datagrams, echo_packets, tcp_packets, udp_packets
from ccplay.lab.netns import Namespace
from ccplay.lab.network import Routing
from ccplay.lab.paths import Packets, PathFinder
from ccplay.lab.probe.probe import Probe
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.download import Download
from ccplay.lab.traffic.flow import Flow
from ccplay.lab.traffic.gate import Entry, Gate, Pair, passed
from ccplay.lab.traffic.monitor import Stream
from ccplay.lab.traffic.mptcp import path_manager
from ccplay.lab.traffic.mptcp.flow import MptcpFlow
from ccplay.lab.traffic.pings.ping import Ping
from ccplay.lab.traffic.program import Hold
from ccplay.lab.traffic.site import Classifier, Connected, Runner, Site
from ccplay.lab.traffic.udp import Udp
from ccplay.model.base import LONGEST_NAME, Event
from ccplay.model.commands import SetPath
from ccplay.model.events import Applied, Failed
from ccplay.model.network import Network
from ccplay.model.quantities import check
from ccplay.model.traffic import TRAFFIC, TrafficKind, started_by, stopped_by
from ccplay.model.traffic_commands import (
    StartDownload,
    StartFlow,
    StartPing,
    StartShortFlows,
    StartTraffic,
    StartUdp,
    StopTraffic,
)
from ccplay.model.traffic_events import (
    FlowEnded,
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
    SubflowStarted,
)

# --- starts each kind of traffic: one function for each kind, in one table ------------------------
# Each takes a command within bounds that has its name and both hosts, and the entry of the gate for
# its first packet. Each returns the command as carried out, and the running traffic. All raise
# ``CommandError``, ``UnsupportedError`` or ``LabError``.

_BEFORE_FIRST_ARRIVAL = Hold("sched_yield")
"""Hold at a call that the script makes only once, for this purpose."""


async def _flow(command: StartFlow, site: Site, entry: Entry) -> tuple[StartFlow, Flow]:
    """Start iperf3 and return; ``FlowStarted`` follows when its connections are open."""
    name, src, dst = command.flow or "", command.src or "", command.dst or ""
    command = replace(command, cc=site.choose_cc(src, command.cc))

    sender, rules = site.namespace(src), ExitStack()

    def emit(event: Event) -> None:
        if isinstance(event, FlowEnded):
            # A rule that remains matches no packets: the flow's port is the last to be reused.
            with suppress(OSError):
                rules.close()
        site.emit(event)

    path_manager.require(command)
    flow: Flow
    if command.mptcp:
        flow = MptcpFlow(command, site, emit)
    else:
        flow = Flow(command, site.ports, site.probe, emit, site.clock, bypass=site.bypass)
    site.follow(name, Packets((src, dst), socket.IPPROTO_TCP, flow.sports, flow.port), command.via)
    if not command.mptcp:
        for stream, sport in zip(flow.streams, flow.sports, strict=True):
            site.connected(name, stream, sport, flow.port)
    address = site.address(dst)
    try:
        if command.l4s:
            sending = asyncio.create_task(congestion.send_ect_1(sender, flow.port))
            rules.callback(lambda: site.later(congestion.stop_ect_1(sender, flow.port, sending)))
            await asyncio.shield(sending)
        if flow.asks_for_ecn:
            congestion.ask_for_ecn(sender, flow.port)
            rules.callback(congestion.stop_asking, sender, flow.port)
        if command.monitor:
            streams = [Stream(socket.IPPROTO_TCP, sport, flow.port) for sport in flow.sports]
            flow.watched = await site.watched(src, dst, streams)
        with site.admitted(tcp_packets("flows", name, address, flow.port)):
            await flow.start(site.namespace(dst), address, sender, entry)
    except BaseException:
        flow.abandon()
        with suppress(OSError):
            rules.close()
        raise
    return command, flow


async def _download(
    command: StartDownload, site: Site, entry: Entry
) -> tuple[StartDownload, Download]:
    name, src, dst = command.download or "", command.src or "", command.dst or ""
    command = replace(command, cc=site.choose_cc(src, command.cc))

    def served_on(there: int) -> None:
        download.served_on(there)
        site.connected(name, name, port, there)

    server = await site.web_server(src, name, served_on)
    port, address = site.ports.web(), site.address(src)
    packets = Packets((src, dst), socket.IPPROTO_TCP, range(port, port + 1), None)
    site.follow(name, packets, command.via)
    download = Download(command, server, site.probe, site.emit, site.clock, port=port)
    with site.admitted(tcp_packets("downloads", name, address, port)):
        await download.start(site.namespace(dst), address, entry)
    return command, download


async def _ping(command: StartPing, site: Site, entry: Entry) -> tuple[StartPing, Ping]:
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


async def _udp(command: StartUdp, site: Site, entry: Entry) -> tuple[StartUdp, Udp]:
    """Start iperf3 and return; ``UdpStarted`` follows when it sends."""
    name, src, dst = command.udp or "", command.src or "", command.dst or ""
    port, (sport,) = site.ports.server(), site.ports.senders(1)
    udp = Udp(command, site.emit, site.clock, site.bypass, port=port, sport=sport)
    packets = Packets((src, dst), socket.IPPROTO_UDP, range(sport, sport + 1), port)
    site.follow(name, packets, command.via)
    site.connected(name, name, sport, port)
    if command.monitor:
        udp.watched = await site.watched(src, dst, [Stream(socket.IPPROTO_UDP, sport, port)])
    address = site.address(dst)
    with site.admitted(udp_packets(name, address, udp.port)):
        await udp.start(site.namespace(dst), address, site.namespace(src), entry)
    return command, udp


async def _short_flows(
    command: StartShortFlows, site: Site, entry: Entry
) -> tuple[StartShortFlows, Pair]:
    name, src, dst = command.short_flows or "", command.src or "", command.dst or ""
    cc = site.choose_cc(src, command.cc)
    command = replace(command, cc=cc)
    started, failed, sizes, fct_us, taken = 0, 0, list[int](), list[float](), list[int]()

    def read(line: str) -> None:
        nonlocal started, failed
        match line.split():
            case ["done", size, took, sport]:
                sizes.append(int(size))
                fct_us.append(float(took))
                if site.paths is not None:
                    path = site.paths.transfer(name, int(sport), port)
                    taken.extend([] if path is None else [path])
            case ["failed"]:
                failed += 1
            case ["started"]:
                started += 1

    def report() -> None:
        site.emit(
            ShortFlowsProgress(
                t=site.clock(),
                short_flows=name,
                started=started,
                failed=failed,
                bytes=[*sizes],
                fct_us=[*fct_us],
                path=[*taken],
            )
        )
        for each in (sizes, fct_us, taken):
            each.clear()

    def end(error: str | None) -> None:
        site.emit(ShortFlowsEnded(t=site.clock(), short_flows=name, error=error))

    pair = Pair(src, dst, read, report, end)
    port, address, rate = site.ports.server(), site.address(dst), command.rate_bps
    limits = f"{command.duration_s or 0:g}", str(command.count or 0)
    drawn = str(rate), str(command.bytes), command.sizes, str(command.seed)
    sending = ["send", address, str(port), congestion.require(cc), *drawn, *limits]
    site.follow(name, Packets((src, dst), socket.IPPROTO_TCP, None, port), command.via)
    with site.admitted(tcp_packets("short-flows", name, address, port)):
        await pair.start(
            Path(__file__).with_name("short_flows.py"),
            (site.namespace(dst), ["receive", str(port)]),
            (site.namespace(src), sending),
            _BEFORE_FIRST_ARRIVAL,
            entry,
        )
    site.emit(
        ShortFlowsStarted(
            t=site.clock(), short_flows=name, src=src, dst=dst, cc=cc, rate_bps=rate, port=port
        )
    )
    return command, pair


_Starter: TypeAlias = Callable[[Any, Site, Entry], Coroutine[Any, Any, tuple[Any, Runner]]]

STARTERS: dict[str, _Starter] = {
    "flow": _flow,
    "download": _download,
    "ping": _ping,
    "udp": _udp,
    "short-flows": _short_flows,
}
"""Functions that start traffic, by the name of its kind."""


# --- all traffic of the lab by name: starts it, stops it, and finds its connections ---------------

S = TypeVar("S", bound=StartTraffic)

_STARTS = {kind.started: kind for kind in TRAFFIC}
_ENDS = {kind.ended: kind for kind in TRAFFIC}
_ROUTED = tuple(kind for kind in TRAFFIC if "via" in kind.start.__struct_fields__)
"""Kinds of traffic whose path can be chosen."""


class Traffic:
    """The traffic on the network; ``close`` ends all of it.

    A name refers to the same traffic for a whole session, even after its end: recordings need that.
    """

    def __init__(
        self,
        namespace: Callable[[str], Namespace],
        probe: Probe,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        network: Network,
        *,
        classifier: Classifier | None = None,
        routing: Routing | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        """``namespace`` returns a node's namespace; ``emit`` receives events at times of ``clock``.

        ``classifier`` learns about packets before they are sent. ``routing`` reports which of
        several paths they take. Names that are ``reserved`` are not assigned automatically.
        """
        self._reserved = set(reserved)
        self._paths = (
            PathFinder(routing, network, emit, clock)
            if routing is not None and routing.knows_paths
            else None
        )
        self._probe, self._emit, self._network = probe, emit, network
        self._site = Site(
            *(namespace, probe, self._on_event, clock, network),
            classifier=classifier,
            paths=self._paths,
            routing=routing,
        )
        self._runners: dict[str, Runner] = {}
        self._starting: dict[str, asyncio.Task[tuple[Any, Runner]]] = {}
        self._kinds: dict[str, TrafficKind] = {}
        """Kind of all traffic by name: about to start, running or ended."""
        probe.after_sweep.append(self._watch)

    async def start(self, command: S, entry: Entry | None = None) -> S:
        """Start traffic and return ``command`` with every name filled in.

        The first packet waits at ``entry``; without an entry it is sent at once.

        Raises ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        if (kind := started_by(command)) is None:
            raise CommandError("this command starts no traffic")
        src, dst = self._path(command.src, command.dst)
        name = self._new_name(kind, kind.name_of(command))
        check(command, f"{kind.word} {name}")
        command = replace(command, **{kind.field: name}, src=src, dst=dst)
        self._kinds[name] = kind
        entry = entry or passed(self._site.clock)
        self._starting[name] = asyncio.create_task(STARTERS[kind.name](command, self._site, entry))
        try:
            command, self._runners[name] = await self._starting[name]
        except asyncio.CancelledError:
            self._drop(name)
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise CommandError(f"{kind.word} {name} was stopped before it began") from None
        except BaseException:
            self._drop(name)
            raise
        finally:
            del self._starting[name]
            entry.give_up()
        return command

    def stop(self, command: StopTraffic) -> None:
        """End traffic without waiting; an event reports its end.

        Raises ``CommandError`` if none with this name is running.
        """
        if (kind := stopped_by(command)) is not None:
            name = kind.name_of(command) or ""
            if self._kinds.get(name) is kind and name in self._starting:
                self._starting[name].cancel()
                return
            self._running(name, (kind,)).begin_stop()

    def switch_flow(self, name: str, cc: str) -> None:
        """Change the congestion control of a running flow or download.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        self._connected(name).switch(cc)

    def sender(self, name: str) -> tuple[Namespace, range]:
        """Return the namespace and the ports from which a running flow or download sends.

        Raises ``CommandError`` if none with this name is running.
        """
        found = self._connected(name)
        return self._site.namespace(found.src), found.sports

    def runs(self, name: str) -> bool:
        """Return whether a flow or download with this name is running."""
        found = self._sampled.get(name)
        return found is not None and not found.ended.is_set()

    def under(self, cc: str) -> list[str]:
        """Return the names of the running flows and downloads whose connection uses ``cc``."""
        found = {
            name: self._probe.counters(name)
            for name, each in self._sampled.items()
            if not each.ended.is_set()
        }
        return [name for name, now in found.items() if now is not None and now.cc == cc]

    def opening(self, cc: str) -> bool:
        """Return whether a connection with ``cc`` is about to open."""
        return any(each.opening_under == cc for each in self._sampled.values())

    async def close(self) -> None:
        """End all traffic, and wait until it has ended."""
        for each in self._starting.values():
            each.cancel()
        running = [each for each in self._runners.values() if not each.ended.is_set()]
        await asyncio.gather(*(each.stop() for each in running))
        self._probe.after_sweep.remove(self._watch)
        await self._site.close()

    @property
    def _sampled(self) -> dict[str, Connected]:
        return {
            name: cast("Connected", each)
            for name, each in self._runners.items()
            if self._kinds[name].connection
        }

    def _connected(self, name: str) -> Connected:
        kinds = tuple(kind for kind in TRAFFIC if kind.connection)
        return cast("Connected", self._running(name, kinds))

    def _running(self, name: str, kinds: tuple[TrafficKind, ...]) -> Runner:
        """Return the running traffic ``name``. Raises ``CommandError``, which lists what runs."""
        things = {key: each for key, each in self._runners.items() if self._kinds[key] in kinds}
        thing = things.get(name)
        if thing is None or thing.ended.is_set():
            there = [each for each, other in things.items() if not other.ended.is_set()]
            word = kinds[0].word
            state = f"no {word} {name!r}" if thing is None else f"{word} {name!r} has ended"
            raise CommandError(f"{state}; running: {', '.join(there) or 'none'}")
        return thing

    def _on_event(self, event: Event) -> None:
        """Emit an event, and update the classifier and the paths accordingly."""
        if (kind := _ENDS.get(type(event))) is not None:
            self._site.dismiss(kind.plural, kind.name_of(event) or "")
        self._emit(event)
        if self._paths is None:
            return
        if (kind := _STARTS.get(type(event))) is not None:
            self._paths.begin(kind.name_of(event) or "")
        elif kind := _ENDS.get(type(event)):
            self._paths.forget(kind.name_of(event) or "")
        elif isinstance(event, SubflowStarted):
            flow = self._runners.get(event.flow)
            if isinstance(flow, Flow):
                for name, sport, addresses in flow.connections():
                    self._paths.connect(event.flow, name, sport, flow.port, addresses)

    def _drop(self, name: str) -> None:
        """Remove traffic that did not start."""
        del self._kinds[name]
        if self._paths is not None:
            self._paths.forget(name)

    def set_path(self, command: SetPath) -> SetPath:
        """Move running traffic to another path; return the command with the routers on it.

        Raises ``CommandError``, ``UnsupportedError`` or ``LabError``.
        """
        self._running(command.traffic, _ROUTED)
        if self._paths is None:
            raise UnsupportedError(
                "this kernel does not report which of several paths packets take "
                "(net.ipv4.fib_multipath_hash_fields, Linux 5.14)"
            )
        return replace(command, via=self._paths.move(command.traffic, command.via))

    def find_paths(self) -> None:
        """Report the changed paths of running traffic."""
        if self._paths is not None:
            self._paths.look()

    def _watch(self) -> None:
        for each in self._sampled.values():
            each.watch()

    def _path(self, src: str | None, dst: str | None) -> tuple[str, str]:
        """Return both hosts: by default the first sender, and the peer of ``src``."""
        src = src if src is not None else self._network.senders[0]
        self._require_host(src)
        dst = dst if dst is not None else self._network.peer(src)
        self._require_host(dst)
        if src == dst:
            raise CommandError(f"traffic from {src} to itself does not cross the network")
        return src, dst

    def _require_host(self, name: str) -> None:
        if name not in self._network.hosts:
            raise CommandError(f"no host {name!r}; hosts: {', '.join(self._network.hosts)}")

    def _new_name(self, kind: TrafficKind, name: str | None) -> str:
        if name is None:
            avoided = self._kinds.keys() | self._reserved
            return next(
                free
                for number in range(1, len(avoided) + 2)
                if (free := f"{kind.prefix}{number}") not in avoided
            )
        if (holder := self._kinds.get(name)) is not None:
            raise CommandError(f"the name {name!r} is taken: another {holder.word} uses or used it")
        if not name.isprintable() or not name or set(name) & set("/ "):
            raise CommandError(f"{kind.word} {name!r}: a name can't contain spaces or '/'")
        if len(name) > LONGEST_NAME:
            short = f"{name[:20]}…"
            raise CommandError(
                f"{kind.word} {short!r}: a name can't have more than {LONGEST_NAME} characters"
            )
        return name


# --- traffic of one moment: prepared in parallel, released together, answered one by one ----------

GRACE_S = 0.3
"""Seconds after the moment for which unprepared traffic is awaited: less than a step may be
late."""

LONGEST_S = 10.0
"""Longest time in seconds that a network waits for the traffic that starts with it."""

HANDSHAKES_S = 3.5
"""Seconds that connections may take to open before their traffic starts; a SYN that is lost twice
takes 3."""


class Together:
    """Several commands that start traffic. Call ``prepare``, ``open``, then ``answer``."""

    def __init__(
        self,
        commands: Sequence[StartTraffic],
        traffic: Traffic,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        """Prepare; ``emit`` receives answers at times of ``clock``, ``log`` reports slow steps."""
        self._commands, self._traffic = commands, traffic
        self._emit, self._clock, self._log = emit, clock, log
        self._gate = Gate(clock)
        self._tasks: list[asyncio.Task[StartTraffic]] = []

    async def prepare(self, until: float, grace_s: float) -> None:
        """Start all programs; return when they wait for the moment, or at ``until``.

        It waits ``grace_s`` longer for those that have not begun to open connections by then.
        """
        entries = [self._gate.entry() for _ in self._commands]
        ready: dict[str, CcplayError | None] = {}
        for each in self._commands:
            if (cc := getattr(each, "cc", None)) is not None and cc not in ready:
                ready[cc] = await self._problem(cc)
        self._tasks = [
            asyncio.create_task(self._start(each, entry, ready.get(getattr(each, "cc", ""))))
            for each, entry in zip(self._commands, entries, strict=True)
        ]
        await self._gate.wait(max(until - self._clock(), 0.0), grace_s)

    def open(self) -> None:
        """Release all first packets now."""
        self._gate.open()

    async def answer(self, due: float) -> None:
        """Report for each command, in order, whether it took effect; ``due`` was the moment."""
        for command, task in zip(self._commands, self._tasks, strict=True):
            try:
                done = await task
            except CcplayError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 - one bad command must not end the lab
                problem = f"a fault in ccplay: {type(error).__name__}: {error}"
            else:
                now = self._clock()
                took_s = round(max(now - due, 0.0), 6)
                self._emit(Applied(t=now, command=done, took_s=took_s, due=due))
                continue
            self._emit(Failed(t=self._clock(), command=command, message=problem, due=due))

    async def _problem(self, cc: str) -> CcplayError | None:
        try:
            await congestion.prepare(cc, self._log)
        except CcplayError as error:
            return error
        return None

    async def _start(
        self, command: StartTraffic, entry: Entry, problem: CcplayError | None
    ) -> StartTraffic:
        try:
            if problem is not None:
                raise problem
            return await self._traffic.start(command, entry)
        finally:
            entry.give_up()


class Starting:
    """All traffic whose moment is still to come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty; moments are those of ``clock``."""
        self._clock = clock
        self._tasks: dict[asyncio.Task[None], float] = {}

    def add(self, at: float, together: Together, *, prepared: bool = False) -> None:
        """Release traffic at a moment; until then prepare it, unless it is prepared."""
        task = asyncio.create_task(self._start(at, together, prepared))
        self._tasks[task] = at
        task.add_done_callback(self._tasks.pop)

    async def until(self, moment: float) -> None:
        """Wait for the answers to all traffic that is due by ``moment``."""
        if due := [task for task, at in self._tasks.items() if at <= moment]:
            await asyncio.wait(due)

    async def _start(self, at: float, together: Together, prepared: bool) -> None:
        if not prepared:
            await together.prepare(max(at, self._clock()), GRACE_S)
        await asyncio.sleep(at - self._clock())
        together.open()
        await together.answer(at)
