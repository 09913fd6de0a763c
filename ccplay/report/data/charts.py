"""Charts of an experiment: estimates by case, and growth over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import metric_of
from ccplay.analysis.results import CaseResult, CaseStatistics
from ccplay.analysis.statistics import Statistic
from ccplay.report.data.curves import Curve, bins, count_at
from ccplay.report.data.findings import published_by_case, published_of, values
from ccplay.report.data.material import (
    Material,
    MatrixAxis,
    Parameter,
    as_written,
    axes,
    place,
    point,
    slug,
)
from ccplay.report.data.naming import Unit, by_family, family_of, unit, words
from ccplay.state.lab_state import LabState

# --- acknowledged segments over time of runs with a single flow, to show which case is ahead ------

POINTS = 300
"""Largest number of intervals between the points of a run's line."""


def growth(state: LabState) -> Curve | None:
    """Return the acknowledged segments of a session's only flow over the time since its start.

    None if there are several flows, any of which could be meant, or none.
    """
    streams = [flow for flow in state.flows.values() if flow.kind == "flow"]
    if len(streams) != 1 or not streams[0].mss:
        return None
    flow = streams[0]
    end = flow.ended or state.now
    line = Curve()
    for t in bins(flow.started, end, max((end - flow.started) / POINTS, 0.02)):
        at = min(t, end)
        line.add(at - flow.started, count_at(flow.series["bytes_acked"], at) / flow.mss)
    return line


def families(material: Material, by_run: Mapping[str, Curve]) -> dict[str, dict[str, Curve]]:
    """Return the lines of each family of cases, by the case's point in the matrix.

    ``by_run`` has the lines of all runs by their ``slug``; one run represents each case. Families
    with a single line are left out.
    """
    found: dict[str, dict[str, Curve]] = {}
    for case in material.result.statistics:
        run = material.representative(case)
        if case.parameters and run is not None and (line := by_run.get(run.slug)) is not None:
            label = ", ".join(as_written(each) for each in case.parameters.values())
            found.setdefault(family_of(case), {})[label] = line
    return {family: lines for family, lines in found.items() if len(lines) > 1}


# --- charts of an experiment: a metric over an axis, as lines -------------------------------------

_FAR = 1.8
"""Multiple of the greatest drawn value at which confidence intervals are cut."""
_MARGIN = 1.06
"""Length of the value axis as a multiple of the greatest drawn value, so that nothing touches the
frame."""
_FOLDS = 3.0
"""Largest factor between a ratio and 1 on a linear scale; above, the scale is logarithmic."""
_RATIO = "checkpoint.ratio"
MOST_GROUPS = 6
"""Largest number of categories in a shared panel; with more, each is one bar in its own panel."""
LEAST_POINTS = 3
"""Smallest number of values on a numeric axis; fewer are drawn as categories."""


class Estimate(msgspec.Struct, frozen=True):
    """A mean with everything drawn around it."""

    at: Parameter
    """Value of the case on the chart's axis."""
    statistic: Statistic
    singles: list[float]
    """Values of the runs."""
    published: list[float]
    """Published values of this case alone."""


class ChartLine(msgspec.Struct, frozen=True):
    """Related means: a line of a plot, or the bars of one colour."""

    label: str
    flow: str
    """Name of the flow, ping or download that the line describes; empty for none."""
    estimates: list[Estimate] = msgspec.field(default_factory=list)
    published: list[float] = msgspec.field(default_factory=list)
    """Published values for a whole family of cases rather than one point."""
    joined: set[Parameter] = msgspec.field(default_factory=set)
    """Values on the axis at which the published values are points of a curve."""


