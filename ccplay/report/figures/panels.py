"""The panels of a run's figure: each draws one thing over time into axes that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ccplay.analysis.windows import credible
from ccplay.model.wording import CA_STATES
from ccplay.report.data import curves, traced
from ccplay.report.data.material import slug
from ccplay.report.data.scene import Scene
from ccplay.report.figures import style
from ccplay.report.figures.strokes import strokes
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import MISSING

BINS = 200
"""Intervals of transfer and throughput: at most so many across the figure,"""
FINE_BINS = 600
"""and of the finer throughput so many."""
_SHORT_S = 5.0
"""Shorter runs are cut into tenths of a second, not seconds."""
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
_LOW = 0.4
"""A flow below such a share of its panel would run through words at the bottom."""
_MANY = 4
"""With more flows than this they share a panel, or the page would be too long."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a run's figure."""

    name: str
    title: str
    label: str
    """Of the value axis, with its unit."""
    height_in: float
    draw: Callable[[Axes], list[Artist]]
    """Draws, and returns what its legend has."""
    window: tuple[float, float] | None = None
    """A time axis of its own, in seconds; None: that of the run."""
    counts: bool = False
    """Whether it shows whole things, of which there is no half."""

    @property
    def slug(self) -> str:
        """Names its file: nothing of a stranger's names gets into a path."""
        return slug(self.name)


def panels(scene: Scene, inks: Inks) -> list[Panel]:
    """Return the panels that this run has something for, from top to bottom."""
    flows = [each for each in scene.flows if any(f.series["cwnd"].end > 0 for f in each)]
    found = _windows(scene, inks, flows)
    found += [_queue(scene, queue, alone=len(scene.queues) == 1) for queue in scene.queues]
    if scene.udp:
        found.append(
            Panel("udp", "cross traffic", "UDP (Mbit/s)", 0.65, lambda axes: _udp(axes, scene))
        )
    if flows or scene.pings:
        found.append(
            Panel("rtt", "round-trip time", "RTT (ms)", 1.15, lambda axes: _rtt(axes, scene, inks))
        )
    if flows:
        found += [
            Panel(
                "throughput",
                "goodput",
                "goodput (Mbit/s)",
                1.15,
                lambda axes: _throughput(axes, scene, inks),
            ),
            Panel(
                "transfer",
                f"transfer per {_interval(scene.span_s)}",
                "transfer (kB)",
                1.0,
                lambda axes: _transfer(axes, scene, inks),
            ),
            Panel(
                "acked",
                "acknowledged bytes",
                "acknowledged (MB)",
                1.25,
                lambda axes: _acked(axes, scene, inks),
            ),
        ]
    return found


def _interval(span_s: float) -> str:
    coarse, _ = widths(span_s)
    return "second" if coarse == 1 else f"{coarse:g} s"


def _windows(scene: Scene, inks: Inks, flows: list[list[Flow]]) -> list[Panel]:
    long = [each for each in flows if each[0].kind == "flow"]
    short = [each for each in flows if each[0].kind == "download"]
    groups = [[each] for each in long] + ([short] if short else [])
    if len(groups) > _MANY:
        groups = [flows]
    top = max((_top(each) for each in long), default=0.0)
    found = []
    for group in groups:
        name = "cwnd" if len(groups) == 1 else f"cwnd-{group[0][0].parent}"
        shared = top if group[0][0].kind == "flow" else 0.0

        def draw(axes: Axes, group: list[list[Flow]] = group, top: float = shared) -> list[Artist]:
            return _cwnd(axes, scene, inks, group, top)

        found.append(Panel(name, _title(group), "cwnd (segments)", 1.05, draw, counts=True))
    return found


def _top(streams: list[Flow]) -> float:
    most = credible("cwnd")
    lines = (curves.curve(each.series["cwnd"], most=most) for each in streams)
    return max((line.top for line in lines), default=0.0)


def _columns(groups: list[list[Flow]]) -> int:
    """Return how finely lines are drawn: where they are many, nobody can follow every one."""
    return curves.COLUMNS if len(groups) <= _MANY else curves.COLUMNS // 2


def _title(group: list[list[Flow]]) -> str:
    if len(group) == 1:
        return flow_label(group[0])
    kind = "download" if all(each[0].kind == "download" for each in group) else "flow"
    return f"{kind}s " + ", ".join(each[0].parent for each in group)


def name_of(streams: Sequence[Flow]) -> str:
    """Return the name of a flow or download; a flow's streams share one."""
    first = streams[0]
    return first.parent if first.kind == "flow" else first.name


def _short(streams: Sequence[Flow]) -> str:
    return f"{streams[0].kind} {name_of(streams)}"


