"""The material of a report: recordings and results of its runs."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ccplay.analysis.metrics import metric_of, metrics_of
from ccplay.analysis.results import CaseResult, CaseStatistics, Machine, Result
from ccplay.analysis.statistics import statistic
from ccplay.analysis.trust import credible
from ccplay.model.base import Command
from ccplay.model.commands import Build
from ccplay.model.events import Applied
from ccplay.model.series import Series
from ccplay.report.data.curves import COLUMNS, Curve, curve, state_spans
from ccplay.report.data.naming import family_of
from ccplay.scenario import writing
from ccplay.scenario.document import spell
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC
from ccplay.traffic.connections import Flow, Trace

# --- the settings that differ between two runs ----------------------------------------------------

Settings = Mapping[str, str]
"""Settings of a run as text, by path in a scenario file, or by step and key."""

_NEAR_S = 0.1
"""Seconds by which moments that count as equal may differ, because the start of a command's program
takes a varying time."""
_END_S = 1.0
"""Seconds before the end of a recording in which stops of traffic are part of the end."""
_FILLED_IN = ("src", "dst")
"""Keys for which the lab fills in defaults if a scenario leaves them out."""
_SUBJECTS = (*(kind.name for kind in TRAFFIC), "capture", "host", "link")
_MOMENT = "at"
_ENDS = ("duration", "until", "recorded")
"""Settings of a run's end. A recording has only its length, a run only what its scenario sets."""
_NEAR_LENGTH_S = 0.5
"""Seconds by which the lengths of two recordings that count as equal may differ."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that differs between two runs, A and B."""

    name: str
    """Name of the setting: ``links.bottleneck.queue.limit``, or of a step ``start-flow 1, cc``."""
    a: str | None
    """Value in A; null if A does not have the setting."""
    b: str | None


