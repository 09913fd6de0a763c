"""Impossible windows, which appear where a kernel skipped a BPF algorithm."""

from __future__ import annotations

import math

from ccplay.model.values import MOST_SEGMENTS
from ccplay.state.lab_state import Flow, LabState


def credible(field: str) -> float:
    """Return the greatest value of a flow's series that can have been meant."""
    return MOST_SEGMENTS if field in ("cwnd", "ssthresh") else math.inf


def impossible_windows(state: LabState) -> dict[str, int]:
    """Return the greatest cwnd or ssthresh of each flow that can't have been meant.

    There are kernels that run no BPF program where an interrupt finds their first process at work.
    What a program such as ``ssthresh`` was to return is then whatever the stack had.
    """
    found = {name: _greatest(flow) for name, flow in state.flows.items()}
    return {name: most for name, most in found.items() if most > MOST_SEGMENTS}


def _greatest(flow: Flow) -> int:
    both = (flow.series["cwnd"], flow.series["ssthresh"])
    extremes = (each.extremes(each.first, each.end) for each in both)
    return max((int(each[1]) for each in extremes if each is not None), default=0)
