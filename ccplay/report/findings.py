"""What an experiment found: every reported figure by case, what others published, what held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ccplay.measure.results import CaseResult, CaseStatistics, Result
from ccplay.measure.statistics import Statistic
from ccplay.report.amounts import Unit, unit, write
from ccplay.report.naming import Words, words


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure of one case."""

    case: CaseStatistics
    figure: str
    statistic: Statistic | None
    """None where no run measured it."""
    published: list[float]
    notes: list[str]
    """Why ours may differ."""

    @property
    def difference(self) -> float | None:
        """How much our mean is above the published mean, as a share of it."""
        if self.statistic is None or not self.published:
            return None
        theirs = sum(self.published) / len(self.published)
        return self.statistic.mean / theirs - 1 if theirs else None


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

    def theirs(self, found: Finding | None) -> str:
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
    for case in result.statistics:
        others = dict.fromkeys(each.figure for each in case.published)
        for figure in dict.fromkeys((*case.reported, *others)):
            theirs = [each for each in case.published if each.figure == figure]
            found.append(
                Finding(
                    case=case,
                    figure=figure,
                    statistic=case.figures.get(figure),
                    published=[value for each in theirs for value in each.values],
                    notes=[each.note for each in theirs if each.note],
                )
            )
    return found


def columns(found: Iterable[Finding]) -> list[Column]:
    """Return the figures that findings are about, in their order, each with its unit."""
    means: dict[str, list[float]] = {}
    for each in found:
        values = means.setdefault(each.figure, [])
        if each.statistic is not None:
            values.append(each.statistic.mean)
    return [Column(figure, words(figure), unit(figure, values)) for figure, values in means.items()]


@dataclass(frozen=True, slots=True)
class Verdict:
    """An expectation of one case: in how many of its runs it held."""

    case: str
    figure: str
    text: str
    why: str
    held: int
    total: int
    failed: list[str]
    """Which run measured what instead."""


def verdicts(runs: Sequence[CaseResult]) -> list[Verdict]:
    """Return every expectation of every case."""
    groups: dict[tuple[str, str, str, str], list[tuple[CaseResult, bool, float | None]]] = {}
    for run in runs:
        for check in run.checks:
            key = (run.name, check.figure, check.text, check.why)
            groups.setdefault(key, []).append((run, check.ok, check.value))
    return [
        Verdict(
            *key,
            held=sum(ok for _, ok, _ in members),
            total=len(members),
            failed=[
                f"run {run.repeat}: {'missing' if value is None else write(key[1], value)}"
                for run, ok, value in members
                if not ok
            ],
        )
        for key, members in groups.items()
    ]
