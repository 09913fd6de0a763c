"""What must hold between the steps of a timeline: names that exist, an order that can happen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, filterfalse

import msgspec

from ccplay.model.base import Command
from ccplay.model.commands import (
    AnyCommand,
    SetCongestionControl,
    SetLink,
    StartDownload,
    StartFlow,
    StartPing,
    StartUdp,
    StopDownload,
    StopFlow,
    StopPing,
    StopUdp,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.network import Network
from ccplay.model.quoting import did_you_mean, quote
from ccplay.scenario.fields.network import host_problem, is_observed, link_problem
from ccplay.scenario.fields.timeline import Draft
from ccplay.scenario.file.mistakes import Mistakes, spell
from ccplay.scenario.rules.captures import check_captures
from ccplay.scenario.values import Step

_STARTS: dict[type, str] = {
    StartFlow: "flow",
    StartDownload: "download",
    StartPing: "ping",
    StartUdp: "udp",
}
_STOPS: dict[type, str] = {
    StopFlow: "flow",
    StopDownload: "download",
    StopPing: "ping",
    StopUdp: "udp",
}
_PREFIXES = {"flow": "", "download": "w", "ping": "p", "udp": "u"}
_TRACEABLE = ("flow", "download")
"""What a trace's ``flow`` may be."""


def check_timeline(
    drafts: list[Draft], network: Network | None, mistakes: Mistakes, *, whole: bool = True
) -> tuple[Step, ...]:
    """Return the steps, all traffic named; what does not hold becomes a mistake.

    Where a timeline is not ``whole``, what was left out for a mistake may be what others speak of.
    """
    drafts = _name_traffic(drafts)
    traffic = _traffic(drafts, mistakes)
    if network is not None:
        for draft in drafts:
            _check_places(draft, network, mistakes)
    if whole:
        for draft in drafts:
            _check_references(draft, traffic, mistakes)
        _check_waits(drafts, traffic, mistakes)
        check_captures(drafts, mistakes)
    return tuple(_step(draft, number) for number, draft in enumerate(drafts))


def traffic_of(command: object) -> tuple[str, str] | None:
    """Return ``("flow", name)`` of a command that starts traffic, else None."""
    kind = _STARTS.get(type(command))
    return None if kind is None else (kind, getattr(command, kind))


def stopped_by(command: object) -> str | None:
    """Return the name of the traffic that a command stops, else None."""
    kind = _STOPS.get(type(command))
    return None if kind is None else getattr(command, kind)


def is_limited(command: object) -> bool:
    """Whether the traffic that a command starts ends by itself."""
    match command:
        case StartFlow():
            return command.bytes is not None or command.duration_s is not None
        case StartPing():
            return command.count is not None
        case StartUdp():
            return command.duration_s is not None
    return isinstance(command, StartDownload)


def _step(draft: Draft, number: int) -> Step:
    command: AnyCommand = draft.command  # type: ignore[assignment]
    return Step(draft.at_s, command, draft.after, spell(draft.place), number)


def _name_traffic(drafts: list[Draft]) -> list[Draft]:
    """Name what has no name: flows ``1``, ``2`` …; ``w1`` downloads, ``p1`` pings, ``u1`` UDP …."""
    taken = {started[1] for draft in drafts if (started := traffic_of(draft.command))}
    free = {kind: filterfalse(taken.__contains__, _names(kind)) for kind in _PREFIXES}
    named = []
    for draft in drafts:
        started = traffic_of(draft.command)
        if started is not None and started[1] is None:
            command = msgspec.structs.replace(draft.command, **{started[0]: next(free[started[0]])})
            named.append(Draft(draft.place, draft.at_s, draft.after, command))
        else:
            named.append(draft)
    return named


def _names(kind: str) -> Iterator[str]:
    return (f"{_PREFIXES[kind]}{number}" for number in count(1))


