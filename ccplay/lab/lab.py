"""The lab: builds the network, carries out commands, and samples the network with the probe."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Self, TypeAlias

from msgspec.structs import replace

from ccplay.bpf.loaded import library
from ccplay.errors import CcplayError, CommandError, LabError
from ccplay.lab import capabilities
from ccplay.lab.captures import CaptureFolder, Captures
from ccplay.lab.child import Child
from ccplay.lab.health import Timekeeper
from ccplay.lab.network import BuiltNetwork, build_network
from ccplay.lab.probe import Probe
from ccplay.lab.qdisc_counters import DrainMeter
from ccplay.lab.reloading import Reloader
from ccplay.lab.shaping import HalfChangedError, Shaper, delay_engine, planned
from ccplay.lab.software import Forked, Software
from ccplay.lab.software_shared import report_sojourns
from ccplay.lab.traces import Traces
from ccplay.lab.tracing import Tracing
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.congestion import Watchdog
from ccplay.lab.traffic.traffic import HANDSHAKES_S, LONGEST_S, LabTraffic, Starting, Together
from ccplay.model.base import Command, Event, StartTraffic, StopTraffic
from ccplay.model.commands import (
    Build,
    ChangeMark,
    LinkChange,
    Mark,
    RemoveMark,
    SetCongestionControl,
    SetPath,
    StartCapture,
    StartTogether,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.events import Building, HostChanged, LinkChanged, Log, Ready
from ccplay.model.network import Network
from ccplay.model.quantities import check
from ccplay.model.topologies import plan
from ccplay.model.values import Capabilities
from ccplay.traffic import split_starts

# --- marks on the time axis: the lab names them and refuses impossible ones -----------------------

OfMarks: TypeAlias = Mark | ChangeMark | RemoveMark


class MarkNames:
    """The names of all marks of a lab that have not been removed."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def apply(self, command: OfMarks, now: float) -> OfMarks:
        """Carry a command out at lab time ``now``; return it with the mark's name filled in.

        Raises ``CommandError`` for a moment in the future, a name in use, or an unknown name.
        """
        if isinstance(command, Mark | ChangeMark) and command.at is not None and command.at > now:
            raise CommandError(
                f"a mark can't be at {command.at:g} s, in the future: it is {now:g} s now"
            )
        if isinstance(command, Mark):
            name = command.name or next(n for i in count(1) if (n := f"m{i}") not in self._names)
            if name in self._names:
                raise CommandError(f"a mark named {name!r} already exists: choose another name")
            self._names.add(name)
            return replace(command, name=name)
        if command.name not in self._names:
            raise CommandError(f"there is no mark {command.name!r}")
        if isinstance(command, RemoveMark):
            self._names.remove(command.name)
        return command


# --- the lab: builds the network, carries out commands, and samples the network with the probe ----

DEFAULT_CC = "cubic"
"""Default congestion control of hosts: that of Linux, whatever this machine uses."""


