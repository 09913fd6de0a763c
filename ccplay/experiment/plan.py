"""The runs and their order: every case once, then every case again."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ccplay.scenario.repeats import repeated
from ccplay.scenario.values import Case, Scenario

_LONGEST_SLUG = 60


class Run(msgspec.Struct, frozen=True):
    """One repeat of one case."""

    case: Case
    """Case as in the file; ``played`` is this repeat of it."""
    repeat: int
    """Number of the repeat, from 1."""

    @property
    def played(self) -> Case:
        """The case with this repeat's jitter, order of starts and seed."""
        return repeated(self.case, self.repeat)

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the run: its case and repeat."""
        return self.case.name, self.repeat

    def __str__(self) -> str:
        return self.case.name if self.case.repeats == 1 else f"{self.case.name}, run {self.repeat}"


def plan(scenario: Scenario) -> list[Run]:
    """Return all runs, repeat by repeat, so that an interrupted experiment is balanced.

    Cases take turns at each point of a matrix, so that not all heavy ones run in parallel.
    """
    most = max(case.repeats for case in scenario.cases)
    points = list(dict.fromkeys(str(case.parameters) for case in scenario.cases))
    in_turns = sorted(scenario.cases, key=lambda case: points.index(str(case.parameters)))
    return [
        Run(case, repeat)
        for repeat in range(1, most + 1)
        for case in in_turns
        if repeat <= case.repeats
    ]


def slugs(cases: Sequence[Case]) -> dict[str, str]:
    """Return a unique part of a file name for each case."""
    found: dict[str, str] = {}
    for case in cases:
        slug = slug_of(case.name)
        # A slug of a name never has a dot.
        same = sum(each.partition(".")[0] == slug for each in found.values())
        found[case.name] = f"{slug}.{same + 1}" if same else slug
    return found


def slug_of(name: str) -> str:
    """Return a name in the form used in file names: ``reno-100-packets``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG].strip("-") or "case"