def _traffic(drafts: list[Draft], mistakes: Mistakes) -> dict[str, Draft]:
    """Return by name what starts traffic. One name can't mean two things, ended or not."""
    traffic: dict[str, Draft] = {}
    for draft in drafts:
        if (started := traffic_of(draft.command)) is None:
            continue
        kind, name = started
        if name in traffic:
            first = spell(traffic[name].place)
            mistakes.add(draft.at(kind), f"the name {quote(name)} is taken by {first}")
        else:
            traffic[name] = draft
    return traffic


def _check_places(draft: Draft, network: Network, mistakes: Mistakes) -> None:
    command = draft.command
    for field in ("src", "dst", "host"):
        host = getattr(command, field, None)
        if host is not None and (problem := host_problem(network, host)):
            mistakes.add(draft.at(field), problem)
    src, dst = getattr(command, "src", None), getattr(command, "dst", None)
    if src is not None and src == dst:
        mistakes.add(draft.at("dst"), f"src and dst are both {quote(src)}")
    link = getattr(command, "link", None)
    if link is not None and (problem := link_problem(network, link)):
        mistakes.add(draft.at("link"), problem)
    if isinstance(command, SetLink):
        said = (command.rate, command.delay_us, command.jitter_us, command.loss, command.mark)
        if said == (None,) * len(said):
            text = "changes nothing: give it a rate, delay, jitter, loss or mark"
            mistakes.add(draft.place, text)
        if command.rate == 0 and is_observed(network, command.link):
            mistakes.add(draft.at("rate"), "the link under study needs a rate, or no queue forms")


def _check_references(draft: Draft, traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    command = draft.command
    if isinstance(command, SetCongestionControl) and (command.flow is None) == (
        command.host is None
    ):
        mistakes.add(draft.place, "needs either a flow to switch or a host, and not both")
    for kind, name in _references(command):
        kinds = _TRACEABLE if isinstance(command, TraceFlow | UntraceFlow) else (kind,)
        if name not in traffic or _kind(traffic[name]) not in kinds:
            known = (n for n, each in traffic.items() if _kind(each) in kinds)
            what = f"no {kind} {quote(name)} is ever started"
            mistakes.add(draft.at(kind), what + did_you_mean(name, known))
        elif not draft.after and not traffic[name].after and draft.at_s < traffic[name].at_s:
            begins = f"{kind} {quote(name)} starts only at {traffic[name].at_s:g} s"
            mistakes.add(draft.at(kind), f"at {draft.at_s:g} s is too early: {begins}")


def _kind(draft: Draft) -> str:
    return _STARTS[type(draft.command)]


def _references(command: Command) -> Iterator[tuple[str, str]]:
    """Yield the traffic that a command expects to run."""
    if (kind := _STOPS.get(type(command))) is not None:
        yield kind, getattr(command, kind)
    elif isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow) and command.flow:
        yield "flow", command.flow


def _check_waits(drafts: list[Draft], traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    """Every ``after`` must name traffic that is started, and whose end can come before."""
    stopped = {name for draft in drafts if (name := stopped_by(draft.command)) is not None}
    comes: set[str] = set()
    for draft in drafts:
        if draft.after is None:
            continue
        place = (*draft.place, "after")
        awaited = traffic.get(draft.after)
        if awaited is None:
            text = f"nothing named {quote(draft.after)} is ever started"
            mistakes.add(place, text + did_you_mean(draft.after, traffic))
        elif not is_limited(awaited.command) and draft.after not in stopped:
            limit = {"flow": "bytes, a duration", "ping": "a count", "udp": "a duration"}[
                _kind(awaited)
            ]
            text = f"{_kind(awaited)} {quote(draft.after)} never ends: give it {limit} or a stop"
            mistakes.add(place, text)
        elif _waits_for_itself(draft, traffic, comes):
            mistakes.add(place, "waits in a circle: it would never happen")


def _waits_for_itself(draft: Draft, traffic: dict[str, Draft], comes: set[str]) -> bool:
    """Whether a step waits in a circle; ``comes`` collects the traffic that does not."""
    seen: set[str] = set()
    step: Draft | None = draft
    while step is not None and step.after is not None and step.after not in comes:
        if step.after in seen:
            return True
        seen.add(step.after)
        step = traffic.get(step.after)
    comes |= seen
    return False
