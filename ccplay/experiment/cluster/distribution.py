"""The workers of a cluster as workers; a lost worker's finished runs are kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from distributed import fire_and_forget, get_worker, secede
from distributed.security import Security
from msgspec.structs import replace

from ccplay import __version__
from ccplay.errors import CcplayError, LabError, UnsupportedError
from ccplay.experiment.cluster import worker as tasks
from ccplay.experiment.cluster.scheduler import SchedulerConnection
from ccplay.experiment.cluster.worker import (
    StatusQuery,
    WorkerInfo,
    WorkerLabs,
    WorkerStatus,
    key_of,
    unpack,
)
from ccplay.experiment.plan import FixedSchedule, PlannedRun
from ccplay.experiment.pool import Attempt, JobLimit, Pool, RemoteWorkers, Worker, WorkerLostError
from ccplay.experiment.runner import MOST_LOST
from ccplay.experiment.trial import (
    Handover,
    RunOrder,
    RunOutcome,
    failed_outcome,
    interrupted_outcome,
)
from ccplay.files import writing
from ccplay.scenario.rules import check_against
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.visible import notify, printable_json

# --- one worker of a cluster ----------------------------------------------------------------------

RETURN_S = 6.0
"""Seconds that a run waits for its lost worker before another worker repeats it; they count only
while the scheduler answers."""
_MOST_FAILURES = 3
"""Number of successive runs for which a worker may fail to start a lab."""
_FETCH_S = 60.0
"""Seconds within which a finished run must arrive from a worker's disk."""
_LOOK_S = 0.1
_numbers = itertools.count(1)


class ClusterWorker:
    """A worker, which makes as many runs at a time as it has threads, or fewer if they starve."""

    def __init__(self, owner: ClusterWorkers, address: str, report: WorkerInfo, most: int) -> None:
        self.address = address
        self.machine = report.machine
        self.kernel = report.capabilities.kernel
        self.job_limit = JobLimit(most)
        self.running: frozenset[str] = frozenset()
        """Keys of the runs in progress as of the worker's last answer."""
        self.kept: frozenset[str] = frozenset()
        """Keys of the runs on the machine's disk as of the worker's last answer."""
        self.coordinates = ""
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

    def update_status(self, answer: WorkerStatus) -> None:
        """Record an answer of the worker."""
        self.answered = time.monotonic()
        self.running, self.kept = frozenset(answer.running), frozenset(answer.kept)
        self.coordinates = answer.coordinates

    def mark_lost(self, why: str) -> None:
        """Treat the worker as lost: its runs are repeated elsewhere unless it returns soon."""
        if not self._lost.done():
            self._lost.set_result(why)

    def lacks(self, order: RunOrder) -> str:
        """Return what the worker's kernel lacks for an order, with the remedy; empty if nothing."""
        try:
            check_against(order.as_scenario, self._capabilities)
        except UnsupportedError as error:
            return error.lines[0]
        return ""

    async def execute(
        self,
        order: RunOrder,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,  # noqa: ARG002 - it is elsewhere
        share: Callable[[], Sink | None] = lambda: None,  # noqa: ARG002 - the same
    ) -> RunOutcome:
        """Make a run, or fetch it from a machine that has finished it.

        Raises ``WorkerLostError`` if the worker was lost with it, or no lab starts there.
        """
        owner = self._owner
        key = key_of(owner.experiment, order, owner.files)
        owner.mark_wanted(key)
        worker = owner.find_holder(key) or self
        try:
            while not owner.stop.is_set():
                packed = await worker._make(key, order)
                if packed is not None:
                    finished = await asyncio.to_thread(_unpack_run, packed, record, worker.machine)
                    if not finished.result.interrupted:
                        return finished
                if not owner.stop.is_set():
                    worker = await _await_return(owner, key, worker.lost_reason)
            return interrupted_outcome(order)
        finally:
            del owner.assigned[key]

    @property
    def lost_reason(self) -> str:
        """Reason why the worker no longer makes its runs."""
        return self._lost.result() if self._lost.done() else f"{self.name}: the run was interrupted"

    async def _make(self, key: str, order: RunOrder) -> bytes | None:
        """Return a packed run; None if the worker was lost with it."""
        owner = self._owner
        if owner.scheduler.client is None or self._lost.done():
            return None
        owner.assigned[key] = self.address
        if key in self.kept and (there := await self._fetch(key)):
            return there
        # Dask must not take an earlier task for this one, hence the number: the run is identified
        # by its key alone, and the worker knows whether it has that run.
        asked: Any = owner.scheduler.client.submit(
            tasks.make,
            key,
            msgspec.json.encode(order),
            owner.files,
            owner.without_recordings,
            key=f"{key}-{next(_numbers)}",
            workers=[self.address],
            allow_other_workers=False,
            pure=False,
        )
        answer = asyncio.ensure_future(_await_task(asked))
        stopped = asyncio.ensure_future(owner.stop.wait())
        try:
            waits: set[asyncio.Future[Any]] = {answer, self._lost, stopped}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            packed = answer.result() if answer.done() else None
            self._failures = 0
        except LabError as error:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                owner.exclude(self, str(error))
            raise WorkerLostError(f"{self.name}: {error}") from None
        else:
            return packed
        finally:
            answer.cancel()
            stopped.cancel()
            asked.release()
            owner.assigned[key] = ""

    async def _fetch(self, key: str) -> bytes:
        """Return a finished run from its machine's disk without using a thread; empty if none."""
        asked = (tasks.fetch, key, self._owner.without_recordings)
        try:
            return await self._owner.scheduler.call(self.address, *asked, within_s=_FETCH_S)
        except (TimeoutError, OSError):
            return b""


