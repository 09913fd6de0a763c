"""What a scenario file says, once it has been read and found right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ccplay.errors import UsageError
from ccplay.model.commands import AnyCommand, Build
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.traffic_commands import StartFlow
from ccplay.visible import printable


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its moment."""

    at_s: float
    """Seconds after the network stands, or after ``after`` has ended."""
    command: AnyCommand
    """Traffic that it starts always has a name."""
    after: str | None = None
    """The traffic whose end is awaited first."""
    place: str = ""
    """Where in the file it stands: ``timeline[2]``."""
    number: int = 0
    """Its number among the steps of the file: a repeat may start flows in another order."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a figure of every run must be, and why: a check."""

    figure: str
    """Its place in the result: ``checkpoint.ratio``, ``flows.1.goodput_bps``, ``jain``."""
    low: float | None
    high: float | None
    """The bounds, both allowed themselves; None where there is none."""
    text: str
    """The bounds as the file has them, for people: ``0.7 ± 20 %``, ``at least 0.9``."""
    why: str
    place: str = ""
    """Where in the file it stands."""


@dataclass(frozen=True, slots=True)
class Published:
    """What somebody else measured, to be put beside ours; never a check."""

    figure: str
    values: tuple[float, ...]
    """One or several readings."""
    note: str = ""
    """Why ours may differ."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: a network and a timeline. Every case gets a lab of its own."""

    name: str
    title: str
    """The scenario's title, and the case's name where there are several."""
    about: str
    build: Build
    timeline: tuple[Step, ...]
    """In the order of the file; steps of one moment happen in that order."""
    duration_s: float
    """The case ends after so long,"""
    until: str = "duration"
    """or earlier: ``all``: as soon as all steps are done and all limited traffic has ended;
    ``first``: as soon as the first flow of a fixed size is done."""
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Where in the file's matrix it lies: the values as the file has them, by axis."""
    repeats: int = 1
    jitter_s: float = 0.0
    """Each repeat starts each flow later by something random between 0 and this."""
    balanced: bool = False
    """Over the repeats each flow is as often the first to start as any other."""
    figures: tuple[str, ...] = ()
    """Those to report first; see ``Expectation.figure``."""
    expect: tuple[Expectation, ...] = ()
    published: tuple[Published, ...] = ()
    published_in: str = ""
    """Who measured that, and where it can be read."""

    @property
    def sizes(self) -> dict[str, int]:
        """The flows of a fixed size and their bytes, in the order of the file."""
        steps = sorted(self.timeline, key=lambda step: step.number)
        commands = [step.command for step in steps]
        return {
            each.flow: each.bytes
            for each in commands
            if isinstance(each, StartFlow) and each.flow is not None and each.bytes is not None
        }


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file."""

    path: Path
    title: str
    about: str
    cases: tuple[Case, ...]
    settings: tuple[str, ...] = ()
    """What the command line said over the file, each ``PATH=VALUE``."""

    @property
    def name(self) -> str:
        """The file's name without its ending, as it can be shown."""
        return printable(self.path.stem)

    def only(self, names: Sequence[str]) -> Scenario:
        """Return the scenario with the cases that are named, in its own order; no names mean all.

        A name is that of a case, or any part of it: all cases that have the part. Raises
        ``UsageError`` for what no case has.
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
        """Return the one case that is named, or the first. Raises ``UsageError``."""
        if len(names) > 1:
            raise UsageError(
                f"a screen shows one case, not {len(names)}: name one, or use ccplay run"
            )
        return self.only(names).cases[0]


def _named(said: str, cases: Sequence[str]) -> list[str]:
    """Return the cases that are meant by a part of their name.

    The best match wins: all of a case's name, one of its parts between commas, whole words in it
    whatever their capitals, and last anything in it that does not cut a number in two.
    """
    if not (part := re.escape(said.strip())):
        return []
    words = rf"(?<![^\s,]){part}(?![^\s,])"
    anything = rf"(?<!\d){part}(?!\d)"
    patterns = [rf"\A{re.escape(said)}\Z", rf"(?:\A|, ){re.escape(said)}(?:, |\Z)"]
    patterns += [rf"(?i){words}", rf"(?i){anything}"]
    matches = ([case for case in cases if re.search(each, case)] for each in patterns)
    return next(filter(None, matches), [])
