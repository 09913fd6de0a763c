"""A worker whose runs are no labs: each lasts as long as its case, and is logged at its end."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from ccplay.analysis.summary import summarise
from ccplay.experiment import pool
from ccplay.experiment.cluster import worker
from ccplay.experiment.cluster.scheduler import security_for
from ccplay.experiment.trial import RunOrder, RunOutcome, interrupted_outcome
from ccplay.model.commands import Build
from ccplay.model.values import Capabilities, Feature
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.stream.sources import Source

LOG, KERNEL = "STAND_IN_LOG", "STAND_IN_KERNEL"


async def execute(
    order: RunOrder,
    _: Callable[[Build], Source],
    stop: asyncio.Event,
    *,
    record: Path,
    watch: Callable[[LabState], None],
    share: Sink | None,
) -> RunOutcome:
    """Wait for as long as the case takes, and log that the run was completed."""
    state = LabState()
    state.ready_at = 0.0
    watch(state)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), order.case.duration_s)
        return interrupted_outcome(order)
    await asyncio.to_thread(_log, order, record)
    result = summarise(LabState(), order.case.name)
    return RunOutcome(result=replace(result, repeat=order.repeat), whole=True)


def _log(order: RunOrder, record: Path) -> None:
    record.write_bytes(b"recorded\n")
    with Path(os.environ[LOG]).open("a") as log:
        log.write(f"{order.repeat} {worker.machine()}\n")


async def examine(_: Source) -> Capabilities:
    """Return the requirements of the case."""
    return Capabilities(
        kernel=os.environ.get(KERNEL, "6.0"),
        privilege="root",
        congestion_controls=[Feature(name="reno", available=True)],
        qdiscs=[Feature(name="pfifo", available=True)],
        delay_engines=[],
        tools=[],
    )


if __name__ == "__main__":
    vars(pool).update(execute=execute)
    vars(worker).update(examine=examine)
    trusted = security_for(sys.argv[1], Path(sys.argv[2]))
    asyncio.run(worker.serve(sys.argv[1], trusted, 1))
