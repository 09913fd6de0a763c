"""Verdicts on runs: expectations that held, and algorithms that misbehaved."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.analysis.results import CaseResult, Check
from ccplay.report.data.amounts import write, write_bounds


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
            failed=[Failure(run, _value(check)) for run, check in members if not check.ok],
            value=_value(members[0][1]),
        )
        for (metric, text, why), members in groups.items()
    ]


def run_name(run: CaseResult) -> str:
    """Return a run's name: its case, its repeat, and its attempt if it is not the first."""
    again = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return f"{run.name}, run {run.repeat}{again}"


def _value(check: Check) -> str:
    return "missing" if check.value is None else write(check.metric, check.value)


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