def of_run(
    build: Build,
    steps: Iterable[tuple[float, str | None, Command]],
    ends: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a network, of its timeline and of its end.

    A step is its moment in seconds, the name that it counts from (None: the start), and its
    command. ``ends`` has settings named in ``_ENDS``.
    """
    found = dict(ends or {})
    found |= _flat(tomllib.loads("\n".join(writing.network(build))), ())
    seen: dict[str, int] = {}
    for at_s, after, command in steps:
        fields = writing.step(Applied(t=at_s, command=command), 0.0)
        del fields[_MOMENT]
        name = " ".join(
            [str(fields.pop("do")), *(str(fields.pop(key)) for key in _SUBJECTS if key in fields)]
        )
        seen[name] = number = seen.get(name, 0) + 1
        name += f" #{number}" if number > 1 else ""
        fields[_MOMENT] = f"{at_s:.3f} s" + (f" after {after}" if after else "")
        found |= {f"{name}, {key}": text for key, text in _flat(fields, ())}
    return found


def of_recording(state: LabState) -> Settings:
    """Return the settings of a recorded session; empty if its network was never ready."""
    ready_at = state.ready_at
    if state.hello is None or state.hello.build is None or ready_at is None:
        return {}
    done = [
        (each.t - each.took_s - ready_at, None, each.command)
        for each in state.applied
        if not each.renewed
        and not (
            str(each.command.__struct_config__.tag).startswith("stop-")
            and each.t > state.now - _END_S
        )
    ]
    return of_run(state.hello.build, done, {"recorded": f"{state.now - ready_at:.1f} s"})


def differing(a: Settings, b: Settings) -> list[Setting]:
    """Return the settings that differ in the order of A, then steps that only A or only B has.

    Such a step is reported as one setting.
    """
    found = []
    lone: dict[str, None] = {}
    steps_a, steps_b = ({name.partition(", ")[0] for name in each} for each in (a, b))
    for name in dict.fromkeys([*a, *b]):
        step, _, key = name.partition(", ")
        if name in _ENDS and (name not in a or name not in b):
            continue
        if step not in steps_a or step not in steps_b:
            lone[step] = None
        elif not _alike(key or name, a.get(name), b.get(name)):
            found.append(Setting(name=name, a=a.get(name), b=b.get(name)))
    return found + [Setting(name=step, a=_whole(step, a), b=_whole(step, b)) for step in lone]


def _alike(key: str, one: str | None, other: str | None) -> bool:
    if key in _FILLED_IN and (one is None or other is None):
        return True
    if key == _MOMENT and one is not None and other is not None:
        (t, _, after), (u, _, behind) = one.partition(" s"), other.partition(" s")
        return after == behind and abs(float(t) - float(u)) < _NEAR_S
    if key == "recorded" and one is not None and other is not None:
        lengths = [float(each.removesuffix(" s")) for each in (one, other)]
        return abs(lengths[0] - lengths[1]) <= _NEAR_LENGTH_S
    return one == other


def _whole(step: str, settings: Settings) -> str | None:
    """Return a step or the value of a setting as text; None if missing."""
    parts = {
        name.removeprefix(step).removeprefix(", "): text
        for name, text in settings.items()
        if name == step or name.startswith(f"{step}, ")
    }
    if not parts:
        return None
    return ", ".join(f"{key} {text}".strip() for key, text in parts.items())


def _flat(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, (*place, key))
    elif isinstance(value, str):
        yield spell(place), value
    else:
        yield spell(place), msgspec.json.encode(value).decode()


# --- traces in a run's figures: lines with a point per ACK, exact states, the first reduction -----

Stretch: TypeAlias = tuple[float, float]
"""Start and end of a period in seconds."""

_HOLD_S = 0.1
"""Seconds without an ACK after which samples replace the trace: a timer may change cwnd too."""
_HOLD_STATE_S = 1.0
"""Seconds without an ACK after which samples replace the traced state; as every change of state is
traced, more than for cwnd."""
_RTTS, _MOST_RTTS = 2, 10
"""Number of RTTs shown before and after a reduction, and the most shown from its start."""


def line(
    flow: Flow, name: str, *, factor: float = 1.0, start: float = 0.0, columns: int = COLUMNS
) -> Curve:
    """Return a series of a flow as ``curve`` does, with a point per ACK while it was traced."""
    most = credible(name)
    sampled = curve(flow.series[name], factor=factor, start=start, columns=columns, most=most)
    if flow.trace is None or name not in flow.trace.series:
        return sampled
    exact = curve(flow.trace.series[name], factor=factor, start=start, columns=columns, most=most)
    traced = _inside(_stretches(flow.trace, _HOLD_S, start))
    # Gaps between ACKs are filled with samples.
    points = [(t, y) for t, y in zip(exact.t, exact.y, strict=True) if y == y and traced(t)]
    points += [(t, y) for t, y in zip(sampled.t, sampled.y, strict=True) if not traced(t)]
    points.sort(key=itemgetter(0))
    return Curve([t for t, _ in points], [y for _, y in points])


def states(flow: Flow, *, start: float = 0.0) -> list[tuple[float, float, int]]:
    """Return a flow's states as ``state_spans`` does, exact while it was traced."""
    sampled = state_spans(flow.series["ca_state"], start=start)
    if flow.trace is None:
        return sampled
    stretches = _stretches(flow.trace, _HOLD_STATE_S, start)
    traced = _inside(stretches)
    found = [each for each in sampled if not traced(each[0])]
    for left, right, state in _changes(flow.trace):
        for begin, end in stretches:
            if state and max(left - start, begin) < min(right - start, end):
                found.append((max(left - start, begin), min(right - start, end), state))
    return sorted(found)


def first_reduction(flow: Flow) -> Stretch | None:
    """Return the period around the first traced reduction of cwnd; None if there is none."""
    if flow.trace is None:
        return None
    changes = _changes(flow.trace)
    # Only CWR, Recovery and Loss reduce cwnd; Disorder does not.
    reduced = next((n for n, (*_, state) in enumerate(changes) if n and state > 1), None)
    if reduced is None:
        return None
    begun = changes[reduced][0]
    over = next((left for left, _, state in changes[reduced:] if state < 2), changes[-1][1])
    rtt_s = (flow.trace.series["srtt_us"].latest(flow.trace.moments.before_or_at(begun)) or 0) / 1e6
    return begun - _RTTS * rtt_s, min(over + _RTTS * rtt_s, begun + _MOST_RTTS * rtt_s)


def within(series: Series, stretch: Stretch, *, start: float = 0.0, most: float = inf) -> Curve:
    """Return every value of a series within a period, with gaps for values above ``most``."""
    timeline, found = series.timeline, Curve()
    first = max(timeline.at_or_after(stretch[0]), series.first)
    for tick in range(first, min(timeline.at_or_after(stretch[1]), series.end)):
        value = series.at(tick)
        found.add(timeline.time(tick) - start, None if value is None or value > most else value)
    return found


def _stretches(trace: Trace, hold_s: float, start: float) -> list[Stretch]:
    """Return the periods without long gaps between ACKs."""
    moments = trace.moments.moments(trace.moments.first, trace.moments.end)
    breaks = [n + 1 for n, (a, b) in enumerate(pairwise(moments)) if b - a > hold_s]
    edges = pairwise([0, *breaks, len(moments)])
    return [(moments[a] - start, moments[b - 1] - start) for a, b in edges if a < b]


def _inside(stretches: Sequence[Stretch]) -> Callable[[float], bool]:
    starts = [start for start, _ in stretches]

    def inside(t: float) -> bool:
        at = bisect_right(starts, t) - 1
        return at >= 0 and t <= stretches[at][1]

    return inside


def _changes(trace: Trace) -> list[tuple[float, float, int]]:
    """Return the spans (start, end, state) of a traced connection's states."""
    timeline, moments = trace.ca_state.timeline, trace.moments
    if timeline.end == timeline.first or moments.end == moments.first:
        return []
    begins = timeline.moments(timeline.first, timeline.end)
    last = max(begins[-1], moments.time(moments.end - 1))
    values = trace.ca_state.values(timeline.first, timeline.end)
    spans = zip(pairwise([*begins, last]), values, strict=True)
    return [(left, right, round(value)) for (left, right), value in spans]


# --- the material of a report ---------------------------------------------------------------------
# The material of a report: an experiment's runs with their results and recordings, by case.

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

        results = [msgspec.structs.replace(r, name=renamed(r.name)) for r in part.result.cases]
        again = [msgspec.structs.replace(r, name=renamed(r.name)) for r in part.result.discarded]
        cases += results
        discarded += again
        statistics += [
            msgspec.structs.replace(each, name=renamed(each.name))
            for each in part.result.statistics
        ]
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


class Axis(msgspec.Struct, frozen=True):
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


def axes(cases: Sequence[CaseStatistics]) -> list[Axis]:
    """Return the axes of the matrix of these cases; several named cases are an axis, too."""
    found: dict[str, dict[Parameter, None]] = {}
    families = dict.fromkeys(family_of(case) if case.parameters else case.name for case in cases)
    if len(families) > 1 or not any(case.parameters for case in cases):
        found[CASES] = dict.fromkeys(families)
    for case in cases:
        for name, value in case.parameters.items():
            found.setdefault(name, {})[value] = None
    return [Axis(name, tuple(values)) for name, values in found.items()]


def place(case: CaseStatistics) -> dict[str, Parameter]:
    """Return the values of a case on all axes."""
    return {CASES: family_of(case) if case.parameters else case.name, **case.parameters}


def as_written(value: Parameter) -> str:
    """Return a parameter as written in the file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def point(axis: str, value: Parameter) -> str:
    """Return a point of an axis as text: ``delay 50 ms``."""
    return as_written(value) if axis == CASES else f"{axis} {as_written(value)}"
