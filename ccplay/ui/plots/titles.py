"""The title line of a plot: its name, its unit, and its values at the moment shown."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.state.trace import TRACE_SERIES
from ccplay.ui import lineup
from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.plots.pane import ADDITIONS, SHORT_UNITS, Pane
from ccplay.ui.plots.subjects import DRAWERS
from ccplay.ui.plots.values import series_of, write
from ccplay.ui.view import View

NARROW, WIDE = 30, 36
"""Smallest widths of a title in columns at which units, and all words, are spelled out."""

_PER_ACK = " per ACK"
"""Words after the unit while each ACK is drawn."""

_FULL = 60
"""Smallest width in columns at which a spelled-out title leaves room for unit and values."""

_ROOMY = 54
"""Smallest width in columns at which a title shows the seconds that a rate is averaged over."""


def title_row(pane: Pane, view: View, width: int) -> tuple[Row, Row]:
    """Return the title line: the plot's name at the left, its values at the right."""
    title, unit = pane.title, f" {_unit(pane, view, width)}".rstrip()
    left_out = _left_out(pane, view, width)
    if pane.plot.full and width >= _FULL:
        title = pane.plot.full
    elif pane.plot.full and width >= WIDE and not (left_out or _is_full(view, unit)):
        # The unit is also in the corner of the axes, the abbreviation in the table.
        title, unit = pane.plot.full.partition(" (")[0], ""
    left: list[Run] = [(title, f"bold {view.ink('text')}"), (unit, view.ink("muted"))]
    if left_out:
        left.append((f" {left_out}", view.ink("mark")))
    room = width - length(left) - 1
    numbers = _numbers(pane, view, width, in_words=width >= WIDE)
    if width >= WIDE and sum(map(length, numbers)) > room:
        numbers = _numbers(pane, view, width, in_words=False)
    return left, _fitting(numbers, room)


def _is_full(view: View, unit: str) -> bool:
    """Return whether a ghost, theory, groups or a trace of each ACK need room in a title."""
    return bool(view.theory or view.ghost or view.listing.grouped or _PER_ACK in unit)


def _left_out(pane: Pane, view: View, width: int) -> str:
    """Return how many of the window's flows are drawn, as text; empty if all are."""
    if pane.plot.variable.subject == "queue" or view.listing.grouped:
        return ""
    drawn, every = len(lineup.drawn(view)), len(view.state.flows)
    if drawn == every or drawn == (known := len(lineup.in_window(view))):
        return ""
    return f"{drawn} of {known} flows" if width >= WIDE else f"{drawn}/{known}"


def _numbers(pane: Pane, view: View, width: int, *, in_words: bool) -> list[Sequence[Run]]:
    """Return the values at the moment shown, the most useful first.

    Each part is shortened from its end if there is no room. ``in_words`` spells companions out.
    """
    values: list[Run] = []
    rest: list[Sequence[Run]] = []
    for line in reversed(pane.lines(view)):
        drawer, variable, factor = DRAWERS[line.subject], line.variable, pane.factor(line)
        found = drawer.values(view, variable, factor)
        if values:
            rest.append(found)
        values = values or found
        rest.append(drawer.ghost_values(view, variable, factor))
    added = _summaries(pane, view, width)
    if pane.plot.name in ADDITIONS:
        added += ADDITIONS[pane.plot.name].values(view, width)
    return [
        _counted(pane, view, width),
        values[:1],
        *([each] for each in added),
        # An RTT can't be judged without the base RTT.
        *([each] for each in _in_force(pane, view)),
        values[1:],
        *rest,
        _companion_values(pane, view, in_words=in_words),
    ]


def _counted(pane: Pane, view: View, width: int) -> list[Run]:
    runs: list[Run] = []
    if view.queue is None:
        return runs
    for each in pane.plot.counts:
        if count := view.queue.series[each.variable.name].at(view.tick):
            sign = getattr(view.glyphs, each.ink)
            text = f"{sign} {count:.0f} {each.short}" if width >= WIDE else f"{sign}{count:.0f}"
            runs.append((f"{text} ", view.ink(each.ink)))
    return runs


def _summaries(pane: Pane, view: View, width: int) -> list[Run]:
    runs: list[Run] = []
    if not pane.plot.summaries:
        return runs
    scope = pane.scope(view)
    for each in pane.plot.summaries:
        if (value := each.value(scope)) is not None:
            text = f" {each.word} {value:.2f}" if width >= WIDE else f" {each.short}{value:.2f}"
            runs.append((text, view.ink("text")))
    return runs


def _companion_values(pane: Pane, view: View, *, in_words: bool) -> list[Run]:
    """Return the selected flow's values of the plot's companions."""
    runs: list[Run] = []
    flow = view.state.flows.get(view.selected or "")
    if flow is None or view.listing.grouped:
        return runs
    for line in pane.plot.companions:
        series = series_of(flow, line.variable)
        if series is not None and (value := series.at(view.tick)) is not None:
            # A blank after the glyph, as for flows: ".2" would be read as a fifth.
            word = line.variable.words if in_words else view.glyphs.dotted
            text = write(line.variable, value * pane.factor(line))
            runs.append((f" {word} {text}", view.ink(line.ink)))
    return runs


def _in_force(pane: Pane, view: View) -> list[Run]:
    """Return the settings at the moment shown, as long as there are values to compare them with."""
    runs: list[Run] = []
    named = [each for each in pane.plot.settings if each.short]
    if not named or (pane.plot.variable.subject == "flow" and not view.running()):
        return runs
    scope, variable = pane.scope(view), pane.plot.variable
    for each in named:
        values = [value for t, value in each.changes(scope) if t <= view.t]
        if values and values[-1] is not None:
            text = write(variable, values[-1] * variable.axis(pane.peak)[1])
            runs.append((f" {each.short} {text}", view.ink(each.ink)))
    return runs


def _unit(pane: Pane, view: View, width: int) -> str:
    variable = pane.lines(view)[-1].variable
    unit, _ = variable.axis(pane.peak)
    # Values of a ghost and of many flows need the room.
    crowded = variable.subject == "flow" and lineup.crowded(view, lineup.drawn(view))
    if (view.ghost or crowded) and width < NARROW:
        unit = SHORT_UNITS.get(unit, unit)
    if view.theory and pane.plot.name in ADDITIONS:
        unit = SHORT_UNITS.get(unit, unit) if width >= NARROW else ""
    if variable.rate is not None and width >= _ROOMY:
        unit += f" over {variable.rate.over_s:g} s"
    traced = variable.subject == "flow" and variable.name in TRACE_SERIES
    exact = traced and width >= NARROW and _is_exact(view, width)
    return f"{unit}{_PER_ACK}" if exact else unit


def _is_exact(view: View, width: int) -> bool:
    """Return whether the plot shows each ACK of the selected flow rather than samples."""
    flow = view.state.flows.get(view.selected or "")
    dot = view.playhead.width / (2 * width)
    return bool(flow and flow.trace and dot < view.interval and flow.trace.covers(view.t))


def _fitting(parts: Sequence[Sequence[Run]], width: int) -> list[Run]:
    """Return the runs that fit: those of each part before its first one without room."""
    kept: list[Run] = []
    for part in parts:
        for run in part:
            if length(kept) + len(run[0]) > width:
                break
            kept.append(run)
    return kept
