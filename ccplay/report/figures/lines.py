"""The lines of a panel: series of subjects, rates of traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ccplay.model.series import MISSING, Series
from ccplay.model.variables import CAPACITY, RECEIVED, Subject
from ccplay.plots.subjects import per_second
from ccplay.report.data import curves, scene
from ccplay.report.data.curves import Curve, name_of
from ccplay.report.data.scene import CheckpointMark, Scene
from ccplay.report.figures import style
from ccplay.report.figures.backgrounds import shade, state_handles
from ccplay.report.figures.style import Inks, strokes
from ccplay.state.lab_state import mean_capacity
from ccplay.state.samples import Queue
from ccplay.traffic import is_brief
from ccplay.traffic.connections import Flow
from ccplay.traffic.monitored import CountedTraffic
from ccplay.traffic.plot import Line, Plot

# --- what one panel shows, and the names of its flows and queues ----------------------------------

MANY = 4
"""Number of panels of single flows above which flows share one panel, to keep the page short."""


class PlotPart(msgspec.Struct, frozen=True):
    """A plot, and the part of a run that one panel shows."""

    plot: Plot
    scene: Scene
    inks: Inks
    flows: list[list[Flow]]
    """Flows and downloads, each as its parallel streams."""
    link: str = ""
    """Name of the link, or ``LINK CLASS``, of the queue that is drawn; empty for none."""
    peak: float = math.inf
    """Greatest value of the variable, which determines the unit of its axis."""
    top: float = 0.0
    """Value that the axis includes even if no drawn value is as great."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Lines of the plot that this part draws."""
        in_bytes = self.plot.in_bytes is not None and self.scene.in_bytes(self.link)
        return self.plot.drawn(in_bytes=in_bytes)

    @property
    def unit(self) -> str:
        """Unit of the value axis; empty if it has none."""
        return self.lines[-1].variable.axis(self.peak)[0]

    @property
    def label(self) -> str:
        """Label of the value axis, with its unit."""
        words = self.plot.label or self.plot.title
        return f"{words} ({self.unit})" if self.unit else words

    @property
    def crowded(self) -> bool:
        """Whether there are too many flows to draw the details of each."""
        return len(self.flows) > MANY

    def factor(self, line: Line) -> float:
        """Return the factor from a variable's unit to that of the axis."""
        return line.variable.axis(self.peak)[1]


def short_label(streams: Sequence[Flow]) -> str:
    """Return a flow's label without algorithms: ``flow 1``."""
    return f"{streams[0].kind} {name_of(streams)}"


def flow_label(streams: Sequence[Flow]) -> str:
    """Return a flow's label: ``flow 1, reno → bbr``."""
    first = streams[0]
    ccs = [cc for _, cc in first.cc_changes] or [first.cc]
    many = f", {len(streams)} streams" if len(streams) > 1 else ""
    return f"{short_label(streams)}, {' → '.join(cc for cc in ccs if cc)}{many}"


def queue_label(link: str) -> str:
    """Return a queue's label: ``queue r1 → r2``."""
    return f"queue {link.replace('->', ' → ')}"


# --- the bytes that traffic moved over time: rates, bytes per interval, acknowledged bytes --------

BINS = 200
"""Largest number of coarse intervals in a panel of throughput or transfer."""
FINE_BINS = 600
"""Largest number of fine intervals in a panel of throughput."""
_SHORT_S = 5.0
"""Length of a run in seconds below which coarse intervals are tenths of a second."""
_WIDTHS = (
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
)
_DOTTED, _DASHED = (0, (1, 1.1)), (0, (5, 2))
_COUNTED_DASH = (0, (4, 1.2))
"""Dashes that distinguish cross traffic from flows without colours."""
_LOW = 0.4
"""Share of the panel's height below which a flow's line would cross text at the bottom."""


def interval(span_s: float) -> str:
    """Return the length of a run's coarse intervals as text: ``second``, ``2 s``."""
    coarse, _ = widths(span_s)
    return "second" if coarse == 1 else f"{coarse:g} s"


