"""Values that plots derive from series: rates of counters, and summaries of all flows."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.analysis import sharing
from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.plots.levels import Scope
from ccplay.state.lab_state import mean_capacity

_BITS = 8


def growth(series: Series, t: float, over_s: float, least_s: float = 0.0) -> float | None:
    """Return the growth of a counter per second over the ``over_s`` seconds before ``t``.

    If the counter began within them, return the mean since then; None if that is less than
    ``least_s``.
    """
    return series.rates([(t - over_s, t)], least_s)[0]


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


def per_second(variable: Variable) -> float:
    """Return the factor from a counter's growth to the unit of a rate: 8 from bytes to bits."""
    return _BITS if variable.unit == "bps" else 1.0


def value_at(series: Series, variable: Variable, t: float) -> float | None:
    """Return a variable at ``t``, in its unit; None if it is unknown."""
    timeline = series.timeline
    tick = timeline.before_or_at(t)
    if variable.rate is None or tick < timeline.first:
        return series.at(tick)
    # The rate at the last sample holds until the next one.
    found = growth(series, timeline.time(tick), variable.rate.over_s)
    return None if found is None else found * per_second(variable)


def values_at(series: Sequence[Series], variable: Variable, t: float) -> list[float | None]:
    """Return a variable at ``t`` for several series that share their moments."""
    if not series:
        return []
    timeline = series[0].timeline
    tick = timeline.before_or_at(t)
    if variable.rate is None or tick < timeline.first:
        return [each.at(tick) for each in series]
    since = timeline.at_or_after(timeline.time(tick) - variable.rate.over_s)
    factor = per_second(variable)
    found = (_grown(each, since, tick) for each in series)
    return [None if value is None else value * factor for value in found]


def jain(scope: Scope) -> float | None:
    """Return Jain's fairness index of the flows' values; None for fewer than two."""
    return sharing.jain(list(scope.values))


def utilisation(scope: Scope, over_s: float = 1.0) -> float | None:
    """Return the share of what could leave on a link that left in ``over_s`` seconds."""
    queue = scope.state.queues.get(scope.link)
    could = mean_capacity(scope.state, scope.link, scope.t - over_s, scope.t)
    bytes_s = None if queue is None else growth(queue.series["bytes"], scope.t, over_s)
    return None if bytes_s is None or not could else bytes_s * _BITS / could