async def _await_task(asked: Any) -> bytes | None:
    """Return the outcome of a task; None if Dask lost it."""
    try:
        packed: bytes = await asked
    except LabError:
        raise
    except asyncio.CancelledError:
        # Dask fetches several results at a time: whoever cancels one wait ends the others.
        if (own := asyncio.current_task()) and own.cancelling():
            raise
        return None
    except Exception as error:  # noqa: BLE001 - a task raises what it will
        if type(error).__module__.startswith("distributed") or isinstance(error, OSError):
            return None
        raise LabError(f"a worker can't make runs: {type(error).__name__}: {error}") from None
    return packed


async def _await_return(owner: ClusterWorkers, key: str, why: str) -> ClusterWorker:
    """Wait briefly for a worker that still has a run. Raises ``WorkerLostError``."""
    waited = 0.0
    while (worker := owner.find_holder(key)) is None:
        if waited > RETURN_S or owner.stop.is_set():
            raise WorkerLostError(why)
        await asyncio.sleep(_LOOK_S)
        waited += _LOOK_S if owner.scheduler.connected else 0.0
    return worker


def _unpack_run(packed: bytes, record: Path | None, machine: str) -> RunOutcome:
    """Return a run that a worker sent; write its recording to ``record``."""
    if record is None:
        finished = unpack(packed, None)
    else:
        try:
            with writing.create(record) as file:
                finished = unpack(packed, file)
        except OSError as error:
            raise LabError(f"can't write {record}: {error.strerror}") from None
    where = finished.machine and replace(finished.machine, name=machine)
    result = replace(finished.result, machine=machine)
    return replace(finished, result=result, machine=where)


# --- the workers of a cluster as workers; a lost worker's finished runs are kept ------------------

LOOK_S = 0.5
"""Interval in seconds between queries for the present workers."""
ATTEND_S = 5.0
"""Interval in seconds between queries to each worker about its runs."""
_ANSWER_S = 10.0
"""Seconds within which the scheduler, or a worker, must answer a query."""
_JOIN_S = 120.0
"""Seconds within which a new worker must start a lab that reports its capabilities."""
_SILENCE_S = 30.0
"""Seconds without an answer after which a worker counts as lost."""


