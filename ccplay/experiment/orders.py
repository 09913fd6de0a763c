"""A run as a function: from an order to its result, on any machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay import __version__
from ccplay.analysis.results import CaseResult, Machine
from ccplay.analysis.summary import machine, summarise
from ccplay.experiment.standstill import standstills
from ccplay.experiment.trial import Trial
from ccplay.model.commands import Build
from ccplay.scenario.values import Case, Scenario
from ccplay.session.timeline import Script
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a run, as plain data in JSON, like a scenario."""

    scenario: str
    """Name of the scenario's file for messages."""
    case: Case
    """Case as played, with the seed and the random starts of its repeat."""
    repeat: int
    attempt: int = 1
    label: str = ""
    """Prefix of the names of files that the lab writes."""
    version: str = __version__
    """Version of ccplay that gave the order."""

    @property
    def build(self) -> Build:
        """The network to build."""
        build = Script(self.case.timeline).prepare(self.case.build)
        return msgspec.structs.replace(build, label=self.label) if self.label else build


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an order."""

    result: CaseResult
    whole: bool
    """Whether the run was completed: neither interrupted nor ended by the lab's death."""
    machine: Machine | None = None
    """Machine that made the run."""


async def carry_out(
    order: Order,
    open_source: Callable[[Build], Source],
    stop: asyncio.Event,
    *,
    record: Path | None = None,
    watch: Callable[[LabState], None] = lambda _: None,
    share: Sink | None = None,
) -> Finished:
    """Run an order in a lab of its own, to its end or until ``stop``.

    ``record`` is the file for the lab's stream, ``watch`` receives the state after every event,
    ``share`` is a sink for spectators. Raises ``LabError`` if the lab did not start,
    ``UnsupportedError`` if this kernel lacks features that the order needs.
    """
    if stop.is_set():
        return interrupted(order)
    trial = Trial(_scenario(order), order.case, watch)

    def spoil(seconds: float) -> None:
        trial.spoil(f"ccplay was suspended or starved of CPU for {seconds:.1f} s")

    async with standstills(spoil):
        result = await trial.measure(open_source(order.build), stop, record, share)
    return Finished(
        result=_numbered(order, result),
        whole=not result.interrupted and not trial.died,
        machine=machine(trial.state),
    )


def interrupted(order: Order) -> Finished:
    """Return the outcome of an order that was interrupted or not started."""
    result = summarise(LabState(), order.case.name, interrupted=True)
    return Finished(result=_numbered(order, result), whole=False)


def failed(order: Order, reason: str) -> Finished:
    """Return the outcome of an order that no lab could carry out."""
    result = summarise(LabState(), order.case.name, errors=(reason,))
    return Finished(result=_numbered(order, result), whole=False)


def _numbered(order: Order, result: CaseResult) -> CaseResult:
    return msgspec.structs.replace(result, repeat=order.repeat, attempt=order.attempt)


def _scenario(order: Order) -> Scenario:
    """Return a scenario with this one case, with the file's name for messages."""
    case = replace(order.case, repeats=1)
    return Scenario(Path(order.scenario), case.title, case.about, (case,))
