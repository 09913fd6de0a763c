"""Algorithms of the user's own: their names may stand in a scenario, their files never do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from ccplay.model import texts
from ccplay.scenario.values import Case, Scenario
from ccplay.state.lab_state import LabState


def admit(names: Iterable[str]) -> None:
    """Let scenarios that are read from now on name these as congestion controls."""
    texts.own_algorithms.update(names)


@contextmanager
def admitted(names: Iterable[str]) -> Iterator[list[str]]:
    """Let scenarios that are read meanwhile name these; yield those that can be named."""
    before = set(texts.own_algorithms)
    able = [name for name in names if re.fullmatch(texts.NAME_PATTERN, name)]
    admit(able)
    try:
        yield able
    finally:
        texts.own_algorithms.intersection_update(before)


def rerun(file: Path, state: LabState, said: Sequence[str] = ()) -> str:
    """Return what to type to do again what was saved from a session in ``file``.

    ``said`` is what the command line said of the lab; where nothing is known of that, algorithms
    of one's own are taken to lie here.
    """
    build = state.hello.build if state.hello else None
    with admitted(build.algorithms if build else ()) as own:
        files = [word for name in own for word in ("--algorithm", f"{name}.bpf.c")]
    return shlex.join(["ccplay", "run", str(file), *(said or files)])


def driven(scenario: Scenario, algorithms: Mapping[str, str]) -> Scenario:
    """Return the scenario with what it runs on told: the digests of the sources by name."""
    if not algorithms:
        return scenario
    return replace(scenario, cases=tuple(_driven(case, algorithms) for case in scenario.cases))


def _driven(case: Case, algorithms: Mapping[str, str]) -> Case:
    return replace(case, build=msgspec.structs.replace(case.build, algorithms=dict(algorithms)))
