"""Rules between the steps of a timeline: names must exist, and the order must be possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, filterfalse

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.commands import (
    AnyCommand,
    SetCongestionControl,
    SetLink,
    SetPath,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.fields import fields_of
from ccplay.model.network import Network
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.starts import several, singly
from ccplay.model.traffic import KINDS, TRAFFIC, TrafficKind, started_by, stopped_by
from ccplay.model.traffic_commands import StartFlow, conflict
from ccplay.scenario.fields.network import host_problem, is_observed, link_problem
from ccplay.scenario.fields.timeline import Draft
from ccplay.scenario.file.mistakes import Mistakes, spell
from ccplay.scenario.rules.captures import check_captures
from ccplay.scenario.step import Step

_TRACEABLE = tuple(kind for kind in TRAFFIC if kind.connection)
"""Kinds of traffic that a trace may name as its ``flow``."""


def check_timeline(
    drafts: list[Draft], network: Network | None, mistakes: Mistakes, *, whole: bool = True
) -> tuple[Step, ...]:
    """Return the steps with all traffic named; violations become mistakes.

    In a timeline that is not ``whole`` others may refer to an omitted step.
    """
    drafts = [each for draft in drafts for each in _apart(draft, several, network, mistakes)]
    drafts = _name_traffic(drafts)
    drafts = [each for draft in drafts for each in _apart(draft, singly, network, mistakes)]
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


def _step(draft: Draft, number: int) -> Step:
    command: AnyCommand = draft.command  # type: ignore[assignment]
    return Step(draft.at_s, command, draft.after, spell(draft.place), number)


def _apart(
    draft: Draft,
    into: Callable[[Command, Network | None], tuple[Command, ...]],
    network: Network | None,
    mistakes: Mistakes,
) -> list[Draft]:
    """Return the steps that a step stands for; too many senders are a mistake."""
    try:
        return [replace(draft, command=command) for command in into(draft.command, network)]
    except CommandError as error:
        mistakes.add(draft.at("senders"), str(error))
        return []


def _name_traffic(drafts: list[Draft]) -> list[Draft]:
    """Name unnamed traffic by its kind's prefix and the first free number, from 1."""
    taken = {kind.name_of(draft.command) for draft in drafts if (kind := started_by(draft.command))}
    free = {kind: filterfalse(taken.__contains__, _names(kind)) for kind in TRAFFIC}
    named = []
    for draft in drafts:
        kind = started_by(draft.command)
        if kind is not None and kind.name_of(draft.command) is None:
            command = msgspec.structs.replace(draft.command, **{kind.field: next(free[kind])})
            named.append(Draft(draft.place, draft.at_s, draft.after, command))
        else:
            named.append(draft)
    return named


def _names(kind: TrafficKind) -> Iterator[str]:
    return (f"{kind.prefix}{number}" for number in count(1))


def _traffic(drafts: list[Draft], mistakes: Mistakes) -> dict[str, Draft]:
    """Return the steps that start traffic, by name. No name may be used twice."""
    traffic: dict[str, Draft] = {}
    for draft in drafts:
        kind = started_by(draft.command)
        if kind is None or (name := kind.name_of(draft.command)) is None:
            continue
        if name in traffic:
            first = spell(traffic[name].place)
            mistakes.add(draft.at(kind.field), f"the name {quote(name)} is taken by {first}")
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
    for node in getattr(command, "via", None) or ():
        if node not in network.routers:
            text = f"no router {quote(node)}{did_you_mean(node, network.routers)}"
            mistakes.add(draft.at("via"), text)
    if isinstance(command, StartFlow):
        field, why = conflict(command)
        if field:
            mistakes.add(draft.at(field), why)
    if isinstance(command, SetLink):
        if command == SetLink(link=command.link):
            *most, last = (each.key for name, each in fields_of(SetLink).items() if name != "link")
            text = f"changes nothing: give it a {', '.join(most)} or {last}"
            mistakes.add(draft.place, text)
        if command.rate == 0 and is_observed(network, command.link):
            mistakes.add(draft.at("rate"), "the link under study needs a rate, or no queue forms")


def _check_references(draft: Draft, traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    command = draft.command
    if isinstance(command, SetCongestionControl) and (command.flow is None) == (
        command.host is None
    ):
        mistakes.add(draft.place, "needs either a flow to switch or a host, and not both")
    if isinstance(command, SetPath):
        _check_path(draft, command.traffic, traffic, mistakes)
    for kind, name in _references(command):
        kinds = _TRACEABLE if isinstance(command, TraceFlow | UntraceFlow) else (kind,)
        if name not in traffic or started_by(traffic[name].command) not in kinds:
            known = (n for n, each in traffic.items() if started_by(each.command) in kinds)
            what = f"no {kind.name} {quote(name)} is ever started"
            mistakes.add(draft.at(kind.field), what + did_you_mean(name, known))
        elif not draft.after and not traffic[name].after and draft.at_s < traffic[name].at_s:
            begins = f"{kind.name} {quote(name)} starts only at {traffic[name].at_s:g} s"
            mistakes.add(draft.at(kind.field), f"at {draft.at_s:g} s is too early: {begins}")


def _check_path(draft: Draft, name: str, traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    """Record a path for traffic that is never started, has no choice of paths, or starts later."""
    known = [each for each, start in traffic.items() if hasattr(start.command, "via")]
    if name not in known:
        text = f"no traffic {quote(name)} with a path is ever started"
        mistakes.add(draft.at("traffic"), text + did_you_mean(name, known))
    elif not draft.after and not traffic[name].after and draft.at_s < traffic[name].at_s:
        begins = f"{quote(name)} starts only at {traffic[name].at_s:g} s"
        mistakes.add(draft.at("traffic"), f"at {draft.at_s:g} s is too early: {begins}")


def _references(command: Command) -> Iterator[tuple[TrafficKind, str]]:
    """Yield the traffic that a command expects to be running."""
    if (kind := stopped_by(command)) is not None and (name := kind.name_of(command)) is not None:
        yield kind, name
    elif isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow) and command.flow:
        yield KINDS["flow"], command.flow


def _check_waits(drafts: list[Draft], traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    """Record each ``after`` that names no traffic that is started and can end before."""
    stopped = {
        kind.name_of(draft.command) for draft in drafts if (kind := stopped_by(draft.command))
    }
    comes: set[str] = set()
    for draft in drafts:
        if draft.after is None:
            continue
        place = (*draft.place, "after")
        awaited = traffic.get(draft.after)
        kind = started_by(awaited.command) if awaited is not None else None
        if awaited is None or kind is None:
            text = f"nothing named {quote(draft.after)} is ever started"
            mistakes.add(place, text + did_you_mean(draft.after, traffic))
        elif not kind.ends(awaited.command) and draft.after not in stopped:
            limit = kind.limit_words
            text = f"{kind.name} {quote(draft.after)} never ends: give it {limit} or a stop"
            mistakes.add(place, text)
        elif _waits_for_itself(draft, traffic, comes):
            mistakes.add(
                place,
                "waits for itself, in a circle: it would never happen",
            )


def _waits_for_itself(draft: Draft, traffic: dict[str, Draft], comes: set[str]) -> bool:
    """Return whether steps wait for each other in a circle; ``comes`` collects other traffic."""
    seen: set[str] = set()
    step: Draft | None = draft
    while step is not None and step.after is not None and step.after not in comes:
        if step.after in seen:
            return True
        seen.add(step.after)
        step = traffic.get(step.after)
    comes |= seen
    return False
