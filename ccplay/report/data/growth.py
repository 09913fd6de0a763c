"""Acknowledged segments over time of runs with a single flow, to show which case is ahead."""

from __future__ import annotations

from collections.abc import Mapping

from ccplay.report.data.curves import Curve, bins, count_at
from ccplay.report.data.families import family_of
from ccplay.report.data.material import Material, as_written
from ccplay.state.lab_state import LabState

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
