"""The material of a report: an experiment's runs with their results and recordings, by case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import metric_of, metrics_of
from ccplay.analysis.results import CaseResult, CaseStatistics, Machine, Result
from ccplay.analysis.statistics import statistic
from ccplay.report.data.naming import family_of

Settings = Mapping[str, str]
"""Settings of a run as text, by path in a scenario file, or by step and key."""

Parameter = str | int | float | bool
MOST_DRAWN = 300
"""Largest number of runs of an experiment that are all drawn."""
MOST_SHOWN = 30
"""Number of cases, from the first, of which one run each is drawn if there are too many runs."""


class Run(msgspec.Struct, frozen=True):
    """One run: its result, and its recording if it was kept."""

    result: CaseResult
    recording: Path | None
    slug: str
    """Name of the run in file names."""


class Material(msgspec.Struct, frozen=True):
    """An experiment with everything that a report needs."""

    name: str
    """Name of the scenario or the recording."""
    title: str
    about: str
    result: Result
    runs: list[Run]
    scenario_text: str | None
    """The scenario file as it was run; None for bare recordings."""
    command: str
    """Command line that repeats the experiment."""
    about_cases: Mapping[str, str]
    """Texts of the cases' ``about``, by the case's name."""
    made_of: Mapping[str, Settings] = msgspec.field(default_factory=dict)
    """Settings of the first run of each case, for comparisons."""
    _by_case: dict[str, list[Run]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for run in self.runs:
            self._by_case.setdefault(run.result.name, []).append(run)

    @property
    def is_large(self) -> bool:
        """Whether there are too many runs to draw more than one per case."""
        return len(self.runs) > MOST_DRAWN

    @property
    def drawn_cases(self) -> Sequence[CaseStatistics]:
        """The cases with at least one drawn run."""
        return self.result.statistics[: MOST_SHOWN if self.is_large else None]

    @property
    def whose(self) -> str:
        """A text that states which runs are drawn."""
        if not self.is_large:
            return "all runs"
        few = len(self.drawn_cases) < len(self.result.statistics)
        return f"one run of each of the first {MOST_SHOWN} cases" if few else "one run of each case"

    def runs_of(self, case: CaseStatistics) -> list[Run]:
        """Return the runs of a case."""
        return self._by_case.get(case.name, [])

    def representative(self, case: CaseStatistics) -> Run | None:
        """Return the run closest to the median of the case's first metric, to show in full."""
        runs = self.runs_of(case)
        usable = [run for run in runs if run.recording and run.result.health.trustworthy] or [
            run for run in runs if run.recording
        ]
        return closest(usable or runs, case.reported[:1])