class ClusterWorkers(RemoteWorkers):
    """The workers of a scheduler; used with ``async with``."""

    def __init__(
        self,
        address: str,
        security: Security | None,
        stop: asyncio.Event,
        *,
        experiment: str,
        files: Mapping[str, bytes],
        jobs: int | None = None,
        kernel: str | None = None,
        mixed_kernels: bool = False,
        coordinator: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare to connect; ``stop`` ends every run.

        ``experiment`` is the prefix of each run's key; ``files`` are the user's own, by name.

        ``jobs`` limits the runs in parallel on a worker. Workers with a kernel other than
        ``kernel``, or than the first worker's, receive no runs unless ``mixed_kernels``. A
        ``coordinator`` leaves finished runs where they are, and ends no current runs.
        """
        super().__init__()
        self.scheduler = SchedulerConnection(address, security)
        self.stop = stop
        self.assigned: dict[str, str] = {}
        self.files = dict(files)
        self.experiment = experiment
        self.without_recordings = coordinator
        self._leaves = coordinator
        self._asks = True
        self._adopted: dict[str, set[str]] = defaultdict(set)
        self._over: set[str] = set()
        self._jobs = jobs
        self._kernel = kernel
        self._mixed = mixed_kernels
        self._report = report
        self._workers: dict[str, ClusterWorker] = {}
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._refused: set[str] = set()
        self._reported: set[str] = set()
        self._forget: dict[str, set[str]] = defaultdict(set)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        """Connect, and wait for the first worker.

        Raises ``LabError`` if there is no scheduler, ``UnsupportedError`` if the workers have
        different kernels.
        """
        try:
            await self.scheduler.connect()
        except (TimeoutError, OSError) as error:
            raise LabError(
                f"no scheduler at {self.scheduler.address}: {error or 'it does not answer'}"
            ) from None
        self._tasks = [asyncio.create_task(self._watch_scheduler())]
        try:
            await self._await_first()
        except BaseException:
            await self._end()
            raise
        self._tasks.append(asyncio.create_task(self._query_all()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all unfinished runs, unless somebody else has taken them over; disconnect."""
        await self._end()

    def available(self) -> Sequence[Worker]:
        """Return the workers that accept runs, in the order of their names."""
        return sorted(self._workers.values(), key=lambda each: each.name)

    def discard_copy(self, order: RunOrder) -> None:
        """Let the workers delete a run that is kept here."""
        key = key_of(self.experiment, order, self.files)
        self._over.add(key)
        for worker in self._workers.values():
            self._forget[worker.address].add(key)

    def find_holder(self, key: str) -> ClusterWorker | None:
        """Return a worker that is making a run, or has it on its machine's disk."""
        found = [each for each in self._workers.values() if key in each.running]
        found += [each for each in self._workers.values() if key in each.kept]
        return found[0] if found else None

    def mark_wanted(self, key: str) -> None:
        """Record that a run is wanted, wherever it is made."""
        self.assigned[key] = ""
        for adopted in self._adopted.values():
            adopted.discard(key)

    def pause(self) -> None:
        """Send the workers no more regular queries; current runs continue."""
        self._asks = False

    def exclude(self, worker: ClusterWorker, why: str) -> None:
        """Give no more runs to a worker."""
        if self._workers.get(worker.address) is worker:
            self._refuse(worker.address, f"{worker.name}: {why}")
            self._remove(worker.address, why)

    # --- workers that join and leave --------------------------------------------------------------

    async def _await_first(self) -> None:
        """Wait for the first worker, and for others that are already connected."""
        reported = False
        begun = time.monotonic()
        while not self._workers or self._joining:
            await asyncio.sleep(0.05)
            if not reported and time.monotonic() - begun > 3 and not self._joining:
                reported = True
                if self._refused and not self._mixed:
                    continue
                self._report(f"waiting for workers at {self.scheduler.address}")
        kernels = {each.kernel: each.name for each in self._workers.values()}
        if len(kernels) > 1 and not self._mixed:
            listed = ", ".join(f"{name} has Linux {kernel}" for kernel, name in kernels.items())
            raise UnsupportedError(
                f"the workers have different kernels: {listed}; use those of one kernel, or add "
                "--mixed-kernels"
            )
        self._kernel = self._kernel or next(iter(kernels))

    async def _watch_scheduler(self) -> None:
        """Query the present workers at intervals."""
        self.scheduler.connected = True
        while True:
            try:
                there = await self.scheduler.count_threads(within_s=_ANSWER_S)
                if not self.scheduler.connected:
                    self._report(f"connected to {self.scheduler.address} again")
                self.scheduler.connected = True
            except (TimeoutError, OSError, RuntimeError):
                if self.scheduler.connected:
                    self._report(f"no answer from {self.scheduler.address}: trying again")
                self.scheduler.connected, there = False, {}
            for address in [each for each in self._workers if each not in there]:
                self._remove(address, "it left the cluster")
            for address, threads in there.items():
                if address not in (*self._workers, *self._joining, *self._refused):
                    joining = self._join(address, threads)
                    self._joining[address] = asyncio.create_task(joining)
            await asyncio.sleep(LOOK_S)

    async def _join(self, address: str, threads: int) -> None:
        """Query a new worker's capabilities; use it if it fits."""
        try:
            text = await self.scheduler.call(address, tasks.describe, self.files, within_s=_JOIN_S)
            report = msgspec.json.decode(printable_json(text), type=WorkerInfo)
            if (why := self._find_misfit(report)) is None:
                answer = await self._query_status(address, self._wanted(address), keep_others=True)
                self._adopt(address, answer.running)
                worker = ClusterWorker(self, address, report, min(threads, self._jobs or threads))
                worker.update_status(answer)
                self._workers[address] = worker
            else:
                self._refuse(address, f"{report.machine}: {why}")
        except (TimeoutError, OSError):
            pass  # It is queried again as long as the scheduler lists it.
        except CcplayError as error:
            self._refuse(address, str(error))
        except ImportError:
            self._refuse(
                address, f"{address}: no ccplay there: pip install 'ccplay[cluster]' on the worker"
            )
        except Exception as error:  # noqa: BLE001 - whatever a stranger's worker raises
            self._refuse(address, f"{address}: it can't run labs: {error}")
        finally:
            self._joining.pop(address, None)
            self.changed.set()

    def _find_misfit(self, report: WorkerInfo) -> str | None:
        """Return why a worker can't be used."""
        if report.version != __version__:
            return (
                f"it has ccplay {report.version}, not {__version__}: install the same version there"
            )
        kernel = report.capabilities.kernel
        if self._kernel is not None and kernel != self._kernel and not self._mixed:
            return f"it has Linux {kernel}, not {self._kernel}; --mixed-kernels would use it"
        return None

    def _refuse(self, address: str, why: str) -> None:
        self._refused.add(address)
        if why not in self._reported:
            self._reported.add(why)
            self._report(f"a worker is not used: {why}")

    def _remove(self, address: str, why: str) -> None:
        worker = self._workers.pop(address)
        worker.mark_lost(f"{worker.name}: {why}")
        self.changed.set()

    # --- runs of workers --------------------------------------------------------------------------

    async def _query_all(self) -> None:
        """Query every worker about its runs; one that does not answer receives no more runs."""
        while True:
            workers = list(self._workers.values())
            if self._asks and not self.stop.is_set():
                await asyncio.gather(*(self._query(each) for each in workers))
            await asyncio.sleep(ATTEND_S)

    async def _query(self, worker: ClusterWorker) -> None:
        try:
            worker.update_status(
                await self._query_status(worker.address, self._wanted(worker.address))
            )
        except (TimeoutError, OSError, RuntimeError):
            silent = time.monotonic() - worker.answered > _SILENCE_S
            if silent and self._workers.get(worker.address) is worker:
                self._remove(worker.address, f"no answer for {_SILENCE_S:.0f} s")

    def _adopt(self, address: str, running: Sequence[str]) -> None:
        """Let a worker continue runs of an earlier command, until this one orders them too."""
        elsewhere = set().union(*self._adopted.values(), self._over)
        self._adopted[address] = {
            key for key in running if key not in self.assigned and key not in elsewhere
        }

    def _wanted(self, address: str) -> list[str]:
        """Return the runs that a worker may make: those not assigned to another."""
        own = [key for key, there in self.assigned.items() if there in ("", address)]
        return [*own, *self._adopted[address]]

    async def _query_status(
        self, address: str, wanted: list[str] | None, *, keep_others: bool = False
    ) -> WorkerStatus:
        forget = self._forget.pop(address, set())
        question = StatusQuery(
            experiment=self.experiment,
            wanted=wanted,
            forget=sorted(forget),
            coordinator=self.without_recordings,
            keep_others=keep_others,
        )
        try:
            sent = msgspec.json.encode(question)
            text = await self.scheduler.call(address, tasks.report_status, sent, within_s=_ANSWER_S)
        except BaseException:
            self._forget[address] |= forget
            raise
        return msgspec.json.decode(printable_json(text), type=WorkerStatus)

    async def _end(self) -> None:
        for task in [*self._tasks, *self._joining.values()]:
            task.cancel()
        if not self._leaves:
            ends = [self._query_status(address, None) for address in self._workers]
            await asyncio.gather(*ends, return_exceptions=True)
        for worker in self._workers.values():
            worker.mark_lost("the experiment is over")
        await self.scheduler.close()

    async def hand_over(self, handover: Handover) -> None:
        """Let a worker distribute the runs from now on, without interrupting current ones.

        Dask starts the coordinator elsewhere if its worker dies. Raises ``LabError``.
        """
        self.pause()
        self._leaves = True
        full = replace(handover, jobs=self._jobs, kernel=self._kernel, mixed_kernels=self._mixed)
        try:
            if full.sha256 not in await self._coordinated():
                await self._call_all(tasks.stop_coordinating)
                await self._start(full)
            await self._call_all(tasks.leave)
        except (TimeoutError, OSError, RuntimeError) as error:
            raise LabError(
                f"{self.scheduler.address}: the experiment was not handed over: "
                f"{error or 'no answer'}; finished runs are kept on the workers"
            ) from None

    async def _start(self, handover: Handover) -> None:
        if self.scheduler.client is None:
            raise OSError("not connected")
        asked = self.scheduler.client.submit(
            coordinate,
            self.experiment,
            msgspec.json.encode(handover),
            self.files,
            key=f"{self.experiment}-coordinator-{secrets.token_hex(4)}",
            priority=100,
            pure=False,
        )
        fire_and_forget(asked)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAKEN_S):
                while handover.sha256 not in await self._coordinated():  # noqa: ASYNC110 - elsewhere
                    await asyncio.sleep(LOOK_S / 5)

    async def _coordinated(self) -> set[str]:
        """Return the handovers coordinated by workers, by their digests."""
        for worker in list(self._workers.values()):
            # The last query, so it names what need not be kept; current runs may continue.
            worker.update_status(await self._query_status(worker.address, [], keep_others=True))
        return {worker.coordinates for worker in self._workers.values()}

    async def _call_all(self, work: object) -> None:
        for worker in list(self._workers.values()):
            await self.scheduler.call(worker.address, work, self.experiment, within_s=_ASK_S)


