"""Metrics of a run by name: the path of a number in its result, such as ``flows.1.fct_s``.

Scenarios name metrics in ``metrics``, ``expect`` and ``published``; expectations are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec

from ccplay.analysis.results import CaseResult, Check
from ccplay.errors import ScenarioError
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.traffic import TRAFFIC, started_by
from ccplay.model.traffic_commands import StartFlow
from ccplay.scenario.values import Case, Expectation, Scenario
from ccplay.state.subflows import Subflow

NO_METRICS = frozenset(
    ("name", "parameters", "repeat", "attempt", "checks", "health", "t", "streams", "started_s")
)
"""Fields of a result that are not metrics: they identify the run or qualify its trust."""

_NAMED_BY_A_LAB = ("queues.", "interfaces.", "directions.")
"""First parts of paths whose members are known only after a run."""

_GROUPS = {kind.group for kind in TRAFFIC} | {"queues"}
_MEMBERS: dict[str, type[msgspec.Struct]] = {
    name: get_args(hint)[0] for name, hint in get_type_hints(CaseResult).items() if name in _GROUPS
}
"""Type of a group's members in a result (flow, queue, ping …), by its key."""


def metrics_of(result: CaseResult) -> dict[str, float]:
    """Return every number measured in a run by its path; members of lists by id or link."""
    return dict(_numbers(msgspec.to_builtins(result), ""))


def identity_of(result: CaseResult) -> dict[str, Any]:
    """Return the run's identity and whether to trust it, by the columns of tables of runs."""
    return {
        "case": result.name,
        "repeat": result.repeat,
        "attempt": result.attempt,
        "machine": result.machine,
        "trustworthy": result.health.trustworthy,
        "errors": len(result.errors),
    }


def metric_of(result: CaseResult, name: str) -> float | None:
    """Return one number of ``metrics_of`` without computing the others; None if not measured."""
    return _number(result, name)


def check(case: Case, result: CaseResult) -> list[Check]:
    """Return all expectations of the case, held or not; one without a measured metric failed."""
    if result.interrupted or not case.expect:
        return []
    measured = metrics_of(result)
    return [_check(each, measured.get(each.metric)) for each in case.expect]


def check_metrics(scenario: Scenario) -> None:
    """Raise ``ScenarioError`` if a named metric can't be measured by any run."""
    problems: dict[str, None] = {}
    for case in scenario.cases:
        named = [("metrics", metric) for metric in case.metrics]
        named += [(each.place or "expect", each.metric) for each in case.expect]
        named += [("published", each.metric) for each in case.published]
        known = measurable(case)
        for place, metric in named:
            if metric not in known and not metric.startswith(_NAMED_BY_A_LAB):
                where = f"{scenario.path.name}: {place}: "
                what = f"nothing measures {quote(metric)}{did_you_mean(metric, known)}"
                problems[where + what] = None
    if problems:
        raise ScenarioError(*problems)


def measurable(case: Case) -> list[str]:
    """Return the metrics that a run of a case may have, except those named only by a lab."""
    metrics = [name for name in _fields(CaseResult) if name not in _MEMBERS]
    names: dict[str, list[str]] = {kind.group: [] for kind in TRAFFIC}
    for step in case.timeline:
        kind = started_by(step.command)
        if kind is not None and (name := kind.name_of(step.command)) is not None:
            names[kind.group].append(name)
        if isinstance(step.command, StartFlow) and step.command.mptcp:
            metrics += _of_subflows(step.command)
    for group, members in names.items():
        for name in members:
            metrics += [f"{group}.{name}.{field}" for field in _fields(_MEMBERS[group])]
    if case.sizes:
        metrics += ["checkpoint.elapsed_s", "checkpoint.ratio"]
        metrics += [f"checkpoint.bytes.{name}" for name in names["flows"]]
    return metrics


def _of_subflows(command: StartFlow) -> Iterator[str]:
    """Yield the metrics of the subflows that an MPTCP flow starts with."""
    for number in range(1, command.subflows + 1):
        for field in _fields(Subflow):
            yield f"flows.{command.flow}.subflows.{command.flow}/{number}.{field}"


def _check(expected: Expectation, value: float | None) -> Check:
    low = -float("inf") if expected.low is None else expected.low
    high = float("inf") if expected.high is None else expected.high
    return Check(
        metric=expected.metric,
        text=expected.text,
        why=expected.why,
        value=value,
        ok=value is not None and low <= value <= high,
    )


def _fields(kind: type[msgspec.Struct]) -> list[str]:
    """Return the fields of a result that can be numbers."""
    hints = {field.name: str(field.type) for field in msgspec.structs.fields(kind)}
    return [
        name
        for name, hint in hints.items()
        if name not in NO_METRICS and ("float" in hint or "int" in hint) and "[" not in hint
    ]


def _number(value: Any, place: str) -> float | None:
    """Return the number at a path within a value; names of members may contain dots."""
    if not place:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        return value if known else None
    found = None
    for name, each in _members(value):
        if place == name or place.startswith(f"{name}."):
            inner = _number(each, place[len(name) + 1 :])
            found = found if inner is None else inner
    return found


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of a value, each with its part of the path."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in NO_METRICS:
                yield name, getattr(value, name)
    elif isinstance(value, dict):
        yield from ((name, each) for name, each in value.items() if name not in NO_METRICS)
    elif isinstance(value, list):
        for each in value:
            if known := getattr(each, "id", None) or getattr(each, "link", None):
                yield known, each


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in NO_METRICS:
                yield from _numbers(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, dict) and (name := each.get("id") or each.get("link")):
                yield from _numbers(each, f"{place}.{name}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value