class Chart(msgspec.Struct, frozen=True):
    """One chart: panels side by side, with one unit and one axis."""

    name: str
    """Name of the chart's files."""
    title: str
    label: str
    """Label of the value axis, without the unit."""
    unit: Unit
    counts: str
    axis: MatrixAxis
    hue: str
    """MatrixAxis of the matrix that distinguishes lines; empty if flows do."""
    panels: list[tuple[str, list[ChartLine]]]
    """Panels with their titles."""
    reference: float | None
    """Value of a reference line across the chart: 1 for ratios and indices."""

    @property
    def drawn_along(self) -> bool:
        """Whether the chart has lines along a numeric axis rather than bars."""
        return self.axis.numbers is not None and len(self.axis.values) >= LEAST_POINTS

    @property
    def value_label(self) -> str:
        """The label of the value axis with its unit."""
        name = self.unit.name or self.counts
        return f"{self.label} ({name})" if name else self.label

    @property
    def published(self) -> bool:
        """Whether the chart contains published values of single cases."""
        return any(estimate.published for estimate in self._estimates)

    @property
    def published_of_all(self) -> bool:
        """Whether the chart contains published values of several cases together."""
        return any(line.published for line in self._lines)

    @property
    def points(self) -> list[float]:
        """All means, values of single runs, and published values."""
        across = [value for line in self._lines for value in line.published]
        return across + [
            v for m in self._estimates for v in (m.statistic.mean, *m.singles, *m.published)
        ]

    @property
    def doublings(self) -> range | None:
        """The exponents of the powers of two on the value axis if ratios differ greatly.

        On this logarithmic scale, twice and half are equally far from 1. None if the scale is
        linear.
        """
        points = [value / self.unit.scale for value in self.points]
        if self.reference is None or not self.drawn_along or min(points) <= 0:
            return None
        top = max(*points, self.reference)
        if max(top, 1 / min(points)) <= _FOLDS:
            return None
        low = math.floor(math.log2(min(points)) - 0.3)
        return range(low, math.ceil(math.log2(top) + 0.3) + 1)

    @property
    def frame(self) -> tuple[float, float]:
        """The ends of the value axis, in the chart's unit."""
        if self.doublings is not None:
            return 2.0 ** self.doublings[0], 2.0 ** self.doublings[-1]
        top = max(
            max(self.points) / self.unit.scale, 0.0 if self.reference is None else self.reference
        )
        highs = [
            m.statistic.high / self.unit.scale
            for m in self._estimates
            if m.statistic.high is not None
        ]
        return 0.0, min(max([top, *highs]), _FAR * top) * _MARGIN or 1.0

    @property
    def cut(self) -> bool:
        """Whether a confidence interval extends beyond the frame."""
        low, high = (end * self.unit.scale for end in self.frame)
        return any(
            m.statistic.low is not None
            and m.statistic.high is not None
            and (m.statistic.low < low or m.statistic.high > high)
            for m in self._estimates
        )

    @property
    def runs(self) -> tuple[int, int]:
        """The smallest and the largest number of runs behind one mean."""
        counts = [estimate.statistic.n for estimate in self._estimates]
        return min(counts), max(counts)

    @property
    def _lines(self) -> list[ChartLine]:
        return [line for _, lines in self.panels for line in lines]

    @property
    def _estimates(self) -> list[Estimate]:
        return [estimate for line in self._lines for estimate in line.estimates]


def charts(cases: Sequence[CaseStatistics], runs: Sequence[CaseResult]) -> list[Chart]:
    """Return a chart for every kind of metric reported and measured in at least two cases.

    A single case is enough if it was repeated.
    """
    singles: dict[str, list[dict[str, float]]] = {}
    wanted = {case.name: case.reported for case in cases}
    for run in runs:
        if not run.interrupted and not run.errors:
            found_of = ((name, metric_of(run, name)) for name in wanted.get(run.name, ()))
            measured = {name: value for name, value in found_of if value is not None}
            singles.setdefault(run.name, []).append(measured)
    algorithms = _algorithms(runs)
    ratio = _ratio(algorithms, runs)
    kinds: dict[str, list[str]] = {}
    for case in cases:
        for metric in case.reported:
            members = kinds.setdefault(words(metric).kind, [])
            if metric not in members:
                members.append(metric)
    found = []
    for kind, metrics in kinds.items():
        having = [case for case in cases if any(metric in case.metrics for metric in metrics)]
        across = _roles(having)[0].name if having else ""
        # Families without the chart's axis have charts of their own.
        shared = all(across in place(case) for case in having)
        parts = [having] if shared else list(by_family(having).values())
        for some in parts:
            if len(some) > 1 or any(case.runs > 1 for case in some):
                made = _chart(kind, metrics, some, (singles, algorithms, ratio))
                where = _only_family(some, cases)
                made = replace(made, title=f"{made.title}, {where}") if where else made
                name = f"{made.name}-{slug(where)}" if len(parts) > 1 else made.name
                found.append(replace(made, name=name))
    return found