def flow_label(streams: Sequence[Flow]) -> str:
    """Say what a flow is: ``flow 1, reno → bbr``."""
    first = streams[0]
    ccs = [cc for _, cc in first.cc_changes] or [first.cc]
    many = f", {len(streams)} streams" if len(streams) > 1 else ""
    return f"{_short(streams)}, {' → '.join(cc for cc in ccs if cc)}{many}"


def _cwnd(
    axes: Axes, scene: Scene, inks: Inks, group: list[list[Flow]], top: float
) -> list[Artist]:
    handles: list[Artist] = []
    seen: set[int] = set()
    highest = top
    columns = _columns(group)
    for streams in group:
        for flow in streams:
            ink = inks[name_of(streams)]
            line = traced.line(flow, "cwnd", start=scene.start, columns=columns)
            threshold = traced.line(flow, "ssthresh", start=scene.start)
            highest = max(highest, line.top)
            if len(group) <= _MANY:
                seen |= shade(axes, traced.states(flow, start=scene.start))
                axes.plot(
                    threshold.t,
                    threshold.y,
                    color=style.MUTED,
                    linestyle=(0, (1, 1.1)),
                    linewidth=0.9,
                    drawstyle="steps-post",
                )
            axes.plot(line.t, line.y, color=ink.colour, linewidth=1.0)
        ink = inks[name_of(streams)]
        handles.append(
            Line2D([], [], color=ink.colour, label="cwnd" if len(group) == 1 else streams[0].parent)
        )
    if len(group) <= _MANY:
        handles.append(Line2D([], [], color=style.MUTED, linestyle=(0, (1, 1.1)), label="ssthresh"))
    if len(group) == len(group[0]) == 1 and group[0][0].kind == "flow":
        handles += _theory(axes, scene, group[0][0])
    # Theory gets no room of its own: a curve far above would press what was measured flat.
    axes.set_ylim(0, max(highest * 1.08, 4))
    return handles + state_handles(seen)


def state_handles(seen: set[int]) -> list[Artist]:
    """Return what a legend has for states that are shaded."""
    return [
        Patch(
            facecolor=style.STATES[each], edgecolor="#999999", linewidth=0.4, label=CA_STATES[each]
        )
        for each in sorted(seen)
    ]


def _theory(axes: Axes, scene: Scene, flow: Flow) -> list[Artist]:
    """Draw what a flow's algorithm has in theory, over what was measured."""
    handles: list[Artist] = []
    for name, line in curves.theory(flow, start=scene.start).items():
        handles += axes.plot(
            line.t, line.y, color=style.INK, linestyle=(0, (3, 2)), linewidth=0.6, label=name
        )
    return handles


def shade(axes: Axes, spans: Sequence[tuple[float, float, int]]) -> set[int]:
    """Shade the background where a connection was not Open; return the states that occurred."""
    seen = {state for _, _, state in spans}
    for each in seen:
        boxes = [
            Path([(left, 0), (left, 1), (right, 1), (right, 0), (left, 0)], closed=True)
            for left, right, state in spans
            if state == each
        ]
        # One path for all, or a page with many runs would be twice as large.
        axes.add_patch(
            PathPatch(
                Path.make_compound_path(*boxes),
                transform=axes.get_xaxis_transform(),
                facecolor=style.STATES[each],
                linewidth=0,
                zorder=0.5,
            )
        )
    return seen


def _queue(scene: Scene, queue: Queue, *, alone: bool) -> Panel:
    name = "queue" if alone else f"queue-{queue.link}"

    in_bytes = scene.in_bytes(queue.link)

    def draw(axes: Axes) -> list[Artist]:
        series, factor = ("backlog", 1e-3) if in_bytes else ("qlen", 1.0)
        line = curves.curve(queue.series[series], factor=factor, start=scene.start)
        _area(axes, line)
        axes.plot(line.t, line.y, color=style.QUEUE, linewidth=0.8)
        waiting = "bytes waiting" if in_bytes else "packets waiting"
        handles: list[Artist] = [Line2D([], [], color=style.QUEUE, label=waiting)]
        top = max(line.top, 2.0)
        for changes, colour, word in (
            (scene.limits(queue.link), style.INK, "limit"),
            (scene.thresholds(queue.link), style.ECN, "marked from here on"),
        ):
            across = curves.settings(changes, scene.start, scene.start + scene.span_s)
            if 0 < across.top <= 3 * top + 20:
                dashed = (0, (5, 2))
                handles += axes.plot(
                    across.t, across.y, color=colour, linestyle=dashed, linewidth=0.8, label=word
                )
                top = max(top, across.top)
        axes.set_ylim(0, top * 1.22)
        for field, colour, word, place in (
            ("drops", style.DROP, "drops", 0.93),
            ("ecn_marks", style.ECN, "ECN marks", 0.85),
        ):
            moments = curves.growths(queue.series[field], start=scene.start)
            if moments:
                _ticks(axes, moments, colour, place)
                handles.append(
                    Line2D([], [], color=colour, linestyle="", marker="|", markersize=5, label=word)
                )
        return handles

    label = "queue (kB)" if in_bytes else "queue (packets)"
    title = queue_label(queue.link)
    return Panel(name, title, label, 1.05, draw, counts=not in_bytes)


