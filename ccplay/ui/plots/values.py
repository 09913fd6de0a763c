"""Values of variables on the axes of plots: where they are read from, and how titles write them."""

from __future__ import annotations

from ccplay.model.variables import Variable
from ccplay.plots.derived import value_at
from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import Series
from ccplay.ui.plots.scale import short

LANES = 12
"""Number of columns from one glyph of a trace to its next; its lane is one of these columns."""

_SHORT_FROM = 1e7
"""Value from which nobody can read all digits at a glance."""


def write(variable: Variable, value: float) -> str:
    """Write a value on the axis of a variable for a title."""
    return short(value) if value >= _SHORT_FROM else variable.write(value)


def series_of(subject: Flow | Queue, variable: Variable) -> Series | None:
    """Return the series that a variable of a flow or queue is read from; None without any."""
    return (subject.own if variable.subject is None else subject.series).get(variable.series)


def at(series: Series | None, variable: Variable, t: float, factor: float) -> float | None:
    """Return a variable at ``t``, times a factor; None where it is not known."""
    value = None if series is None else value_at(series, variable, t)
    return None if value is None else value * factor