def _only_family(having: Sequence[CaseStatistics], cases: Sequence[CaseStatistics]) -> str:
    """Return the name of the only one of several families with a metric; else an empty string.

    The panels of such a chart do not name it.
    """
    names = {family for family, _ in by_family(having)}
    return names.pop() if len(names) == 1 < len(by_family(cases)) else ""


def _chart(
    kind: str,
    metrics: Sequence[str],
    cases: Sequence[CaseStatistics],
    known: tuple[dict[str, list[dict[str, float]]], dict[str, str], str],
) -> Chart:
    singles, algorithms, ratio = known
    first = words(metrics[0])
    means = [c.metrics[f].mean for c in cases for f in metrics if f in c.metrics]
    across, hue, rest = _roles(cases)
    shared = published_by_case(cases)
    found: dict[tuple[str, ...], dict[str, ChartLine]] = {}
    several = len(metrics) > 1
    for case in cases:
        where = place(case)
        for metric in metrics:
            if metric not in case.metrics:
                continue
            wording = words(metric)
            panel = tuple(point(name, where[name]) for name in rest if name in where)
            subject = ", ".join(
                each for each in (wording.subject, algorithms.get(wording.subject)) if each
            )
            if hue and several:
                panel = (subject, *panel)
            label = as_written(where.get(hue, "")) if hue else subject or wording.quantity
            line = found.setdefault(panel, {}).setdefault(
                label, ChartLine(label, "" if hue else wording.name)
            )
            line.published[:] = line.published or values(shared[case.name], metric)
            each_run = [each[metric] for each in singles.get(case.name, []) if metric in each]
            of_case = published_of(case, shared[case.name])
            if any(each.curve and each.metric == metric for each in of_case):
                line.joined.add(where[across.name])
            theirs = values(of_case, metric)
            line.estimates.append(
                Estimate(where[across.name], case.metrics[metric], each_run, theirs)
            )
    title = first.quantity if several or not first.subject else first.text
    return Chart(
        name=slug(kind),
        title=title[0].upper() + title[1:],
        label=ratio if kind == _RATIO else first.quantity,
        unit=unit(metrics[0], means),
        counts=first.counts,
        axis=across,
        hue=hue,
        panels=[(", ".join(panel), list(lines.values())) for panel, lines in found.items()],
        reference=1.0 if kind in (_RATIO, "jain") else None,
    )


def _ratio(algorithms: dict[str, str], runs: Iterable[CaseResult]) -> str:
    """Return the label of the checkpoint's ratio, with its two flows if all runs compare them."""
    pairs = {tuple(run.checkpoint.bytes)[:2] for run in runs if run.checkpoint is not None}
    names = [f"flow {name}" for name in pairs.pop()] if len(pairs) == 1 else []
    labels = [algorithms[name] for name in names if name in algorithms]
    if len(set(labels)) < len(names):
        labels = names
    return (
        f"checkpoint ratio, {labels[0]} / {labels[1]}" if len(labels) == 2 else "checkpoint ratio"
    )


def _algorithms(runs: Iterable[CaseResult]) -> dict[str, str]:
    """Return the algorithms of flows that have the same in all runs, by ``flow NAME``."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for flow in run.flows:
            words_of = " → ".join([flow.cc, *(switch.cc for switch in flow.switches)])
            found.setdefault(f"flow {flow.id}", set()).add(words_of)
    return {flow: next(iter(ccs)) for flow, ccs in found.items() if len(ccs) == 1}


def _roles(cases: Sequence[CaseStatistics]) -> tuple[MatrixAxis, str, list[str]]:
    """Choose the horizontal axis, the axis that distinguishes lines, and the axes of the panels.

    The horizontal one is the numeric axis with the most values, or else the longest axis.
    """
    known = [axis for axis in axes(cases) if len(axis.values) > 1] or axes(cases)[:1]
    numeric = [each for each in known if each.numbers and len(each.values) >= LEAST_POINTS]
    across = max(numeric or known, key=lambda each: len(each.values))
    others = [each for each in known if each is not across]
    if not others:
        return across, "", []
    if not numeric and len(across.values) > MOST_GROUPS:
        # More groups of bars would be illegible: each value of the other axes gets a panel.
        return across, "", [each.name for each in others]
    hue = max(others, key=lambda each: (each.numbers is not None, len(each.values)))
    return across, hue.name, [each.name for each in others if each is not hue]
