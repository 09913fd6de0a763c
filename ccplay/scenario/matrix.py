"""A matrix of parameters, and the differences between the repeats of a case."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.model.base import StopTraffic
from ccplay.model.quantities import NUMBER, Field, MisfitError, Quantity, Shape, quote, same
from ccplay.model.texts import LINE
from ccplay.scenario.document import Place, spell
from ccplay.scenario.parts import Items, TomlTable
from ccplay.scenario.tree import (
    NOWHERE,
    GivenSetting,
    KeyPath,
    Placed,
    Reader,
    read_path,
    use_todays_path,
)
from ccplay.scenario.values import Case, Step
from ccplay.traffic.flow import StartFlow, StopFlow

# --- differences between repeats of a case: the seeds, and the start of each flow -----------------

MOST_SEEDS = 2**31

_Moment: TypeAlias = tuple[float, str | None]
_Together: TypeAlias = dict[_Moment, list[str]]


def repeated(case: Case, repeat: int) -> Case:
    """Return a case as run in its repeat with this number, from 1.

    The result depends only on the case and the number: each repeat has another seed for the
    randomness of links; each flow starts later by up to ``jitter_s``, and its other steps move with
    it; if the case is ``balanced``, flows that start together take turns at being first.
    """
    seed = (case.build.seed + repeat - 1) % MOST_SEEDS
    together = _starts(case.timeline) if case.balanced else {}
    offsets = _offsets(case, repeat)
    for flows in together.values():
        dealt = sorted(offsets[flow] for flow in flows)
        offsets |= dict(zip(_rotate(flows, repeat), dealt, strict=True))
    # Without jitter, or with equal offsets, the order of the steps decides.
    steps = _rotated(case.timeline, repeat, together)
    return replace(
        case,
        build=replace(case.build, seed=seed),
        timeline=tuple(_later(step, offsets) for step in steps),
    )


def flow_of(step: Step) -> str | None:
    """Return the flow that a step starts or acts on; None if there is none."""
    command = step.command
    if isinstance(command, StartFlow | StopFlow):
        return command.flow
    return None if isinstance(command, StopTraffic) else command.needs() or None


def _starts(timeline: Iterable[Step]) -> _Together:
    """Return the flows by the moments of their starts."""
    together: _Together = {}
    for step in timeline:
        if isinstance(step.command, StartFlow) and step.command.flow is not None:
            together.setdefault((step.at_s, step.after), []).append(step.command.flow)
    return together


def _rotate(flows: list[str], repeat: int) -> list[str]:
    """Return the flows in the order of this repeat."""
    first = (repeat - 1) % len(flows)
    return flows[first:] + flows[:first]


def _offsets(case: Case, repeat: int) -> dict[str, float]:
    """Return the delay of each flow's start in seconds."""
    return {
        flow: random.Random(f"{case.build.seed}/{repeat}/{flow}").uniform(0, case.jitter_s)  # noqa: S311
        for flow in map(flow_of, case.timeline)
        if flow is not None
    }


def _later(step: Step, offsets: dict[str, float]) -> Step:
    flow = flow_of(step)
    return step if flow is None else replace(step, at_s=round(step.at_s + offsets[flow], 6))


def _rotated(timeline: tuple[Step, ...], repeat: int, together: _Together) -> list[Step]:
    """Return the timeline with the flows that start at one moment in another order.

    Other steps of a flow at the same moment stay after its start.
    """
    steps = list(timeline)
    for moment, flows in together.items():
        places = [
            i
            for i, step in enumerate(steps)
            if flow_of(step) in flows and (step.at_s, step.after) == moment
        ]
        turn = {flow: place for place, flow in enumerate(_rotate(flows, repeat))}
        moved = sorted((steps[i] for i in places), key=lambda step: turn[str(flow_of(step))])
        for i, step in zip(places, moved, strict=True):
            steps[i] = step
    return steps


# --- A matrix of parameters: every case is run at each point of it --------------------------------