def throughput(axes: Axes, part: PlotPart) -> list[Artist]:
    """Draw the rate of each flow over coarse and fine intervals, counted traffic over coarse."""
    handles: list[Artist] = []
    scene, inks = part.scene, part.inks
    coarse, fine = widths(scene.span_s)
    peak = 0.0
    top = max((_capacity(axes, part, each, handles) for each in scene.queues), default=0.0)
    for streams in scene.flows:
        ink = inks[name_of(streams)]
        for width, alpha, line in ((fine, 0.35, 0.6), (coarse, 1.0, 1.2)):
            edges, rates = _goodput(part, streams, width)
            axes.stairs(rates, edges, baseline=None, color=ink.colour, alpha=alpha, linewidth=line)
            # Without the highest 1 %: a single burst of ACKs would flatten everything else.
            usual = rates if width == coarse else sorted(rates)[: max(1, len(rates) * 99 // 100)]
            top, peak = max([top, *usual]), max([peak, *rates])
        handles.append(Line2D([], [], color=ink.colour, linewidth=1.2, label=short_label(streams)))
    for each in counted(scene):
        edges, rates = _arrivals(part, each, coarse)
        colour = inks[each.name].colour
        top, peak = max([top, *rates]), max([peak, *rates])
        look: dict[str, Any] = {"color": colour, "linestyle": _COUNTED_DASH, "linewidth": 1.2}
        axes.stairs(rates, edges, baseline=None, **look)
        handles.append(Line2D([], [], label=f"{each.word} {each.name}", **look))
    highest = top * 1.08 or 1
    if scene.flows:
        finely = f"over {fine:g} s, cut" if peak > highest else f"over {fine:g} s"
        handles.append(Line2D([], [], color=style.MUTED, alpha=0.5, linewidth=0.6, label=finely))
    handles.append(Line2D([], [], color=style.MUTED, linewidth=1.2, label=f"over {coarse:g} s"))
    axes.set_ylim(0, highest)
    return handles


def _capacity(axes: Axes, part: PlotPart, queue: Queue, handles: list[Artist]) -> float:
    """Fill the capacity of a link that moves; return the greatest over a coarse interval."""
    if CAPACITY.name not in queue.own:
        return 0.0
    scene, factor = part.scene, part.factor(part.lines[-1])
    end, greatest = min(scene.state.now, scene.start + scene.span_s), 0.0
    for width in widths(scene.span_s):
        edges = [*(t for t in curves.bins(scene.start, end, width) if t < end), end]
        means = (mean_capacity(scene.state, queue.link, a, b) for a, b in pairwise(edges))
        found = [(mean or 0.0) * factor for mean in means]
        greatest = greatest or max(found, default=0.0)
    shown = [t - scene.start for t in edges]
    axes.stairs(found, shown, fill=True, color=style.QUEUE_FILL, zorder=0.8)
    name = f"capacity of {queue_label(queue.link)}" if len(scene.queues) > 1 else "capacity"
    handles.append(Patch(facecolor=style.QUEUE_FILL, label=name))
    return greatest


def counted(scene: Scene) -> list[CountedTraffic]:
    """Return the cross traffic that was counted while it ran, for which received rates exist."""
    return [each for each in scene.counted if each.received_bytes.end > 0]


def _arrivals(
    part: PlotPart, traffic: CountedTraffic, width: float
) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and the rates at which UDP was received between them."""
    end = traffic.ended or part.scene.state.now
    if traffic.duration_s is not None:
        end = min(end, traffic.started + traffic.duration_s)
    _, ends = _bins(part.scene, traffic.started, end, width)
    return _rates(part, ends, curves.arrivals(traffic, ends))


def _goodput(
    part: PlotPart, streams: Sequence[Flow], width: float
) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and a flow's rates between them while it ran."""
    first = streams[0]
    edges, ends = _bins(part.scene, first.started, first.ended or part.scene.state.now, width)
    return _rates(part, ends, curves.transfers(streams, edges, part.lines[-1].variable))


def _bins(
    scene: Scene, started: float, end: float, width: float
) -> tuple[list[float], list[float]]:
    """Return the edges of bins, and those of the parts of the bins in which traffic ran."""
    end = min(end, scene.start + scene.span_s)
    first = max(int((started - scene.start) / width) * width, 0.0)
    edges = curves.bins(scene.start + first, end, width)
    if len(edges) > 2 and end - edges[-2] < width / 2:
        # The remaining interval is too short for a rate.
        edges = edges[:-1]
    return edges, [max(edges[0], started), *edges[1:-1], min(edges[-1], end)]


def _rates(
    part: PlotPart, ends: Sequence[float], moved: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and the rates at which bytes moved between them."""
    line = part.lines[-1]
    factor = part.factor(line) * per_second(line.variable)
    rates = [
        size * factor / max(b - a, 1e-3) for size, (a, b) in zip(moved, pairwise(ends), strict=True)
    ]
    return [t - part.scene.start for t in ends], rates


def widths(span_s: float) -> tuple[float, float]:
    """Return the lengths of coarse and fine intervals in s: 1 and 0.1 for runs of usual length."""

    def fitting(least: float, most: int) -> float:
        fit = (w for w in _WIDTHS if w >= least and span_s / w <= most)
        return next(fit, _WIDTHS[-1])

    coarse, fine = (0.1, 0.02) if span_s < _SHORT_S else (1.0, 0.1)
    return fitting(coarse, BINS), fitting(fine, FINE_BINS)


def transfer(axes: Axes, part: PlotPart) -> list[Artist]:
    """Draw bars, side by side, of the bytes that each flow and UDP moved in each interval."""
    handles: list[Artist] = []
    scene, inks, line = part.scene, part.inks, part.lines[-1]
    factor = part.factor(line)
    width, _ = widths(scene.span_s)
    edges = curves.bins(scene.start, scene.start + scene.span_s, width)
    moved = [
        (name_of(each), curves.transfers(each, edges, line.variable), short_label(each))
        for each in scene.flows
    ]
    moved += [
        (each.name, curves.arrivals(each, edges), f"{each.word} {each.name}")
        for each in counted(scene)
    ]
    slot = 0.86 * width / max(len(moved), 1)
    for number, (name, amounts, label) in enumerate(moved):
        sizes = [each * factor for each in amounts]
        lefts = [t - scene.start + 0.07 * width + slot * number for t in edges[:-1]]
        shown = [(x, y) for x, y in zip(lefts, sizes, strict=True) if y > 0]
        axes.bar(
            [x for x, _ in shown],
            [y for _, y in shown],
            width=slot,
            align="edge",
            color=inks[name].colour,
            linewidth=0,
        )
        handles.append(Patch(color=inks[name].colour, label=label))
    axes.set_ylim(0, None)
    return handles


def acked(axes: Axes, part: PlotPart) -> list[Artist]:
    """Draw the acknowledged bytes of each flow, and the checkpoint of a race."""
    handles: list[Artist] = []
    scene, inks, line = part.scene, part.inks, part.lines[-1]
    factor = part.factor(line)
    top = 0.0
    for number, streams in enumerate(scene.flows):
        name = name_of(streams)
        ink = inks[name]
        end = min(streams[0].ended or scene.state.now, scene.start + scene.span_s)
        edges = curves.bins(streams[0].started, end, max((end - streams[0].started) / 400, 0.02))
        total = [each * factor for each in curves.totals(streams, edges, line.variable)]
        top = max(top, *total)
        look: dict[str, Any] = {
            "color": ink.colour,
            "linestyle": ink.dash,
            "marker": ink.marker,
            "markersize": 2.8,
        }
        places = [min(t, end) - scene.start for t in edges]
        axes.plot(places, total, markevery=(0.03 + 0.04 * (number % 4), 0.16), **look)
        handles.append(Line2D([], [], label=flow_label(streams), **look))
    sizes = sorted(set(scene.sizes.values()))
    look = {"color": style.INK, "linestyle": _DASHED, "linewidth": 0.7}
    for size in sizes:
        axes.axhline(size * factor, **look)
    if sizes:
        handles.append(Line2D([], [], label="size", **look))
        top = max(top, sizes[-1] * factor)
    axes.set_ylim(0, top * 1.12 or 1)
    if scene.finish is not None:
        _checkpoint(axes, scene.finish, scene.span_s, factor)
    return handles


def _checkpoint(axes: Axes, finish: CheckpointMark, span_s: float, factor: float) -> None:
    axes.axvline(finish.t, color=style.INK, linewidth=0.8)
    for size in finish.bytes.values():
        axes.plot(
            finish.t,
            size * factor,
            marker="o",
            markersize=4,
            markerfacecolor="white",
            markeredgecolor=style.INK,
            markeredgewidth=0.8,
            clip_on=False,
            zorder=5,
        )
    words = f"checkpoint {finish.t:.{2 if span_s < _SHORT_S else 1}f} s"
    if finish.ratio is not None:
        words += f"\nratio {finish.ratio:.2f}"
    low, high = (each(finish.bytes.values()) * factor for each in (min, max))
    top = axes.get_ylim()[1]
    # Below both flows, or between them if the slower one is near the bottom.
    place, align = ((low + high) / 2, "center") if low < _LOW * top else (0.03 * top, "bottom")
    axes.annotate(
        words,
        (finish.t, place),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va=align,
        fontsize=style.SMALL,
    )


# --- the panel of cross traffic: the rates at which all of it together was sent and received ------


def draw_cross_traffic(axes: Axes, part: PlotPart) -> list[Artist]:
    """Draw the rates at which all cross traffic together was sent and received.

    The rate sent is the configured one. The rate received comes from a monitor's samples, or else
    is the mean over the traffic.
    """
    scene, factor = part.scene, part.factor(part.lines[-1])
    traffic = [each for each in scene.counted if each.kind == part.lines[-1].subject]
    moments, sent, received = curves.cross_traffic(traffic, scene.start, scene.start + scene.span_s)
    arrived = [rate or 0.0 for rate in received]
    names = ", ".join(each.name for each in traffic)
    means = [each.name for each in traffic if RECEIVED.name not in each.series]
    whose = "each" if len(means) == len(traffic) else ", ".join(means)
    known = f"received (mean of {whose})" if means else "received"
    handles: list[Artist] = []
    for bits_per_s, colour, label in (
        (sent, style.QUEUE_FILL, f"sent by {names}"),
        (arrived, style.QUEUE, known),
    ):
        rates = [rate * factor for rate in bits_per_s]
        axes.stairs(rates, moments, fill=True, color=colour, zorder=1.8)
        handles.append(Patch(facecolor=colour, label=label))
    axes.set_ylim(0, max([*sent, *arrived], default=0.0) * factor * 1.08 or 1)
    return handles


# --- draws the lines of a plot into a panel: variables, settings and counters ---------------------

_COLOURS = {
    "queue": style.QUEUE,
    "queue_limit": style.INK,
    "mark": style.ECN,
    "drop": style.DROP,
    "base_rtt": "#009e73",
    "ssthresh": style.MUTED,
}
"""Colours in figures, by the ink's name in themes; ``style.OTHER`` has those of other traffic."""

_COUNTS_AT, _COUNTS_APART = 0.93, 0.08
"""Height of the first row of a counter's strokes, and distance between rows, as shares of the
panel."""
_ROOM, _ROOM_FOR_COUNTS = 1.08, 1.22
"""End of the value axis as a multiple of the greatest value, without and with counters' strokes."""
_LEAST = {"segments": 4.0, "packets": 2.44, "kB": 2.44}
"""Smallest end of the value axis of plots with a panel per subject, by unit; others have none."""


class Ground(msgspec.Struct):
    """A panel while it is being drawn."""

    axes: Axes
    part: PlotPart
    top: float
    """Greatest value on the axis so far."""
    handles: list[Artist] = msgspec.field(default_factory=list)
    """Entries of the legend."""
    states: set[int] = msgspec.field(default_factory=set)
    """Congestion states that have been shaded."""

    @property
    def start(self) -> float:
        """The moment of the stream in seconds at which the time axis is 0."""
        return self.part.scene.start


def draw(axes: Axes, part: PlotPart) -> list[Artist]:
    """Draw the lines of a plot, then settings and counters; return the entries of the legend."""
    ground = Ground(axes, part, part.top)
    for line in part.lines:
        _DRAWERS.get(line.subject, _others)(ground, line)
    if not part.crowded:
        ground.handles += [
            Line2D([], [], color=_COLOURS[each.ink], linestyle=_DOTTED, label=each.variable.words)
            for each in part.plot.companions
        ]
    _settings(ground)
    room = _ROOM_FOR_COUNTS if part.plot.counts else _ROOM
    least = _LEAST.get(part.unit, 0.0) if part.plot.apart else 0.0
    axes.set_ylim(0, max(ground.top * room, least) or 1)
    _counts(ground)
    return [*ground.handles, *_theory(ground), *state_handles(ground.states)]


# --- flows --------------------------------------------------------------------------------------


def _flows(ground: Ground, line: Line) -> None:
    for streams in ground.part.flows:
        colour = ground.part.inks[name_of(streams)].colour
        drawn = [_flow(ground, line, flow, colour) for flow in streams]
        if any(drawn):
            ground.handles.append(Line2D([], [], color=colour, label=_label(ground, line, streams)))


def _flow(ground: Ground, line: Line, flow: Flow, colour: str) -> bool:
    """Draw a connection; return whether it has values of the variable."""
    axes, start, part = ground.axes, ground.start, ground.part
    factor = part.factor(line)
    if line.subject is None:
        series = flow.own.get(line.variable.series)
        return series is not None and _reported(ground, series, factor, colour)
    name = line.variable.name
    columns = curves.COLUMNS // 2 if part.crowded else curves.COLUMNS
    found = scene.line(flow, name, factor=factor, start=start, columns=columns)
    ground.top = max(ground.top, found.top)
    if part.plot.apart == "flow" and not part.crowded:
        ground.states |= shade(axes, scene.states(flow, start=start))
    for each in () if part.crowded else part.plot.companions:
        beside = scene.line(flow, each.variable.name, factor=part.factor(each), start=start)
        axes.plot(
            beside.t,
            beside.y,
            color=_COLOURS[each.ink],
            linestyle=_DOTTED,
            linewidth=0.9,
            drawstyle="steps-post",
        )
    axes.plot(found.t, found.y, color=colour, linewidth=1.0)
    return True


def _label(ground: Ground, line: Line, streams: Sequence[Flow]) -> str:
    if line.subject is None:
        return flow_label(streams)
    if ground.part.plot.apart != "flow":
        return short_label(streams)
    return line.variable.words if len(ground.part.flows) == 1 else streams[0].parent


def _reported(ground: Ground, series: Series, factor: float, colour: str, dash: Any = "-") -> bool:
    """Draw a series that may have single values with gaps around them."""
    line = curves.curve(series, factor=factor, start=ground.start)
    ground.axes.plot(line.t, line.y, color=colour, linestyle=dash, linewidth=1.0)
    # Single values are dots as wide as the line.
    lone = line.lone
    ground.axes.plot(lone.t, lone.y, ".", color=colour, markersize=2.0, markeredgewidth=0)
    ground.top = max(ground.top, line.top)
    return True


def _theory(ground: Ground) -> list[Artist]:
    """Draw the theoretical cwnd of a single flow; return the entries of the legend.

    The axis makes no room for it: a curve far above would flatten the measured line.
    """
    part = ground.part
    if part.plot.name != "cwnd" or len(part.flows) != 1 or len(part.flows[0]) != 1:
        return []
    [[flow]] = part.flows
    handles: list[Artist] = []
    if not is_brief(flow) and not flow.mptcp:
        for name, line in curves.theory(flow, start=ground.start).items():
            handles += ground.axes.plot(
                line.t, line.y, color=style.INK, linestyle=(0, (3, 2)), linewidth=0.6, label=name
            )
    return handles


# --- queues -------------------------------------------------------------------------------------


def _queue(ground: Ground, line: Line) -> None:
    queue = ground.part.scene.state.queues[ground.part.link]
    factor, colour = ground.part.factor(line), _COLOURS[line.ink or "queue"]
    series, variable = queue.series[line.variable.series], line.variable
    if variable.rate is None:
        found = curves.curve(series, factor=factor, start=ground.start)
    else:
        found = curves.rates(series, variable, ground.start, ground.part.scene.span_s, factor)
    if line.style == "area":
        _area(ground.axes, found)
    ground.axes.plot(found.t, found.y, color=colour, linewidth=0.8)
    ground.handles.append(Line2D([], [], color=colour, label=line.variable.words))
    ground.top = max(ground.top, found.top)


def _area(axes: Axes, line: Curve) -> None:
    """Fill the area below a line, interrupted by its gaps."""
    part: list[tuple[float, float]] = []
    for point in [*zip(line.t, line.y, strict=True), (0.0, MISSING)]:
        if point[1] == point[1]:
            part.append(point)
        elif part:
            outline = [(part[0][0], 0.0), *part, (part[-1][0], 0.0)]
            axes.fill(*zip(*outline, strict=True), color=style.QUEUE_FILL, linewidth=0, zorder=1.8)
            part = []


def _counts(ground: Ground) -> None:
    """Draw a row of short strokes near the top for each counter that grew."""
    for row, count in enumerate(ground.part.plot.counts):
        series = ground.part.scene.state.queues[ground.part.link].series[count.variable.name]
        place, colour = _COUNTS_AT - _COUNTS_APART * row, _COLOURS[count.ink]
        if moments := curves.growths(series, start=ground.start):
            span = (place - 0.03, place + 0.04)
            strokes(ground.axes, moments, span, color=colour, linewidth=0.6, zorder=3)
            look: dict[str, Any] = {"color": colour, "linestyle": "", "marker": "|"}
            words = count.variable.words
            ground.handles.append(Line2D([], [], markersize=5, label=words, **look))


# --- other traffic, and subjects with own values ------------------------------------------


def _others(ground: Ground, line: Line) -> None:
    """Draw each traffic of a kind: single measurements as dots, counts as a line."""
    factor = ground.part.factor(line)
    for number, each in enumerate(ground.part.scene.others(line.variable)):
        found = curves.curve(each.series[line.variable.series], factor=factor, start=ground.start)
        label = f"{each.word} {each.name}"
        if line.style == "dots":
            marker = (".", "x", "+", "1")[number % 4]
            size = 2.6 if marker == "." else 2.4
            look: dict[str, Any] = {
                "linestyle": "",
                "marker": marker,
                "color": _COLOURS.get(line.ink, style.OTHER),
            }
            ground.axes.plot(found.t, found.y, markersize=size, **look)
        else:
            dash = style.DASHES[number % len(style.DASHES)]
            look = {"color": style.QUEUE, "linestyle": dash, "linewidth": 1.0}
            # A sample covers the time before it, the first one the time since the start.
            began = each.started - ground.start
            ground.axes.step([began, *found.t], [*found.y[:1], *found.y], where="pre", **look)
        ground.handles.append(Line2D([], [], label=label, **look))
        ground.top = max(ground.top, found.top)


def _reporting(ground: Ground, line: Line) -> None:
    _flows(ground, line)
    several, factor = len(ground.part.lines) > 1, ground.part.factor(line)
    dash = style.DASHES[ground.part.lines.index(line) % len(style.DASHES)]
    for queue in ground.part.scene.queues:
        series = queue.own.get(line.variable.series)
        if series is not None and line.style == "area":
            _area(ground.axes, curves.curve(series, factor=factor, start=ground.start))
        if series is not None and _reported(ground, series, factor, style.QUEUE, dash):
            words = f"{queue_label(queue.link)}, {line.variable.words}"
            label = words if several else queue_label(queue.link)
            handle = Line2D([], [], color=style.QUEUE, linestyle=dash, label=label)
            ground.handles.append(handle)


Drawer: TypeAlias = Callable[[Ground, Line], None]

_DRAWERS: Mapping[Subject | None, Drawer] = {"flow": _flows, "queue": _queue, None: _reporting}
"""Drawers by subject; None stands for flows and queues with own values. Other traffic has one."""


def has(scene: Scene, line: Line) -> bool:
    """Return whether a run has values for a line."""
    match line.subject:
        case "queue":
            return bool(scene.queues)
        case None:
            return any(line.variable.series in each.own for each in scene.queues)
        case "flow":
            # What arrives of counted traffic is a rate, drawn beside those of flows.
            arrives = line.variable.rate is not None and bool(counted(scene))
            return arrives or any(of_flow(each, line) for each in scene.flows)
    # The rate sent is known even of traffic that is not counted while it runs.
    known = line.style == "area" and any(e.kind == line.subject for e in scene.counted)
    return known or bool(scene.others(line.variable))


def of_flow(streams: Sequence[Flow], line: Line) -> bool:
    """Return whether a flow has values of a line's variable."""
    every = (each.series.get(line.variable.series) for each in streams)
    return any(series is not None and series.end > 0 for series in every)


# --- settings -----------------------------------------------------------------------------------


def _settings(ground: Ground) -> None:
    """Draw settings as horizontal lines; those marked ``near`` only near measured values."""
    factor = ground.part.factor(ground.part.lines[-1])
    start, end = ground.start, ground.start + ground.part.scene.span_s
    scopes = ground.part.scene.scopes(ground.part.link)
    for setting in ground.part.plot.settings:
        look: dict[str, Any] = {
            "color": _COLOURS[setting.ink],
            "linestyle": _DASHED if setting.near else _DOTTED,
        }
        drawn: list[Artist] = []
        for changes in dict.fromkeys(setting.changes(each) for each in scopes):
            scaled = [(t, None if value is None else value * factor) for t, value in changes]
            across = curves.settings(scaled, start, end)
            far = setting.near and across.top > 3 * max(ground.top, 2.0) + 20
            if across.top and not far:
                width = 0.8 if setting.near else 0.9
                drawn += ground.axes.plot(across.t, across.y, linewidth=width, **look)
                ground.top = max(ground.top, across.top)
        if drawn:
            look |= {"linewidth": 0.8} if setting.near else {}
            ground.handles.append(Line2D([], [], label=setting.word, **look))
