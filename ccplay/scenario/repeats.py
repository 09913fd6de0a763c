"""Differences between repeats of a case: the seeds, and the start of each flow."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.model.commands import SetCongestionControl, SetPath, TraceFlow, UntraceFlow
from ccplay.model.traffic_commands import StartFlow, StopFlow
from ccplay.scenario.step import Step
from ccplay.scenario.values import Case

MOST_REPEATS = 1000
MOST_SEEDS = 2**31

_Moment: TypeAlias = tuple[float, str | None]
_Together: TypeAlias = dict[_Moment, list[str]]


def repeated(case: Case, repeat: int) -> Case:
    """Return a case as run in its repeat with this number, from 1.

    The result depends only on the case and the number: each repeat has another seed for the
    randomness of links; each flow starts later by up to ``jitter_s``, and its other steps move with
    it; if the case is ``balanced``, flows that start together take turns at being first.
    """
    seed = (case.build.seed + repeat - 1) % MOST_SEEDS
    together = _starts(case.timeline) if case.balanced else {}
    offsets = _offsets(case, repeat)
    for flows in together.values():
        dealt = sorted(offsets[flow] for flow in flows)
        offsets |= dict(zip(_turn(flows, repeat), dealt, strict=True))
    # Without jitter, or with equal offsets, the order of the steps decides.
    steps = _rotated(case.timeline, repeat, together)
    return replace(
        case,
        build=msgspec.structs.replace(case.build, seed=seed),
        timeline=tuple(_later(step, offsets) for step in steps),
    )


def flow_of(step: Step) -> str | None:
    """Return the flow that a step starts or acts on; None if there is none."""
    match step.command:
        case StartFlow() | StopFlow() | SetCongestionControl() | TraceFlow() | UntraceFlow():
            return step.command.flow
        case SetPath():
            return step.command.traffic
    return None


def _starts(timeline: Iterable[Step]) -> _Together:
    """Return the flows by the moments of their starts."""
    together: _Together = {}
    for step in timeline:
        if isinstance(step.command, StartFlow) and step.command.flow is not None:
            together.setdefault((step.at_s, step.after), []).append(step.command.flow)
    return together


def _turn(flows: list[str], repeat: int) -> list[str]:
    """Return the flows in the order of this repeat."""
    first = (repeat - 1) % len(flows)
    return flows[first:] + flows[:first]


def _offsets(case: Case, repeat: int) -> dict[str, float]:
    """Return the delay of each flow's start in seconds."""
    return {
        flow: random.Random(f"{case.build.seed}/{repeat}/{flow}").uniform(0, case.jitter_s)  # noqa: S311
        for flow in map(flow_of, case.timeline)
        if flow is not None
    }


def _later(step: Step, offsets: dict[str, float]) -> Step:
    flow = flow_of(step)
    return step if flow is None else replace(step, at_s=round(step.at_s + offsets[flow], 6))


def _rotated(timeline: tuple[Step, ...], repeat: int, together: _Together) -> list[Step]:
    """Return the timeline with the flows that start at one moment in another order.

    Other steps of a flow at the same moment stay after its start.
    """
    steps = list(timeline)
    for moment, flows in together.items():
        places = [
            i
            for i, step in enumerate(steps)
            if flow_of(step) in flows and (step.at_s, step.after) == moment
        ]
        turn = {flow: place for place, flow in enumerate(_turn(flows, repeat))}
        moved = sorted((steps[i] for i in places), key=lambda step: turn[str(flow_of(step))])
        for i, step in zip(places, moved, strict=True):
            steps[i] = step
    return steps
