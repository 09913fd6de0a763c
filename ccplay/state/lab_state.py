"""LabState: everything known of a session, a pure fold of its events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ccplay.model.base import Event, StopTraffic
from ccplay.model.commands import (
    Change,
    ChangeMark,
    Mark,
    RemoveMark,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.events import (
    Applied,
    Building,
    CaptureEnded,
    CaptureStarted,
    Ended,
    Failed,
    Health,
    Hello,
    HostChanged,
    InterfaceCounters,
    LinkChanged,
    Log,
    Ready,
    SojournTimes,
)
from ccplay.model.network import Network
from ccplay.model.samples import Sweep
from ccplay.model.series import Series
from ccplay.model.values import LinkSetting
from ccplay.model.variables import CAPACITY, MOVED_DELAY, Variable
from ccplay.state import race, samples
from ccplay.state.samples import Sampled, SojournCounts
from ccplay.traffic import KINDS
from ccplay.traffic.base import Handlers, lateness
from ccplay.units import format_size


class LabState(Sampled):
    """The state that the screen, the report and the exporters read; only ``apply`` changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        """Number that grows with every change; values derived from the state are valid as long as
        it stays."""
        self.phase = "starting"
        """Phase of the lab: ``starting``, ``building``, ``ready`` or ``ended``."""
        self.ready_at: float | None = None
        """Moment at which the network was ready; None before that."""
        self.hello: Hello | None = None
        self.building: Building | None = None
        self.interfaces: InterfaceCounters | None = None
        """Counters of interfaces; None before the end."""
        self.sojourns = SojournCounts()
        """Sojourn times of packets in disciplines in software."""
        self.captures: dict[str, CaptureStarted] = {}
        """Captures that run and have not been stopped."""
        self.links: dict[str, list[LinkChanged]] = {}
        """Every setting of each direction of a link, oldest first."""
        self.hosts: dict[str, str] = {}
        """Default congestion control by host."""
        self.host_changes: list[HostChanged] = []
        """Every default of each host, oldest first."""
        self.applied: list[Applied] = []
        """Commands that took effect, in order: the actions of the session."""
        self.spoiled: list[str] = []
        """Reasons found by the lab or the session why measurements can't be trusted."""
        self.health: Health | None = None
        self.healths: list[Health] = []
        self.end_reason: str | None = None

    def apply(self, event: object) -> None:
        """Apply one event; an event of an unknown kind changes nothing."""
        self.version += 1
        for handler in _HANDLERS.get(type(event), ()):
            handler(self, event)
        if isinstance(event, Event) and type(event) in _HANDLERS and event.t > self.now:
            self.now = event.t

    def apply_sweeps(self, sweeps: Sequence[Sweep]) -> None:
        """Apply sweeps without other events between them, faster than one by one."""
        if race.runs(self):
            for each in sweeps:
                self.apply(each)
            return
        self.version += len(sweeps)
        samples.fold(self, sweeps)

    def link_at(self, link: str, t: float) -> LinkChanged | None:
        """Return the setting of a direction of a link at ``t``; None before it was built."""
        changes = self.links.get(link)
        if not changes:
            return None
        return changes[max(bisect_right(changes, t, key=lambda change: change.t) - 1, 0)]

    def setting_now(self, link: str) -> LinkSetting:
        """Return the present setting of a link's direction; an empty one before it was built."""
        changes = self.links.get(link)
        return changes[-1].setting if changes else LinkSetting()


def _apply_to_network(state: LabState, event: Event) -> None:
    """Apply an event about the lab, its network or its health."""
    match event:
        case Hello():
            state.hello, state.building, state.phase = event, None, "building"
        case Building():
            state.building = event
        case Ready():
            state.phase, state.ready_at = "ready", event.t
        case LinkChanged():
            state.links.setdefault(event.link, []).append(event)
        case HostChanged():
            state.hosts[event.host] = event.cc
            state.host_changes.append(event)
        case InterfaceCounters():
            state.interfaces = event
        case SojournTimes():
            state.sojourns.add(event)
        case Health():
            state.health = event
            state.healths.append(event)
        case Ended():
            state.phase, state.end_reason = "ended", event.reason


def _apply_to_log(state: LabState, event: Event) -> None:
    """Apply an event that the log shows: a capture, a command, or a message."""
    match event:
        case CaptureStarted():
            state.captures[event.capture] = event
            text = f"capture {event.capture} of {event.link} goes to {event.path}"
            state.write(event.t, "file", text)
        case CaptureEnded():
            state.captures.pop(event.capture, None)
            state.write(event.t, *_describe_end(event))
        case Applied():
            _apply_command(state, event)
        case Failed():
            # A trace only adds to the samples, and traffic that can't be stopped has just ended.
            harmless = isinstance(event.command, TraceFlow | UntraceFlow | StopTraffic)
            state.write(event.t, "warning" if harmless else "error", event.message)
        case Log():
            state.write(event.t, event.level, event.text)
            if event.spoils:
                state.spoiled.append(event.text)


_OF_NETWORK = (
    *(Hello, Building, Ready, LinkChanged, HostChanged, InterfaceCounters, SojournTimes),
    *(Health, Ended),
)
_OF_LOG = (CaptureStarted, CaptureEnded, Applied, Failed, Log)


def _describe_end(event: CaptureEnded) -> tuple[str, str]:
    """Return the kind of the log's line about the end of a capture, and its text."""
    text = f"capture {event.capture}: {event.packets:,} packets in {event.path}"
    if event.full:
        text += f", full at {format_size(event.bytes)}"
    if event.dropped:
        text += f", {event.dropped:,} more dropped"
    if event.error:
        return "error", f"{text}: {event.error}"
    return "warning" if event.dropped or event.full else "file", text


