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
"""Largest number of variables with panels, to keep the page short."""


_ELSEWHERE = frozenset(
    line.variable.series for plot in PLOTS.values() for line in plot.lines if line.subject is None
)
"""Variables of plots that the report draws by default."""


def own_values(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel per variable that changed; of too many, equally many per algorithm."""
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
    """Return the variables that flows and queues have reported, by name."""
    flows = [each.own for streams in scene.flows for each in streams]
    return [*flows, *(each.own for each in scene.queues)]


def _ranges(scene: Scene, name: str) -> list[tuple[float, float]]:
    """Return the lowest and the highest value of each flow or queue that has reported any."""
    series = [own[name] for own in _owners(scene) if name in own]
    return [found for each in series if (found := each.extremes(each.first, each.end))]
