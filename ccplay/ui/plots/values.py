"""Values of variables on the axes of plots: their series, and their texts in titles."""

from __future__ import annotations

from ccplay.model.variables import Variable
from ccplay.plots.derived import value_at
from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import Series
from ccplay.ui.plots.scale import short

LANES = 12
"""Distance in columns between two glyphs of a trace; its lane is one of these columns."""

_SHORT_FROM = 1e7
"""Smallest value that is abbreviated, because so many digits can't be read at a glance."""


def write(variable: Variable, value: float) -> str:
    """Return a value on the axis of a variable as text for a title."""
    return short(value) if value >= _SHORT_FROM else variable.write(value)


def series_of(subject: Flow | Queue, variable: Variable) -> Series | None:
    """Return the series of a flow's or queue's variable; None if there is none."""
    return (subject.own if variable.subject is None else subject.series).get(variable.series)


def at(series: Series | None, variable: Variable, t: float, factor: float) -> float | None:
    """Return a variable at ``t``, times a factor; None if it is unknown."""
    value = None if series is None else value_at(series, variable, t)
    return None if value is None else value * factor
