"""Algorithms of the user's own: their names may stand in a scenario, their files never do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from ccplay.scenario import quantities
from ccplay.scenario.values import Case, Scenario


def admit(names: Iterable[str]) -> None:
    """Let scenarios that are read from now on name these as congestion controls."""
    quantities.own_algorithms.update(names)


def driven(scenario: Scenario, algorithms: Mapping[str, str]) -> Scenario:
    """Return the scenario with what it runs on told: the digests of the sources by name."""
    if not algorithms:
        return scenario
    return replace(scenario, cases=tuple(_driven(case, algorithms) for case in scenario.cases))


def _driven(case: Case, algorithms: Mapping[str, str]) -> Case:
    return replace(case, build=msgspec.structs.replace(case.build, algorithms=dict(algorithms)))
