"""The timeline of a scenario: moments and actions, read into commands."""

from __future__ import annotations

from typing import Any

import msgspec

from ccplay.model.base import Command
from ccplay.model.commands import (
    Mark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetPath,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.fields import Field, fields_of
from ccplay.model.quantities import SECONDS
from ccplay.model.quoting import quote
from ccplay.model.settings import DAY_S
from ccplay.model.texts import NAME, choice
from ccplay.model.traffic import TRAFFIC
from ccplay.scenario.fields.classes import read_classes
from ccplay.scenario.fields.queues import read_qdisc
from ccplay.scenario.file.mistakes import Place
from ccplay.scenario.file.tree import Node, Reader

MOST_STEPS = 10_000

_COMMANDS: tuple[type[Command], ...] = (
    *(command for kind in TRAFFIC for command in (kind.start, kind.stop)),
    *(SetCongestionControl, SetPath, SetQdisc, SetClasses, SetLink, StartCapture, StopCapture),
    *(TraceFlow, UntraceFlow, Mark),
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


class Draft(msgspec.Struct, frozen=True):
    """A step as read, before its names are checked."""

    place: Place
    at_s: float
    after: str | None
    command: Command

    def at(self, field: str) -> Place:
        """Return the place in the file of a command's field."""
        return (*self.place, fields_of(type(self.command))[field].key)


def read_timeline(node: Node | None, duration_s: float, reader: Reader) -> list[Draft]:
    """Read every step; those with a mistake are omitted."""
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
    after = reader.value(table.pop("after", None), NAME.read, None)
    at = table.pop("at", None)
    if at is None and after is None:
        reader.mistakes.add(place, 'at is missing: when to do it, such as at = "2 s"')
    return reader.value(at, AT.read, 0.0), after


def _command(place: Place, table: dict[str, Node], reader: Reader) -> Command | None:
    do = table.pop("do", None)
    if do is None:
        reader.mistakes.add(place, f"do is missing: one of {', '.join(ACTIONS)}")
        return None
    action = ACTIONS.get(reader.value(do, _ACTION.read, ""))
    if action is None:
        return None
    before = reader.mistakes.count
    values: dict[str, Any] = {}
    if action is SetQdisc:
        own = {key: table.pop(key) for key in list(table) if key not in ("link", "class")}
        values["qdisc"] = read_qdisc(place, own, reader, of_class="class" in table)
    if action is SetClasses:
        if "classes" not in table:
            reader.mistakes.add(place, "classes is missing: a list of classes, or [] for one queue")
        values["classes"] = read_classes(table.pop("classes", None), reader)
    fields = fields_of(action)
    keys = [field.key for field in fields.values()]
    given = reader.table(Node(place, table), ("at", "after", "do", *keys))
    for name, field in fields.items():
        if field.key in given:
            values[name] = reader.value(given[field.key], field.read, None)
        elif field.required:
            action_name = quote(action.__struct_config__.tag)
            reader.mistakes.add(place, f"{field.key} is missing for {action_name}")
    return None if reader.mistakes.count > before else action(**values)
