"""The timeline of a scenario: steps read into commands, in an order that is possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, filterfalse
from typing import Any

from msgspec.structs import replace

from ccplay.errors import CommandError, UsageError
from ccplay.model.base import Command
from ccplay.model.commands import (
    CHANGES,
    SetClasses,
    SetLink,
    SetPath,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.disciplines import NOT_OF_CLASS, software_only
from ccplay.model.network import Network
from ccplay.model.quantities import SECONDS, Field, Plain, Shape, did_you_mean, fields_of, quote
from ccplay.model.settings import DAY_S
from ccplay.model.texts import NAME, choice
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting
from ccplay.scenario.document import GivenPath, Mistakes, Place, spell
from ccplay.scenario.keys import (
    CLASSES,
    MOVES,
    OF_LINK,
    QUEUE,
    check_moves,
    directions,
    host_problem,
    is_observed,
    link_problem,
)
from ccplay.scenario.parts import WRONG, Part, TomlTable, described, keys_of, ref, table_shape
from ccplay.scenario.tree import Placed, Reader
from ccplay.scenario.values import Case, Scenario, Step
from ccplay.traffic import KINDS, TRAFFIC, split_senders, split_starts, started_by, stopped_by
from ccplay.traffic.base import TrafficKind
from ccplay.traffic.flow import StartFlow, conflict

# --- the timeline of a scenario: moments and actions, read into commands --------------------------

MOST_STEPS = 10_000

_COMMANDS: tuple[type[Command], ...] = (
    *(command for kind in TRAFFIC for command in (kind.start, kind.stop)),
    *(command for command in CHANGES if command.IN_SCENARIOS),
)
ACTIONS = {str(kind.__struct_config__.tag): kind for kind in _COMMANDS}
"""Actions of a step, by the value of ``do``."""

_ACTION = choice("action", ACTIONS)
AT = Field(
    SECONDS,
    "Moment, counted from when the network is ready, or from the end of the traffic in after",
    *(0, DAY_S),
    key="at",
)
"""Field for the moment of a step."""


class Draft(Step, frozen=True, kw_only=True):
    """A step as read, before its names are checked."""

    where: Place

    def at(self, field: str) -> Place:
        """Return the place in the file of a command's field."""
        return (*self.where, fields_of(type(self.command))[field].key)


class _StepPart(Part, frozen=True, kw_only=True, eq=False):
    """A step of a timeline: its moment, its action, and the keys of the action's command."""

    definition: str = "step"

    def read(self, node: Placed, reader: Reader, duration_s: float = math.inf) -> Any:
        """Return the step as a ``Draft``; it must begin within ``duration_s``."""
        before = reader.mistakes.count
        table = reader.table(node)
        if not isinstance(node.value, dict):
            return WRONG
        after = reader.value(table.pop("after", None), NAME.read, None)
        at = table.pop("at", None)
        if at is None and after is None:
            reader.mistakes.add(node.place, 'at is missing: when to do it, such as at = "2 s"')
        at_s = reader.value(at, AT.read, 0.0)
        if at_s > duration_s:
            reader.mistakes.add((*node.place, "at"), f"is later than the end, {duration_s:g} s")
        command = _command(node.place, table, reader)
        if command is None or reader.mistakes.count > before:
            return WRONG
        return Draft(at_s, command, after, where=node.place)

    def write(self, value: Any) -> dict[str, Plain]:
        """Return the keys of a command, without its moment and its action."""
        action = type(value)
        written = TomlTable(keys=keys_of_action(action)).write(value)
        return written | QUEUE.write(value.qdisc) if has_queue(action) else written

    def form(self) -> Shape:
        """Return the JSON Schema of the steps with each action."""
        return {"anyOf": [form for action in ACTIONS.values() for form in _forms(action)]}


STEP = _StepPart()


def keys_of_action(action: type[Command]) -> dict[str, Part | Field]:
    """Return the keys of a step with this action, without those of its queue and its moment."""
    nested = {"classes": replace(CLASSES, meaning=OF_LINK, required=True), **MOVES}
    fields = action.__struct_fields__
    return keys_of(action, **{k: v for k, v in nested.items() if (v.name or k) in fields})


def has_queue(action: type[Command]) -> bool:
    """Return whether the keys of a queue stand among those of a step with this action."""
    return "qdisc" in action.__struct_fields__


