"""The content of a valid scenario file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.commands import Build
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.traffic_commands import StartFlow
from ccplay.scenario.lesson.values import Lesson
from ccplay.scenario.step import Step
from ccplay.visible import printable


class Expectation(msgspec.Struct, frozen=True):
    """A check of every run: the required value of a metric, and the reason."""

    metric: str
    """Path of the metric in the result: ``checkpoint.ratio``, ``flows.1.goodput_bps``, ``jain``."""
    low: float | None
    high: float | None
    """Upper bound, inclusive; None if there is none."""
    text: str
    """Bounds as text: ``0.7 ± 20 %``, ``at least 0.9``."""
    why: str
    place: str = ""
    """Place of the expectation in the file."""


class Published(msgspec.Struct, frozen=True):
    """Values measured by others, shown beside ours, but never checked."""

    metric: str
    values: tuple[float, ...]
    """Values of the metric, one or several."""
    note: str = ""
    """Reason why our value may differ."""


class Case(msgspec.Struct, frozen=True):
    """One case: a network and a timeline. Every run has a lab of its own."""

    name: str
    title: str
    """Title of the scenario, with the case's name if there are several."""
    about: str
    build: Build
    timeline: tuple[Step, ...]
    """Steps in the order of the file, which also holds for those at one moment."""
    duration_s: float
    """Longest time in seconds until the case ends."""
    until: str = "duration"
    """Condition that ends the case: ``duration``; ``all``: all steps are done and all limited
    traffic has ended; ``first``: the first flow of a fixed size is done."""
    parameters: Mapping[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    """Point in the file's matrix: values as written in the file, by axis."""
    repeats: int = 1
    jitter_s: float = 0.0
    """Largest random delay of a flow's start in a repeat, in seconds."""
    balanced: bool = False
    """Whether, over the repeats, each flow starts first equally often."""
    metrics: tuple[str, ...] = ()
    """Metrics to report first; see ``Expectation.metric``."""
    expect: tuple[Expectation, ...] = ()
    published: tuple[Published, ...] = ()
    published_in: str = ""
    """Source of the published values."""

    @property
    def sizes(self) -> dict[str, int]:
        """Flows of a fixed size with their bytes, in the order of the file."""
        steps = sorted(self.timeline, key=lambda step: step.number)
        commands = [step.command for step in steps]
        return {
            each.flow: each.bytes
            for each in commands
            if isinstance(each, StartFlow) and each.flow is not None and each.bytes is not None
        }


class Scenario(msgspec.Struct, frozen=True):
    """A scenario file."""

    path: Path
    title: str
    about: str
    cases: tuple[Case, ...]
    settings: tuple[str, ...] = ()
    """Settings from the command line, each ``PATH=VALUE``."""
    text: str = ""
    """Text of the scenario, if it is not from a file."""
    lesson: Lesson | None = None
    """Lesson contained in the file."""

    @property
    def name(self) -> str:
        """Name of the file without its ending, printable."""
        return printable(self.path.stem)

    def only(self, names: Sequence[str]) -> Scenario:
        """Return the scenario with the named cases, in its own order; no names mean all.

        A name is the whole name of a case, or any part of it, which selects all cases that contain
        it. Raises ``UsageError`` for a name that matches no case.
        """
        wanted: set[str] = set()
        for name in names:
            found = _named(name, [case.name for case in self.cases])
            if not found:
                parts = dict.fromkeys(part for case in self.cases for part in case.name.split(", "))
                raise UsageError(
                    f"{self.name} has no case {quote(name)}{did_you_mean(name, parts)}"
                )
            wanted.update(found)
        chosen = tuple(case for case in self.cases if case.name in wanted)
        return replace(self, cases=chosen) if names else self

    def case(self, *names: str) -> Case:
        """Return the one named case, or the first. Raises ``UsageError``."""
        if len(names) > 1:
            raise UsageError(
                f"a screen shows one case, not {len(names)}: name one, or use ccplay run"
            )
        return self.only(names).cases[0]


def _named(name: str, cases: Sequence[str]) -> list[str]:
    """Return the cases whose names contain a text.

    The best match wins: the whole name, then a part between commas, then whole words in any case,
    and last any other part that does not split a number.
    """
    if not (part := re.escape(name.strip())):
        return []
    words = rf"(?<![^\s,]){part}(?![^\s,])"
    anything = rf"(?<!\d){part}(?!\d)"
    patterns = [rf"\A{re.escape(name)}\Z", rf"(?:\A|, ){re.escape(name)}(?:, |\Z)"]
    patterns += [rf"(?i){words}", rf"(?i){anything}"]
    matches = ([case for case in cases if re.search(each, case)] for each in patterns)
    return next(filter(None, matches), [])
