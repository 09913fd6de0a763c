"""The panels of a run's figure: each draws one thing over time into axes that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ccplay.analysis.trust import credible
from ccplay.model.wording import CA_STATES
from ccplay.report.data import curves, traced
from ccplay.report.data.scene import Scene
from ccplay.report.figures import rates, style
from ccplay.report.figures.panel import Panel, flow_label, name_of, queue_label, short_label
from ccplay.report.figures.strokes import strokes
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow, Queue
from ccplay.state.series import MISSING

_MANY = 4
"""With more flows than this they share a panel, or the page would be too long."""


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
                lambda axes: rates.throughput(axes, scene, inks),
            ),
            Panel(
                "transfer",
                f"transfer per {rates.interval(scene.span_s)}",
                "transfer (kB)",
                1.0,
                lambda axes: rates.transfer(axes, scene, inks),
            ),
            Panel(
                "acked",
                "acknowledged bytes",
                "acknowledged (MB)",
                1.25,
                lambda axes: rates.acked(axes, scene, inks),
            ),
        ]
    return found


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
    for bits_per_s, colour, label in (
        (sent, style.QUEUE_FILL, f"sent by {names}"),
        ([rate or 0.0 for rate in received], style.QUEUE, "received (mean of each)"),
    ):
        axes.stairs(
            [rate * 1e-6 for rate in bits_per_s], moments, fill=True, color=colour, zorder=1.8
        )
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
        handles.append(Line2D([], [], color=inks[name].colour, label=short_label(streams)))
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