# --- a worker that distributes runs in place of the user's machine -------------------------------

_AGAIN_S = 30.0
"""Seconds before a coordinator without a scheduler, or without suitable workers, tries again."""
_TAKEN_S = 15.0
"""Seconds to wait until a worker coordinates an experiment; then it is left to the scheduler."""
_ASK_S = 10.0
# Created once, at import: msgspec must not inspect a type in two threads at a time.
_HANDOVERS = msgspec.json.Decoder(Handover)


def coordinate(experiment: str, handover: bytes, files: dict[str, bytes]) -> None:
    """Distribute the runs of an experiment until all are finished: a task of Dask.

    It pauses while the user's machine controls the experiment. Runs that it had distributed before
    its worker died are on the workers, and are not repeated.
    """
    worker = get_worker()
    tasks.refuse_strangers(worker)
    tasks.admit_files(files)
    plan = _HANDOVERS.decode(handover)
    here = tasks.own_labs()
    here.coordinate(experiment, plan.sha256)
    address, security = worker.scheduler.address, worker.security
    # Runs need the worker's threads.
    secede()
    asyncio.run(_Coordinator(experiment, plan, files, here).coordinate(address, security))


class _Coordinator(msgspec.Struct, frozen=True):
    """One experiment, coordinated by a worker."""

    experiment: str
    plan: Handover
    files: dict[str, bytes]
    here: WorkerLabs

    async def coordinate(self, address: str, security: Security) -> None:
        """Distribute runs whenever nobody else does, until none is left."""
        try:
            while self._is_unfinished():
                if self.here.watched(self.experiment):
                    await asyncio.sleep(LOOK_S)
                    continue
                try:
                    if await self._give_out(address, security):
                        return
                except (LabError, UnsupportedError) as error:
                    notify(f"experiment {self.experiment}: {error}")
                    await asyncio.sleep(_AGAIN_S)
        finally:
            self.here.stop_coordinating(self.experiment, self.plan.sha256)

    def _is_unfinished(self) -> bool:
        return self.here.coordinates(self.experiment, self.plan.sha256)

    async def _give_out(self, address: str, security: Security) -> bool:
        """Distribute runs until all are finished; return False if somebody else continues."""
        stop = asyncio.Event()
        # However this ends, current runs belong to somebody.
        workers = ClusterWorkers(
            address,
            security,
            stop,
            experiment=self.experiment,
            files=self.files,
            jobs=self.plan.jobs,
            kernel=self.plan.kernel,
            mixed_kernels=self.plan.mixed_kernels,
            coordinator=True,
            report=notify,
        )
        watching = asyncio.create_task(self._watch(stop))
        try:
            async with workers:
                schedule = FixedSchedule(self._left())
                pool = Pool(schedule, workers, stop, self.plan.order, report=notify)
                await pool.run(self._measure, lambda _, __: None)
        finally:
            watching.cancel()
        return not stop.is_set()

    async def _watch(self, stop: asyncio.Event) -> None:
        """Stop distributing when somebody else does, which another thread records."""
        while self._is_unfinished() and not self.here.watched(self.experiment):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        stop.set()

    def _left(self) -> list[PlannedRun]:
        """Return the runs that were neither finished before nor fetched since."""
        fetched = self.here.fetched(self.experiment)
        return [
            run
            for run in self.plan.runs()
            if key_of(self.experiment, self.plan.order(run), self.files) not in fetched
        ]

    async def _measure(self, attempt: Attempt, worker: Worker) -> RunOutcome:
        """Let a worker make one attempt at a run, and keep it on its disk."""
        order = self.plan.order(attempt.run, attempt.number)
        try:
            return await worker.execute(order, None)
        except WorkerLostError as error:
            if attempt.lost < MOST_LOST:
                raise
            return failed_outcome(order, str(error))
