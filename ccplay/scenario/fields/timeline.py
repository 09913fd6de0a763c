"""The timeline of a scenario: what to do when, read into commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ccplay.model.base import Command
from ccplay.model.commands import (
    Mark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.traffic import TRAFFIC
from ccplay.scenario.fields import quantities
from ccplay.scenario.fields.classes import read_classes
from ccplay.scenario.fields.queues import read_qdisc
from ccplay.scenario.file.mistakes import Place, quote
from ccplay.scenario.file.tree import Node, Reader

MOST_STEPS = 10_000

_COMMANDS: tuple[type[Command], ...] = (
    *(command for kind in TRAFFIC for command in (kind.start, kind.stop)),
    *(SetCongestionControl, SetQdisc, SetClasses, SetLink, StartCapture, StopCapture),
    *(TraceFlow, UntraceFlow, Mark),
)
ACTIONS = {str(kind.__struct_config__.tag): kind for kind in _COMMANDS}
"""What a step can ``do``, by the word for it."""

FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{kind.field: (kind.name, quantities.name) for kind in TRAFFIC},
    "src": ("src", quantities.name),
    "dst": ("dst", quantities.name),
    "host": ("host", quantities.name),
    "cc": ("cc", quantities.congestion_control),
    "streams": ("streams", quantities.Whole(1, quantities.MOST_STREAMS)),
    "bytes": ("bytes", quantities.size),
    "duration_s": ("duration", quantities.duration),
    "ecn": ("ecn", quantities.flag),
    "monitor": ("monitor", quantities.flag),
    "interval_s": ("interval", quantities.interval),
    "count": ("count", quantities.Whole(1, quantities.MOST_PINGS)),
    "link": ("link", quantities.text),
    "rate": ("rate", quantities.rate),
    "rate_bps": ("rate", quantities.payload_rate),
    "packet_bytes": ("packet", quantities.packet),
    "delay_us": ("delay", quantities.delay),
    "jitter_us": ("jitter", quantities.delay),
    "loss": ("loss", quantities.loss),
    "mark": ("mark", quantities.mark),
    "traffic_class": ("class", quantities.name),
    "capture": ("capture", quantities.name),
    "snaplen": ("snaplen", quantities.Whole(64, 65_535)),
    "max_bytes": ("size", quantities.size),
    "text": ("text", quantities.text),
}
"""By a command's field: its key in a file, and how it is read."""


def _reader_of(hint: Any) -> Callable[[Any], Any] | None:
    """Return what reads a field of this type: one of some words, or a whole number with bounds."""
    if get_origin(hint) is Annotated:
        plain, *notes = get_args(hint)
        meta = next((each for each in notes if isinstance(each, msgspec.Meta)), None)
        if plain is int and meta is not None and meta.ge is not None and meta.le is not None:
            return quantities.Whole(int(meta.ge), int(meta.le))
        return _reader_of(plain)
    if get_origin(hint) is Literal:
        return quantities.Choice("word", get_args(hint))
    return None


FIELDS |= {
    name: (name, read)
    for kind in TRAFFIC
    for name, hint in get_type_hints(kind.start, include_extras=True).items()
    if name not in FIELDS and (read := _reader_of(hint)) is not None
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A step as it was read, its names not yet checked."""

    place: Place
    at_s: float
    after: str | None
    command: Command

    def at(self, field: str) -> Place:
        """Return the place of a command's field."""
        return (*self.place, FIELDS[field][0])


def read_timeline(node: Node | None, duration_s: float, reader: Reader) -> list[Draft]:
    """Read every step; one with a mistake in it is left out."""
    nodes = reader.members(node)
    if node is not None and len(nodes) > MOST_STEPS:
        reader.mistakes.add(node.place, f"more than {MOST_STEPS} steps")
        return []
    drafts = (_step(each, duration_s, reader) for each in nodes)
    return [draft for draft in drafts if draft is not None]


def _step(node: Node, duration_s: float, reader: Reader) -> Draft | None:
    before = reader.mistakes.count
    table = reader.table(node)
    at_s, after = _moment(node.place, table, reader)
    if at_s > duration_s:
        reader.mistakes.add((*node.place, "at"), f"is later than the end, {duration_s:g} s")
    command = _command(node.place, table, reader)
    if command is None or reader.mistakes.count > before:
        return None
    return Draft(node.place, at_s, after, command)


def _moment(place: Place, table: dict[str, Node], reader: Reader) -> tuple[float, str | None]:
    after = reader.value(table.pop("after", None), quantities.name, None)
    at = table.pop("at", None)
    if at is None and after is None:
        reader.mistakes.add(place, 'at is missing: when to do it, such as at = "2 s"')
    return reader.value(at, quantities.seconds, 0.0), after


def _command(place: Place, table: dict[str, Node], reader: Reader) -> Command | None:
    do = table.pop("do", None)
    if do is None:
        reader.mistakes.add(place, f"do is missing: one of {', '.join(ACTIONS)}")
        return None
    action = ACTIONS.get(reader.value(do, quantities.Choice("action", tuple(ACTIONS)), ""))
    if action is None:
        return None
    values: dict[str, Any] = {}
    if action is SetQdisc:
        own = {key: table.pop(key) for key in list(table) if key not in ("link", "class")}
        values["qdisc"] = read_qdisc(place, own, reader)
    if action is SetClasses:
        if "classes" not in table:
            reader.mistakes.add(place, "classes is missing: a list of classes, or [] for one queue")
        values["classes"] = read_classes(table.pop("classes", None), reader)
    fields = _fields(action)
    known = [FIELDS[name][0] for name in fields if name in FIELDS]
    given = reader.table(Node(place, table), ("at", "after", "do", *known))
    for name, required in fields.items():
        key, read = FIELDS.get(name, (None, None))
        if key in given and read is not None:
            values[name] = reader.value(given[key], read, None)
        elif required and key is not None:
            reader.mistakes.add(
                place, f"{key} is missing for {quote(action.__struct_config__.tag)}"
            )
    missing = (name for name, required in fields.items() if required and values.get(name) is None)
    return None if any(missing) else action(**values)


@cache
def _fields(action: type[Command]) -> dict[str, bool]:
    """Return by its name whether a field of a command is required; msgspec takes 0.1 ms for it."""
    return {field.name: field.required for field in msgspec.structs.fields(action)}
