"""The measures of a page: metrics of the result, or statistics of a variable's samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from ccplay.model.fields import Field
from ccplay.model.network import Network
from ccplay.model.quantities import SECONDS
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import LINE, choice
from ccplay.model.traffic import TRAFFIC
from ccplay.scenario.fields.evidence import METRIC
from ccplay.scenario.fields.network import link_problem
from ccplay.scenario.file.tree import Node, Reader
from ccplay.scenario.lesson import units
from ccplay.scenario.lesson.values import Measure, Take

MOST_MEASURES = 12
UNREAD = ""
"""Name that stands for all traffic of a step that could not be read."""

TAKES = ("mean", "least", "greatest", "last", "growth")
MEASURE: dict[str, Field] = {
    "metric": Field(METRIC, "Path in the result, or with take of a variable", required=True),
    "text": Field(LINE, "What it is", required=True),
    "unit": Field(choice("unit", units.FACTORS), "Unit in which it is shown and compared"),
    "take": Field(
        choice("take", TAKES),
        "Statistic of a variable's samples during the page's run: flows.1.cwnd, "
        "queues.bottleneck.qlen, pings.p1.rtt_us, flows.1.goodput_bps",
    ),
    "from": Field(SECONDS, "Seconds of the run from which on samples count", 0, 600),
    "to": Field(SECONDS, "Seconds of the run until which samples count", 0, 600),
    "relative_to": Field(
        METRIC, "The metric that it is divided by, or the name of another measure of the page"
    ),
}


def read_fields(
    node: Node, table: Mapping[str, Node], fields: Mapping[str, Field], reader: Reader
) -> dict[str, Any]:
    """Return the values of single fields; a missing required one is a mistake."""
    found: dict[str, Any] = {}
    for key, field in fields.items():
        if key in table:
            found[key] = reader.value(table[key], field.read, None)
        elif field.required:
            reader.mistakes.add(node.place, f"{key} is missing: {field.meaning}")
    return {key: value for key, value in found.items() if value is not None}


def read_measures(
    node: Node | None, network: Network | None, started: Collection[str], reader: Reader
) -> dict[str, Measure]:
    """Read the measures of a page; ``started`` has the names of all traffic so far."""
    table = reader.table(node)
    if node is not None and len(table) > MOST_MEASURES:
        reader.mistakes.add(node.place, f"more than {MOST_MEASURES} measures")
    read = {
        name: _measure(each, network, (table.keys(), started), reader)
        for name, each in table.items()
    }
    return {name: each for name, each in read.items() if each is not None}


def _measure(
    node: Node,
    network: Network | None,
    known: tuple[Collection[str], Collection[str]],
    reader: Reader,
) -> Measure | None:
    """Read a measure; ``known`` has the page's measures, and the names of all traffic so far."""
    others, started = known
    before = reader.mistakes.count
    table = reader.table(node, MEASURE)
    given = read_fields(node, table, MEASURE, reader)
    if reader.mistakes.count > before:
        return None
    measure = Measure(
        metric=given["metric"],
        text=given["text"],
        unit=given.get("unit", ""),
        take=cast("Take", given.get("take", "")),
        from_s=given.get("from", 0.0),
        to_s=given.get("to"),
        relative_to=given.get("relative_to", ""),
    )
    for key in ("metric", "relative_to"):
        path = getattr(measure, key)
        if path and not (key == "relative_to" and path in others):
            for text in _problems(path, taken=bool(measure.take), network=network, started=started):
                reader.mistakes.add(table[key].place, text)
    if units.factor(measure) is None and reader.mistakes.count == before:
        text = f"{quote(measure.metric)} can't be shown in {measure.unit or 'plain numbers'}"
        reader.mistakes.add(node.place, text)
    if measure.to_s is not None and measure.to_s <= measure.from_s:
        reader.mistakes.add(node.place, "to is not later than from")
    return measure


def _problems(
    path: str, *, taken: bool, network: Network | None, started: Collection[str]
) -> Iterator[str]:
    """Yield why no run measures a metric; ``taken`` is whether it is a statistic of samples."""
    group, _, rest = path.partition(".")
    member, _, name = rest.rpartition(".")
    kinds = [kind.group for kind in TRAFFIC]
    if group == "queues" and network is not None and member:
        problem = link_problem(network, member)
        yield from [problem] if problem else []
    elif group in kinds and member and member not in started and UNREAD not in started:
        yield f"no page up to this one starts {quote(member)}{did_you_mean(member, started)}"
    if not taken:
        if member and group not in (*kinds, "queues"):
            yield f"nothing measures {quote(path)}{did_you_mean(group, (*kinds, 'queues'))}"
        return
    subject = units.subject_of(group)
    if subject is None or not member:
        yield 'take needs a variable, such as "flows.1.cwnd" or "queues.bottleneck.qlen"'
    elif name not in (known := units.variables_of(subject)) and "_" not in name:
        # Algorithms report variables of their own, such as dctcp_alpha_1024.
        yield f"no variable {quote(name)}{did_you_mean(name, known)}"
