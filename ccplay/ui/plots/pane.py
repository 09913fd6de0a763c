"""A plot as a place of the screen shows it: its description as traces, and its title line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ccplay.plots.plot import Line, Plot, Scope, Setting
from ccplay.state.trace import TRACE_SERIES
from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.plots import ghost_plots, theory
from ccplay.ui.plots.picture import Inks, Picture
from ccplay.ui.plots.subjects import (
    DRAWERS,
    flow_names,
    flow_trace,
    flow_values,
    in_bytes,
    series_of,
    write,
)
from ccplay.ui.plots.traces import CountTrace, Pen, ShiftedTrace, StepTrace, Trace
from ccplay.ui.view import View

NARROW, WIDE = 30, 36
"""Cells of a title below which a plot shortens words, and from which on it writes them out."""

_FULL = 60
"""Cells of a title from which on a title in full leaves room for the unit and values."""

_CROWD = 3
"""Number of flows above which only the selected one shows its companions, such as ssthresh."""

_SHORT = {"segments": "seg", "packets": "pkt"}


@dataclass(frozen=True, slots=True)
class Addition:
    """What the screen alone draws over a plot."""

    traces: Callable[[View], Sequence[Trace]]
    values: Callable[[View, int], Sequence[Run]]
    """For a title of so many cells; behind the value of the selected flow."""


ADDITIONS: Mapping[str, Addition] = {"cwnd": Addition(theory.traces, theory.values)}
"""By the name of the plot."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One plot on the screen."""

    plot: Plot
    peak: float = math.inf
    """The greatest value of its variable, from which the unit of its axis follows."""

    @property
    def name(self) -> str:
        """By which it is chosen."""
        return self.plot.name

    @property
    def title(self) -> str:
        """What its title line begins with."""
        return self.plot.title

    @property
    def help(self) -> str:
        """One line: what it shows."""
        return self.plot.help

    def picture(self, view: View) -> Picture:
        """Return what it shows over the playhead's window."""
        head = view.playhead
        traces = (*self.ghosts(view), *self.traces(view))
        marks = tuple(
            each.t for each in view.state.log if each.is_mark and head.left <= each.t <= head.until
        )
        return Picture(
            left=head.left,
            width=head.width,
            until=head.until,
            traces=traces,
            counts=self._counts(view),
            marks=marks,
            ghost_marks=ghost_plots.marks(view),
            cursor=None if head.running else head.t,
            hint=() if traces else self._hint(view),
            least=self.plot.least,
            unit=self._short_unit(view),
            stroke=view.stroke,
            glyphs=view.glyphs,
            inks=_inks(view),
        )

    def traces(self, view: View) -> list[Trace]:
        """Return what it draws of this session, from the bottom to the top."""
        lines = [
            trace
            for line in self._lines(view)
            for trace in DRAWERS[line.subject].traces(view, line, self._factor(line))
        ]
        if self.plot.name in ADDITIONS:
            lines += ADDITIONS[self.plot.name].traces(view)
        settings = self._settings(view) if lines else []
        return [*settings, *self._companions(view), *lines]

    def ghosts(self, view: View) -> list[ShiftedTrace]:
        """Return the same of an earlier run; it lies below the traces."""
        return [
            trace
            for line in self._lines(view)
            for trace in DRAWERS[line.subject].ghosts(view, line.variable, self._factor(line))
        ]

    def title_row(self, view: View, width: int) -> tuple[Row, Row]:
        """Return the title line: what is drawn at the left, its values at the right."""
        unit = f" {self._unit(view, width)}".rstrip()
        title = self.title
        if self.plot.full and width >= WIDE:
            title = self.plot.full
            # The corner of the axes has it too.
            unit = unit if width >= _FULL else ""
        left = [(title, f"bold {view.ink('text')}"), (unit, view.ink("muted"))]
        return left, _fitting(self._numbers(view, width), width - length(left) - 1)

    # --- lines ------------------------------------------------------------------------------

    def _lines(self, view: View) -> tuple[Line, ...]:
        return self.plot.drawn(in_bytes=self._in_bytes(view))

    def _in_bytes(self, view: View) -> bool:
        return self.plot.in_bytes is not None and in_bytes(view)

    def axis(self, line: Line) -> tuple[str, float]:
        """Return the unit of the value axis, and the factor from a line's own unit to it."""
        return line.variable.axis(self.peak)

    def _factor(self, line: Line) -> float:
        return self.axis(line)[1]

    def _companions(self, view: View) -> list[Trace]:
        names = flow_names(view) if self.plot.companions else []
        shown = [name for name in names if len(names) <= _CROWD or name == view.selected]
        found = (
            flow_trace(
                view,
                view.state.flows[name],
                line.variable,
                Pen(view.ink(line.ink), "dotted", ascii=view.glyphs.dotted),
                self._factor(line),
                scaled=False,
            )
            for name in shown
            for line in self.plot.companions
        )
        return [each for each in found if each is not None]

    def _scope(self, view: View) -> Scope:
        values: list[float] = []
        if self.plot.summaries:
            values = [value for _, value in flow_values(view, self.plot.variable)]
        return Scope(
            state=view.state,
            link=view.link or "",
            ends=view.ends,
            in_bytes=self._in_bytes(view),
            t=view.t,
            values=values,
        )

    def _settings(self, view: View) -> list[Trace]:
        if not self.plot.settings:
            return []
        [line, *_] = self._lines(view)
        scope, factor, traces = self._scope(view), self._factor(line), []
        for setting in self.plot.settings:
            changes = tuple(
                (t, None if value is None else value * factor)
                for t, value in setting.changes(scope)
                if t <= view.playhead.until
            )
            if any(value is not None for _, value in changes):
                pen = Pen(view.ink(setting.ink), "dotted", ascii="-")
                traces.append(StepTrace(changes, pen, self._weight(view, setting, changes)))
        return [*traces]

    def _weight(
        self, view: View, setting: Setting, changes: tuple[tuple[float, float | None], ...]
    ) -> float:
        """Return 0 for a setting that would press the plot flat: far above all that ever was."""
        if not setting.near or self._in_bytes(view) or view.queue is None:
            return 1.0
        found = view.queue.series[self.plot.variable.series].extremes(0, view.tick + 1)
        near = max(value or 0 for _, value in changes) <= 3 * max(found or (0, 0)) + 100
        return float(near)

    def _counts(self, view: View) -> tuple[CountTrace, ...]:
        if view.queue is None:
            return ()
        return tuple(
            CountTrace(
                view.queue.series[each.variable.name],
                Pen(view.ink(each.ink), mark=getattr(view.glyphs, each.ink)),
            )
            for each in self.plot.counts
        )

    # --- the title --------------------------------------------------------------------------

    def _numbers(self, view: View, width: int) -> list[Run]:
        """Return the values at the moment shown, the most wanted first."""
        runs: list[Run] = []
        for line in reversed(self._lines(view)):
            drawer, variable, factor = DRAWERS[line.subject], line.variable, self._factor(line)
            runs += drawer.values(view, variable, factor)
            runs += drawer.ghost_values(view, variable, factor)
        added = self._summaries(view, width)
        if self.plot.name in ADDITIONS:
            added += ADDITIONS[self.plot.name].values(view, width)
        runs[1:1] = added
        return [
            *self._counted(view, width),
            *runs,
            *self._companion_values(view, width),
            *self._in_force(view),
        ]

    def _counted(self, view: View, width: int) -> list[Run]:
        runs: list[Run] = []
        if view.queue is None:
            return runs
        for each in self.plot.counts:
            if count := view.queue.series[each.variable.name].at(view.tick):
                sign = getattr(view.glyphs, each.ink)
                text = f"{sign} {count:.0f} {each.short}" if width >= WIDE else f"{sign}{count:.0f}"
                runs.append((f"{text} ", view.ink(each.ink)))
        return runs

    def _summaries(self, view: View, width: int) -> list[Run]:
        runs: list[Run] = []
        if not self.plot.summaries:
            return runs
        scope = self._scope(view)
        for each in self.plot.summaries:
            if (value := each.value(scope)) is not None:
                text = f" {each.word} {value:.2f}" if width >= WIDE else f" {each.short}{value:.2f}"
                runs.append((text, view.ink("text")))
        return runs

    def _companion_values(self, view: View, width: int) -> list[Run]:
        """Return what the selected flow has of them."""
        runs: list[Run] = []
        flow = view.state.flows.get(view.selected or "")
        if flow is None:
            return runs
        for line in self.plot.companions:
            series = series_of(flow, line.variable)
            if series is not None and (value := series.at(view.tick)) is not None:
                word = f"{line.variable.words} " if width >= WIDE else view.glyphs.dotted
                text = write(line.variable, value * self._factor(line))
                runs.append((f" {word}{text}", view.ink(line.ink)))
        return runs

    def _in_force(self, view: View) -> list[Run]:
        """Return the settings at the moment shown, while there is anything to compare them with."""
        runs: list[Run] = []
        named = [each for each in self.plot.settings if each.short]
        if not named or not view.running():
            return runs
        scope, variable = self._scope(view), self.plot.variable
        for each in named:
            values = [value for t, value in each.changes(scope) if t <= view.t]
            if values and values[-1] is not None:
                text = write(variable, values[-1] * variable.axis(self.peak)[1])
                runs.append((f" {each.short} {text}", view.ink(each.ink)))
        return runs

    def _unit(self, view: View, width: int) -> str:
        variable = self._lines(view)[-1].variable
        unit, _ = variable.axis(self.peak)
        # What else there is to show needs the room.
        if view.ghost and width < NARROW:
            unit = _SHORT.get(unit, unit)
        if view.theory and self.plot.name in ADDITIONS:
            unit = _SHORT.get(unit, unit) if width >= NARROW else ""
        traced = variable.subject == "flow" and variable.name in TRACE_SERIES
        exact = traced and width >= NARROW and _is_exact(view, width)
        return f"{unit} per ACK" if exact else unit

    def _short_unit(self, view: View) -> str:
        unit, _ = self._lines(view)[-1].variable.axis(self.peak)
        return _SHORT.get(unit, unit)

    def _hint(self, view: View) -> tuple[str, ...]:
        """Say what to do where there is nothing to see."""
        busy = view.session.error or view.state.phase in ("starting", "building")
        if self.plot.missing is None or busy:
            return ()
        what, key = self.plot.missing
        if view.session.live:
            return (f"no {what} yet", "", f"press {view.key(key)} to start one")
        return (f"no {what} at this time",)


def _inks(view: View) -> Inks:
    """Return the colours of axes and marks."""
    return Inks(
        axis=view.ink("axis"),
        grid=view.ink("grid"),
        text=view.ink("muted"),
        muted=view.ink("muted"),
        mark=view.ink("mark"),
        cursor=view.ink("cursor"),
        ghost=view.ghost_ink("mark"),
    )


def _is_exact(view: View, width: int) -> bool:
    """Say whether the plot shows more of the selected flow than its samples."""
    flow = view.state.flows.get(view.selected or "")
    dot = view.playhead.width / (2 * width)
    return bool(flow and flow.trace and dot < view.interval and flow.trace.covers(view.t))


def _fitting(runs: Sequence[Run], width: int) -> list[Run]:
    kept: list[Run] = []
    for run in runs:
        if length(kept) + len(run[0]) <= width:
            kept.append(run)
    return kept