def read_timeline(node: Placed | None, duration_s: float, reader: Reader) -> list[Draft]:
    """Read every step; those with a mistake are omitted."""
    nodes = reader.members(node)
    if node is not None and len(nodes) > MOST_STEPS:
        reader.mistakes.add(node.place, f"more than {MOST_STEPS} steps")
        return []
    drafts = (STEP.read(each, reader, duration_s) for each in nodes)
    return [draft for draft in drafts if draft is not WRONG]


def _command(place: Place, table: dict[str, Placed], reader: Reader) -> Any:
    do = table.pop("do", None)
    if do is None:
        reader.mistakes.add(place, f"do is missing: one of {', '.join(ACTIONS)}")
        return None
    action = ACTIONS.get(reader.value(do, _ACTION.read, ""))
    if action is None:
        return None
    before = reader.mistakes.count
    keys = keys_of_action(action)
    values: dict[str, Any] = {}
    if has_queue(action):
        own = Placed(place, {key: table.pop(key) for key in list(table) if key not in keys})
        qdisc = values["qdisc"] = QUEUE.read(own, reader)
        if qdisc is not WRONG and "class" in table and software_only(qdisc.kind):
            reader.mistakes.add(own.at("kind"), f"{qdisc.kind} {NOT_OF_CLASS}")
    missing = dict.fromkeys(keys, f" for {quote(action.__struct_config__.tag)}")
    missing["classes"] = ": a list of classes, or [] for one queue"
    given = reader.table(Placed(place, table), ("at", "after", "do", *keys))
    check_moves(given, place, reader)
    values |= TomlTable(keys=keys, missing=missing).values(Placed(place, given), reader)
    return None if reader.mistakes.count > before else action(**values)


def _forms(action: type[Command]) -> Iterator[Shape]:
    """Yield the JSON Schema of a step with this action: one, or one for each kind of queue."""
    summary = (action.__doc__ or "").partition("\n")[0].replace("``", "")
    keys = keys_of_action(action)
    properties: dict[str, Shape] = {
        "at": {"description": AT.meaning, **AT.shape},
        "after": {"description": "Wait until the traffic of this name has ended", **ref("name")},
        "do": {"const": action.__struct_config__.tag, "description": summary},
        **dict(described(keys)),
    }
    when = {"anyOf": [{"required": ["at"]}, {"required": ["after"]}]}
    if has_queue(action):
        yield from (form | when for form in QUEUE.forms(properties, "do"))
        return
    groups = {"oneOf": action.ONE_OF, "anyOf": action.ANY_OF}
    of_each = [
        {word: [{"required": [key]} for key, each in keys.items() if each.name in names]}
        for word, names in groups.items()
        if names
    ]
    needed = ("do", *(key for key, entry in keys.items() if entry.required))
    yield {**table_shape(properties, needed), "allOf": [when, *of_each]}


# --- captures in a scenario, from its steps and from the command line -----------------------------

MOST_CAPTURES = 16
LARGEST_CAPTURE = 100_000_000
"""Largest size of a capture in bytes: a stranger's file must not fill the user's disk."""


def captured(scenario: Scenario, links: Sequence[str]) -> Scenario:
    """Return the scenario with captures of these links from the start of every case.

    Raises ``UsageError`` for a link that a case does not have.
    """
    return replace(scenario, cases=tuple(_captured(case, links) for case in scenario.cases))


def _captured(case: Case, links: Sequence[str]) -> Case:
    network = plan(case.build.topology)
    commands = [step.command for step in case.timeline]
    taken = {each.capture for each in commands if isinstance(each, StartCapture)}
    free = (name for number in count(1) if (name := f"c{number}") not in taken)
    steps = []
    for link, name in zip(links, free, strict=False):
        if problem := link_problem(network, link):
            raise UsageError(f"--capture {link}: {problem}")
        steps.append(Step(0.0, StartCapture(link=link, capture=name), place=f"--capture {link}"))
    return replace(case, timeline=(*steps, *case.timeline))


def check_captures(drafts: list[Draft], mistakes: Mistakes) -> None:
    """Record captures with equal names, too large or too many ones, and stops without a start."""
    started: dict[str, Draft] = {}
    starts = [draft for draft in drafts if isinstance(draft.command, StartCapture)]
    if len(starts) > MOST_CAPTURES:
        mistakes.add(starts[MOST_CAPTURES].where, f"more than {MOST_CAPTURES} captures")
    for draft in starts:
        size = getattr(draft.command, "max_bytes", 0)
        if size > LARGEST_CAPTURE:
            field = fields_of(StartCapture)["max_bytes"]
            bounds = replace(field, high=LARGEST_CAPTURE).bounds
            mistakes.add(draft.at("max_bytes"), f"must be from {bounds}")
        name = getattr(draft.command, "capture", None)
        if name in started:
            first = spell(started[name].where)
            mistakes.add(draft.at("capture"), f"the name {quote(name)} is taken by {first}")
        elif name is not None:
            started[name] = draft
    for draft in drafts:
        if isinstance(draft.command, StopCapture) and draft.command.capture not in started:
            name = draft.command.capture
            text = f"no capture {quote(name)} is ever started{did_you_mean(name, started)}"
            mistakes.add(draft.at("capture"), text)


