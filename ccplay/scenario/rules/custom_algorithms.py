"""The user's algorithms: a scenario may contain their names, but never their files."""

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
    """Allow these as congestion controls in scenarios read from now on."""
    texts.custom_algorithms.update(names)


@contextmanager
def admitted(names: Iterable[str]) -> Iterator[list[str]]:
    """Allow these in scenarios read meanwhile; yield those allowed."""
    before = set(texts.custom_algorithms)
    able = [name for name in names if re.fullmatch(texts.NAME_PATTERN, name)]
    admit(able)
    try:
        yield able
    finally:
        texts.custom_algorithms.intersection_update(before)


def rerun(file: Path, state: LabState, said: Sequence[str] = ()) -> str:
    """Return the command that repeats a session saved in ``file``.

    ``said`` are the words of the command line about the lab; without them, the user's algorithms
    are assumed in the current folder.
    """
    build = state.hello.build if state.hello else None
    with admitted(build.algorithms if build else ()) as own:
        files = [word for name in own for word in ("--algorithm", f"{name}.bpf.c")]
    return shlex.join(["ccplay", "run", str(file), *(said or files)])


def driven(scenario: Scenario, algorithms: Mapping[str, str]) -> Scenario:
    """Return the scenario with the digests of the user's algorithms by name."""
    if not algorithms:
        return scenario
    return replace(scenario, cases=tuple(_driven(case, algorithms) for case in scenario.cases))


def _driven(case: Case, algorithms: Mapping[str, str]) -> Case:
    return replace(case, build=msgspec.structs.replace(case.build, algorithms=dict(algorithms)))
