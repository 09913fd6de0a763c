"""The bytes that traffic moved over time: rates, bytes per interval, acknowledged bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ccplay.plots.derived import per_second
from ccplay.report.data import curves
from ccplay.report.data.scene import Scene
from ccplay.report.figures import style
from ccplay.report.figures.panel import flow_label, name_of, short_label
from ccplay.report.figures.part import Part
from ccplay.state.lab_state import Flow
from ccplay.state.udp import Udp

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
_UDP_DASH = (0, (4, 1.2))
"""Dashes that distinguish cross traffic from flows without colours."""
_LOW = 0.4
"""Share of the panel's height below which a flow's line would cross text at the bottom."""


def interval(span_s: float) -> str:
    """Return the length of a run's coarse intervals as text: ``second``, ``2 s``."""
    coarse, _ = widths(span_s)
    return "second" if coarse == 1 else f"{coarse:g} s"


def throughput(axes: Axes, part: Part) -> list[Artist]:
    """Draw the rate of each flow over coarse and fine intervals, that of UDP over coarse ones."""
    handles: list[Artist] = []
    scene, inks = part.scene, part.inks
    coarse, fine = widths(scene.span_s)
    top = peak = 0.0
    for streams in scene.flows:
        ink = inks[name_of(streams)]
        for width, alpha, line in ((fine, 0.35, 0.6), (coarse, 1.0, 1.2)):
            edges, rates = _rates(part, streams, width)
            axes.stairs(rates, edges, baseline=None, color=ink.colour, alpha=alpha, linewidth=line)
            # Without the highest 1 %: a single burst of ACKs would flatten everything else.
            usual = rates if width == coarse else sorted(rates)[: max(1, len(rates) * 99 // 100)]
            top, peak = max([top, *usual]), max([peak, *rates])
        handles.append(Line2D([], [], color=ink.colour, linewidth=1.2, label=short_label(streams)))
    for udp in counted(scene):
        edges, rates = _arrivals(part, udp, coarse)
        colour = inks[udp.name].colour
        axes.stairs(rates, edges, baseline=None, color=colour, linestyle=_UDP_DASH, linewidth=1.2)
        top, peak = max([top, *rates]), max([peak, *rates])
        handles.append(_udp_sample(colour, udp))
    highest = top * 1.08 or 1
    if scene.flows:
        finely = f"over {fine:g} s, cut" if peak > highest else f"over {fine:g} s"
        handles.append(Line2D([], [], color=style.MUTED, alpha=0.5, linewidth=0.6, label=finely))
    handles.append(Line2D([], [], color=style.MUTED, linewidth=1.2, label=f"over {coarse:g} s"))
    axes.set_ylim(0, highest)
    return handles


def counted(scene: Scene) -> list[Udp]:
    """Return the cross traffic that was counted while it ran, for which received rates exist."""
    return [each for each in scene.udp if each.received_bytes.end > 0]


def _udp_sample(colour: str, udp: Udp) -> Artist:
    label = f"UDP {udp.name}"
    return Line2D([], [], color=colour, linestyle=_UDP_DASH, linewidth=1.2, label=label)


def _arrivals(part: Part, udp: Udp, width: float) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and the rates at which UDP was received between them."""
    scene = part.scene
    factor = part.factor(part.lines[-1]) * per_second(part.lines[-1].variable)
    end = min(udp.ended or scene.state.now, scene.start + scene.span_s)
    if udp.duration_s is not None:
        end = min(end, udp.started + udp.duration_s)
    first = max(int((udp.started - scene.start) / width) * width, 0.0)
    edges = curves.bins(scene.start + first, end, width)
    if len(edges) > 2 and end - edges[-2] < width / 2:
        edges = edges[:-1]
    ends = [max(edges[0], udp.started), *edges[1:-1], min(edges[-1], end)]
    counts = [curves.count_at(udp.received_bytes, t) for t in ends]
    rates = [
        max(later - before, 0.0) * factor / max(b - a, 1e-3)
        for (before, later), (a, b) in zip(pairwise(counts), pairwise(ends), strict=True)
    ]
    return [t - scene.start for t in ends], rates


def widths(span_s: float) -> tuple[float, float]:
    """Return the lengths of coarse and fine intervals in s: 1 and 0.1 for runs of usual length."""

    def fitting(least: float, most: int) -> float:
        fit = (w for w in _WIDTHS if w >= least and span_s / w <= most)
        return next(fit, _WIDTHS[-1])

    coarse, fine = (0.1, 0.02) if span_s < _SHORT_S else (1.0, 0.1)
    return fitting(coarse, BINS), fitting(fine, FINE_BINS)


def _rates(part: Part, streams: Sequence[Flow], width: float) -> tuple[list[float], list[float]]:
    """Return edges on the figure's axis, and a flow's rates between them while it ran."""
    scene, line = part.scene, part.lines[-1]
    factor = part.factor(line) * per_second(line.variable)
    end = min(streams[0].ended or scene.state.now, scene.start + scene.span_s)
    first = max(int((streams[0].started - scene.start) / width) * width, 0.0)
    edges = curves.bins(scene.start + first, end, width)
    moved = curves.transfers(streams, edges, line.variable)
    if len(edges) > 2 and end - edges[-2] < width / 2:
        # The remaining interval is too short for a rate.
        edges, moved = edges[:-1], moved[:-1]
    # The first and the last bin count only while the flow ran.
    ends = [max(edges[0], streams[0].started), *edges[1:-1], min(edges[-1], end)]
    rates = [
        size * factor / max(b - a, 1e-3) for size, (a, b) in zip(moved, pairwise(ends), strict=True)
    ]
    return [t - scene.start for t in ends], rates


def transfer(axes: Axes, part: Part) -> list[Artist]:
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
    for udp in counted(scene):
        counts = [curves.count_at(udp.received_bytes, t) for t in edges]
        moved.append((udp.name, [b - a for a, b in pairwise(counts)], f"UDP {udp.name}"))
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


def acked(axes: Axes, part: Part) -> list[Artist]:
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
        axes.axhline(size * factor, color=style.INK, linestyle=(0, (5, 2)), linewidth=0.7)
    if sizes:
        handles.append(
            Line2D([], [], color=style.INK, linestyle=(0, (5, 2)), linewidth=0.7, label="size")
        )
        top = max(top, sizes[-1] * factor)
    axes.set_ylim(0, top * 1.12 or 1)
    if scene.finish is not None:
        _checkpoint(axes, scene, factor)
    return handles


def _checkpoint(axes: Axes, scene: Scene, factor: float) -> None:
    finish = scene.finish
    if finish is None:
        return
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
    words = f"checkpoint {finish.t:.{2 if scene.span_s < _SHORT_S else 1}f} s"
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