# --- rules between classes and the steps of a timeline that refer to them -------------------------
# A step may wait for the end of traffic, so that the order of two steps may be unknown: only steps
# that fail in any order are mistakes.


def check_classes(
    drafts: list[Draft], links: Mapping[str, LinkSetting], network: Network, mistakes: Mistakes
) -> None:
    """Record queues of classes that a link never has, and classes that have no rate to share."""
    known = _Links(drafts, links, network)
    for draft in drafts:
        match draft.command:
            case SetQdisc(link=link, traffic_class=wanted):
                if problem := known.queue_problem(link, wanted):
                    place = draft.where if wanted is None else draft.at("traffic_class")
                    mistakes.add(place, problem)
            case SetClasses(link=link, classes=classes):
                if classes and not known.may_have_a_rate(link):
                    mistakes.add(draft.where, "classes share a rate: the link has none")
            case SetLink(link=link, rate=0):
                if known.always_has_classes(link):
                    mistakes.add(draft.at("rate"), "the link has classes, which need a rate")


class _Links:
    """The classes that each direction of a link may ever have, and whether it has a rate."""

    def __init__(
        self, drafts: list[Draft], links: Mapping[str, LinkSetting], network: Network
    ) -> None:
        self._network = network
        self._at_first: dict[str, tuple[str, ...]] = {}
        self._ever: dict[str, dict[str, None]] = {}
        self._once_without: set[str] = set()
        self._rated = set(network.observed)
        for link, setting in links.items():
            for each in directions(self._network, link):
                if setting.classes is not None:
                    self._at_first[each] = tuple(one.name for one in setting.classes)
                if setting.rate:
                    self._rated.add(each)
        for each, first in self._at_first.items():
            self._note(each, first)
        for draft in drafts:
            match draft.command:
                case SetClasses(link=link, classes=classes):
                    for each in directions(self._network, link):
                        self._note(each, tuple(one.name for one in classes))
                case SetLink(link=link, rate=int(rate)) if rate:
                    self._rated.update(directions(self._network, link))

    def queue_problem(self, link: str, wanted: str | None) -> str | None:
        """Return why the queue of a class never exists; None stands for the link's own queue."""
        for each in directions(self._network, link):
            there = self._ever.get(each, {})
            if wanted is None and self._has_classes(each):
                names = ", ".join(map(quote, self._at_first[each]))
                return f"class is missing: the link has a queue for each of {names}"
            if wanted is not None and wanted not in there:
                return f"the link has no class {quote(wanted)}{did_you_mean(wanted, there)}"
        return None

    def always_has_classes(self, link: str) -> bool:
        """Return whether at least one direction has classes in any order of the steps."""
        return any(self._has_classes(each) for each in directions(self._network, link))

    def may_have_a_rate(self, link: str) -> bool:
        """Return whether all directions may have a rate at some time."""
        return all(each in self._rated for each in directions(self._network, link))

    def _note(self, direction: str, classes: tuple[str, ...]) -> None:
        """Record that a direction has these classes at some time."""
        self._ever.setdefault(direction, {}).update(dict.fromkeys(classes))
        if not classes:
            self._once_without.add(direction)

    def _has_classes(self, direction: str) -> bool:
        """Return whether a direction has classes from the start, and always."""
        return direction in self._at_first and direction not in self._once_without


# --- precedence between the names of one link: a later entry must not undo a higher one before it -


def check_overruled(links: Placed | None, network: Network, reader: Reader) -> None:
    """Refuse a case, setting or matrix whose value is undone by a lower one further down.

    ``links.bottleneck.delay`` would silently undo a matrix over ``links."r->h2".delay``.
    """
    below: dict[str, list[tuple[str, Placed]]] = {}
    for link, node in reversed(reader.table(links).items()):
        leading = directions(network, link)
        for later, other in below.get(next(iter(leading), ""), ()):
            if not set(leading).issubset(directions(network, later)):
                continue
            for key in sorted(_keys(node) & _keys(other)):
                place = max(_places(node.value[key]), key=_layer)
                if _layer(place) > max(map(_layer, _places(other.value[key]))):
                    text = f"links.{quote(later)} further down sets {key} again for this link"
                    reader.mistakes.add(place, f"{text}: set it there, or move that entry above")
        for each in leading:
            below.setdefault(each, []).append((link, node))


