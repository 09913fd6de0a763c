"""Evidence of a case: metrics to report, their expected values, and published values."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.quantities import NUMBER, MisfitError, quote
from ccplay.model.texts import LINE, PROSE, worded
from ccplay.scenario.document import spell
from ccplay.scenario.tree import Node, Reader, plain
from ccplay.scenario.values import Expectation, Published
from ccplay.units import parse_ratio

MOST_METRICS = 100
METRIC_PATTERN = r"[a-z][a-z0-9_]*(\.[A-Za-z0-9_.:/> -]*[A-Za-z0-9_])?"
"""Pattern of a metric's path in a result: ``flows.1.goodput_bps``, ``queues.r->h2 bulk.drops``."""

EXPECTATION_KEYS = ("metric", "value", "tolerance", "at_least", "at_most", "why")
PUBLISHED_KEYS = ("metric", "values", "note")

_METRIC = re.compile(METRIC_PATTERN)
_ALIAS = re.compile(rf"queues\.{BOTTLENECK}(?=[. ])")


def metric(value: Any) -> str:
    """Read the name of a metric, without a check whether runs measure it."""
    if not isinstance(value, str) or len(value) > 100 or not _METRIC.fullmatch(value):
        raise MisfitError(
            f'{quote(value)} is not a metric: give its path in the result: "flows.1.goodput_bps"'
        )
    return value


METRIC = worded(
    *("metric", "a metric", metric),
    {"type": "string", "maxLength": 100, "pattern": f"^{METRIC_PATTERN}$"},
)


def unaliased(name: str, network: Network | None) -> str:
    """Return a metric of the queue ``bottleneck`` as one of the first observed link."""
    found = _ALIAS.match(name)
    if found is None or network is None or not network.observed:
        return name
    return f"queues.{network.observed[0]}{name[found.end() :]}"


def read_metrics(
    node: Node | None, reader: Reader, network: Network | None = None
) -> tuple[str, ...]:
    """Read the metrics to report first."""
    metrics: dict[str, None] = {}
    for each in _members(node, "metrics", reader):
        name = unaliased(reader.value(each, metric, ""), network)
        if name and name in metrics:
            reader.mistakes.add(each.place, f"{quote(name)} is named twice")
        metrics[name] = None
    return tuple(metrics)


def read_expect(
    node: Node | None, reader: Reader, network: Network | None = None
) -> tuple[Expectation, ...]:
    """Read the checks; those with a mistake are omitted."""
    checks = (_expectation(each, reader) for each in _members(node, "tables", reader))
    return tuple(
        replace(check, metric=unaliased(check.metric, network))
        for check in checks
        if check is not None
    )


def read_published(
    node: Node | None, reader: Reader, network: Network | None = None
) -> tuple[Published, ...]:
    """Read published values."""
    found = [_published(each, reader) for each in _members(node, "tables", reader)]
    return tuple(replace(each, metric=unaliased(each.metric, network)) for each in found)


def _members(node: Node | None, of: str, reader: Reader) -> list[Node]:
    nodes = reader.members(node, of)
    if node is not None and len(nodes) > MOST_METRICS:
        reader.mistakes.add(node.place, f"more than {MOST_METRICS}")
        return []
    return nodes


def _expectation(node: Node, reader: Reader) -> Expectation | None:
    before = reader.mistakes.count
    table = reader.table(node, EXPECTATION_KEYS)
    for key, example in (("metric", "checkpoint.ratio"), ("why", "the queue holds 800 ms")):
        if key not in table:
            reader.mistakes.add(node.place, f'{key} is missing, such as {key} = "{example}"')
    name = reader.value(table.get("metric"), metric, "")
    why = reader.value(table.get("why"), LINE.read, "")
    low = reader.value(table.get("at_least"), NUMBER.read, None)
    high = reader.value(table.get("at_most"), NUMBER.read, None)
    text = _bounds_text(low, high)
    if "value" in table and (low, high) == (None, None):
        low, high, text = _around(table, node, reader)
    elif "value" in table or "tolerance" in table:
        what = "either value with tolerance, or at_least and at_most"
        reader.mistakes.add(node.place, f"{what}, not both")
    elif "at_least" not in table and "at_most" not in table:
        reader.mistakes.add(node.place, "needs a value with a tolerance, at_least or at_most")
    if low is not None and high is not None and low > high:
        reader.mistakes.add(node.place, f"at_least {low:g} is more than at_most {high:g}")
    if reader.mistakes.count > before:
        return None
    return Expectation(name, low, high, text, why, spell(node.place))


def _bounds_text(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low:,.10g} to {high:,.10g}"
    return f"at least {low:,.10g}" if low is not None else f"at most {high or 0:,.10g}"


def _around(table: dict[str, Node], node: Node, reader: Reader) -> tuple[float, float, str]:
    """Return the bounds of a value with tolerance, and their text."""
    value = reader.value(table["value"], NUMBER.read, 0.0)
    tolerance = table.get("tolerance")
    if tolerance is None:
        reader.mistakes.add(node.place, 'tolerance is missing, such as tolerance = "15 %"')
        return value, value, ""
    width = reader.value(tolerance, lambda each: _tolerance(each, value), 0.0)
    text = f"{value:,.10g} ± {' '.join(str(plain(tolerance)).split())}"
    return value - width, value + width, text


def _tolerance(tolerance: Any, value: float) -> float:
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


def _published(node: Node, reader: Reader) -> Published:
    table = reader.table(node, PUBLISHED_KEYS)
    for key, example in (("metric", '"checkpoint.ratio"'), ("values", "[0.72, 0.75]")):
        if key not in table:
            reader.mistakes.add(node.place, f"{key} is missing, such as {key} = {example}")
    values = reader.members(table.get("values"), "numbers")
    if "values" in table and not values:
        reader.mistakes.add(table["values"].place, "needs one reading or more, such as [0.72]")
    return Published(
        metric=reader.value(table.get("metric"), metric, ""),
        values=tuple(reader.value(each, NUMBER.read, 0.0) for each in values),
        note=reader.value(table.get("note"), PROSE.read, ""),
    )
