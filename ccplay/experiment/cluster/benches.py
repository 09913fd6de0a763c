"""The workers of a cluster as benches; a lost worker's finished runs are kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
from distributed import Client
from distributed.security import Security
from msgspec.structs import replace

from ccplay import __version__
from ccplay.errors import CcplayError, LabError, UnsupportedError
from ccplay.experiment.cluster import serving
from ccplay.experiment.cluster.serving import Attendance, BenchReport, Question, key_of, unpack
from ccplay.experiment.orders import Finished, Order, interrupted
from ccplay.experiment.pool import Bench, BenchLostError, Window
from ccplay.files import writing
from ccplay.scenario.rules import check_against
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from ccplay.visible import printable_json

# --- one worker of a cluster as a bench -----------------------------------------------------------

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
            serving.make,
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
        asked = (serving.fetch, key, self._owner.brief)
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


# --- the workers of a cluster as benches; a lost worker's finished runs are kept ------------------

LOOK_S = 0.5
"""Interval in seconds between queries for the present workers."""
ATTEND_S = 5.0
"""Interval in seconds between queries to each worker about its runs."""
_ANSWER_S = 10.0
"""Seconds within which a worker must answer a query about its runs."""
_JOIN_S = 120.0
"""Seconds within which a new worker must start a lab that reports its capabilities."""
_SILENCE_S = 30.0
"""Seconds without an answer after which a worker counts as lost."""
_CONNECT_S = 10.0


class ClusterBenches:
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
        conductor: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare to connect; ``stop`` ends every run.

        ``experiment`` is the prefix of each run's key; ``files`` are the user's own, by name.

        ``jobs`` limits the runs in parallel on a worker. Workers with a kernel other than
        ``kernel``, or than the first worker's, receive no runs unless ``mixed_kernels``. A
        ``conductor`` leaves finished runs where they are, and ends no current runs.
        """
        self.changed = asyncio.Event()
        self.client: Client | None = None
        self.connected = False
        self.stop = stop
        self.assigned: dict[str, str] = {}
        self.files = dict(files)
        self.experiment = experiment
        self.brief = conductor
        self._leaves = conductor
        self._asks = True
        self._adopted: dict[str, set[str]] = defaultdict(set)
        self._over: set[str] = set()
        self._address = address
        self._security = security
        self._jobs = jobs
        self._kernel = kernel
        self._mixed = mixed_kernels
        self._report = report
        self._benches: dict[str, WorkerBench] = {}
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
            self.client = await self._connected()
        except (TimeoutError, OSError) as error:
            raise LabError(
                f"no scheduler at {self._address}: {error or 'it does not answer'}"
            ) from None
        self._tasks = [asyncio.create_task(self._look())]
        try:
            await self._first()
        except BaseException:
            await self._end()
            raise
        self._tasks.append(asyncio.create_task(self._attend_all()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all unfinished runs, unless somebody else has taken them over; disconnect."""
        await self._end()

    def there(self) -> Sequence[Bench]:
        """Return the workers that accept runs, in the order of their names."""
        return sorted(self._benches.values(), key=lambda each: each.name)

    def settled(self, order: Order) -> None:
        """Let the workers delete a run that is kept here."""
        key = key_of(self.experiment, order, self.files)
        self._over.add(key)
        for bench in self._benches.values():
            self._forget[bench.address].add(key)

    def holder(self, key: str) -> WorkerBench | None:
        """Return a worker that is making a run, or has it on its machine's disk."""
        found = [each for each in self._benches.values() if key in each.running]
        found += [each for each in self._benches.values() if key in each.kept]
        return found[0] if found else None

    def take_up(self, key: str) -> None:
        """Record that a run is wanted, wherever it is made."""
        self.assigned[key] = ""
        for adopted in self._adopted.values():
            adopted.discard(key)

    def pause(self) -> None:
        """Send the workers no more regular queries; current runs continue."""
        self._asks = False

    def drop(self, bench: WorkerBench, why: str) -> None:
        """Give no more runs to a worker."""
        if self._benches.get(bench.address) is bench:
            self._refuse(bench.address, f"{bench.name}: {why}")
            self._remove(bench.address, why)

    async def call(self, bench_address: str, work: Any, *arguments: Any, within_s: float) -> bytes:
        """Call a function on a worker; raises ``OSError``, ``TimeoutError``, and its exceptions."""
        if self.client is None:
            raise OSError("not connected")
        asked: Awaitable[dict[str, Any]] = self.client.run(
            work, *arguments, workers=[bench_address], on_error="return"
        )
        answer = (await asyncio.wait_for(asked, within_s)).get(bench_address)
        if isinstance(answer, BaseException):
            raise answer
        if not isinstance(answer, bytes):
            raise OSError("the worker is gone")
        return answer

    # --- workers that join and leave --------------------------------------------------------------

    async def _connected(self) -> Client:
        client = Client(
            self._address,
            asynchronous=True,
            security=self._security,
            timeout=_CONNECT_S,
            set_as_default=False,
            name="ccplay",
        )
        try:
            return await asyncio.wait_for(client, _CONNECT_S + 5)
        except BaseException:
            with contextlib.suppress(Exception):
                await client.close(timeout=0)
            raise

    async def _first(self) -> None:
        """Wait for the first worker, and for others that are already connected."""
        reported = False
        begun = time.monotonic()
        while not self._benches or self._joining:
            await asyncio.sleep(0.05)
            if not reported and time.monotonic() - begun > 3 and not self._joining:
                reported = True
                if self._refused and not self._mixed:
                    continue
                self._report(f"waiting for workers at {self._address}")
        kernels = {each.kernel: each.name for each in self._benches.values()}
        if len(kernels) > 1 and not self._mixed:
            listed = ", ".join(f"{name} has Linux {kernel}" for kernel, name in kernels.items())
            raise UnsupportedError(
                f"the workers have different kernels: {listed}; use those of one kernel, or add "
                "--mixed-kernels"
            )
        self._kernel = self._kernel or next(iter(kernels))

    async def _look(self) -> None:
        """Query the present workers at intervals."""
        self.connected = True
        while True:
            try:
                there = await self._addresses()
                if not self.connected:
                    self._report(f"connected to {self._address} again")
                self.connected = True
            except (TimeoutError, OSError, RuntimeError):
                if self.connected:
                    self._report(f"no answer from {self._address}: trying again")
                self.connected, there = False, {}
            for address in [each for each in self._benches if each not in there]:
                self._remove(address, "it left the cluster")
            for address, threads in there.items():
                if address not in (*self._benches, *self._joining, *self._refused):
                    joining = self._join(address, threads)
                    self._joining[address] = asyncio.create_task(joining)
            await asyncio.sleep(LOOK_S)

    async def _addresses(self) -> dict[str, int]:
        """Return the workers' addresses and threads; reconnect if the connection was lost."""
        if self.client is None or self.client.status in ("closed", "closing"):
            self.client = None
            self.client = await self._connected()
        asked = self.client.scheduler.ncores()
        found: dict[str, int] = await asyncio.wait_for(asked, _ANSWER_S)
        return found

    async def _join(self, address: str, threads: int) -> None:
        """Query a new worker's capabilities; use it if it fits."""
        try:
            text = await self.call(address, serving.describe, self.files, within_s=_JOIN_S)
            report = msgspec.json.decode(printable_json(text), type=BenchReport)
            if (why := self._unfit(report)) is None:
                answer = await self._attendance(address, self._wanted(address), spare=True)
                self._adopt(address, answer.running)
                bench = WorkerBench(self, address, report, min(threads, self._jobs or threads))
                bench.took(answer)
                self._benches[address] = bench
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

    def _unfit(self, report: BenchReport) -> str | None:
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
        bench = self._benches.pop(address)
        bench.lose(f"{bench.name}: {why}")
        self.changed.set()

    # --- runs of workers --------------------------------------------------------------------------

    async def _attend_all(self) -> None:
        """Query every worker about its runs; one that does not answer receives no more runs."""
        while True:
            benches = list(self._benches.values())
            if self._asks and not self.stop.is_set():
                await asyncio.gather(*(self._attend(each) for each in benches))
            await asyncio.sleep(ATTEND_S)

    async def _attend(self, bench: WorkerBench) -> None:
        try:
            bench.took(await self._attendance(bench.address, self._wanted(bench.address)))
        except (TimeoutError, OSError, RuntimeError):
            silent = time.monotonic() - bench.answered > _SILENCE_S
            if silent and self._benches.get(bench.address) is bench:
                self._remove(bench.address, f"no answer for {_SILENCE_S:.0f} s")

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

    async def _attendance(
        self, address: str, wanted: list[str] | None, *, spare: bool = False
    ) -> Attendance:
        forget = self._forget.pop(address, set())
        question = Question(
            experiment=self.experiment,
            wanted=wanted,
            forget=sorted(forget),
            conductor=self.brief,
            spare=spare,
        )
        try:
            sent = msgspec.json.encode(question)
            text = await self.call(address, serving.attend, sent, within_s=_ANSWER_S)
        except BaseException:
            self._forget[address] |= forget
            raise
        return msgspec.json.decode(printable_json(text), type=Attendance)

    async def _end(self) -> None:
        for task in [*self._tasks, *self._joining.values()]:
            task.cancel()
        if not self._leaves:
            ends = [self._attendance(address, None) for address in self._benches]
            await asyncio.gather(*ends, return_exceptions=True)
        for bench in self._benches.values():
            bench.lose("the experiment is over")
        if self.client is not None:
            with contextlib.suppress(Exception):
                await self.client.close(timeout=2)
