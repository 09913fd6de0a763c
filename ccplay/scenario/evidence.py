"""Evidence of a case: metrics to report, their expected values, and published values."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.quantities import NUMBER, Field, MisfitError, Quantity, Shape, quote, same
from ccplay.model.texts import LINE, PROSE, worded
from ccplay.scenario.document import spell
from ccplay.scenario.parts import Items, Key, Table, keys_from
from ccplay.scenario.tree import Node, Reader, plain
from ccplay.scenario.values import Expectation, Published
from ccplay.units import PATTERNS, parse_ratio

MOST_METRICS = 100
METRIC_PATTERN = r"[a-z][a-z0-9_]*(\.[A-Za-z0-9_.:/> -]*[A-Za-z0-9_])?"
"""Pattern of a metric's path in a result: ``flows.1.goodput_bps``, ``queues.r->h2 bulk.drops``."""

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


# --- what a case reports, expects and cites -------------------------------------------------------


def _check_expectation(given: dict[str, Any], node: Node, reader: Reader) -> None:
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
_PATH_MEANING = "Path in the result: checkpoint.ratio, flows.1.goodput_bps, pings.p1.p50_ms"
_VALUES = "One or several readings"

METRICS = Items(
    of=Field(METRIC, ""), noun="metrics", most=MOST_METRICS, instead="", words={"uniqueItems": True}
)
EXPECTATION = Table(
    definition="expectation",
    make=Expectation,
    check=_check_expectation,
    keys=keys_from(
        {
            "metric": Field(
                METRIC,
                _PATH_MEANING,
                required=True,
            ),
            "value": Field(NUMBER, "Expected value"),
            "tolerance": Field(TOLERANCE, 'Tolerance: a share such as "15 %", or a plain number'),
            "at_least": Field(NUMBER, "Least allowed value", name="low"),
            "at_most": Field(NUMBER, "Greatest allowed value", name="high"),
            "why": Field(LINE, "Reason for the expectation", required=True),
        }
    ),
    missing={
        "metric": ', such as metric = "checkpoint.ratio"',
        "why": ', such as why = "the queue holds 800 ms"',
    },
    words={
        "dependentRequired": {"value": ["tolerance"], "tolerance": ["value"]},
        "oneOf": [{"required": ["value"]}, _BOUND],
    },
)
EXPECT = Items(of=EXPECTATION, most=MOST_METRICS)
PUBLISHED_VALUES = Table(
    definition="published",
    keys={
        **keys_from(
            {
                "metric": Field(
                    METRIC,
                    _PATH_MEANING,
                    required=True,
                )
            }
        ),
        "values": Key(
            Items(
                of=Field(NUMBER, ""),
                noun="numbers",
                least=1,
                bounds="needs one reading or more, such as [0.72]",
                make=tuple,
            ),
            _VALUES,
            required=True,
        ),
        **keys_from({"note": Field(PROSE, "Why ours may differ")}),
    },
    make=Published,
    missing={
        "metric": ', such as metric = "checkpoint.ratio"',
        "values": ", such as values = [0.72, 0.75]",
    },
)
PUBLISHED = Items(of=PUBLISHED_VALUES, most=MOST_METRICS)


def read_metrics(
    node: Node | None, reader: Reader, network: Network | None = None
) -> tuple[str, ...]:
    """Read the metrics to report first."""
    found: dict[str, None] = {}
    if node is not None:
        for number, each in enumerate(METRICS.read(node, reader) or ()):
            name = unaliased(each, network)
            if name and name in found:
                reader.mistakes.add((*node.place, number), f"{quote(name)} is named twice")
            found[name] = None
    return tuple(found)


def read_evidence(
    node: Node | None, part: Items, reader: Reader, network: Network | None
) -> tuple[Any, ...]:
    """Return the members of a list that name metrics, with the aliases of queues resolved."""
    found = part.read(node, reader) if node is not None else ()
    return tuple(replace(each, metric=unaliased(each.metric, network)) for each in found or ())
