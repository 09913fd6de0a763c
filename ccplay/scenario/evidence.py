"""Evidence of a case: metrics to report, their expected values, and published values."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ccplay.files.reading import read_regular
from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.quantities import (
    NUMBER,
    Field,
    MisfitError,
    Quantity,
    Shape,
    did_you_mean,
    quote,
    same,
)
from ccplay.model.texts import LINE, METRIC, PROSE
from ccplay.scenario.document import ControlError, Place, spell
from ccplay.scenario.matrix import Parameter, Point, label_of, word_of
from ccplay.scenario.parts import WRONG, Items, Part, TomlTable, keys_of
from ccplay.scenario.tree import Placed, Reader, plain
from ccplay.scenario.values import Criterion, CriterionMeasure, Expectation, Published
from ccplay.units import PATTERNS, parse_ratio
from ccplay.visible import control_in

MOST_METRICS = 100
MOST_ROWS = 1000
"""Largest number of rows of a published curve."""
LARGEST_CURVE = 100_000
"""Size of the largest CSV file of a curve in bytes."""
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.csv")
_ALIAS = re.compile(rf"queues\.{BOTTLENECK}(?=[. ])")


def unaliased(name: str, network: Network | None) -> str:
    """Return a metric of the queue ``bottleneck`` as one of the first observed link."""
    found = _ALIAS.match(name)
    if found is None or network is None or not network.observed:
        return name
    return f"queues.{network.observed[0]}{name[found.end() :]}"


# --- what a case reports, expects and cites -------------------------------------------------------


def _check_expectation(given: dict[str, Any], node: Placed, reader: Reader) -> None:
    """Record bounds that contradict each other; fill in those around a value, and their text."""
    keys = node.value.keys()
    if keys & {"value", "tolerance"} and keys & {"at_least", "at_most"}:
        what = "either value with tolerance, or at_least and at_most"
        reader.mistakes.add(node.place, f"{what}, not both")
    elif "value" in keys and "tolerance" not in keys:
        reader.mistakes.add(node.place, 'tolerance is missing, such as tolerance = "15 %"')
    elif not keys & {"value", "at_least", "at_most"}:
        reader.mistakes.add(node.place, "needs a value with a tolerance, at_least or at_most")
    low, high = given.setdefault("low", None), given.setdefault("high", None)
    value, tolerance = given.pop("value", None), node.value.get("tolerance")
    if low is not None and high is not None and low > high:
        reader.mistakes.add(node.place, f"at_least {low:g} is more than at_most {high:g}")
    if given.pop("tolerance", None) is not None and value is not None:
        width = reader.value(tolerance, lambda each: _width(each, value), 0.0)
        text = f"{value:,.10g} ± {' '.join(str(plain(tolerance)).split())}"
        given |= {"low": value - width, "high": value + width}
    elif low is not None and high is not None:
        text = f"{low:,.10g} to {high:,.10g}"
    else:
        text = f"at most {high or 0:,.10g}" if low is None else f"at least {low:,.10g}"
    given |= {"text": text, "place": spell(node.place)}


def _width(tolerance: Any, value: float) -> float:
    """Return the distance by which a metric may differ from ``value``."""
    if not isinstance(tolerance, str):
        width = float(NUMBER.read(tolerance))
        if width < 0:
            raise MisfitError(f"a tolerance of {width:g} allows nothing")
        return width
    try:
        share = parse_ratio(tolerance) if "%" in tolerance else None
    except (ValueError, OverflowError):
        share = None
    if share is None:
        raise MisfitError(
            f'{quote(tolerance)} is not a tolerance: give a share such as "15 %", or a plain number'
        )
    if share and not value:
        raise MisfitError("a share of 0 is 0: give the tolerance as a plain number")
    return share * abs(value)


TOLERANCE = Quantity(
    *("tolerance", "a tolerance", float, same, same),
    {"type": ["number", "string"], "minimum": 0, "pattern": f"^{PATTERNS['share']}$"},
)
_BOUND: Shape = {"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]}
_PATH_MEANING = "Path in the result: checkpoint.ratio, flows.1.goodput_bps, queues.bottleneck.drops"

METRICS = Items(
    meaning="Metrics to report first, each by its path in the result",
    of=Field(METRIC),
    noun="metrics",
    most=MOST_METRICS,
    instead="",
    words={"uniqueItems": True},
)
EXPECTATION = TomlTable(
    definition="expectation",
    make=Expectation,
    check=_check_expectation,
    keys={
        "metric": Field(METRIC, _PATH_MEANING, required=True),
        "value": Field(NUMBER, "Expected value"),
        "tolerance": Field(TOLERANCE, 'Tolerance: a share such as "15 %", or a plain number'),
        "at_least": Field(NUMBER, "Least allowed value", name="low"),
        "at_most": Field(NUMBER, "Greatest allowed value", name="high"),
        "why": Field(LINE, "Reason for the expectation", required=True),
    },
    missing={
        "metric": ', such as metric = "checkpoint.ratio"',
        "why": ', such as why = "the queue holds 800 ms"',
    },
    words={
        "dependentRequired": {"value": ["tolerance"], "tolerance": ["value"]},
        "oneOf": [{"required": ["value"]}, _BOUND],
    },
)
EXPECT = Items(
    of=EXPECTATION,
    most=MOST_METRICS,
    meaning="Checks of every run: the required value of a metric, and why",
)


class CurveRow(msgspec.Struct, frozen=True):
    """A value of a curve, with the points of the matrix at which it was measured."""

    at: dict[str, str]
    """Values of axes by name, as in the names of cases; an axis may be left out."""
    value: float
    place: Place
    line: str = ""
    """Line of the CSV file, for messages; empty if the row is in the scenario."""


class PublishedCurve(Part, frozen=True, kw_only=True, eq=False):
    """A value for each point of the matrix: rows, or the name of a CSV file beside the scenario.

    The file's first line names the axes, and ``value``. It is read as data, and only if it is a
    small regular file in the scenario's own folder.
    """

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the rows."""
        if isinstance(node.value, str):
            return _rows_of_file(node, reader)
        before = reader.mistakes.count
        rows = [_row(each, reader) for each in reader.members(node)]
        if not rows and reader.mistakes.count == before:
            text = 'needs one row or more, such as [{ delay = "50 ms", value = 0.72 }]'
            reader.mistakes.add(node.place, text)
        return rows if reader.mistakes.count == before else WRONG

    def form(self) -> Shape:
        """Return the JSON Schema of a file's name and of rows."""
        row = {
            "type": "object",
            "properties": {"value": {"description": "The value", **Field(NUMBER).shape}},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
            "required": ["value"],
        }
        rows = {"type": "array", "items": row, "minItems": 1, "maxItems": MOST_ROWS}
        return {"anyOf": [{"type": "string", "pattern": f"^{_FILE.pattern}$"}, rows]}


