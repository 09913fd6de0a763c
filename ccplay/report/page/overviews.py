"""The figures of a whole experiment, each with its title, caption and drawing function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ccplay.analysis.results import CaseStatistics
from ccplay.report.data.charts import Chart, charts
from ccplay.report.data.distributions import COMPLETION_TIMES, KINDS, Distribution, together
from ccplay.report.data.growth import families
from ccplay.report.data.material import Material, as_written, axes, place, point, slug
from ccplay.report.figures import cdf, chart, fct, growth
from ccplay.report.figures.job import Drawn, Overview
from ccplay.report.figures.style import Inks

_MOST_LINES = 9
"""Largest number of cases in one panel; more are spread over panels if the matrix has two axes."""


def overviews(material: Material, drawn: Sequence[Drawn], names: Sequence[str]) -> list[Overview]:
    """Return the figures in the order of the page; ``names`` are those of all drawn traffic."""
    # Growth over time comes first, because it shows more than any mean.
    found = list(_growth(material, drawn))
    inks = Inks(names)
    for number, each in enumerate(charts(material.result.statistics, material.result.cases)):
        lead = number == 0 and each.drawn_along
        work = partial(chart.draw, each, inks)
        found.append(Overview(each.name, each.title, _caption(each), work, lead))
    return [*found, *_distributions(material, drawn), *_completion_times(material, drawn)]


def _growth(material: Material, drawn: Sequence[Drawn]) -> Iterator[Overview]:
    by_run = {each.slug: each.growth for each in drawn if each.growth is not None}
    found = families(material, by_run)
    names = list(dict.fromkeys(name for lines in found.values() for name in lines))
    for family, lines in found.items():
        yield Overview(
            f"growth-{slug(family)}" if family else "growth",
            f"Acknowledged segments, {family}" if family else "Acknowledged segments",
            "Acknowledged segments of the flow since it started; one run of each case.",
            partial(growth.draw, lines, names),
        )


def _caption(each: Chart) -> str:
    fewest, most = each.runs
    counts = f"n = {fewest}" if fewest == most else f"n = {fewest} to {most}"
    parts = ["Single runs"]
    if most > 1:
        bars = "" if each.drawn_along else "thick bars: standard deviation; "
        interval = f"thin bars: 95 % confidence interval of the mean (Student's t, {counts})"
        parts = [f"Means; {bars}{interval}; dots: single runs"]
    if each.cut:
        parts.append("arrows: intervals that extend beyond the frame")
    if each.published:
        parts.append("diamonds: published values")
    if each.published_of_all:
        parts.append("dashed: values published for all cases together")
    return "; ".join(parts) + "."


def _completion_times(material: Material, drawn: Sequence[Drawn]) -> Iterator[Overview]:
    """Yield the figure of short flows: a panel per size class, or for a single case a line each."""
    found: dict[str, dict[str, Distribution]] = {}
    for kind, words in COMPLETION_TIMES.items():
        if by_case := _by_case(material, drawn, kind):
            found[f"transfers {words}"] = by_case
    names = [case.name for case in material.result.statistics]
    if not found:
        return
    whose = material.whose if len(drawn) < len(material.runs) else "all runs"
    panels = list(found.items())
    if len(names) == 1:
        alone = {title: lines[names[0]] for title, lines in panels}
        panels, names = [("", alone)], list(alone)
    yield Overview(
        "cdf-fct",
        "Distribution of flow completion times",
        f"Every transfer of short flows that finished, of {whose}, by its size.",
        partial(fct.draw, panels, names, "flow completion time (ms)"),
    )


def _by_case(material: Material, drawn: Sequence[Drawn], kind: str) -> dict[str, Distribution]:
    """Return the distribution over all drawn runs of each case that has values, by case."""
    by_slug = {each.slug: each.distributions for each in drawn}
    found: dict[str, Distribution] = {}
    for case in material.result.statistics:
        own = [by_slug[run.slug] for run in material.runs_of(case) if run.slug in by_slug]
        if parts := [each[kind] for each in own if kind in each]:
            found[case.name] = together(parts)
    return found


def _distributions(material: Material, drawn: Sequence[Drawn]) -> Iterator[Overview]:
    names = [case.name for case in material.result.statistics]
    whose = material.whose if len(drawn) < len(material.runs) else "all runs"
    for kind, label in KINDS.items():
        if not (by_case := _by_case(material, drawn, kind)):
            continue
        cases = [each for each in material.result.statistics if each.name in by_case]
        panels, ordered = _panels(cases, by_case)
        yield Overview(
            f"cdf-{kind}",
            f"Distribution of {label.partition(' (')[0]}",
            _CDF[kind].replace("all runs", whose),
            partial(cdf.draw, (label, _OF[kind]), panels, names, ordered=ordered),
        )


_OF = {
    "rtt": "share of samples",
    "ping": "share of pings",
    "delay": "share of samples",
    "sojourn": "share of packets",
}
_CDF = {
    "rtt": "Smoothed RTT of the long-lived flows over all samples of all runs.",
    "ping": "All replies of all runs.",
    "delay": "Backlog over rate at the bottleneck, over all samples of all runs.",
    "sojourn": "Sojourn time of each packet in a software discipline, of all runs, to within 6 %.",
}


def _panels(
    cases: Sequence[CaseStatistics], by_case: dict[str, Distribution]
) -> tuple[list[tuple[str, dict[str, Distribution]]], bool]:
    """Distribute cases over panels: one, or for many cases one per value of the shortest axis.

    Return the panels, and whether their lines have an order, as numbers have.
    """
    known = [axis for axis in axes(cases) if len(axis.values) > 1]
    if len(cases) <= _MOST_LINES or len(known) < 2:
        return [("", {case.name: by_case[case.name] for case in cases})], False
    split = min(known, key=lambda axis: len(axis.values))
    others = [axis for axis in known if axis != split]
    ordered = any(axis.numbers is not None for axis in others)
    panels: dict[str, dict[str, Distribution]] = {}
    for case in cases:
        where = place(case)
        # Values of a single remaining axis, such as algorithms, need no name; numbers do.
        alone = len(others) == 1 and not ordered
        rest = [
            as_written(where[a.name]) if alone else point(a.name, where[a.name]) for a in others
        ]
        title = point(split.name, where[split.name])
        panels.setdefault(title, {})[", ".join(rest)] = by_case[case.name]
    return list(panels.items()), ordered
