"""Groups runs by case into one result with statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import CaseResult, CaseStatistics, Machine, PublishedResult, Result
from ccplay.analysis.statistics import MachineEffect, Measured, machine_effects, statistic
from ccplay.scenario.values import Case, Scenario

_USUAL = (
    ("flows.", ".goodput_bps"),
    ("checkpoint.ratio", ""),
    ("pings.", ".p50_ms"),
    ("downloads.", ".seconds"),
)
"""Prefixes and suffixes of the names of the most useful metrics."""


def usual(metrics: Iterable[str]) -> list[str]:
    """Return the metrics to show if the scenario names none, from the measured ones."""
    return [
        metric
        for start, end in _USUAL
        for metric in metrics
        if metric.startswith(start) and metric.endswith(end)
    ]


def counts(result: CaseResult) -> bool:
    """Return whether a run counts in a mean: it was completed without errors."""
    return not result.interrupted and not result.errors


class Gathering:
    """The runs so far, in the scenario's order."""

    def __init__(self, scenario: Scenario) -> None:
        self.machine: Machine | None = None
        self.discarded: list[CaseResult] = []
        self._scenario = scenario
        self._order = {case.name: number for number, case in enumerate(scenario.cases)}
        self._runs: dict[tuple[str, int], CaseResult] = {}
        self._metrics: dict[tuple[str, int], dict[str, float]] = {}
        self._broken: set[tuple[str, int]] = set()
        self._machines: dict[str, Machine] = {}

    def add(
        self, result: CaseResult, *, whole: bool = True, machine: Machine | None = None
    ) -> None:
        """Add the last attempt of a run on ``machine``; an interrupted one is not ``whole``."""
        self.machine = self.machine or machine
        if machine is not None and result.machine is not None:
            self._machines.setdefault(result.machine, machine)
        if not whole:
            self._broken.add((result.name, result.repeat))
        self._runs[result.name, result.repeat] = result
        self._metrics[result.name, result.repeat] = metrics_of(result)

    def __bool__(self) -> bool:
        """Whether there is any run."""
        return bool(self._runs)

    def result(self, *, whole_only: bool = False) -> Result:
        """Return all runs as one result, optionally without interrupted ones."""
        runs = sorted(
            (run for key, run in self._runs.items() if not (whole_only and key in self._broken)),
            key=lambda each: (self._order[each.name], each.repeat),
        )
        own: dict[str, list[CaseResult]] = {}
        for run in runs:
            own.setdefault(run.name, []).append(run)
        statistics = [
            self._statistics(case, own[case.name])
            for case in self._scenario.cases
            if case.name in own
        ]
        metrics = [self._metrics[run.name, run.repeat] for run in runs]
        return Result(
            scenario=self._scenario.name,
            title=self._scenario.title,
            machine=self.machine,
            cases=runs,
            statistics=statistics,
            machines=[self._machines[name] for name in sorted(self._machines)],
            machine_effects=_effects(runs, metrics, statistics),
            discarded=sorted(
                self.discarded, key=lambda e: (self._order[e.name], e.repeat, e.attempt)
            ),
        )

    def _statistics(self, case: Case, runs: list[CaseResult]) -> CaseStatistics:
        return _statistics(
            case.name,
            runs,
            [self._metrics[each.name, each.repeat] for each in runs],
            case.metrics,
            [
                PublishedResult(
                    metric=each.metric,
                    values=list(each.values),
                    note=each.note,
                    source=case.published_in,
                )
                for each in case.published
            ],
        )


def _statistics(
    name: str,
    runs: Sequence[CaseResult],
    measured: Sequence[dict[str, float]],
    reported: Sequence[str],
    published: list[PublishedResult],
) -> CaseStatistics:
    """Return the statistics of a case over those of its runs that count.

    ``measured`` has the metrics of each run.
    """
    counted = [pair for pair in zip(runs, measured, strict=True) if counts(pair[0])]
    metrics = dict.fromkeys(metric for _, each in counted for metric in each)
    return CaseStatistics(
        name=name,
        parameters=dict(runs[0].parameters),
        runs=len(counted),
        untrustworthy=sum(not run.health.trustworthy for run, _ in counted),
        metrics={
            metric: statistic([each[metric] for _, each in counted if metric in each])
            for metric in metrics
        },
        reported=list(reported or usual(metrics)),
        published=published,
    )


def extended(result: Result, later: Iterable[tuple[CaseResult, Machine | None]]) -> Result:
    """Return a result with runs that were finished after it was written."""
    added = list(later)
    if not added:
        return result
    changed = {run.name for run, _ in added}
    cases = [*result.cases, *(run for run, _ in added)]
    before = {each.name: each for each in result.statistics}
    order = {name: place for place, name in enumerate(dict.fromkeys(run.name for run in cases))}
    cases.sort(key=lambda run: (order[run.name], run.repeat))
    own: dict[str, list[CaseResult]] = {name: [] for name in order}
    for run in cases:
        own[run.name].append(run)
    machines = {each.name: each for each in result.machines}
    machines |= {where.name: where for run, where in added if where is not None and run.machine}
    statistics = []
    for name, runs in own.items():
        known = before.get(name)
        if known is None or name in changed:
            reported = known.reported if known else ()
            published = known.published if known else []
            measured = [metrics_of(run) for run in runs]
            known = _statistics(name, runs, measured, reported, published)
        statistics.append(known)
    return msgspec.structs.replace(
        result,
        machine=result.machine or added[0][1],
        cases=cases,
        statistics=statistics,
        machines=list(machines.values()),
        machine_effects=_effects(cases, [metrics_of(run) for run in cases], statistics),
    )


def _effects(
    runs: Sequence[CaseResult],
    metrics: Sequence[dict[str, float]],
    statistics: Sequence[CaseStatistics],
) -> list[MachineEffect]:
    """Return the machines' means of the metrics shown first; empty if one machine made all runs."""
    if len({run.machine for run in runs}) < 2:
        return []
    found: dict[str, list[Measured]] = {
        metric: [] for case in statistics for metric in case.reported
    }
    for run, measured in zip(runs, metrics, strict=True):
        for metric, values in found.items():
            if counts(run) and run.machine is not None and metric in measured:
                values.append((run.name, run.machine, measured[metric]))
    return machine_effects(found)