def _area(axes: Axes, line: curves.Curve) -> None:
    """Fill what lies below a line, gap by gap."""
    part: list[tuple[float, float]] = []
    for point in [*zip(line.t, line.y, strict=True), (0.0, MISSING)]:
        if point[1] == point[1]:
            part.append(point)
        elif part:
            outline = [(part[0][0], 0.0), *part, (part[-1][0], 0.0)]
            axes.fill(*zip(*outline, strict=True), color=style.QUEUE_FILL, linewidth=0, zorder=1.8)
            part = []


def queue_label(link: str) -> str:
    """Say which queue it is: ``queue r1 → r2``."""
    return f"queue {link.replace('->', ' → ')}"


def _ticks(axes: Axes, moments: Sequence[float], colour: str, place: float) -> None:
    """Draw a row of short strokes near the top."""
    span = (place - 0.03, place + 0.04)
    strokes(axes, moments, span, color=colour, linewidth=0.6, zorder=3)


def _udp(axes: Axes, scene: Scene) -> list[Artist]:
    """Draw what all cross traffic together sent, and how much of that arrived."""
    moments, sent, received = curves.cross_traffic(
        scene.udp, scene.start, scene.start + scene.span_s
    )
    names = ", ".join(each.name for each in scene.udp)
    handles: list[Artist] = []
    for rates, colour, label in (
        (sent, style.QUEUE_FILL, f"sent by {names}"),
        ([rate or 0.0 for rate in received], style.QUEUE, "received (mean of each)"),
    ):
        axes.stairs([rate * 1e-6 for rate in rates], moments, fill=True, color=colour, zorder=1.8)
        handles.append(Patch(facecolor=colour, label=label))
    axes.set_ylim(0, max(sent, default=0.0) * 1.08e-6 or 1)
    return handles


def _rtt(axes: Axes, scene: Scene, inks: Inks) -> list[Artist]:
    handles: list[Artist] = []
    top = 0.0
    for number, ping in enumerate(scene.pings):
        dots = curves.curve(ping.rtt_us, factor=1e-3, start=scene.start)
        marker = (".", "x", "+", "1")[number % 4]
        size = 2.6 if marker == "." else 2.4
        axes.plot(dots.t, dots.y, linestyle="", marker=marker, markersize=size, color=style.PING)
        handles.append(
            Line2D([], [], linestyle="", marker=marker, color=style.PING, label=f"ping {ping.name}")
        )
        top = max(top, dots.top)
    for streams in scene.flows:
        name = name_of(streams)
        for flow in streams:
            columns = _columns(scene.flows)
            line = traced.line(flow, "srtt_us", factor=1e-3, start=scene.start, columns=columns)
            axes.plot(line.t, line.y, color=inks[name].colour, linewidth=1.0)
            top = max(top, line.top)
        handles.append(Line2D([], [], color=inks[name].colour, label=_short(streams)))
    lines = [
        curves.settings(each, scene.start, scene.start + scene.span_s) for each in scene.base_rtts()
    ]
    look: dict[str, Any] = {"color": "#009e73", "linestyle": (0, (1, 1.1))}
    for base in lines:
        if base.top:
            axes.plot(base.t, base.y, linewidth=0.9, **look)
            top = max(top, base.top)
    if any(base.top for base in lines):
        handles.append(Line2D([], [], label="links' delay", **look))
    axes.set_ylim(0, top * 1.08 or 1)
    return handles


