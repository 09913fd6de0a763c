"""A plot on the screen: the traces and the title line of its description."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ccplay.plots.plot import Line, Plot, Scope, Setting
from ccplay.ui import lineup
from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots import ghost_plots, theory
from ccplay.ui.plots.combined import ShiftedTrace
from ccplay.ui.plots.flow_lines import flow_trace, values_of
from ccplay.ui.plots.picture import Inks, Picture
from ccplay.ui.plots.subjects import DRAWERS, in_bytes
from ccplay.ui.plots.traces import CountTrace, Pen, StepTrace, Trace
from ccplay.ui.view import View

SHORT_UNITS = {"segments": "seg", "packets": "pkt"}

_NEAR = {"packets": 100, "bytes": 150_000}
"""Margin by unit: a limit is near if it exceeds three times a queue's largest length so far by no
more than this."""


class Addition(msgspec.Struct, frozen=True):
    """Traces and values that only the screen adds to a plot."""

    traces: Callable[[View], Sequence[Trace]]
    values: Callable[[View, int], Sequence[Run]]
    """Function that returns the values for a title of the given width; they follow the selected
    flow's value."""


ADDITIONS: Mapping[str, Addition] = {"cwnd": Addition(theory.traces, theory.values)}
"""Additions by the name of their plot."""


class Pane(msgspec.Struct, frozen=True):
    """One plot on the screen."""

    plot: Plot
    peak: float = math.inf
    """Highest value of the variable so far, which determines the unit of the axis."""

    @property
    def name(self) -> str:
        """Name by which the plot is chosen."""
        return self.plot.name

    @property
    def title(self) -> str:
        """First words of the title line."""
        return self.plot.title

    @property
    def help(self) -> str:
        """Explanation of the plot in one line."""
        return self.plot.help

    def picture(self, view: View) -> Picture:
        """Return the plot's picture over the playhead's window."""
        head = view.playhead
        traces = (*self.ghosts(view), *self.traces(view))
        left, until = head.left, head.until
        # The log of a thousand flows is long, so it is searched once per moment.
        marks = view.known.once(
            view.state,
            view.t,
            ("marks", left, until),
            lambda: tuple(
                each.t for each in view.state.log if left <= each.t <= until and each.is_mark
            ),
        )
        return Picture(
            left=left,
            width=head.width,
            until=until,
            traces=traces,
            counts=self._counts(view),
            marks=marks,
            ghost_marks=ghost_plots.marks(view),
            cursor=None if head.running else head.t,
            pointer=view.pointer.t if view.pointer else None,
            region=_region(view, self.name),
            hint=() if traces else self._hint(view),
            least=self.plot.least,
            unit=self._short_unit(view),
            stroke=view.stroke,
            glyphs=view.glyphs,
            inks=_inks(view),
        )

    def traces(self, view: View) -> list[Trace]:
        """Return the traces of this session, from bottom to top."""
        lines = [
            trace
            for line in self.lines(view)
            for trace in DRAWERS[line.subject].traces(view, line, self.factor(line))
        ]
        if self.plot.name in ADDITIONS:
            lines += ADDITIONS[self.plot.name].traces(view)
        settings = self._settings(view) if lines else []
        return [*settings, *self._companions(view), *lines]

    def ghosts(self, view: View) -> list[ShiftedTrace]:
        """Return the traces of an earlier run, which lie below those of this session."""
        return [
            trace
            for line in self.lines(view)
            for trace in DRAWERS[line.subject].ghosts(view, line.variable, self.factor(line))
        ]

    def lines(self, view: View) -> tuple[Line, ...]:
        """Return the lines of the description that suit the queue's unit at the moment shown."""
        return self.plot.drawn(in_bytes=self._in_bytes(view))

    def _in_bytes(self, view: View) -> bool:
        return self.plot.in_bytes is not None and in_bytes(view)

    def axis(self, line: Line) -> tuple[str, float]:
        """Return the unit of the value axis, and the factor to it from a line's own unit."""
        return line.variable.axis(self.peak)

    def factor(self, line: Line) -> float:
        """Return the factor from a line's own unit to that of the value axis."""
        return self.axis(line)[1]

    def _companions(self, view: View) -> list[Trace]:
        flows = lineup.drawn(view) if self.plot.companions and not view.listing.grouped else []
        few = not lineup.crowded(view, flows)
        shown = [flow for flow in flows if few or flow.name == view.selected]
        found = (
            flow_trace(
                view,
                flow,
                line.variable,
                Pen(view.ink(line.ink), "dotted", ascii=view.glyphs.dotted),
                self.factor(line),
                scaled=False,
            )
            for flow in shown
            for line in self.plot.companions
        )
        return [each for each in found if each is not None]

    def scope(self, view: View) -> Scope:
        """Return the part of the session that settings and summaries concern now."""
        values: list[float] = []
        if self.plot.summaries:
            values = view.known.once(
                view.state, view.t, ("values", self.plot.name), lambda: self._values(view)
            )
        return Scope(
            state=view.state,
            link=view.link or "",
            ends=view.ends,
            in_bytes=self._in_bytes(view),
            converts=True,
            t=view.t,
            values=values,
        )

    def _values(self, view: View) -> list[float]:
        return [value for _, value in values_of(view, view.running(), self.plot.variable)]

    def _settings(self, view: View) -> list[Trace]:
        whole = [self.plot.whole] if self.plot.whole and view.listing.stacked else []
        if not (settings := (*self.plot.settings, *whole)):
            return []
        [line, *_] = self.lines(view)
        scope, factor, traces = self.scope(view), self.factor(line), []
        for setting in settings:
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
        """Return 0 for a setting so far above all values that it would flatten the plot, else 1."""
        if not setting.near or view.queue is None:
            return 1.0
        [line, *_] = self.lines(view)
        found = view.queue.series[line.variable.series].extremes(0, view.tick + 1)
        most = (3 * max(found or (0, 0)) + _NEAR[line.variable.unit]) * self.factor(line)
        return float(max(value or 0 for _, value in changes) <= most)

    def _counts(self, view: View) -> tuple[CountTrace, ...]:
        if view.queue is None:
            return ()
        return tuple(
            CountTrace(
                view.queue.series[each.variable.name],
                Pen(view.ink(each.ink), glyph=getattr(view.glyphs, each.ink)),
            )
            for each in self.plot.counts
        )

    def _short_unit(self, view: View) -> str:
        unit, _ = self.axis(self.lines(view)[-1])
        return SHORT_UNITS.get(unit, unit)

    def _hint(self, view: View) -> tuple[str, ...]:
        """Return the text of an empty plot: what is missing, and the key that starts it."""
        busy = view.session.error or view.state.phase in ("starting", "building")
        if self.plot.missing is None or busy:
            return ()
        if view.listing.text and view.running():
            return ("no flow matches the filter",)
        what, key = self.plot.missing
        if view.session.live:
            next_step = view.awaits or f"press {view.key(key)} to start one"
            return (f"no {what} yet", *(() if view.watching else ("", next_step)))
        return (f"no {what} at this time",)


def _region(view: View, name: str) -> tuple[float, float] | None:
    """Return the region that a lesson asks for on this plot."""
    if view.region is None or view.region[0] != name:
        return None
    return view.region[1:]


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
        ground=view.look.textual_theme.background or "",
    )