def _apply_command(state: LabState, event: Applied) -> None:
    """Log a command that took effect, with the equivalent lines of tc(8)."""
    state.applied.append(event)
    command = event.command
    if isinstance(command, Mark | ChangeMark | RemoveMark):
        state.mark(event, command)
        return
    if isinstance(command, StopCapture):
        state.captures.pop(command.capture, None)
    flow = state.flows.get(command.needs())
    text = command.describe_effect(flow.cc if flow else None, renewed=event.renewed)
    detail = ""
    if state.hello is not None and isinstance(command, Change):
        detail = "\n".join(command.as_tc(state.hello.network, state.setting_now))
    state.write(event.t, "applied", text + lateness(event), detail)


def _together(*tables: Handlers) -> dict[type, tuple[Callable[[Any, Any], None], ...]]:
    """Return all handlers by type of event, merged from several tables."""
    found: dict[type, tuple[Callable[[Any, Any], None], ...]] = {}
    for table in tables:
        for kind, handler in table.items():
            found[kind] = (*found.get(kind, ()), handler)
    return found


_HANDLERS = _together(
    race.HANDLERS,
    samples.HANDLERS,
    *(table for each in KINDS.values() for table in each.handlers),
    dict.fromkeys(_OF_NETWORK, _apply_to_network),
    dict.fromkeys(_OF_LOG, _apply_to_log),
)


# --- capacity over time: the rate of a link, or what a trace or a model makes of it ---------------


def capacity_at(state: LabState, link: str, t: float) -> float | None:
    """Return what could leave on a link at ``t``, in bits per second.

    It is the link's rate, or its capacity while it moves; None without a bound, and before the
    first sweep of a link that moves.
    """
    change = state.link_at(link, t)
    if change is None or not change.setting.trace:
        return None if change is None else change.setting.rate or None
    tick, series = state.sweeps.before_or_at(t), _moved(state, link, CAPACITY)
    if state.sweeps.at_or_after(change.t) > tick:
        return None
    now = None if series is None else series.at(tick)
    # What gives the link no capacity moves only its delay or loss.
    return change.setting.rate if now is None else now


def drain_at(state: LabState, link: str, t: float) -> float | None:
    """Return the rate at which a link's queue drains at ``t``, in bits per second.

    What only delays or drops packets leaves the link its own rate.
    """
    change = state.link_at(link, t)
    if change is not None and not change.setting.is_paced:
        return change.setting.rate or None
    return capacity_at(state, link, t)


def mean_capacity(state: LabState, link: str, start: float, end: float) -> float | None:
    """Return the mean of what could leave on a link between two moments, in bits per second.

    None if it had no bound for some of that time.
    """
    changes = sorted(change.t for change in state.links.get(link, ()))
    moments, bits = [start, *(t for t in changes if start < t < end), end], 0.0
    for since, until in pairwise(moments):
        change, series = state.link_at(link, since), _moved(state, link, CAPACITY)
        found: float | None = None if change is None else change.setting.rate or None
        if change is not None and change.setting.trace and series is not None:
            mean = _mean(series, since, until)
            found = found if mean is None else mean
        if found is None:
            return None
        bits += found * (until - since)
    return bits / (end - start) if end > start else None


def _mean(series: Series, since: float, until: float) -> float | None:
    """Return the mean of values that each hold from the sweep before; None if none is known."""
    timeline = series.timeline
    first, end = timeline.at_or_after(since), timeline.before_or_at(until) + 1
    known = [
        (value, later - earlier)
        for tick, (earlier, later) in enumerate(
            pairwise([since, *timeline.moments(first, end)]), first
        )
        if (value := series.at(tick)) is not None
    ]
    span = sum(seconds for _, seconds in known)
    if not span:
        return known[-1][0] if known else None
    return sum(value * seconds for value, seconds in known) / span


def _moved(state: LabState, link: str, variable: Variable) -> Series | None:
    """Return capacity or delay of a link that moves; None if it never moved."""
    queue = state.queues.get(link)
    return None if queue is None else queue.own.get(variable.name)


# --- base RTTs over time: the sums of the delays set for a path's links, there and back -----------

_MOST_STEPS = 600
"""Most moments at which the delay of a link that moves is looked up."""


def _steps(series: Series) -> Iterator[float]:
    """Yield the moments at which a series differs from the one before, at most ``_MOST_STEPS``."""
    last: float | None = None
    every = max(1, (series.end - series.first) // _MOST_STEPS)
    for tick in range(max(0, series.first), series.end, every):
        now = series.at(tick)
        if now != last:
            last = now
            yield series.timeline.time(tick)


def base_rtt(
    state: LabState, network: Network | None, src: str, dst: str
) -> tuple[tuple[float, float | None], ...]:
    """Return the base RTT between two hosts in ms at each change; None without added delay."""
    if network is None:
        return ()
    names = [link.name for link in network.round_trip(src, dst)]
    moments = {change.t for name in names for change in state.links.get(name, ())}
    for name in names:
        if (moved := _moved(state, name, MOVED_DELAY)) is not None:
            moments.update(_steps(moved))
    changes: list[tuple[float, float | None]] = []
    for t in sorted(moments):
        base_us = network.base_rtt(src, dst, lambda name, t=t: delay_at(state, name, t))  # type: ignore[misc]
        changes.append((t, base_us * 1e-3 or None))
    return tuple(changes)


def delay_at(state: LabState, link: str, t: float) -> float:
    """Return the one-way delay of a link at ``t`` in microseconds, also of one that moves."""
    change = state.link_at(link, t)
    if change is None:
        return 0.0
    series = _moved(state, link, MOVED_DELAY) if change.setting.trace else None
    now = None if series is None else series.at(series.timeline.before_or_at(t))
    return change.setting.delay_us or 0.0 if now is None else now
