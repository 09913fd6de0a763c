"""Checks what a run measured against the expectations of its case."""

from __future__ import annotations

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import CaseResult, Check
from ccplay.scenario.values import Case, Expectation


def check(case: Case, result: CaseResult) -> list[Check]:
    """Return every expectation of the case, held or not; a metric not measured has failed."""
    if result.interrupted or not case.expect:
        return []
    measured = metrics_of(result)
    return [_check(each, measured.get(each.figure)) for each in case.expect]


def _check(expected: Expectation, value: float | None) -> Check:
    low = -float("inf") if expected.low is None else expected.low
    high = float("inf") if expected.high is None else expected.high
    return Check(
        figure=expected.figure,
        text=expected.text,
        why=expected.why,
        value=value,
        ok=value is not None and low <= value <= high,
    )