def _throughput(axes: Axes, scene: Scene, inks: Inks) -> list[Artist]:
    handles: list[Artist] = []
    coarse, fine = widths(scene.span_s)
    top = peak = 0.0
    for streams in scene.flows:
        ink = inks[name_of(streams)]
        for width, alpha, line in ((fine, 0.35, 0.6), (coarse, 1.0, 1.2)):
            edges, rates = _rates(scene, streams, width)
            axes.stairs(rates, edges, baseline=None, color=ink.colour, alpha=alpha, linewidth=line)
            # A single burst of ACKs would press all that is seen flat.
            usual = rates if width == coarse else sorted(rates)[: max(1, len(rates) * 99 // 100)]
            top, peak = max([top, *usual]), max([peak, *rates])
        handles.append(Line2D([], [], color=ink.colour, linewidth=1.2, label=_short(streams)))
    highest = top * 1.08 or 1
    finely = f"over {fine:g} s, cut" if peak > highest else f"over {fine:g} s"
    handles.append(Line2D([], [], color=style.MUTED, alpha=0.5, linewidth=0.6, label=finely))
    handles.append(Line2D([], [], color=style.MUTED, linewidth=1.2, label=f"over {coarse:g} s"))
    axes.set_ylim(0, highest)
    return handles


def widths(span_s: float) -> tuple[float, float]:
    """Return the intervals in seconds, coarse and fine: 1 and 0.1, or what fits the run."""

    def fitting(least: float, most: int) -> float:
        fit = (w for w in _WIDTHS if w >= least and span_s / w <= most)
        return next(fit, _WIDTHS[-1])

    coarse, fine = (0.1, 0.02) if span_s < _SHORT_S else (1.0, 0.1)
    return fitting(coarse, BINS), fitting(fine, FINE_BINS)


def _rates(scene: Scene, streams: Sequence[Flow], width: float) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and Mbit/s between them; only while the flow ran."""
    end = min(streams[0].ended or scene.state.now, scene.start + scene.span_s)
    first = max(int((streams[0].started - scene.start) / width) * width, 0.0)
    edges = curves.bins(scene.start + first, end, width)
    moved = curves.transfers(streams, edges)
    if len(edges) > 2 and end - edges[-2] < width / 2:
        # Too little is left at the end to tell a rate from.
        edges, moved = edges[:-1], moved[:-1]
    # The first and the last bin count only while the flow ran.
    ends = [max(edges[0], streams[0].started), *edges[1:-1], min(edges[-1], end)]
    rates = [
        size * 8e-6 / max(b - a, 1e-3) for size, (a, b) in zip(moved, pairwise(ends), strict=True)
    ]
    return [t - scene.start for t in ends], rates


def _transfer(axes: Axes, scene: Scene, inks: Inks) -> list[Artist]:
    """Draw bars side by side, one a flow, of what each second brought."""
    handles: list[Artist] = []
    width, _ = widths(scene.span_s)
    edges = curves.bins(scene.start, scene.start + scene.span_s, width)
    slot = 0.86 * width / max(len(scene.flows), 1)
    for number, streams in enumerate(scene.flows):
        name = name_of(streams)
        sizes = [each * 1e-3 for each in curves.transfers(streams, edges)]
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
        handles.append(Patch(color=inks[name].colour, label=_short(streams)))
    axes.set_ylim(0, None)
    return handles


def _acked(axes: Axes, scene: Scene, inks: Inks) -> list[Artist]:
    handles: list[Artist] = []
    top = 0.0
    for number, streams in enumerate(scene.flows):
        name = name_of(streams)
        ink = inks[name]
        end = min(streams[0].ended or scene.state.now, scene.start + scene.span_s)
        edges = curves.bins(streams[0].started, end, max((end - streams[0].started) / 400, 0.02))
        total = [
            sum(curves.count_at(each.series["bytes_acked"], t) for each in streams) * 1e-6
            for t in edges
        ]
        top = max(top, *total)
        axes.plot(
            [min(t, end) - scene.start for t in edges],
            total,
            color=ink.colour,
            linestyle=ink.dash,
            marker=ink.marker,
            markevery=(0.03 + 0.04 * (number % 4), 0.16),
            markersize=2.8,
        )
        handles.append(
            Line2D(
                [],
                [],
                color=ink.colour,
                linestyle=ink.dash,
                marker=ink.marker,
                markersize=2.8,
                label=flow_label(streams),
            )
        )
    sizes = sorted(set(scene.sizes.values()))
    for size in sizes:
        axes.axhline(size * 1e-6, color=style.INK, linestyle=(0, (5, 2)), linewidth=0.7)
    if sizes:
        handles.append(
            Line2D([], [], color=style.INK, linestyle=(0, (5, 2)), linewidth=0.7, label="size")
        )
        top = max(top, sizes[-1] * 1e-6)
    axes.set_ylim(0, top * 1.12 or 1)
    if scene.finish is not None:
        _checkpoint(axes, scene)
    return handles


def _checkpoint(axes: Axes, scene: Scene) -> None:
    finish = scene.finish
    if finish is None:
        return
    axes.axvline(finish.t, color=style.INK, linewidth=0.8)
    for size in finish.bytes.values():
        axes.plot(
            finish.t,
            size * 1e-6,
            marker="o",
            markersize=4,
            markerfacecolor="white",
            markeredgecolor=style.INK,
            markeredgewidth=0.8,
            clip_on=False,
            zorder=5,
        )
    words = f"checkpoint {finish.t:.{2 if scene.span_s < _SHORT_S else 1}f} s"
    if finish.ratio is not None:
        words += f"\nratio {finish.ratio:.2f}"
    low, high = min(finish.bytes.values()) * 1e-6, max(finish.bytes.values()) * 1e-6
    top = axes.get_ylim()[1]
    # Below both flows, or between them where the slower one is down there.
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
