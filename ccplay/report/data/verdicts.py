"""Verdicts on runs: expectations that held, and algorithms that misbehaved."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.analysis.metrics import why_unmeasured
from ccplay.analysis.results import CaseResult, CaseStatistics, Check
from ccplay.report.data.amounts import write, write_bounds
from ccplay.report.data.families import some_of


class Failure(msgspec.Struct, frozen=True):
    """A run in which an expectation did not hold."""

    run: CaseResult
    value: str
    """Measured value with its unit."""


class Verdict(msgspec.Struct, frozen=True):
    """An expectation, and its outcome in all runs that were checked for it."""

    metric: str
    text: str
    """Bounds of the expectation with their unit."""
    why: str
    cases: list[str]
    """Names of the cases that were checked."""
    total: int
    """Number of runs checked."""
    failed: list[Failure]
    value: str
    """Value measured in the first of the runs, with its unit."""

    @property
    def held(self) -> int:
        """Number of runs in which the expectation held."""
        return self.total - len(self.failed)


def verdicts(runs: Sequence[CaseResult]) -> list[Verdict]:
    """Return the verdict on each expectation of these runs, one even if several cases share it."""
    groups: dict[tuple[str, str, str], list[tuple[CaseResult, Check]]] = {}
    for run in runs:
        for check in run.checks:
            groups.setdefault((check.metric, check.text, check.why), []).append((run, check))
    return [
        Verdict(
            metric,
            write_bounds(metric, text),
            why,
            cases=list(dict.fromkeys(run.name for run, _ in members)),
            total=len(members),
            failed=[Failure(run, _value(run, check)) for run, check in members if not check.ok],
            value=_value(*members[0]),
        )
        for (metric, text, why), members in groups.items()
    ]


def run_name(run: CaseResult) -> str:
    """Return a run's name: its case, its repeat, and its attempt if it is not the first."""
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return f"{run.name}, run {run.repeat}{again}"


def _value(run: CaseResult, check: Check) -> str:
    if check.value is None:
        return f"not measured ({why_unmeasured(check.metric, [run])})"
    return write(check.metric, check.value)


def unmeasured(cases: Sequence[CaseStatistics], runs: Sequence[CaseResult]) -> list[str]:
    """Return a sentence for each reported metric that no run of a case measured, with the reason.

    Cases are named where not all of ``cases`` lack the metric.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        own = [run for run in runs if run.name == case.name and not run.errors]
        for metric in case.reported:
            if metric not in case.metrics:
                why = why_unmeasured(metric, own)
                found.setdefault((metric, why), []).append(case.name)
    return [
        f"{where}: {text}" if (where := some_of(names, cases)) else text
        for (metric, why), names in found.items()
        for text in [f"{metric} was not measured: {why}"]
    ]


def misbehaviours(run: CaseResult) -> list[str]:
    """Return how algorithms misbehaved: ``flow 1: mine keeps cwnd at 1, from 3.2 s on``."""
    problems = dict.fromkeys(
        f"flow {flow.id}: {each.cc} {each.wrong}, {_when(each.t, each.until)}"
        for flow in run.flows
        for each in flow.misbehaved
    )
    return list(problems)


def _when(t: float, until: float | None) -> str:
    return f"from {t:.1f} s on" if until is None else f"from {t:.1f} to {until:.1f} s"