def _row(node: Placed, reader: Reader) -> CurveRow:
    table = reader.table(node)
    if "value" not in table:
        reader.mistakes.add(node.place, "value is missing, such as value = 0.72")
    value = reader.value(table.pop("value", None), NUMBER.read, 0.0)
    unnamed: Parameter = ""
    words = {key: word_of(reader.value(each, label_of, unnamed)) for key, each in table.items()}
    return CurveRow(words, value, node.place)


def _rows_of_file(node: Placed, reader: Reader) -> Any:
    """Read the CSV file that a curve names. Mistakes in it have its lines."""
    name = node.value
    if not _FILE.fullmatch(name):
        text = f'{quote(name)} is not the name of a CSV file beside the scenario: "curve.csv"'
        reader.mistakes.add(node.place, text)
        return WRONG
    before = reader.mistakes.count
    if name not in reader.files:
        try:
            content = read_regular((reader.folder or Path()) / name, LARGEST_CURVE)
            reader.files[name] = content.decode("utf-8-sig")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            reader.mistakes.add(node.place, f"can't read {name} beside the scenario: {reason}")
            return WRONG
    text = reader.files[name]
    if character := control_in(text):
        reader.mistakes.add(node.place, f"{name} {ControlError(character)}")
        return WRONG
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    rows: list[CurveRow] = []
    try:
        header = [each.strip() for each in next(lines, [])]
        if header.count("value") != 1 or len(set(header)) != len(header):
            text = f"{name}:1: names the axes and value, each once, such as delay,value"
            reader.mistakes.add(node.place, text)
            return WRONG
        for each in lines:
            here = f"{name}:{lines.line_num}: "
            if len(rows) == MOST_ROWS:
                reader.mistakes.add(node.place, f"{here}more than {MOST_ROWS} rows")
                break
            if not each:
                continue
            cells = dict(zip(header, map(str.strip, each), strict=False))
            try:
                value = float(NUMBER.read(float(cells.pop("value", ""))))
            except ValueError:
                reader.mistakes.add(node.place, f"{here}value is not a plain number")
                continue
            rows.append(CurveRow(cells, value, node.place, here))
    except csv.Error as error:
        reader.mistakes.add(node.place, f"{name}:{lines.line_num}: {error}")
    reader.spend(len(rows) // 16)
    return rows if reader.mistakes.count == before else WRONG


def _check_published(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    del values
    if len(node.value.keys() & {"values", "curve"}) != 1:
        text = "needs either values, such as values = [0.72, 0.75], or a curve over the matrix"
        reader.mistakes.add(node.place, text)


PUBLISHED_VALUES = TomlTable(
    definition="published",
    keys={
        "metric": Field(METRIC, _PATH_MEANING, required=True),
        "values": Items(
            of=Field(NUMBER),
            noun="numbers",
            least=1,
            bounds="needs one reading or more, such as [0.72]",
            meaning="One or several readings",
        ),
        "curve": PublishedCurve(
            meaning="A value for each point of the matrix: { AXIS = …, value = … }, or a CSV file "
            "beside the scenario whose first line names the axes and value"
        ),
        "note": Field(PROSE, "Why ours may differ"),
    },
    check=_check_published,
    missing={"metric": ', such as metric = "checkpoint.ratio"'},
    words={"oneOf": [{"required": ["values"]}, {"required": ["curve"]}]},
)
PUBLISHED = Items(
    of=PUBLISHED_VALUES, most=MOST_METRICS, meaning="Values measured by others, shown beside ours"
)


def read_metrics(node: Placed | None, reader: Reader, network: Network | None) -> tuple[str, ...]:
    """Read the metrics to report first."""
    found: dict[str, None] = {}
    if node is not None:
        for number, each in enumerate(METRICS.read(node, reader) or ()):
            name = unaliased(each, network)
            if name and name in found:
                reader.mistakes.add((*node.place, number), f"{quote(name)} is named twice")
            found[name] = None
    return tuple(found)


def read_expect(
    node: Placed | None, reader: Reader, network: Network | None
) -> tuple[Expectation, ...]:
    """Read the checks; those with a mistake are omitted."""
    found = EXPECT.read(node, reader) if node is not None else ()
    return tuple(replace(each, metric=unaliased(each.metric, network)) for each in found or ())


def read_published(
    node: Placed | None, reader: Reader, network: Network | None, at: Point
) -> tuple[Published, ...]:
    """Read the published values of a case at a point of its matrix."""
    found = []
    for each in (PUBLISHED.read(node, reader) or ()) if node is not None else ():
        metric = unaliased(each["metric"], network)
        note = each.get("note", "")
        if (rows := each.get("curve")) is None:
            found.append(Published(metric, tuple(each["values"]), note))
        elif values := _values_at(rows, at, reader):
            found.append(Published(metric, values, note, curve=True))
    return tuple(found)


def _values_at(rows: Sequence[CurveRow], at: Point, reader: Reader) -> tuple[float, ...]:
    """Return the values of a curve at a point; rows that are at no point are mistakes."""
    here = {name: word_of(value) for name, value in at.parameters.items()}
    known = {axis.name: [word_of(label) for label, _ in axis.values] for axis, _ in at.values}
    for row in rows:
        for name, word in row.at.items():
            if name not in known:
                text = f"the matrix has no axis {quote(name)}{did_you_mean(name, known)}"
                reader.mistakes.add(row.place, row.line + text)
            elif word not in known[name]:
                text = f"axis {quote(name)} has no value {quote(word)}"
                reader.mistakes.add(row.place, row.line + text + did_you_mean(word, known[name]))
    return tuple(row.value for row in rows if row.at.items() <= here.items())


# --- the criterion that a scenario evaluates ------------------------------------------------------


class _Plain(Part, frozen=True, kw_only=True, eq=False):
    """A table of single values or lists, as they stand in the file."""

    words: bool = False
    """Whether values are returned as in the names of cases."""

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the values by key."""
        table = reader.table(node)
        if not self.words:
            return {key: plain(each) for key, each in table.items()}
        unnamed: Parameter = ""
        return {key: word_of(reader.value(e, label_of, unnamed)) for key, e in table.items()}

    def form(self) -> Shape:
        """Return the JSON Schema of any table."""
        return {"type": "object"}


def _check_measure(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if values.get("low") is None and values.get("high") is None:
        reader.mistakes.add(node.place, "needs at_least or at_most")
    if values.get("minus") and values.get("over"):
        reader.mistakes.add(node.place, "either minus or over, not both")


CRITERION_MEASURE = TomlTable(
    definition="criterion-measure",
    make=CriterionMeasure,
    check=_check_measure,
    keys=keys_of(
        CriterionMeasure,
        at=_Plain(words=True, meaning="Points of the matrix where it is measured, by axis"),
    ),
)
CRITERION = TomlTable(
    definition="criterion",
    make=lambda measures=(), **values: Criterion(measures=tuple(measures), **values),
    meaning="The criterion that the file evaluates: ccplay evaluate",
    keys=keys_of(
        Criterion,
        measures=Items(
            of=CRITERION_MEASURE,
            least=1,
            most=MOST_METRICS,
            bounds="needs a measure",
            meaning="Metrics with bounds; the first one is the figure",
            required=True,
        ),
        quick=_Plain(meaning="Settings of a quick evaluation by path, as with --set"),
    ),
)


def read_criterion(
    node: Placed | None, axes: Iterable[str], reader: Reader, network: Network | None
) -> Criterion | None:
    """Read the criterion of a file whose matrix has these axes."""
    found: Criterion | None = CRITERION.read(node, reader) if node is not None else None
    if node is None or found is None:
        return None
    known = list(axes)
    named = {"subject": found.subject, "beside": found.beside}
    for key, axis in named.items():
        if axis and axis not in known:
            reader.mistakes.add(node.at(key), f"the matrix has no axis {quote(axis)}")
    for number, each in enumerate(found.measures):
        for axis in each.at.keys() - set(known):
            text = f"the matrix has no axis {quote(axis)}{did_you_mean(axis, known)}"
            reader.mistakes.add((*node.place, "measures", number, "at"), text)
        if each.minus == "beside" and not found.beside:
            place = (*node.place, "measures", number, "minus")
            reader.mistakes.add(place, "the criterion names no axis beside")
    measures = (replace(each, metric=unaliased(each.metric, network)) for each in found.measures)
    return replace(found, measures=tuple(measures))
