"""Which subjects have a variable, where its values are, and what they are at one moment.

A subject is a connection, a queue, or other traffic. Screen, figures and browsers differ only in
how they draw the series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow


def owners(
    state: LabState, variable: Variable, flows: Iterable[Flow] | None = None
) -> list[Traffic | Queue]:
    """Return the subjects that have a variable, in the order in which they began.

    ``flows`` are the connections to consider; None stands for all.
    """
    connections = state.flows.values() if flows is None else flows
    candidates: list[Traffic | Queue] = []
    match variable.subject:
        case None:
            candidates = [*connections, *state.queues.values()]
        case "flow":
            candidates = [*connections]
        case "queue":
            candidates = [*state.queues.values()]
        case kind:
            candidates = [each for each in state.traffic.values() if each.kind == kind]
    return [each for each in candidates if series_of(each, variable) is not None]


def series_of(subject: Traffic | Queue, variable: Variable) -> Series | None:
    """Return the series of a variable, or of the counter behind a rate; None if there is none."""
    if variable.subject is not None:
        return subject.series.get(variable.series)
    return subject.own.get(variable.series) if isinstance(subject, Flow | Queue) else None


def name_of(subject: Traffic | Queue) -> str:
    """Return the name of a subject: that of traffic, or a queue's link."""
    return subject.link if isinstance(subject, Queue) else subject.name


# --- values at one moment -------------------------------------------------------------------------


def per_second(variable: Variable) -> float:
    """Return the factor from a counter's growth to the unit of a rate: 8 from bytes to bits."""
    return 8.0 if variable.unit == "bps" else 1.0


def value_at(series: Series, variable: Variable, t: float) -> float | None:
    """Return a variable at ``t``, in its unit; None if it is unknown."""
    return values_at([series], variable, t)[0]


def values_at(series: Sequence[Series], variable: Variable, t: float) -> list[float | None]:
    """Return a variable at ``t`` for several series that share their moments."""
    if not series:
        return []
    timeline = series[0].timeline
    tick = timeline.before_or_at(t)
    if variable.rate is None or tick < timeline.first:
        return [each.at(tick) for each in series]
    # The rate at the last sample holds until the next one.
    since = timeline.at_or_after(timeline.time(tick) - variable.rate.over_s)
    factor = per_second(variable)
    found = (_grown(each, since, tick) for each in series)
    return [None if value is None else value * factor for value in found]


def _grown(series: Series, since: int, tick: int) -> float | None:
    """Return the growth per second between two ticks."""
    timeline = series.timeline
    first = max(series.first, timeline.first)
    since = max(since, first)
    if not first <= since < tick < series.end:
        return None
    now, before = series.at(tick), series.at(since)
    if now is None or before is None:
        return None
    return (now - before) / (timeline.time(tick) - timeline.time(since))


def growth(series: Series, t: float, over_s: float, least_s: float = 0.0) -> float | None:
    """Return the growth of a counter per second over the ``over_s`` seconds before ``t``.

    If the counter began within them, return the mean since then; None if that is less than
    ``least_s``.
    """
    return series.rates([(t - over_s, t)], least_s)[0]
