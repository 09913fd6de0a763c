"""A plot on the screen: the traces and the title line of its description."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ccplay.analysis.theory import Theory
from ccplay.model.blocks import TRACE_FIELDS
from ccplay.model.series import Series
from ccplay.model.variables import variable
from ccplay.plots.levels import Scope
from ccplay.plots.subjects import series_of
from ccplay.plots.table import CWND
from ccplay.traffic.connections import Flow
from ccplay.traffic.plot import Line, Plot, Setting, of_variable
from ccplay.ui import lineup, plot_ghosts
from ccplay.ui.cells import Row, Run, length
from ccplay.ui.plot_ghosts import ShiftedTrace
from ccplay.ui.plot_subjects import drawer, flow_trace, in_bytes, link_queues, values_of
from ccplay.ui.plot_traces import (
    AxisInks,
    CountTrace,
    Pen,
    Picture,
    PlotTrace,
    SeriesTrace,
    StepTrace,
    write,
)
from ccplay.ui.view import View, once

# --- theory in the cwnd plot: CUBIC's W(t) and Reno's line for the selected flow, with names ------


class Overlay:
    """The theory of each flow so far, and whether it is drawn."""

    def __init__(self) -> None:
        self.shown = False
        self._theories: dict[str, Theory] = {}

    def of(self, flow: Flow | None) -> Theory | None:
        """Return the theory of a flow up to the newest measurement; None if off or for MPTCP."""
        if not self.shown or flow is None or flow.mptcp:
            return None
        theory = self._theories.get(flow.name)
        if theory is None or theory.flow is not flow:
            theory = self._theories[flow.name] = Theory(flow)
        theory.follow()
        return theory


def theory_traces(view: View) -> list[SeriesTrace]:
    """Return both lines, dashed so that measured values stay visible; the axis ignores them."""
    return [
        SeriesTrace(
            series,
            Pen(ink, "dashed", glyph=name[0], lane=lane, ascii=name[0]),
            interval=view.interval,
            scaled=False,
        )
        for (name, series, ink), lane in zip(_lines(view), (2, 7), strict=False)
    ]


def theory_values(view: View, width: int) -> list[Run]:
    """Return the lines' names, with their values at the moment shown if there is room."""
    runs = []
    for name, series, ink in _lines(view):
        value = series.at(view.tick)
        number = f" {value:.0f}" if value is not None and width >= WIDE else ""
        runs.append((f" {name}{number}", ink))
    return runs


def lack(view: View) -> str:
    """Return the reason why no line is drawn; empty if there is one."""
    flow = view.flow
    if flow is None:
        return "No flow is selected: select one with ↑↓ to see theory."
    if flow.mptcp:
        return f"Theory applies to a single cwnd: select a subflow of flow {flow.name} with ↑↓."
    cc = view.state.cc_at(flow, view.t)
    if cc.startswith("bbr"):
        return f"Flow {flow.name} runs BBR, which follows neither W(t) nor Reno's line."
    if view.theory is None or not _in_window(view, view.theory.reno):
        switches = sum(t <= view.t for t, _ in flow.cc_changes) - 1
        since = f"since it switched to {cc}" if switches > 0 else "yet"
        reduced = f"cwnd of flow {flow.name} has not been reduced {since}"
        return f"{reduced}; theory starts at its first reduction."
    return ""


def _lines(view: View) -> list[tuple[str, Series, str]]:
    """Return name, values and colour of each line."""
    theory = view.theory
    if theory is None:
        return []
    return [("W(t)", theory.cubic, view.ink("ping")), ("Reno", theory.reno, view.ink("base_rtt"))]


# --- A plot on the screen: the traces and the title line of its description -----------------------

SHORT_UNITS = {"segments": "seg", "packets": "pkt"}

_NEAR = {"packets": 100, "bytes": 150_000}
"""Margin by unit: a limit is near if it exceeds three times a queue's largest length so far by no
more than this."""


