"""A plot described once: what it is called, what it draws and which numbers stand in its title."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ccplay.state.trace import TRACE_SERIES
from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.picture import Inks, Picture
from ccplay.ui.plots.traces import CountTrace, ShiftedTrace, Trace
from ccplay.ui.view import View

NARROW, WIDE = 30, 36
"""Below the first width of its title, in cells, a plot shortens words; from the second on it
writes them out."""

_SHORT = {"segments": "seg", "packets": "pkt"}


def _no_traces(view: View) -> Sequence[ShiftedTrace]:
    del view
    return ()


def _no_counts(view: View) -> tuple[CountTrace, ...]:
    del view
    return ()


@dataclass(frozen=True, slots=True)
class Plot:
    """One quantity over time, as a place of the screen shows it."""

    name: str
    """By which it is chosen."""
    title: str
    unit: Callable[[View], str]
    help: str
    """One line: what it shows, and over which window where it is smoothed."""
    traces: Callable[[View], Sequence[Trace]]
    """From the bottom to the top."""
    numbers: Callable[[View, int], Sequence[Run]]
    """The values at the moment shown, for a title of so many cells; the most wanted first."""
    ghost: Callable[[View], Sequence[ShiftedTrace]] = _no_traces
    """The same of an earlier run; lies below the traces."""
    counts: Callable[[View], tuple[CountTrace, ...]] = _no_counts
    """Counters whose growth is marked at the top."""
    missing: tuple[str, str] | None = None
    """What there is none of where nothing is drawn, and the key that starts one."""
    least: float = 1.0
    """The value axis never ends below this."""
    series: str = ""
    """The field of flows that is drawn ACK by ACK where it is traced; empty where none is."""

    def picture(self, view: View) -> Picture:
        """Return what it shows over the playhead's window."""
        head = view.playhead
        traces = (*self.ghost(view), *self.traces(view))
        marks = tuple(
            each.t for each in view.state.log if each.is_mark and head.left <= each.t <= head.until
        )
        return Picture(
            left=head.left,
            width=head.width,
            until=head.until,
            traces=traces,
            counts=self.counts(view),
            marks=marks,
            ghost_marks=ghost_plots.marks(view),
            cursor=None if head.running else head.t,
            hint=() if traces else self._hint(view),
            least=self.least,
            glyphs=view.glyphs,
            inks=_inks(view),
        )

    def title_row(self, view: View, width: int) -> tuple[Row, Row]:
        """Return the title line: what is drawn at the left, its values at the right."""
        unit = self._unit(view, width)
        left = [(self.title, f"bold {view.ink('text')}"), (f" {unit}".rstrip(), view.ink("muted"))]
        return left, _fitting(self.numbers(view, width), width - length(left) - 1)

    def _unit(self, view: View, width: int) -> str:
        unit = self.unit(view)
        # What else there is to show needs the room.
        if view.ghost and width < NARROW:
            unit = _SHORT.get(unit, unit)
        if view.theory and self.series == "cwnd":
            unit = _SHORT[unit] if width >= NARROW else ""
        exact = self.series in TRACE_SERIES and width >= NARROW and _is_exact(view, width)
        return f"{unit} per ACK" if exact else unit

    def _hint(self, view: View) -> tuple[str, ...]:
        """Say what to do where there is nothing to see."""
        busy = view.session.error or view.state.phase in ("starting", "building")
        if self.missing is None or busy:
            return ()
        what, key = self.missing
        if view.session.live:
            return (f"no {what} yet", "", f"press {key} to start one")
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
