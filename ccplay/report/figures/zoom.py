"""The panels of traced flows around their first reduction: each ACK, and the exact states."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ccplay.analysis.trust import credible
from ccplay.report.data import traced
from ccplay.report.data.scene import Scene
from ccplay.report.data.traced import Stretch
from ccplay.report.figures import style
from ccplay.report.figures.panel import Panel, flow_label, name_of
from ccplay.report.figures.states import shade, state_handles
from ccplay.report.figures.style import Inks
from ccplay.state.lab_state import Flow

_MOST = 4
"""Largest number of traced flows that get a panel."""


def zoomed(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each traced flow whose cwnd was reduced, at most four."""
    found = [
        _panel(scene, streams, flow, stretch, inks[name_of(streams)].colour)
        for streams in scene.flows
        for flow in streams
        if (stretch := traced.first_reduction(flow)) is not None
    ]
    return found[:_MOST]


def _panel(scene: Scene, streams: list[Flow], flow: Flow, stretch: Stretch, colour: str) -> Panel:
    left, right = (t - scene.start for t in stretch)
    return Panel(
        f"zoom-{flow.name}",
        f"{flow_label(streams)}, ACK by ACK",
        "cwnd (segments)",
        1.6,
        lambda axes: _draw(axes, scene, flow, stretch, colour),
        (left, right),
    )


def _draw(axes: Axes, scene: Scene, flow: Flow, stretch: Stretch, colour: str) -> list[Artist]:
    if flow.trace is None:
        return []
    exact, threshold = (
        traced.within(flow.trace.series[name], stretch, start=scene.start, most=credible(name))
        for name in ("cwnd", "ssthresh")
    )
    sampled = traced.within(flow.series["cwnd"], stretch, start=scene.start, most=credible("cwnd"))
    seen = shade(axes, traced.states(flow, start=scene.start))
    axes.step(
        threshold.t,
        threshold.y,
        where="post",
        color=style.MUTED,
        linestyle=(0, (1, 1.1)),
        linewidth=0.9,
    )
    # Traced values are those before the ACK takes effect, so they hold since the previous ACK.
    axes.step(exact.t, exact.y, where="pre", color=colour, linewidth=0.5, alpha=0.6)
    axes.plot(exact.t, exact.y, ".", markersize=2.2, color=colour)
    axes.plot(
        sampled.t,
        sampled.y,
        "o",
        markersize=4.0,
        markerfacecolor="none",
        markeredgecolor=style.INK,
        markeredgewidth=0.6,
    )
    axes.set_ylim(0, max(exact.top, sampled.top) * 1.12 or 1)
    return [
        Line2D([], [], color=colour, linewidth=0.5, marker=".", markersize=3, label="at each ACK"),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=4,
            markerfacecolor="none",
            markeredgecolor=style.INK,
            markeredgewidth=0.6,
            label="sampled",
        ),
        Line2D([], [], color=style.MUTED, linestyle=(0, (1, 1.1)), label="ssthresh"),
        *state_handles(seen),
    ]