class Pane(msgspec.Struct, frozen=True):
    """One plot on the screen."""

    plot: Plot
    peak: float = math.inf
    """Highest value of the variable so far, which determines the unit of the axis."""

    @property
    def name(self) -> str:
        """Name by which the plot is chosen."""
        return self.plot.name

    def picture(self, view: View) -> Picture:
        """Return the plot's picture over the playhead's window."""
        head = view.shown.playhead
        traces = (*self.ghosts(view), *self.traces(view))
        return Picture(
            left=head.left,
            width=head.width,
            until=head.until,
            traces=traces,
            counts=self._counts(view),
            marks=_marks(view),
            ghost_marks=plot_ghosts.marks(view),
            cursor=None if head.running else head.t,
            pointer=view.shown.pointer.t if view.shown.pointer else None,
            region=view.region[1:] if view.region and view.region[0] == self.name else None,
            hint=() if traces else self._hint(view),
            least=self.plot.least,
            unit=self._short_unit(view),
            stroke=view.stroke,
            glyphs=view.glyphs,
            inks=_inks(view),
        )

    def traces(self, view: View) -> list[PlotTrace]:
        """Return the traces of this session, from bottom to top."""
        lines = [
            trace
            for line in self.lines(view)
            for trace in drawer(line.subject).traces(view, line, self.factor(line))
        ]
        if self.name == CWND.name:
            lines += theory_traces(view)
        settings = self._settings(view) if lines else []
        return [*settings, *self._companions(view), *lines]

    def ghosts(self, view: View) -> list[ShiftedTrace]:
        """Return the traces of an earlier run, which lie below those of this session."""
        return [
            trace
            for line in self.lines(view)
            for trace in drawer(line.subject).ghosts(view, line.variable, self.factor(line))
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

    def _companions(self, view: View) -> list[PlotTrace]:
        flows = (
            lineup.drawn(view) if self.plot.companions and not view.shown.listing.grouped else []
        )
        few = not lineup.crowded(view, flows)
        shown = [flow for flow in flows if few or flow.name == view.shown.selected]
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
            values = view.known.once(view, self.plot.name, self._values)
        return Scope(
            state=view.state,
            link=view.link or "",
            ends=_ends(view),
            in_bytes=self._in_bytes(view),
            converts=True,
            t=view.t,
            values=values,
        )

    def _values(self, view: View) -> list[float]:
        return [value for _, value in values_of(view, view.running(), self.plot.variable)]

    def _settings(self, view: View) -> list[PlotTrace]:
        whole = [self.plot.whole] if self.plot.whole and view.shown.listing.stacked else []
        if not (settings := (*self.plot.settings, *whole)):
            return []
        [line, *_] = self.lines(view)
        scope, factor, traces = self.scope(view), self.factor(line), []
        for setting in settings:
            changes = tuple(
                (t, None if value is None else value * factor)
                for t, value in setting.changes(scope)
                if t <= view.shown.playhead.until
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
        if view.shown.listing.text and view.running():
            return ("no flow matches the filter",)
        what, key = self.plot.missing
        if view.session.live:
            next_step = view.awaits or f"press {view.key(key)} to start one"
            return (f"no {what} yet", *(() if view.watching else ("", next_step)))
        return (f"no {what} at this time",)


def _ends(view: View) -> tuple[str, str]:
    """Return source and destination of the selected flow, or of the first one, or of the network.

    Both are empty before the network is known.
    """
    if (flow := view.foremost) is not None:
        return flow.src, flow.dst
    if view.network is None or not view.network.senders:
        return "", ""
    first = view.network.senders[0]
    return first, view.network.peer(first)


@once
def _marks(view: View) -> tuple[float, ...]:
    """Return the moments of marks in the window: the log of a thousand flows is long."""
    left, until = view.shown.playhead.left, view.shown.playhead.until
    return tuple(each.t for each in view.state.log if left <= each.t <= until and each.is_mark)


def _inks(view: View) -> AxisInks:
    """Return the colours of axes and marks."""
    return AxisInks(
        axis=view.ink("axis"),
        grid=view.ink("grid"),
        text=view.ink("muted"),
        muted=view.ink("muted"),
        mark=view.ink("mark"),
        cursor=view.ink("cursor"),
        ghost=view.ghost_ink("mark"),
        ground=view.look.textual_theme.background or "",
    )


# --- the plots of own values of algorithms and disciplines; a chosen one replaces RTT -------------

BPF = ".bpf"


def pane(view: View, name: str) -> Pane:
    """Return the plot of a variable for all flows and queues of the shown link that have it."""
    known = [series.extremes(series.first, series.end) for series in _series(view, name)]
    peak = max((found[1] for found in known if found), default=0.0)
    return Pane(of_variable(variable(name)), peak)


def shown(view: View) -> str | None:
    """Return the chosen variable; None, which stands for RTT, if the window has no value of it."""
    return (
        view.shown.variable if view.shown.variable and _series(view, view.shown.variable) else None
    )


def choices(view: View) -> list[str | None]:
    """Return the choices: None for RTT, then the own values of algorithms and disciplines.

    Values of the selected flow are first, then those of the shown queue, then those that only the
    ghost has. What an algorithm or discipline reports no more, since it was replaced, comes last.
    """
    flow = view.flow
    own = [*(flow.own.items() if flow else ())]
    own += [each for queue in link_queues(view) for each in queue.own.items()]
    inside = [(name, series) for name, series in own if _in_window(view, series)]
    now = [name for name, series in inside if series.at(view.tick) is not None]
    before = [name for name, _ in inside]
    return [None, *dict.fromkeys([*now, *before, *plot_ghosts.variables(view)])]


def silence(view: View) -> str:
    """Return the reason why no own value can be chosen, and the remedy if there is one."""
    flow = view.flow
    if flow is None:
        return "no flow is selected"
    cc = view.state.cc_at(flow, view.t)
    hello = view.state.hello
    offered = hello.capabilities.congestion_controls if hello else []
    if any(each.name == cc + BPF and each.available for each in offered):
        return f"the kernel's {cc} reports no variables; {cc}{BPF} does"
    return f"{cc or flow.kind} reports no variables"


def _series(view: View, name: str) -> list[Series]:
    """Return the variable's series with a value in the window, the ghost's last."""
    own = [flow.own[name] for flow in view.state.flows.values() if name in flow.own]
    flows = [each for each in own if _in_window(view, each)]
    queues = [queue.own[name] for queue in link_queues(view) if name in queue.own]
    shown = [each for each in queues if _in_window(view, each)]
    return flows + shown + plot_ghosts.variables(view).get(name, [])


def _in_window(view: View, series: Series) -> bool:
    """Return whether the window contains a value of a series."""
    timeline = series.timeline
    start, end = (
        timeline.at_or_after(t) for t in (view.shown.playhead.left, view.shown.playhead.until)
    )
    return series.extremes(start, end) is not None


# --- the title line of a plot: its name, its unit, and its values at the moment shown -------------

NARROW, WIDE = 30, 36
"""Smallest widths of a title in columns at which units, and all words, are spelled out.

``WIDE`` ones have room for values of theory, too."""

_PER_ACK = " per ACK"
"""Words after the unit while each ACK is drawn."""

_FULL = 60
"""Smallest width in columns at which a spelled-out title leaves room for unit and values."""

_ROOMY = 54
"""Smallest width in columns at which a title shows the seconds that a rate is averaged over."""


def title_row(pane: Pane, view: View, width: int) -> tuple[Row, Row]:
    """Return the title line: the plot's name at the left, its values at the right."""
    title, unit = pane.plot.title, f" {_unit(pane, view, width)}".rstrip()
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
    return bool(view.theory or view.ghost or view.shown.listing.grouped or _PER_ACK in unit)


def _left_out(pane: Pane, view: View, width: int) -> str:
    """Return how many of the window's flows are drawn, as text; empty if all are."""
    if pane.plot.variable.subject == "queue" or view.shown.listing.grouped:
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
        painter, variable, factor = drawer(line.subject), line.variable, pane.factor(line)
        found = painter.values(view, variable, factor)
        if found and (variable.subject, pane.plot.variable.subject) == ("queue", "flow"):
            # The dots of flows name their values; a queue's value in their plot has no dot.
            (text, style), word = found[0], variable.words[:3]
            found = [(f" {word} {text.strip()}", style), *found[1:]]
        if values:
            rest.append(found)
        values = values or found
        rest.append(painter.ghost_values(view, variable, factor))
    added = _summaries(pane, view, width)
    if pane.name == CWND.name:
        added += theory_values(view, width)
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
    flow = view.flow
    if flow is None or view.shown.listing.grouped:
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
    if view.theory and pane.name == CWND.name:
        unit = SHORT_UNITS.get(unit, unit) if width >= NARROW else ""
    if variable.rate is not None and width >= _ROOMY:
        unit += f" over {variable.rate.over_s:g} s"
    traced = variable.subject == "flow" and variable.name in TRACE_FIELDS
    exact = traced and width >= NARROW and _is_exact(view, width)
    return f"{unit}{_PER_ACK}" if exact else unit


def _is_exact(view: View, width: int) -> bool:
    """Return whether the plot shows each ACK of the selected flow rather than samples."""
    flow = view.flow
    dot = view.shown.playhead.width / (2 * width)
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
