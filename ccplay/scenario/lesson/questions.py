"""The question of a page: choices, a number, or a region of a plot."""

from __future__ import annotations

from msgspec.structs import replace

from ccplay.model.fields import Field
from ccplay.model.quantities import FLAG, NUMBER
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import LINE, NAME, choice
from ccplay.scenario.file.tree import Node, Reader
from ccplay.scenario.lesson.measures import read_fields
from ccplay.scenario.lesson.values import Bound, Choice, Measure, Question, Range

MOST_CHOICES = 9
PLOTS = ("cwnd", "unacked", "queue", "udp", "rtt", "throughput", "pacing-rate", "acked")
"""Plots that a page may show."""

BOUND: dict[str, Field] = {
    "measure": Field(NAME, "Name of the measure", required=True),
    "at_least": Field(NUMBER, "Least value, in the measure's unit"),
    "at_most": Field(NUMBER, "Greatest value, in the measure's unit"),
}
CHOICE: dict[str, Field] = {
    "text": Field(LINE, "The answer", required=True),
    "usual": Field(FLAG, "Whether this is the usual outcome, which why explains"),
}
CHOICE_KEYS = (*CHOICE, "when")
NUMBERS: dict[str, Field] = {
    "measure": Field(NAME, "Name of the measure that is predicted", required=True),
    "low": Field(NUMBER, "Least answer, in the measure's unit", required=True),
    "high": Field(NUMBER, "Greatest answer, in the measure's unit", required=True),
}
TOLERANCE = Field(NUMBER, "Share of the measured value by which the answer may differ: 0.25", 0, 1)
REGION: dict[str, Field] = {
    "plot": Field(choice("plot", PLOTS), "The plot on which it is predicted", required=True),
    "width": Field(NUMBER, "Height of the region, in the measure's unit", required=True),
}
USUAL_KEYS = ("at_least", "at_most")
NUMBER_KEYS = (*NUMBERS, "tolerance", "usual")
REGION_KEYS = (*NUMBERS, *REGION, "usual")
QUESTION_KEYS = ("ask", "choices", "number", "region")
_ASK = Field(LINE, "The question", required=True)


def read_question(node: Node, measures: dict[str, Measure], reader: Reader) -> Question:
    """Read the question of a page about its measures."""
    table = reader.table(node, QUESTION_KEYS)
    given = read_fields(node, table, {"ask": _ASK}, reader)
    kinds = [key for key in QUESTION_KEYS[1:] if key in table]
    if len(kinds) != 1:
        reader.mistakes.add(node.place, "needs one of choices, number or region")
        return Question(given.get("ask", ""))
    kind = kinds[0]
    if kind == "choices":
        return Question(given.get("ask", ""), _choices(table[kind], measures, reader))
    return Question(given.get("ask", ""), range=_range(table[kind], kind, measures, reader))


def _choices(node: Node, measures: dict[str, Measure], reader: Reader) -> tuple[Choice, ...]:
    nodes = reader.members(node)
    if not 2 <= len(nodes) <= MOST_CHOICES:
        reader.mistakes.add(node.place, f"a question has 2 to {MOST_CHOICES} choices")
    found = []
    for each in nodes:
        table = reader.table(each, CHOICE_KEYS)
        given = read_fields(each, table, CHOICE, reader)
        when = tuple(_bound(one, measures, reader) for one in reader.members(table.get("when")))
        if not when:
            text = "when is missing: what the run measures if it is right, such as when = "
            text += '[{ measure = "rtt", at_least = 100 }]'
            reader.mistakes.add(each.place, text)
        found.append(Choice(given.get("text", ""), when, given.get("usual", False)))
    if sum(each.usual for each in found) > 1:
        reader.mistakes.add(node.place, "only one choice can be the usual one")
    return tuple(found)


def _bound(node: Node, measures: dict[str, Measure], reader: Reader) -> Bound:
    before = reader.mistakes.count
    table = reader.table(node, BOUND)
    given = read_fields(node, table, BOUND, reader)
    bound = Bound(given.get("measure", ""), given.get("at_least"), given.get("at_most"))
    if reader.mistakes.count == before:
        _check_bound(node, bound, reader)
    _check_measure(node, bound.measure, measures, reader)
    return bound


def _check_bound(node: Node, bound: Bound, reader: Reader) -> None:
    if bound.low is None and bound.high is None:
        reader.mistakes.add(node.place, "needs at_least or at_most")
    elif bound.low is not None and bound.high is not None and bound.low > bound.high:
        reader.mistakes.add(node.place, f"at_least {bound.low:g} is more than {bound.high:g}")


def _check_measure(node: Node, name: str, measures: dict[str, Measure], reader: Reader) -> None:
    if name and name not in measures:
        text = f"the page has no measure {quote(name)}{did_you_mean(name, measures)}"
        reader.mistakes.add(node.place, text)


def _range(node: Node, kind: str, measures: dict[str, Measure], reader: Reader) -> Range | None:
    before = reader.mistakes.count
    region = kind == "region"
    table = reader.table(node, REGION_KEYS if region else NUMBER_KEYS)
    given = read_fields(node, table, {**NUMBERS, **(REGION if region else {})}, reader)
    if reader.mistakes.count > before:
        return None
    _check_measure(node, given["measure"], measures, reader)
    found = Range(
        measure=given["measure"],
        low=float(given["low"]),
        high=float(given["high"]),
        plot=given.get("plot", ""),
        width=float(given.get("width", 0.0)),
        tolerance=reader.value(table.get("tolerance"), TOLERANCE.read, 0.25),
    )
    if found.low >= found.high:
        reader.mistakes.add(node.place, "low is not below high")
    if region and not 0 < found.width <= found.high - found.low:
        reader.mistakes.add(node.place, "width must be above 0 and fit between low and high")
    if "usual" in table:
        inner = reader.table(table["usual"], USUAL_KEYS)
        given = read_fields(table["usual"], inner, {key: BOUND[key] for key in USUAL_KEYS}, reader)
        usual = Bound(found.measure, given.get("at_least"), given.get("at_most"))
        _check_bound(table["usual"], usual, reader)
        found = replace(found, usual=usual)
    return found