def closest(runs: Sequence[Run], metrics: Sequence[str]) -> Run | None:
    """Return the run closest to the median of the first of ``metrics`` that was measured.

    Return the first run if none of the metrics was measured, and None without runs.
    """
    if not runs:
        return None
    for metric in metrics:
        values = [(metric_of(run.result, metric), run) for run in runs]
        known = [(value, run) for value, run in values if value is not None]
        if known:
            middle = sorted(value for value, _ in known)[(len(known) - 1) // 2]
            return min(known, key=lambda pair: abs(pair[0] - middle))[1]
    return runs[0]


def combined(parts: Sequence[Material]) -> Material:
    """Return several experiments as one, in which names of cases begin with the experiment's name.

    If each experiment has a single run, as recordings have, it becomes one case with its own name.
    """
    single = all(len(part.runs) == 1 for part in parts)
    names = _numbered([part.name for part in parts])
    cases: list[CaseResult] = []
    discarded: list[CaseResult] = []
    statistics: list[CaseStatistics] = []
    runs: list[Run] = []
    about_cases: dict[str, str] = {}
    for name, part in zip(names, parts, strict=True):

        def renamed(old: str, name: str = name) -> str:
            return name if single else f"{name}: {old}"

        results = [replace(r, name=renamed(r.name)) for r in part.result.cases]
        again = [replace(r, name=renamed(r.name)) for r in part.result.discarded]
        cases += results
        discarded += again
        statistics += [replace(each, name=renamed(each.name)) for each in part.result.statistics]
        about_cases |= {renamed(case): text for case, text in part.about_cases.items()}
        runs += [
            Run(result, run.recording, f"{slug(name)}-{run.slug}" if not single else slug(name))
            for result, run in zip(results, part.runs, strict=True)
        ]
    title = ", ".join(dict.fromkeys(part.title for part in parts))
    texts = [part.scenario_text for part in parts if part.scenario_text]
    return Material(
        name="-".join(names),
        title=title,
        about="\n\n".join(dict.fromkeys(part.about for part in parts if part.about)),
        result=Result(
            scenario=", ".join(dict.fromkeys(part.result.scenario for part in parts)),
            title=title,
            machine=parts[0].result.machine,
            cases=cases,
            statistics=statistics,
            discarded=discarded,
        ),
        runs=runs,
        scenario_text="\n\n".join(dict.fromkeys(texts)) or None,
        command="\n".join(dict.fromkeys(part.command for part in parts)),
        about_cases=about_cases,
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """Return the names, made unique by numbers."""
    found: list[str] = []
    for name in names:
        same = sum(each.partition(" #")[0] == name for each in found)
        found.append(f"{name} #{same + 1}" if same else name)
    return found


def of_results(
    results: Sequence[CaseResult],
    *,
    title: str,
    machine: Machine | None,
    usual: Callable[[Iterable[str]], list[str]],
) -> Result:
    """Return the results of recordings as one result, with a case for each name.

    ``usual`` selects the metrics to report.
    """
    names = dict.fromkeys(each.name for each in results)
    return Result(
        scenario=title,
        title=title,
        machine=machine,
        cases=list(results),
        statistics=[
            _statistics(name, [each for each in results if each.name == name], usual)
            for name in names
        ],
    )


def _statistics(
    name: str, results: Sequence[CaseResult], usual: Callable[[Iterable[str]], list[str]]
) -> CaseStatistics:
    measured = [metrics_of(each) for each in results]
    metrics = dict.fromkeys(metric for each in measured for metric in each)
    return CaseStatistics(
        name=name,
        runs=len(results),
        untrustworthy=sum(not each.health.trustworthy for each in results),
        metrics={
            metric: statistic([each[metric] for each in measured if metric in each])
            for metric in metrics
        },
        reported=usual(metrics),
    )


def slug(text: str) -> str:
    """Return a text in a form suitable for file names."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "run"


CASES = "case"
"""Name of the axis formed by the cases that the file names; its values are text even if they look
like numbers."""

# --- the matrix ---------------------------------------------------------------------------------


class MatrixAxis(msgspec.Struct, frozen=True):
    """One axis of the matrix, with its values in the order of the file."""

    name: str
    values: tuple[Parameter, ...]

    @property
    def numbers(self) -> tuple[dict[Parameter, float], str] | None:
        """The values as numbers, and their unit; None if some is not a number or units differ."""
        found = {value: number(value) for value in self.values}
        if self.name == CASES:
            return None
        pairs = [pair for pair in found.values() if pair is not None]
        if len(pairs) < len(self.values) or len({unit for _, unit in pairs}) != 1:
            return None
        return {v: pair[0] for v, pair in found.items() if pair is not None}, pairs[0][1]


_NUMBER = re.compile(r"\s*([0-9][0-9._]*)\s*(\D*?)\s*$")
_BASE = {
    "us": (1e-3, "ms"),
    "µs": (1e-3, "ms"),
    "ms": (1.0, "ms"),
    "s": (1e3, "ms"),
    "bit/s": (1e-6, "Mbit/s"),
    "kbit/s": (1e-3, "Mbit/s"),
    "mbit/s": (1.0, "Mbit/s"),
    "gbit/s": (1e3, "Mbit/s"),
    "bytes": (1e-3, "kB"),
    "b": (1e-3, "kB"),
    "kb": (1.0, "kB"),
    "mb": (1e3, "kB"),
    "%": (1.0, "%"),
    "": (1.0, ""),
}


def number(value: Parameter) -> tuple[float, str] | None:
    """Return a parameter as a number in a base unit, and that unit; None if it is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    match = _NUMBER.match(value)
    if match is None or match[1].count(".") > 1 or match[2].lower() not in _BASE:
        return None
    factor, unit = _BASE[match[2].lower()]
    return float(match[1].replace("_", "")) * factor, unit


def axes(cases: Sequence[CaseStatistics]) -> list[MatrixAxis]:
    """Return the axes of the matrix of these cases; several named cases are an axis, too."""
    found: dict[str, dict[Parameter, None]] = {}
    families = dict.fromkeys(family_of(case) if case.parameters else case.name for case in cases)
    if len(families) > 1 or not any(case.parameters for case in cases):
        found[CASES] = dict.fromkeys(families)
    for case in cases:
        for name, value in case.parameters.items():
            found.setdefault(name, {})[value] = None
    return [MatrixAxis(name, tuple(values)) for name, values in found.items()]


def place(case: CaseStatistics) -> dict[str, Parameter]:
    """Return the values of a case on all axes."""
    return {CASES: family_of(case) if case.parameters else case.name, **case.parameters}


def as_written(value: Parameter) -> str:
    """Return a parameter as written in the file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def point(axis: str, value: Parameter) -> str:
    """Return a point of an axis as text: ``delay 50 ms``."""
    return as_written(value) if axis == CASES else f"{axis} {as_written(value)}"
