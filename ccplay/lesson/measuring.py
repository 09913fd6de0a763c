"""Evaluates the measures of a page: metrics of the result, and statistics of samples."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.summary import summarise
from ccplay.model.network import BOTTLENECK
from ccplay.model.variables import variable
from ccplay.scenario.lesson import units
from ccplay.scenario.lesson.values import Measure, Take
from ccplay.state.lab_state import LabState, Ping
from ccplay.state.series import Series


class Span(msgspec.Struct, frozen=True):
    """The run of a page, in seconds of the lab's stream."""

    began: float
    ended: float
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The lab's names of traffic by the lesson's, if they differ because a page was repeated."""


def measured(
    state: LabState, measures: Mapping[str, Measure], span: Span
) -> dict[str, float | None]:
    """Return the value of each measure in its unit, by name; None if the run did not measure it."""
    whole: dict[str, float] = {}
    if any(not each.take for each in measures.values()):
        whole = metrics_of(summarise(state, ""))
    raw = {name: _metric(state, each.metric, each, span, whole) for name, each in measures.items()}
    values: dict[str, float | None] = {}
    for name, each in measures.items():
        found, factor = raw[name], units.factor(each)
        if each.relative_to:
            other = raw.get(each.relative_to)
            if each.relative_to not in raw:
                other = _metric(state, each.relative_to, each, span, whole)
            found = found / other if found is not None and other else None
        values[name] = None if found is None or factor is None else found * factor
    return values


def _metric(
    state: LabState, path: str, measure: Measure, span: Span, whole: Mapping[str, float]
) -> float | None:
    group, _, rest = path.partition(".")
    member, _, name = rest.rpartition(".")
    member = _member(state, group, member, span)
    if not measure.take:
        return whole.get(f"{group}.{member}.{name}" if member else path)
    start = span.began + measure.from_s
    end = span.ended if measure.to_s is None else min(span.began + measure.to_s, span.ended)
    return _taken(state, (group, member, name), measure.take, (start, end))


def _member(state: LabState, group: str, member: str, span: Span) -> str:
    """Return the lab's name of a member of a group of results."""
    if group != "queues" or state.hello is None:
        return span.names.get(member, member)
    observed = state.hello.network.observed
    return observed[0] if member == BOTTLENECK and observed else member


def _taken(
    state: LabState, path: tuple[str, str, str], take: Take, between: tuple[float, float]
) -> float | None:
    """Return a statistic of a variable's samples between two moments.

    ``path`` is the group of results, its member, and the variable.
    """
    group, member, name = path
    subject = units.subject_of(group)
    if subject == "ping":
        ping = state.of(Ping).get(member)
        return None if ping is None else _of(ping.rtt_us, take, between)
    if subject == "flow":
        flow = state.flows.get(member)
        if flow is None:
            return None
        if name == units.GOODPUT:
            return _scaled(_rate(flow.series["bytes_acked"], between), 8)
        return _sampled({**flow.series, **flow.own}, name, take, between)
    queue = state.queues.get(member)
    if queue is None:
        return None
    change = state.link_at(member, between[0])
    rate = change.setting.rate if change is not None else None
    if name == units.UTILISATION:
        return _scaled(_rate(queue.series["bytes"], between), 8 / rate) if rate else None
    if name == units.DELAY:
        return _scaled(_of(queue.series["backlog"], take, between), 8e3 / rate) if rate else None
    return _sampled({**queue.series, **queue.own}, name, take, between)


def _sampled(
    series: Mapping[str, Series], name: str, take: Take, between: tuple[float, float]
) -> float | None:
    if name not in series:
        return None
    found = _of(series[name], take, between)
    return None if found is None else variable(name).real(found)


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value * by


def _values(series: Series, between: tuple[float, float]) -> list[float]:
    timeline = series.timeline
    first, last = timeline.at_or_after(between[0]), timeline.before_or_at(between[1])
    return series.values(first, last + 1)


def _of(series: Series, take: Take, between: tuple[float, float]) -> float | None:
    values = _values(series, between)
    if not values:
        return None
    match take:
        case "mean":
            return sum(values) / len(values)
        case "least":
            return min(values)
        case "greatest":
            return max(values)
        case "growth":
            # A counter that begins within the interval has grown from 0 to its first sample.
            began = series.timeline.at_or_after(between[0])
            return values[-1] - (values[0] if series.first < began else 0.0)
        case _:
            return values[-1]


def _rate(series: Series, between: tuple[float, float]) -> float | None:
    """Return the growth of a counter per second between its first and last sample."""
    return series.rates([between])[0]
