"""Traces derived from others: of a group of flows, stacked, or of a ghost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from msgspec.structs import replace

from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.plots.subjects import owners, series_of
from ccplay.state.lab_state import LabState
from ccplay.traffic import KINDS
from ccplay.traffic.connections import Flow
from ccplay.ui.cells import Run
from ccplay.ui.plot_traces import (
    LANES,
    DotTrace,
    Pen,
    PlotTrace,
    SeriesTrace,
    Span,
    trace_of,
    value_on_axis,
    write,
)
from ccplay.ui.view import Ghost, View

# --- traces derived from others: shifted in time, of a group of flows, or stacked -----------------

_PEAK_SLICES = 60
"""Number of slices examined for the highest sum in a window."""


class ShiftedTrace(PlotTrace, frozen=True):
    """A trace of a ghost, shifted in time to lie under those of the session.

    All its values up to the right edge are already known.
    """

    trace: PlotTrace
    shift: float
    """Seconds to add to the trace's own moments to obtain those of the plot."""
    first: float
    """First moment shown, in the trace's own time."""
    last: float
    """Last moment shown, in the trace's own time."""
    lasting: ClassVar[bool] = True

    @property
    def pen(self) -> Pen:
        """Pen that draws the trace."""
        return self.trace.pen

    @property
    def scaled(self) -> bool:
        """Whether the axis must have room for the trace."""
        return self.trace.scaled

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the span of the values in each slice between two neighbouring ``edges``."""
        own = [edge - self.shift for edge in edges]
        return [
            span if end > self.first and start < self.last else None
            for span, (start, end) in zip(self.trace.spans(own), pairwise(own), strict=True)
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None] | None:
        """Return a representative value of each slice; None if whole spans are drawn."""
        own = [edge - self.shift for edge in edges]
        found = self.trace.middles(own, long=long)
        if found is None:
            return None
        return [
            value if end > self.first and start < self.last else None
            for value, (start, end) in zip(found, pairwise(own), strict=True)
        ]

    def peak(self, start: float, end: float) -> float:
        """Return the highest value from ``start`` to ``end``."""
        first, last = max(start - self.shift, self.first), min(end - self.shift, self.last)
        return self.trace.peak(first, last) if first < last else 0.0


class GroupTrace(PlotTrace, frozen=True):
    """Several traces drawn as one: their mean as a line, over a band from lowest to highest."""

    parts: tuple[PlotTrace, ...]
    pen: Pen

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lowest and the highest value of any part in each slice."""
        columns = zip(*(each.spans(edges) for each in self.parts), strict=True)
        known = ([span for span in column if span] for column in columns)
        return [
            (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
            for spans in known
        ]

    def middles(self, edges: Sequence[float], *, long: bool) -> list[float | None]:
        """Return the mean in each slice of those parts that have a value there."""
        columns = zip(*(levels(each, edges, long=long) for each in self.parts), strict=True)
        known = ([value for value in column if value is not None] for column in columns)
        return [sum(values) / len(values) if values else None for values in known]

    def peak(self, start: float, end: float) -> float:
        """Return the highest value of any part."""
        return max((each.peak(start, end) for each in self.parts), default=0.0)


class StackedTrace(PlotTrace, frozen=True):
    """A layer of a stack, as high as its own value, on top of the sum of the layers below."""

    own: PlotTrace
    below: tuple[PlotTrace, ...]
    """Layers below this one, from bottom to top; one without a value in a slice counts as zero."""
    sums: Sums
    """Cache shared by the layers of a stack, so that each trace is read once."""

    @property
    def pen(self) -> Pen:
        """Pen that draws a layer, whatever the style of the trace's own pen."""
        return replace(self.own.pen, style="layer")

    def spans(self, edges: Sequence[float]) -> list[Span | None]:
        """Return the lower and the upper edge of the layer in each slice."""
        parts = [self.sums.levels(each, edges) for each in self.below]
        bases = [sum(filter(None, column)) for column in zip(*parts, strict=True)]
        own = self.sums.levels(self.own, edges)
        return [
            None if value is None else (base, base + value)
            for base, value in zip(bases or [0.0] * len(own), own, strict=True)
        ]

    def peak(self, start: float, end: float) -> float:
        """Return the highest sum from ``start`` to ``end``, of ``_PEAK_SLICES`` slices."""
        step = (end - start) / _PEAK_SLICES
        if step <= 0:
            return 0.0
        edges = [start + step * at for at in range(_PEAK_SLICES + 1)]
        return max((span[1] for span in self.spans(edges) if span), default=0.0)


class Sums:
    """Cached values of a stack's layers in the slices requested last."""

    def __init__(self) -> None:
        self._edges: list[float] = []
        self._levels: dict[int, list[float | None]] = {}

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a cache, too; contents follow from the layers."""
        return isinstance(other, Sums)

    __hash__ = None  # type: ignore[assignment]

    def levels(self, trace: PlotTrace, edges: Sequence[float]) -> list[float | None]:
        """Return one value per slice of ``trace``, which belongs to the stack."""
        if edges != self._edges:
            self._edges = list(edges)
            self._levels.clear()
        if (found := self._levels.get(id(trace))) is None:
            found = self._levels[id(trace)] = levels(trace, edges, long=True)
        return found


def stacked(parts: Sequence[PlotTrace]) -> list[StackedTrace]:
    """Return ``parts`` as a stack, from bottom to top."""
    sums = Sums()
    return [StackedTrace(each, tuple(parts[:at]), sums) for at, each in enumerate(parts)]


def levels(trace: PlotTrace, edges: Sequence[float], *, long: bool) -> list[float | None]:
    """Return one value per slice: its middle, or else the mean of its lowest and highest value."""
    found = trace.middles(edges, long=long)
    if found is not None:
        return found
    return [span and (span[0] + span[1]) / 2 for span in trace.spans(edges)]


# --- A ghost in the plots and their titles: its shifted traces, and its values --------------------

_WIDE = 100
"""Smallest width in columns of a screen with room for whole file names."""

_CROWD = 3
"""Largest number of a ghost's flows that are all drawn; of more, only the selected one is."""


def flow_ink(view: View, name: str) -> str:
    """Return the colour of a ghost's flow."""
    flows = view.look.flows
    return view.look.faded(flows[flow_number(view, name) % len(flows)])


def flow_glyph(view: View, name: str) -> str:
    """Return the glyph of a ghost's flow."""
    return view.glyphs.ghost_glyph(flow_number(view, name))


def flow_number(view: View, name: str) -> int:
    """Return the index of a ghost's flow: that of the session's flow of this name, or its own."""
    if name in view.state.flows or view.ghost is None:
        return view.number(name)
    return view.ghost.state.places[name]


def flow_cc(view: View, flow: Flow) -> str:
    """Return the congestion control of a ghost's flow at the moment shown."""
    ghost, shift = view.ghost, view.shift
    return ghost.state.cc_at(flow, view.t - shift) if ghost and shift is not None else ""


def flow_traces(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    """Return the traces of the ghost's flows."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None:
        return []
    found = []
    for flow in _flows(view, ghost, shift):
        if (series := series_of(flow, variable)) is None:
            continue
        pen = Pen(
            flow_ink(view, flow.name),
            "sparse",
            glyph=flow_glyph(view, flow.name),
            lane=(flow_number(view, flow.name) * 5 + 2) % LANES,
            ascii=view.glyphs.ghost,
            under=True,
        )
        trace = trace_of(series, variable, pen, factor, _interval(ghost.state))
        found.append(ShiftedTrace(trace, shift, ghost.first, ghost.last))
    return found


def flow_values(view: View, variable: Variable, factor: float) -> list[Run]:
    """Return the values of the ghost's flows at the moment shown."""
    runs, t = [], view.t - (view.shift or 0.0)
    for flow, _ in sorted(view.ghosts(), key=lambda pair: pair[0].name != view.shown.selected):
        value = value_on_axis(series_of(flow, variable), variable, t, factor)
        if value is not None:
            sign = view.glyphs.ghost + flow_glyph(view, flow.name)
            runs.append((f" {sign} {write(variable, value)}", view.ink("muted")))
    return runs


def variables(view: View) -> dict[str, list[Series]]:
    """Return series of the ghost's own values in the window, the selected flow's first."""
    ghost, shift = view.ghost, view.shift
    found: dict[str, list[Series]] = {}
    if ghost is None or shift is None:
        return found
    left = max(view.shown.playhead.left - shift, ghost.first)
    right = min(view.shown.playhead.right - shift, ghost.last)
    ticks = [ghost.state.sweeps.at_or_after(t) for t in (left, right)]
    for flow in reversed(_flows(view, ghost, shift)):
        for name, series in flow.own.items():
            if series.extremes(*ticks) is not None:
                found.setdefault(name, []).append(series)
    return found


def marks(view: View) -> tuple[float, ...]:
    """Return the moments of the ghost's commands, shifted to the session's time."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None:
        return ()
    left = max(view.shown.playhead.left - shift, ghost.first)
    right = min(view.shown.playhead.right - shift, ghost.last)
    return tuple(
        each.t + shift for each in ghost.state.log if each.is_mark and left <= each.t <= right
    )


def answer_traces(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    """Return the traces of single measurements; none of traffic that fills queues."""
    ghost, shift, kind = view.ghost, view.shift, KINDS[variable.subject or ""]
    if ghost is None or shift is None or kind.fills:
        return []
    pen = Pen(view.ghost_ink(kind.ink), "signs", glyph=view.glyphs.answer, under=True)
    every = (series_of(each, variable) for each in owners(ghost.state, variable))
    return [
        ShiftedTrace(DotTrace(series, pen, factor), shift, ghost.first, ghost.last)
        for series in every
        if series is not None
    ]


def queue_traces(view: View, variable: Variable, factor: float) -> list[ShiftedTrace]:
    """Return the trace of the ghost's queue, if the variable is sampled."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None or (series := _queue(view, ghost, variable)) is None:
        return []
    pen = Pen(view.ghost_ink("queue"), "sparse", ascii=view.glyphs.ghost, under=True)
    trace = SeriesTrace(series, pen, factor, _interval(ghost.state))
    return [ShiftedTrace(trace, shift, ghost.first, ghost.last)]


def queue_values(view: View, variable: Variable, factor: float) -> list[Run]:
    """Return the value of the ghost's queue at the moment shown, if the variable is sampled."""
    ghost, shift = view.ghost, view.shift
    if ghost is None or shift is None or (series := _queue(view, ghost, variable)) is None:
        return []
    t = view.t - shift
    value = series.at(ghost.state.sweeps.before_or_at(t))
    if value is None or not ghost.first <= t <= ghost.last:
        return []
    return [(f" {view.glyphs.ghost} {write(variable, value * factor)}", view.ink("muted"))]


def legend(view: View, width: int) -> list[Run]:
    """Return the header's text about the ghost; empty if there is none."""
    sample = view.glyphs.ghost * 3
    if view.reading:
        return [(f"  {sample} reading {view.reading}", view.ink("muted"))]
    if view.ghost is None:
        return []
    waiting = view.shift is None and view.state.ready_at is not None
    name = view.ghost.name if width >= _WIDE else view.ghost.name.removesuffix(".ccplay")
    what = view.ghost.repeats or "action"
    waits = f", waits for the next {what}" if waiting else ""
    return [(f"  {sample} ", view.ghost_ink("text")), (f"ghost: {name}{waits} ", view.ink("muted"))]


def _flows(view: View, ghost: Ghost, shift: float) -> list[Flow]:
    """Return the ghost's flows to draw: those in the window, the selected one last."""
    left, right = view.shown.playhead.left - shift, view.shown.playhead.right - shift
    found = [
        each
        for each in ghost.state.flows.values()
        if each.started < min(right, ghost.last)
        and (each.ended is None or each.ended > max(left, ghost.first))
    ]
    chosen = [each for each in found if each.name == view.shown.selected]
    if len(found) > _CROWD and chosen:
        return chosen
    return sorted(found, key=lambda each: each.name == view.shown.selected)


def _queue(view: View, ghost: Ghost, variable: Variable) -> Series | None:
    """Return the samples of the ghost's queue of the same name, else of that at the same index."""
    if variable.subject is None or variable.rate is not None:
        return None
    state, link = ghost.state, view.link
    if link not in state.queues:
        link = view.observed_in(state.hello.network if state.hello else None)
    found = state.queues.get(link or "")
    return None if found is None else found.series[variable.name]


def _interval(state: LabState) -> float:
    return 1 / state.hello.sample_hz if state.hello else 0.02
