"""The panels of own values of algorithms and disciplines, one for each variable."""

from __future__ import annotations

from ccplay.model.variables import variable
from ccplay.plots.plot import of_variable
from ccplay.plots.table import PLOTS
from ccplay.report.data.scene import Scene
from ccplay.report.figures.panel import Panel
from ccplay.report.figures.panels import together
from ccplay.report.figures.part import Part
from ccplay.report.figures.style import Inks
from ccplay.state.series import Series

_MOST = 6
"""Largest number of own values that get a panel, to keep the page short."""


_ELSEWHERE = frozenset(
    line.variable.series for plot in PLOTS.values() for line in plot.lines if line.subject is None
)
"""Names of own values that have a plot of their own, and so need no panel here."""


def own_values(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each own value that changed.

    If there are too many, each algorithm or discipline gets about the same number of panels.
    """
    every = dict.fromkeys(name for own in _owners(scene) for name in own if name not in _ELSEWHERE)
    ranges = {name: _ranges(scene, name) for name in every}
    names = [
        name
        for name, found in ranges.items()
        if len({each for low_high in found for each in low_high}) > 1
    ]
    algorithms = [variable(name).algorithm for name in names]
    place = {name: algorithms[:at].count(algorithms[at]) for at, name in enumerate(names)}
    chosen = sorted(names, key=lambda name: place[name])[:_MOST]
    peaks = {name: max(high for _, high in ranges[name]) for name in chosen}
    return [
        together(Part(of_variable(variable(name)), scene, inks, scene.flows, peak=peaks[name]))
        for name in names
        if name in peaks
    ]


def _owners(scene: Scene) -> list[dict[str, Series]]:
    """Return the own values of each flow's stream and each queue, by name."""
    flows = [each.own for streams in scene.flows for each in streams]
    return [*flows, *(each.own for each in scene.queues)]


def _ranges(scene: Scene, name: str) -> list[tuple[float, float]]:
    """Return the lowest and highest value of an own value in each stream or queue that has it."""
    series = [own[name] for own in _owners(scene) if name in own]
    return [found for each in series if (found := each.extremes(each.first, each.end))]
