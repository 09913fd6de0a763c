"""Groups runs by case into one result with statistics."""

from __future__ import annotations

from collections.abc import Iterable

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import (
    CaseResult,
    CaseStatistics,
    Machine,
    PublishedResult,
    Result,
)
from ccplay.analysis.statistics import statistic
from ccplay.scenario.values import Case, Scenario

_USUAL = (
    ("flows.", ".goodput_bps"),
    ("checkpoint.ratio", ""),
    ("pings.", ".p50_ms"),
    ("downloads.", ".seconds"),
)
"""Beginnings and endings of the names of the most useful metrics."""


def usual(figures: Iterable[str]) -> list[str]:
    """Return the metrics to show if the scenario names none, out of the measured ones."""
    return [
        figure
        for start, end in _USUAL
        for figure in figures
        if figure.startswith(start) and figure.endswith(end)
    ]


def counts(result: CaseResult) -> bool:
    """Whether a run counts in a mean: it was completed without errors."""
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
        """Add the last attempt of a run on ``machine``; one not ``whole`` was interrupted."""
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
        return Result(
            scenario=self._scenario.name,
            title=self._scenario.title,
            machine=self.machine,
            cases=runs,
            statistics=[
                self._statistics(case, own)
                for case in self._scenario.cases
                if (own := [each for each in runs if each.name == case.name])
            ],
            discarded=sorted(
                self.discarded, key=lambda e: (self._order[e.name], e.repeat, e.attempt)
            ),
        )

    def _statistics(self, case: Case, runs: list[CaseResult]) -> CaseStatistics:
        counted = [each for each in runs if counts(each)]
        measured = [self._metrics[each.name, each.repeat] for each in counted]
        figures = dict.fromkeys(figure for each in measured for figure in each)
        return CaseStatistics(
            name=case.name,
            parameters=dict(case.parameters),
            runs=len(counted),
            untrustworthy=sum(not each.health.trustworthy for each in counted),
            figures={
                figure: statistic([each[figure] for each in measured if figure in each])
                for figure in figures
            },
            reported=list(case.figures or usual(figures)),
            published=[
                PublishedResult(
                    figure=each.figure,
                    values=list(each.values),
                    note=each.note,
                    source=case.published_in,
                )
                for each in case.published
            ],
        )
