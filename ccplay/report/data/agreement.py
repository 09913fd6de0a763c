"""Agreement of measured and published values, and the sources of the latter."""

from __future__ import annotations

from ccplay.analysis.results import Result
from ccplay.report.data.naming import words
from ccplay.report.data.published import sources
from ccplay.report.page.findings import findings
from ccplay.report.terminal.repeats_table import some_of


def citations(result: Result) -> list[str]:
    """Return the sources of published values, with their cases where there are several."""
    found = sources(result.statistics)
    if len(found) == 1:
        return list(found)
    return [f"{some_of(names, result.statistics)}: {source}" for source, names in found.items()]


def agreement(result: Result) -> str:
    """Return in one sentence how near our values are to published ones; empty without any."""
    differing = {
        (each.case.name, each.figure): each.difference
        for each in findings(result)
        if each.difference is not None
    }
    if not differing:
        return ""
    (case, metric), difference = max(differing.items(), key=lambda pair: abs(pair[1]))
    beside = f"{abs(difference) * 100:.0f} % {'above' if difference > 0 else 'below'} it"
    off = f"farthest off, {beside}," if len(differing) > 1 else beside
    farthest = f"ours is {off} for {words(metric).text} ({case})."
    inside = [each.within for each in findings(result) if each.within is not None]
    if not inside:
        return f"Of the published values, {farthest}"
    if len(inside) == 1:
        lies = "lies" if inside[0] else "does not lie"
        return f"The published value {lies} in the 95 % confidence interval of ours; {farthest}"
    held = f"{sum(inside)} of {len(inside)} published values lie"
    return f"{held} in the 95 % confidence intervals of ours; {farthest}"
