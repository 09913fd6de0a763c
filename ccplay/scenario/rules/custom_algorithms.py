"""The user's algorithms and disciplines: a scenario may use their names, but never names files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.model import disciplines, texts
from ccplay.model.discipline import Discipline
from ccplay.model.disciplines import DISCIPLINES
from ccplay.scenario.values import Case, Scenario
from ccplay.state.lab_state import LabState


def admit(names: Iterable[str]) -> None:
    """Allow these congestion controls in scenarios that are read from now on."""
    texts.custom_algorithms.update(names)


def admit_disciplines(names: Iterable[str]) -> None:
    """Allow these disciplines, with any parameters, in scenarios that are read from now on."""
    for name in names:
        disciplines.custom.setdefault(name, Discipline(name, "your own", (), open=True))


@contextmanager
def admitted(algorithms: Iterable[str], queues: Iterable[str] = ()) -> Iterator[list[str]]:
    """Allow the user's own files in scenarios read within the context; yield their names."""
    before, queues_before = set(texts.custom_algorithms), set(disciplines.custom)
    # A stranger's recording may have any names.
    able = _able(algorithms)
    own = [name for name in _able(queues) if name not in DISCIPLINES]
    admit(able)
    admit_disciplines(own)
    try:
        yield [*(f"{name}.bpf.c" for name in able), *(f"{name}.py" for name in own)]
    finally:
        texts.custom_algorithms.intersection_update(before)
        for name in set(disciplines.custom) - queues_before:
            del disciplines.custom[name]


def _able(names: Iterable[str]) -> list[str]:
    return [name for name in names if re.fullmatch(texts.NAME_PATTERN, name)]


def rerun(file: Path, state: LabState, options: Sequence[str] = ()) -> str:
    """Return the command that repeats a session saved in ``file``.

    ``options`` are the options of the command line about the lab. Without them, the user's
    algorithms and disciplines are assumed to be in the current folder.
    """
    build = state.hello.build if state.hello else None
    named = (build.algorithms, build.disciplines) if build else ((), ())
    with admitted(*named) as own:
        files = [word for name in own for word in (option(name), name)]
    return shlex.join(["ccplay", "run", str(file), *(options or files)])


def option(file: str) -> str:
    """Return the option that names one of the user's files."""
    return "--discipline" if file.endswith(disciplines.SUFFIX) else "--algorithm"


def driven(
    scenario: Scenario, algorithms: Mapping[str, str], queues: Mapping[str, str] | None = None
) -> Scenario:
    """Return the scenario with the digests of the user's algorithms and disciplines by name."""
    if not algorithms and not queues:
        return scenario
    choice = {"algorithms": dict(algorithms), "disciplines": dict(queues or {})}
    return replace(scenario, cases=tuple(_driven(case, choice) for case in scenario.cases))


def _driven(case: Case, choice: Mapping[str, dict[str, str]]) -> Case:
    return replace(case, build=msgspec.structs.replace(case.build, **choice))
