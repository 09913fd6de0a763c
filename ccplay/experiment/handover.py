"""An experiment that is handed over: everything that its remaining runs need without the user."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec

from ccplay.experiment.orders import Order
from ccplay.experiment.plan import Run, plan, slugs
from ccplay.scenario.values import Case, Scenario


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of an experiment with a fixed number of runs, as plain data in JSON.

    Its holder gives the same orders as the command line that made it, so that both have the same
    name for a run.
    """

    scenario: str
    """Name of the scenario's file for messages."""
    cases: list[Case]
    """Cases to run."""
    slugs: dict[str, str]
    """Prefix of the names of a case's files, by the case's name."""
    finished: list[tuple[str, int]]
    """Case and repeat of the finished runs."""
    jobs: int | None = None
    """Largest number of runs in parallel on a worker."""
    kernel: str | None = None
    """Only kernel that may make runs, unless kernels are mixed."""
    mixed_kernels: bool = False
    """Whether machines with any kernel may make runs."""

    @classmethod
    def of(cls, chosen: Scenario, whole: Scenario, finished: Iterable[tuple[str, int]]) -> Self:
        """Return the handover of some or all cases of a ``whole`` scenario."""
        return cls(
            scenario=whole.path.name,
            cases=list(chosen.cases),
            slugs=slugs(whole.cases),
            finished=sorted(finished),
        )

    @property
    def sha256(self) -> str:
        """Digest of the planned runs, whether finished or not."""
        return hashlib.sha256(
            msgspec.json.encode(msgspec.structs.replace(self, finished=[]))
        ).hexdigest()

    def runs(self) -> list[Run]:
        """Return the unfinished runs in the order of the experiment."""
        finished = set(self.finished)
        scenario = Scenario(Path(self.scenario), "", "", tuple(self.cases))
        return [run for run in plan(scenario) if run.key not in finished]

    def order(self, run: Run, attempt: int = 1) -> Order:
        """Return the order for an attempt at a run."""
        return Order(
            scenario=self.scenario,
            case=run.played,
            repeat=run.repeat,
            attempt=attempt,
            label=f"{self.slugs[run.case.name]}-{run.repeat}",
        )