LARGEST_WHOLE = 2**53
MOST_AXES = 32
MOST_PATHS = 1000
"""Largest number of paths in an axis."""

Parameter: TypeAlias = str | int | float | bool


def _as_it_is(shape: Shape, meaning: str) -> Field:
    """Return a key whose value is read by the functions below."""
    return Field(Quantity("", "", object, same, same, shape), meaning)


_PATH: Shape = {"type": "string", "minLength": 1}
_SCALARS: Shape = {
    "type": "array",
    "items": {"type": ["string", "number", "boolean"]},
    "minItems": 1,
}


class _AxisPart(TomlTable, frozen=True, kw_only=True, eq=False):
    """An axis with a name of its own; its values alone stand for those of a path.

    None of its keys is required, because a case may change an axis of the common part.
    """

    def form(self) -> Shape:
        """Return the JSON Schema of ``{ path = PATH, values = […] }`` and of ``[…]``."""
        return {"anyOf": [TomlTable.form(self), _SCALARS]}


AXIS = _AxisPart(
    definition="axis",
    keys={
        "path": _as_it_is(
            {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": _PATH},
            'Path to set, such as "links.bottleneck.queue.limit", or a list of paths',
        ),
        "values": _as_it_is({"type": "array", "minItems": 1}, "Its values, used in turn"),
        "names": Items(
            of=Field(LINE),
            words={"minItems": 1, "uniqueItems": True},
            meaning="Names of the values; needed if they are tables or lists",
        ),
    },
)


class Axis(msgspec.Struct, frozen=True):
    """One parameter with its values."""

    name: str
    paths: tuple[tuple[KeyPath, Place], ...]
    """Paths that the axis sets, with their places in the file."""
    place: Place
    """Place of the values in the file."""
    values: tuple[tuple[Parameter, Placed], ...]
    """Values with their names."""


class Point(msgspec.Struct, frozen=True):
    """A point of the matrix: one value of each axis."""

    parameters: Mapping[str, Parameter]
    values: tuple[tuple[Axis, Placed], ...]

    def name(self, case: str) -> str:
        """Return the name of a case at this point: ``CASE, delay 50 ms, limit 10``."""
        values = [f"{axis} {word_of(value)}" for axis, value in self.parameters.items()]
        return ", ".join([case, *values] if case else values)

    def apply(self, case: Placed, reader: Reader) -> Placed:
        """Return a case with the values of this point merged into it."""
        for axis, value in self.values:
            for path, place in axis.paths:
                case = reader.merge(case, path, value, place)
        return case


def read_matrix(node: Placed | None, reader: Reader) -> list[Axis]:
    """Read the axes; those with a mistake are omitted."""
    axes: list[Axis] = []
    table = reader.table(node)
    if node is not None and len(table) > MOST_AXES:
        reader.mistakes.add(node.place, f"more than {MOST_AXES} axes")
        return axes
    sets: dict[KeyPath, Axis] = {}
    within: dict[KeyPath, Axis] = {}
    for key, each in table.items():
        before = reader.mistakes.count
        axis = _axis(key, each, reader)
        if any(axis.name == other.name for other in axes):
            text = f"another axis is named {quote(axis.name)}: give them names"
            reader.mistakes.add(each.place, f"{text}, NAME = {{ path = …, values = … }}")
        for path, place in axis.paths:
            above = (sets[start] for start in _starts_of(path) if start in sets)
            if (other := within.get(path) or next(above, None)) is not None:
                reader.mistakes.add(place, f"axis {quote(other.name)} sets this too")
        if reader.mistakes.count == before:
            axes.append(axis)
            sets |= dict.fromkeys((path for path, _ in axis.paths), axis)
            within |= {start: axis for path, _ in axis.paths for start in _starts_of(path)}
    return axes


def _starts_of(path: KeyPath) -> Iterator[KeyPath]:
    """Yield the prefixes of a path, the whole path last."""
    return (path[:length] for length in range(1, len(path) + 1))


def check_settings(axes: list[Axis], settings: list[GivenSetting], reader: Reader) -> None:
    """Refuse settings of the command line that an axis would override."""
    sets = {path: axis for axis in axes for path, _ in axis.paths}
    for setting in settings:
        if start := next((each for each in _starts_of(setting.path) if each in sets), None):
            use = f"use --set {spell(sets[start].place)}=[…]"
            reader.mistakes.add(setting.place, f"the matrix sets it in every case: {use}")


def size(axes: list[Axis]) -> int:
    """Return the number of points; 1 without axes."""
    return prod(len(axis.values) for axis in axes)


def points(axes: list[Axis]) -> Iterator[Point]:
    """Yield every point, the last axis changing fastest."""
    for values in product(*(axis.values for axis in axes)):
        pairs = list(zip(axes, values, strict=True))
        yield Point(
            {axis.name: label for axis, (label, _) in pairs},
            tuple((axis, value) for axis, (_, value) in pairs),
        )


def _axis(key: str, node: Placed, reader: Reader) -> Axis:
    """Read ``NAME = { path = PATH, values = […] }`` or ``PATH = […]``."""
    if not isinstance(node.value, dict):
        path = reader.value(Placed(node.place, key), _path, NOWHERE)
        name = path[-1] if path else key
        return Axis(name, ((path, node.place),), node.place, _values(node, None, reader))
    if not AXIS.keys.keys() & node.value.keys():
        text = 'needs a path and values; a path alone stands in quotes: "links.r-h2.delay" = […]'
        reader.mistakes.add(node.place, text)
        return Axis(key, (), node.place, ())
    table = reader.table(node, AXIS.keys)
    for each in ("path", "values"):
        if each not in table:
            reader.mistakes.add(node.place, f"{each} is missing")
    return Axis(
        name=reader.value(Placed(node.place, key), LINE.read, ""),
        paths=_paths(table.get("path"), reader),
        place=(*node.place, "values"),
        values=_values(table.get("values"), table.get("names"), reader),
    )


def _paths(node: Placed | None, reader: Reader) -> tuple[tuple[KeyPath, Place], ...]:
    nodes = [] if node is None else node.value if isinstance(node.value, list) else [node]
    if node is not None and not nodes:
        reader.mistakes.add(node.place, "an empty list: name at least one path")
    if node is not None and len(nodes) > MOST_PATHS:
        reader.mistakes.add(node.place, f"more than {MOST_PATHS} paths")
        return ()
    return tuple((reader.value(each, _path, NOWHERE), each.place) for each in nodes)


def _path(value: Any) -> KeyPath:
    return use_todays_path(read_path(value))[0]


def _values(
    node: Placed | None, named: Placed | None, reader: Reader
) -> tuple[tuple[Parameter, Placed], ...]:
    values = reader.members(node, "values")
    if node is not None and isinstance(node.value, list) and not values:
        reader.mistakes.add(node.place, "an empty list: no case would be run")
    names = reader.members(named, "names") if named else values
    if named and len(names) != len(values):
        reader.mistakes.add(named.place, f"{len(names)} names for {len(values)} values")
    read: Callable[[Any], Parameter] = LINE.read if named else label_of
    unnamed: Parameter = ""
    labels = [reader.value(each, read, unnamed) for each in names]
    seen: set[str] = set()
    for each, label in zip(names, labels, strict=True):
        if label != "" and word_of(label) in seen:
            reader.mistakes.add(each.place, f"{quote(label)} is there already")
        seen.add(word_of(label))
    return tuple(zip(labels, values, strict=False))


def label_of(value: Any) -> Parameter:
    """Return a value as its own name."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if abs(NUMBER.read(value)) > LARGEST_WHOLE:
            raise MisfitError(f"{quote(value)} is too large")
        return value
    if isinstance(value, str):
        return str(LINE.read(value))
    raise MisfitError('has no name of its own: give the axis names = ["…", "…"]')


def word_of(value: Parameter) -> str:
    """Return a value as it stands in the name of a case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