class Lab:
    """A running network. Call ``survey``, enter it with ``async with``, then call ``apply``."""

    capabilities: Capabilities
    network: Network

    def __init__(
        self,
        emit: Callable[[Event], None],
        start: float,
        events_dropped: Callable[[], int],
        *,
        place: CaptureFolder,
        forked: Child,
        disciplines: Forked,
        traces: Traces,
    ) -> None:
        """Prepare a lab whose time begins at ``start``, a moment of ``time.monotonic``.

        ``emit`` receives events, ``place`` is where captures are written, ``forked`` a delay line
        that waits for orders, ``disciplines`` the processes of disciplines in software. ``traces``
        may move links; files arrive before the commands that need them.
        """
        self._forked = forked
        self._disciplines = disciplines
        self._place = place
        self._start = start
        self._emit = emit
        self._events_dropped = events_dropped
        self._stack = AsyncExitStack()
        self._watchdog = Watchdog()
        self._marks = MarkNames()
        self._defaults: dict[str, str] = {}
        """Default congestion control of new connections by host, as last set."""
        self.starting = Starting(self.clock)
        self.traces = traces

    def clock(self) -> float:
        """Return lab time in seconds."""
        return round(time.monotonic() - self._start, 6)

    async def survey(self, build: Build) -> None:
        """Examine this kernel and plan the network.

        Raises ``CommandError`` for an impossible plan.
        """
        check(build, "build")
        self._build = build
        self.network = plan(build.topology)
        self.capabilities = capabilities.discover()

    async def __aenter__(self) -> Self:
        """Build the network; emit ``Building`` for each step and ``Ready`` at the end.

        Raises ``LabError`` if no lab can run here.
        """
        if problems := capabilities.problems(self.capabilities):
            raise LabError("no lab can run here: " + "; ".join(problems))
        try:
            await self._raise_network()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End traffic and sampling. The network itself ends with the process."""
        await self._stack.aclose()

    async def _raise_network(self) -> None:
        settings = planned(self.network, self._build.links)
        name = next(each.name for each in self.capabilities.delay_engines if each.available)
        engine = delay_engine(name, self._log, self._build.seed, self._forked)
        self._stack.push_async_callback(engine.close)
        self._stack.callback(library.close)
        await engine.prepare()
        software = None
        if capabilities.has_software(self.capabilities):
            software = Software(self._log, self._build.seed, self._disciplines)
            self._stack.push_async_callback(software.close)
        built = build_network(self.network, self._progress, self._build.seed)
        self._built: BuiltNetwork = built
        self._stack.callback(built.end_connections)
        built.routing.on_new_routes = self._keep_default
        for text in filter(None, (*self._build.topology.remarks, built.lacking)):
            self._log("warning", text)
        self._shaper = self._stack.enter_context(
            Shaper(built, engine, self.clock, software, self.traces)
        )
        for done, (link, setting) in enumerate(settings):
            self._progress(f"shaping {link.name}", done, len(settings))
            for changed in await self._shaper.apply(link, setting):
                self._emit(changed)
        for host in self.network.hosts:
            await self._set_host(host, self._build.congestion_controls.get(host, DEFAULT_CC))
        self._probe = Probe(
            built.namespaces,
            [
                (link.name, built.namespace(link.src), link.interface)
                for link in map(self.network.link, self.network.observed)
            ],
            self.clock,
        )
        self._stack.callback(self._probe.close)
        for link, _ in settings:
            self._name_queues(link.name)
        self._stack.push_async_callback(self._count)
        self._traffic = LabTraffic(
            *(built.namespace, self._probe, self._emit, self.clock, self.network),
            classifier=self._shaper,
            routing=built.routing,
            reserved=self._build.reserved,
            before=lambda *traffic: self._tracing.expect(*traffic),  # noqa: PLW0108 - made below
        )
        self._stack.push_async_callback(self._traffic.close)
        self._tracing = Tracing(
            *(self._probe.connections, self._traffic.runs, self._emit, self.clock),
            start=self._start,
            expected=self._build.traced,
        )
        self._stack.callback(self._tracing.close)
        if self._build.traces:
            await self._tracing.prepare()
        self._captures = Captures(
            built.namespace,
            self.network,
            self._emit,
            self.clock,
            place=self._place,
            label=self._build.label,
        )
        self._stack.push_async_callback(self._captures.close)
        await self._start_first()
        reloader = Reloader(
            *(self._traffic, self._watchdog, self._renew_hosts, self._emit, self.clock),
            software=software,
        )
        watchers = [*reloader.watchers()]
        if software is not None:
            software.changed = lambda link: self._emit(self._shaper.describe(link))
            watchers.append(report_sojourns(software.sojourn_times, self._emit, self.clock))
        for each in watchers:
            self._stack.callback(asyncio.create_task(each).cancel)

    async def _start_first(self) -> None:
        """Report that the network is ready, start its prepared traffic, and begin to sweep."""
        await congestion.prepare_all(self._build.prepared, self._log)
        orders = (StartTogether(at=0.0, commands=self._build.first), *self._build.soon)
        early = [(each.at, self._together(each.commands)) for each in orders]
        until, grace_s = self.clock() + HANDSHAKES_S, LONGEST_S - HANDSHAKES_S
        await asyncio.gather(*(each.prepare(until, grace_s) for _, each in early))
        begun = await self._shaper.start_traces()
        # Runs are compared from this moment on, so what moves their links begins at it.
        ready = Ready(t=round(begun - self._start, 6))
        await asyncio.sleep(ready.t - self.clock())
        for at, each in early:
            self.starting.add(round(ready.t + at, 6), each, prepared=True)
        self._emit(ready)
        self._stack.callback(asyncio.create_task(self._sweep_forever()).cancel)
        await self.starting.until(ready.t)

    def _together(self, commands: Sequence[StartTraffic]) -> Together:
        every = [one for each in commands for one in split_starts(each, self.network)]
        return Together(every, self._traffic, self._emit, self.clock, self._log)

    def _progress(self, step: str, done: int, total: int) -> None:
        self._emit(Building(t=self.clock(), step=step, done=done, total=total))

    def _log(self, level: str, text: str, *, spoils: bool = False) -> None:
        self._emit(Log(t=self.clock(), level=level, text=text, spoils=spoils))

    # --- sampling ---------------------------------------------------------------------------

    async def _sweep_forever(self) -> None:
        """Sweep at regular intervals; a late sweep never delays those after it."""
        period = 1 / self._build.sample_hz
        timing, drain = Timekeeper(lambda: [os.getpid(), *self._shaper.processes]), DrainMeter()
        due = self.clock()
        report_due = due + 1.0
        while True:
            await asyncio.sleep(due - self.clock())
            begun = self.clock()
            sweep = self._probe.sweep(begun)
            ended = self.clock()
            self._emit(sweep)
            self._tracing.collect()
            if sweep.tcp is not None:
                for news in self._watchdog.look(begun, sweep.tcp):
                    self._emit(news)
            drain.add_sweep(begun, ended - begun, sweep.qdisc, self._shaper.rates)
            timing.sweep(begun - due, ended - begun)
            if not timing.begun:
                timing.begin(ended)
            if ended >= report_due:
                health = timing.report(ended, self._shaper.stats(), self._events_dropped())
                self._emit(replace(health, rate_accuracy=drain.ratio()))
                report_due = ended + 1.0
            due += period
            if (behind := int((self.clock() - due) / period)) > 0:
                timing.miss(behind)
                due += behind * period

    async def _count(self) -> None:
        """Report the counters of interfaces once all traffic has ended."""
        try:
            self._emit(await self._shaper.count())
        except (LabError, OSError) as error:
            self._log("warning", f"the interfaces' counters can't be read: {error}")

    # --- commands ---------------------------------------------------------------------------

    def start_together(self, order: StartTogether) -> None:
        """Schedule traffic for its moment, and answer each of its commands then."""
        self.starting.add(order.at, self._together(order.commands))

    async def apply(self, command: Command) -> Command:
        """Carry a command out and return it with every name filled in.

        Raises ``CommandError`` or ``UnsupportedError``, which list the alternatives.
        """
        if cc := getattr(command, "cc", None):
            await congestion.prepare(cc, self._log)
        if isinstance(command, StartTraffic):
            return await self._traffic.start(command)
        if isinstance(command, StopTraffic):
            self._traffic.stop(command)
            return command
        match command:
            case Build():
                raise CommandError("the network is already built: start another lab")
            case SetCongestionControl():
                await self._set_congestion_control(command)
            case SetPath():
                return self._traffic.set_path(command)
            case StartCapture():
                link = self.network.vantage(command.link)
                return await self._captures.start(link, command)
            case StopCapture():
                self._captures.stop(command.capture)
            case TraceFlow():
                await self._tracing.start(command.flow, *self._traffic.sender(command.flow))
            case UntraceFlow():
                self._tracing.stop(command.flow)
            case Mark() | ChangeMark() | RemoveMark():
                return self._marks.apply(command, self.clock())
            case LinkChange():
                await self._change_links(command)
        return command

    async def _set_congestion_control(self, command: SetCongestionControl) -> None:
        if (command.flow is None) == (command.host is None):
            raise CommandError("name either a flow or a host")
        if command.flow is not None:
            self._traffic.switch_flow(command.flow, command.cc)
        elif command.host is not None:
            if command.host not in self.network.hosts:
                raise CommandError(f"no host {command.host!r}")
            await self._set_host(command.host, command.cc)

    async def _set_host(self, host: str, cc: str) -> None:
        await congestion.prepare(cc, self._log)
        congestion.set_host_default(self._built.namespace(host), cc)
        self._defaults[host] = cc
        self._emit(HostChanged(t=self.clock(), host=host, cc=congestion.called(cc)))

    def _keep_default(self, node: str) -> None:
        """Set a host's default algorithm again on its new routes: a cable went down or up."""
        if (cc := self._defaults.get(node)) is not None:
            try:
                congestion.set_host_default(self._built.namespace(node), cc)
            except CcplayError as error:
                self._log("warning", f"{node}: new connections may not use {cc}: {error}")

    async def _renew_hosts(self, cc: str) -> None:
        """Set ``cc`` again as the default of the hosts that use it: its program has changed."""
        for host in self.network.hosts:
            if congestion.host_default(self._built.namespace(host)) == cc:
                await self._set_host(host, cc)

    async def _change_links(self, command: LinkChange) -> None:
        links, setting = self.network.resolve(command.link), command.requested()
        if (name := command.of_class) is not None and setting.qdisc is not None:
            await self._change(self._shaper.queues_of_class(links, name, setting.qdisc))
        else:
            await self._change(self._shaper.apply_to_all(links, setting))
        if setting.down is not None:
            self._traffic.find_paths()

    async def _change(self, changing: Awaitable[list[LinkChanged]]) -> None:
        """Await a change of links and report what has changed, even if it failed."""
        try:
            changes = await changing
        except HalfChangedError as error:
            for each in error.changes:
                self._report_change(each)
            raise
        for each in changes:
            self._report_change(each)

    def _report_change(self, changed: LinkChanged) -> None:
        self._name_queues(changed.link)
        self._emit(changed)

    def _name_queues(self, link: str) -> None:
        """Update which classes, marker and queue in software the probe reads on a link, if any."""
        if (queues := self._probe.links.get(link)) is not None:
            self._shaper.find_queues(link, queues)
