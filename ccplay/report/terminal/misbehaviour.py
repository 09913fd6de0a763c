"""Congestion controls that did their flow no good, in words."""

from __future__ import annotations

from ccplay.analysis.results import CaseResult


def misbehaviours(run: CaseResult) -> list[str]:
    """Return what algorithms did wrong: ``flow 1: mine keeps cwnd at 1, from 3.2 s on``."""
    told = dict.fromkeys(
        f"flow {flow.id}: {each.cc} {each.wrong}, {_when(each.t, each.until)}"
        for flow in run.flows
        for each in flow.misbehaved
    )
    return list(told)


def _when(t: float, until: float | None) -> str:
    return f"from {t:.1f} s on" if until is None else f"from {t:.1f} to {until:.1f} s"
