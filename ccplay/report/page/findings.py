"""Findings of an experiment: every reported metric by case, with published values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ccplay.analysis.results import CaseStatistics, PublishedResult, Result
from ccplay.analysis.statistics import Statistic
from ccplay.report.data.naming import Words, words
from ccplay.report.data.published import common, own, values
from ccplay.report.terminal.amounts import Unit, unit
from ccplay.report.terminal.repeats_table import by_family


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure of one case."""

    case: CaseStatistics
    figure: str
    statistic: Statistic | None
    """None where no run measured it."""
    published: list[float]
    """Of this very case."""
    notes: list[str]
    """Why ours may differ."""

    @property
    def difference(self) -> float | None:
        """How much our mean is above the published mean, as a share of it."""
        if self.statistic is None or not self.published:
            return None
        theirs = sum(self.published) / len(self.published)
        return self.statistic.mean / theirs - 1 if theirs else None

    @property
    def within(self) -> bool | None:
        """Whether the published mean lies in the confidence interval of ours; None without one."""
        if self.statistic is None or not self.published:
            return None
        low, high = self.statistic.low, self.statistic.high
        if low is None or high is None:
            return None
        return low <= sum(self.published) / len(self.published) <= high


@dataclass(frozen=True, slots=True)
class Reading:
    """What others published of a figure without saying of which point of a family."""

    family: str
    figure: str
    published: list[float]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of merit with all its cells in one unit."""

    figure: str
    words: Words
    unit: Unit

    @property
    def unit_name(self) -> str:
        """The unit, or what is counted."""
        return self.unit.name or self.words.counts

    def ours(self, found: Finding | None) -> str:
        """Write a mean with half its confidence interval."""
        if found is None or found.statistic is None:
            return "–"
        return self.unit.write_statistic(found.statistic)

    def spread(self, found: Finding | None) -> str:
        """Write the standard deviation of several runs."""
        if found is None or found.statistic is None or found.statistic.sd is None:
            return ""
        return self.unit.write(found.statistic.sd)

    def theirs(self, found: Finding | Reading | None) -> str:
        """Write what was published: one value, or the least and the greatest."""
        if found is None or not found.published:
            return ""
        low, high = (self.unit.write(each(found.published)) for each in (min, max))
        return low if low == high else f"{low} to {high}"

    def beside(self, found: Finding | None) -> str:
        """Write how far ours is from the published: ``-12 %``."""
        if found is None or found.difference is None:
            return ""
        return f"{found.difference * 100:+.0f} %".replace("-", "−")


def findings(result: Result) -> list[Finding]:
    """Return every reported figure of every case, and those that only others measured."""
    found = []
    families = by_family(result.statistics).values()
    family_of = {case.name: family for family in families for case in family}
    for case in result.statistics:
        theirs = own(case, family_of[case.name])
        others = (each.figure for each in case.published)
        found += [
            Finding(
                case=case,
                figure=figure,
                statistic=case.figures.get(figure),
                published=values(theirs, figure),
                notes=_notes(theirs, figure),
            )
            for figure in dict.fromkeys((*case.reported, *others))
        ]
    return found


def readings(result: Result) -> list[Reading]:
    """Return what others published of whole families, each reading once."""
    shared = {name: common(family) for (name, _), family in by_family(result.statistics).items()}
    return [
        Reading(name, figure, values(theirs, figure), _notes(theirs, figure))
        for name, theirs in shared.items()
        for figure in dict.fromkeys(each.figure for each in theirs)
    ]


def _notes(published: Sequence[PublishedResult], figure: str) -> list[str]:
    return [each.note for each in published if each.figure == figure and each.note]


def columns(found: Iterable[Finding]) -> list[Column]:
    """Return the figures that findings are about, in their order, each with its unit."""
    means: dict[str, list[float]] = {}
    for each in found:
        values = means.setdefault(each.figure, [])
        if each.statistic is not None:
            values.append(each.statistic.mean)
    return [Column(figure, words(figure), unit(figure, values)) for figure, values in means.items()]
