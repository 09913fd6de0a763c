"""One worker of a cluster as a bench."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from distributed import Client
from msgspec.structs import replace

from ccplay.cluster import labs
from ccplay.cluster.labs import Attendance, BenchReport
from ccplay.cluster.spool import key_of, unpack
from ccplay.errors import LabError, UnsupportedError
from ccplay.experiment.bench import BenchLostError, Window
from ccplay.experiment.orders import Finished, Order, interrupted
from ccplay.files import writing
from ccplay.scenario.rules.support import check_against
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink

RETURN_S = 6.0
"""Seconds that a run waits for its lost worker before another worker repeats it; they count only
while the scheduler answers."""
_MOST_FAILURES = 3
"""Number of successive runs for which a worker may fail to start a lab."""
_FETCH_S = 60.0
"""Seconds within which a finished run must arrive from a worker's disk."""
_LOOK_S = 0.1
_numbers = itertools.count(1)


class Owner(Protocol):
    """The parts of ``ClusterBenches`` that each bench needs."""

    client: Client | None
    connected: bool
    experiment: str
    files: dict[str, bytes]
    stop: asyncio.Event
    assigned: dict[str, str]
    """Address of the worker that a run is assigned to, by the run's key; empty if there is none."""

    brief: bool
    """Whether recordings stay where they are, because only measurements are needed here."""

    def take_up(self, key: str) -> None:
        """Record that a run is wanted, wherever it is made."""

    async def call(self, bench_address: str, work: Any, *arguments: Any, within_s: float) -> bytes:
        """Call a function on a worker; raises ``OSError``, ``TimeoutError``, and its exceptions."""

    def holder(self, key: str) -> WorkerBench | None:
        """Return a worker that is making a run, or has it on its machine's disk."""

    def drop(self, bench: WorkerBench, why: str) -> None:
        """Give no more runs to a worker."""


class WorkerBench:
    """A worker, which makes as many runs at a time as it has threads, or fewer if they starve."""

    def __init__(self, owner: Owner, address: str, report: BenchReport, most: int) -> None:
        self.address = address
        self.machine = report.machine
        self.kernel = report.capabilities.kernel
        self.window = Window(most)
        self.running: frozenset[str] = frozenset()
        """Keys of the runs in progress as of the worker's last answer."""
        self.kept: frozenset[str] = frozenset()
        """Keys of the runs on the machine's disk as of the worker's last answer."""
        self.conducts = ""
        """Digest of the handover whose runs the worker distributes; empty if there is none."""
        self.answered = time.monotonic()
        self._capabilities = report.capabilities
        self._owner = owner
        self._failures = 0
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.machine} ({self.address.partition('://')[2]})"

    def took(self, answer: Attendance) -> None:
        """Record an answer of the worker."""
        self.answered = time.monotonic()
        self.running, self.kept = frozenset(answer.running), frozenset(answer.kept)
        self.conducts = answer.conducts

    def lose(self, why: str) -> None:
        """Treat the worker as lost: its runs are repeated elsewhere unless it returns soon."""
        if not self._lost.done():
            self._lost.set_result(why)

    def lacks(self, order: Order) -> str:
        """Return what the worker's kernel lacks for an order, with the remedy; empty if nothing."""
        case = replace(order.case, repeats=1)
        scenario = Scenario(Path(order.scenario), case.title, case.about, (case,))
        try:
            check_against(scenario, self._capabilities)
        except UnsupportedError as error:
            return error.lines[0]
        return ""

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,  # noqa: ARG002 - it is elsewhere
        share: Callable[[], Sink | None] = lambda: None,  # noqa: ARG002 - the same
    ) -> Finished:
        """Make a run, or fetch it from a machine that has finished it.

        Raises ``BenchLostError`` if the worker was lost with it, or no lab starts there.
        """
        owner = self._owner
        key = key_of(owner.experiment, order, owner.files)
        owner.take_up(key)
        bench = owner.holder(key) or self
        try:
            while not owner.stop.is_set():
                packed = await bench._make(key, order)
                if packed is not None:
                    finished = await asyncio.to_thread(_received, packed, record, bench.machine)
                    if not finished.result.interrupted:
                        return finished
                if not owner.stop.is_set():
                    bench = await _returned(owner, key, bench.why)
            return interrupted(order)
        finally:
            del owner.assigned[key]

    @property
    def why(self) -> str:
        """Reason why the worker no longer makes its runs."""
        return self._lost.result() if self._lost.done() else f"{self.name}: the run was interrupted"

    async def _make(self, key: str, order: Order) -> bytes | None:
        """Return a packed run; None if the worker was lost with it."""
        owner = self._owner
        if owner.client is None or self._lost.done():
            return None
        owner.assigned[key] = self.address
        if key in self.kept and (there := await self._fetch(key)):
            return there
        # Dask must not take an earlier task for this one, hence the number: the run is identified
        # by its key alone, and the worker knows whether it has that run.
        asked: Any = owner.client.submit(
            labs.make,
            key,
            msgspec.json.encode(order),
            owner.files,
            owner.brief,
            key=f"{key}-{next(_numbers)}",
            workers=[self.address],
            allow_other_workers=False,
            pure=False,
        )
        answer = asyncio.ensure_future(_answer(asked))
        stopped = asyncio.ensure_future(owner.stop.wait())
        try:
            waits: set[asyncio.Future[Any]] = {answer, self._lost, stopped}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            packed = answer.result() if answer.done() else None
            self._failures = 0
        except LabError as error:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                owner.drop(self, str(error))
            raise BenchLostError(f"{self.name}: {error}") from None
        else:
            return packed
        finally:
            answer.cancel()
            stopped.cancel()
            asked.release()
            owner.assigned[key] = ""

    async def _fetch(self, key: str) -> bytes:
        """Return a finished run from its machine's disk without using a thread; empty if none."""
        asked = (labs.fetch, key, self._owner.brief)
        try:
            return await self._owner.call(self.address, *asked, within_s=_FETCH_S)
        except (TimeoutError, OSError):
            return b""


async def _answer(asked: Any) -> bytes | None:
    """Return the outcome of a task; None if Dask lost it."""
    try:
        packed: bytes = await asked
    except LabError:
        raise
    except asyncio.CancelledError:
        if asked.cancelled():
            return None
        raise
    except Exception as error:  # noqa: BLE001 - a task raises what it will
        if type(error).__module__.startswith("distributed") or isinstance(error, OSError):
            return None
        raise LabError(f"a worker can't make runs: {type(error).__name__}: {error}") from None
    return packed


async def _returned(owner: Owner, key: str, why: str) -> WorkerBench:
    """Wait briefly for a worker that still has a run. Raises ``BenchLostError``."""
    waited = 0.0
    while (bench := owner.holder(key)) is None:
        if waited > RETURN_S or owner.stop.is_set():
            raise BenchLostError(why)
        await asyncio.sleep(_LOOK_S)
        waited += _LOOK_S if owner.connected else 0.0
    return bench


def _received(packed: bytes, record: Path | None, machine: str) -> Finished:
    """Return a run that a worker sent; write its recording to ``record``."""
    if record is None:
        finished = unpack(packed, None)
    else:
        try:
            with writing.create(record) as file:
                finished = unpack(packed, file)
        except OSError as error:
            raise LabError(f"can't write {record}: {error.strerror}") from None
    where = finished.machine and msgspec.structs.replace(finished.machine, name=machine)
    result = msgspec.structs.replace(finished.result, machine=machine)
    return msgspec.structs.replace(finished, result=result, machine=where)