def _keys(node: Placed) -> set[str]:
    return set(node.value) if isinstance(node.value, dict) else set()


def _places(node: Placed) -> Iterator[Place]:
    yield node.place
    inner = node.value.values() if isinstance(node.value, dict) else ()
    for each in inner:
        yield from _places(each)


def _layer(place: Place) -> int:
    """Return the rank of a value: the common part, its case, the command line, the matrix."""
    if place and isinstance(place[0], GivenPath):
        return 2
    return {"case": 1, "matrix": 3}.get(str(place[0]), 0) if place else 0


# --- rules between the steps of a timeline: names must exist, and the order must be possible ------

_TRACEABLE = tuple(kind for kind in TRAFFIC if kind.connection)
"""Kinds of traffic that a trace may name as its ``flow``."""


def check_timeline(
    drafts: list[Draft], network: Network | None, mistakes: Mistakes, *, whole: bool = True
) -> tuple[Step, ...]:
    """Return the steps with all traffic named; violations become mistakes.

    In a timeline that is not ``whole`` others may refer to an omitted step.
    """
    drafts = [each for draft in drafts for each in _split(draft, split_senders, network, mistakes)]
    drafts = _name_traffic(drafts)
    drafts = [each for draft in drafts for each in _split(draft, split_starts, network, mistakes)]
    traffic = _traffic(drafts, mistakes)
    if network is not None:
        for draft in drafts:
            _check_places(draft, network, mistakes)
    if whole:
        for draft in drafts:
            _check_references(draft, traffic, mistakes)
        _check_waits(drafts, traffic, mistakes)
        check_captures(drafts, mistakes)
    return tuple(
        Step(draft.at_s, draft.command, draft.after, spell(draft.where), number)
        for number, draft in enumerate(drafts)
    )


def _split(
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
    names = {kind: map(f"{kind.prefix}{{}}".format, count(1)) for kind in TRAFFIC}
    free = {kind: filterfalse(taken.__contains__, each) for kind, each in names.items()}
    named = []
    for draft in drafts:
        kind = started_by(draft.command)
        if kind is not None and kind.name_of(draft.command) is None:
            command = replace(draft.command, **{kind.field: next(free[kind])})
            named.append(replace(draft, command=command))
        else:
            named.append(draft)
    return named


def _traffic(drafts: list[Draft], mistakes: Mistakes) -> dict[str, Draft]:
    """Return the steps that start traffic, by name. No name may be used twice."""
    traffic: dict[str, Draft] = {}
    for draft in drafts:
        kind = started_by(draft.command)
        if kind is None or (name := kind.name_of(draft.command)) is None:
            continue
        if name in traffic:
            first = spell(traffic[name].where)
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
    if command.ANY_OF and all(getattr(command, name) is None for name in command.ANY_OF):
        *most, last = (fields_of(type(command))[name].key for name in command.ANY_OF)
        mistakes.add(draft.where, f"changes nothing: give it a {', '.join(most)} or {last}")
    if isinstance(command, SetLink) and command.rate == 0 and is_observed(network, command.link):
        mistakes.add(draft.at("rate"), "the link under study needs a rate, or no queue forms")


def _check_references(draft: Draft, traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    command = draft.command
    if command.ONE_OF and sum(getattr(command, name) is not None for name in command.ONE_OF) != 1:
        words = " or a ".join(fields_of(type(command))[name].key for name in command.ONE_OF)
        mistakes.add(draft.where, f"needs either a {words}, and not both")
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
    if (kind := stopped_by(command)) is not None:
        yield kind, command.needs()
    elif command.TRAFFIC == "flow" and (name := command.needs()):
        yield KINDS["flow"], name


def _check_waits(drafts: list[Draft], traffic: dict[str, Draft], mistakes: Mistakes) -> None:
    """Record each ``after`` that names no traffic that is started and can end before."""
    stopped = {
        kind.name_of(draft.command) for draft in drafts if (kind := stopped_by(draft.command))
    }
    comes: set[str] = set()
    for draft in drafts:
        if draft.after is None:
            continue
        place = (*draft.where, "after")
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
            mistakes.add(place, "waits for itself, in a circle: it would never happen")


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
