"""Acknowledged segments of single flows over time, by case, which shows the flow ahead."""

from __future__ import annotations

from collections.abc import Mapping

from ccplay.report.data.curves import Curve, bins, count_at
from ccplay.report.data.families import family_of
from ccplay.report.data.material import Material, as_written
from ccplay.state.lab_state import LabState

POINTS = 300
"""Largest number of points drawn of a run."""


def growth(state: LabState) -> Curve | None:
    """Return the segments acknowledged of a session's only flow since its start.

    None if there are several flows or none, because it is unknown which to compare.
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
    """Return the lines of each family of cases by the case's point in the matrix.

    ``by_run`` has the lines of all runs by their names in files; one run represents each case. A
    family of one case is left out.
    """
    found: dict[str, dict[str, Curve]] = {}
    for case in material.result.statistics:
        run = material.representative(case)
        if case.parameters and run is not None and (line := by_run.get(run.slug)) is not None:
            label = ", ".join(as_written(each) for each in case.parameters.values())
            found.setdefault(family_of(case), {})[label] = line
    return {family: lines for family, lines in found.items() if len(lines) > 1}
