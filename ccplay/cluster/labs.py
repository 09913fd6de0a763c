"""Functions executed by a worker: runs in labs of its process, and reports about the worker.

Everything is sent as JSON: an order is data, checked when it is read.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from distributed import Worker, get_worker

from ccplay import __version__
from ccplay.bpf.custom_files import custom_algorithms
from ccplay.cluster.certificate import is_loopback
from ccplay.cluster.spool import Spool, pack, valid, without_recording
from ccplay.doctor import SMALLEST, examine
from ccplay.errors import LabError
from ccplay.experiment.bench import Door
from ccplay.experiment.orders import Finished, Order, carry_out
from ccplay.lab.custom.files import custom_disciplines
from ccplay.model.commands import Build
from ccplay.model.disciplines import SUFFIX
from ccplay.model.values import Capabilities
from ccplay.scenario.rules.custom_algorithms import admit, admit_disciplines
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import LabSource, Source

MACHINE = "CCPLAY_MACHINE"
"""Name of the environment variable with the machine's name, for workers in containers."""
LEASE_S = 180.0
"""Seconds without a query by its experiment after which a run is ended; a minute without the
network must not end it."""
WATCHED_S = 30.0
"""Seconds without a query by the user's machine after which a conductor resumes."""
_BEAT_S = 1.0
_FRESH_S = 20.0
_T = TypeVar("_T")

Files = Mapping[str, bytes]
"""The user's own files by name."""


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a worker about itself when it joins."""

    machine: str
    version: str
    capabilities: Capabilities


class Attendance(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's runs of an experiment."""

    running: list[str]
    """Keys of the runs in progress."""
    kept: list[str]
    """Keys of finished runs on its disk."""
    conducts: str = ""
    """Digest of the handover whose runs this worker distributes; empty if there is none."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The regular query to a worker, which also confirms that its runs are wanted."""

    experiment: str
    wanted: list[str] | None
    """Keys of the runs that may continue; None ends all of them, and the experiment."""
    forget: list[str] = []
    """Keys of finished runs that are now kept elsewhere."""
    conductor: bool = False
    """Whether a conductor sends the query rather than the user's machine."""
    spare: bool = False
    """Whether unwanted runs may continue too: the first query only asks what a worker has."""


class _Making:
    """A run in progress."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.begun = time.monotonic()
        self.stop = asyncio.Event()
        self.task: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()


class Labs:
    """The labs of this process, in an event loop of their own beside the worker's."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._making: dict[str, _Making] = {}
        self._attended: dict[str, float] = {}
        self._watched: dict[str, float] = {}
        self._fetched: dict[str, set[str]] = defaultdict(set)
        self._conducted: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._door = Door()
        threading.Thread(target=self._loop.run_forever, name="labs", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._end_leases(), self._loop)

    def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the labs' loop and wait for it, from a thread of the worker."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def report(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the labs' loop and wait for it, from the worker's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def make(self, key: str, order: Order, files: Files) -> bytes:
        """Return a run: from the disk, by waiting for one in progress, or by making it."""
        if (packed := self._spool.fetch(valid(key))) is not None:
            return packed
        self._attended[_experiment(key)] = time.monotonic()
        if (making := self._making.get(key)) is None:
            making = self._making[key] = _Making(key)
            making.task = asyncio.create_task(self._play(making, order, files))
        return await asyncio.shield(making.task)

    async def describe(self, files: Files) -> BenchReport:
        """Start a lab to query the capabilities of this machine. Raises ``LabError``."""
        argv = launch.lab_argv(None, None, self._placed(files))
        found = await examine(LabSource(argv, SMALLEST))
        return BenchReport(machine=machine(), version=__version__, capabilities=found)

    async def attend(self, asked: Question) -> Attendance:
        """End the runs of an experiment that are not wanted, and report the others."""
        experiment, wanted = asked.experiment, asked.wanted
        self._attended[experiment] = now = time.monotonic()
        self._spool.forget(asked.forget)
        if asked.conductor:
            pass
        elif wanted is None:
            self._conducted.pop(experiment, None)
            self._fetched.pop(experiment, None)
        else:
            self._watched[experiment] = now
            self._fetched[experiment].update(asked.forget)
        own = [each for each in self._making.values() if _experiment(each.key) == experiment]
        for making in own:
            # A run that has just started may be newer than the query.
            old = now - making.begun > _FRESH_S
            if wanted is None or (making.key not in wanted and old and not asked.spare):
                making.stop.set()
        return Attendance(
            running=[each.key for each in own if not each.stop.is_set()],
            kept=self._spool.keys(experiment),
            conducts=self._conducted.get(experiment, ""),
        )

    def fetch(self, key: str, *, brief: bool) -> bytes:
        """Return a finished run from the disk, ``brief`` without its recording; empty if none."""
        packed = self._spool.fetch(valid(key)) or b""
        return without_recording(packed) if brief else packed

    # --- an experiment that was handed over -------------------------------------------------------

    def conduct(self, experiment: str, handover: str) -> None:
        """Record that this process distributes the runs of a handover, named by its digest."""
        self._conducted[experiment] = handover

    def conducts(self, experiment: str, handover: str) -> bool:
        """Return whether this process conducts a handover that has not been ended or replaced."""
        return self._conducted.get(experiment) == handover

    def end_conducting(self, experiment: str, handover: str | None = None) -> None:
        """Stop distributing the runs of an experiment, or only those of one handover."""
        if handover is None or self.conducts(experiment, handover):
            self._conducted.pop(experiment, None)

    def watched(self, experiment: str) -> bool:
        """Return whether somebody controls the experiment, and so distributes its runs."""
        return time.monotonic() - self._watched.get(experiment, -WATCHED_S) < WATCHED_S

    def fetched(self, experiment: str) -> frozenset[str]:
        """Return the keys of fetched runs, whose copies are no longer needed."""
        return frozenset(self._fetched.get(experiment, ()))

    def leave(self, experiment: str) -> None:
        """Record that whoever controlled the experiment has handed it over."""
        self._watched.pop(experiment, None)

    async def _play(self, making: _Making, order: Order, files: Files) -> bytes:
        """Make a run, and keep it on disk before reporting it."""
        try:
            if order.version != __version__:
                raise LabError(
                    f"{machine()} has ccplay {__version__}, the experiment {order.version}: "
                    "install the same version there"
                )
            with self._spool.workplace() as folder:
                record = folder / "run.ccplay"
                finished = await self._carry_out(making, order, files, record)
                packed = await asyncio.to_thread(pack, finished, record)
            if finished.whole:
                self._spool.keep(making.key, packed)
            return packed
        finally:
            del self._making[making.key]

    async def _carry_out(
        self, making: _Making, order: Order, files: Files, record: Path
    ) -> Finished:
        argv = launch.lab_argv(None, record.parent, self._placed(files))

        def start(build: Build) -> Source:
            return LabSource(argv, build)

        async with self._door.turn() as end_turn:

            def watch(state: LabState) -> None:
                if state.ready_at is not None:
                    end_turn()

            return await carry_out(order, start, making.stop, record=record, watch=watch)

    def _placed(self, files: Files) -> list[Path]:
        """Return the user's own algorithms and disciplines as files of this machine."""
        return [self._spool.place(name, content) for name, content in files.items()]

    async def _end_leases(self) -> None:
        """End the runs of experiments whose lease has expired."""
        while True:
            await asyncio.sleep(_BEAT_S)
            for making in self._making.values():
                since = time.monotonic() - self._attended.get(_experiment(making.key), 0.0)
                if since > LEASE_S:
                    making.stop.set()


def machine() -> str:
    """Return this machine's name."""
    return os.environ.get(MACHINE) or socket.gethostname()


def _experiment(key: str) -> str:
    return key.partition("-")[0]


# Created once, at import: msgspec must not inspect a type in two threads at a time.
_ORDERS = msgspec.json.Decoder(Order)
_QUESTIONS = msgspec.json.Decoder(Question)
_first = threading.Lock()


@functools.cache
def _made() -> Labs:
    return Labs()


def own_labs() -> Labs:
    """Return the labs of this process. Tasks arrive in several threads."""
    with _first:
        return _made()


def make(key: str, order: bytes, files: dict[str, bytes], brief: bool) -> bytes:
    """Make a run, as a task of Dask; return data for ``spool.unpack``.

    A ``brief`` answer has no recording, which stays on the worker's disk.
    """
    refuse_strangers(get_worker())
    admit_files(files)
    packed = own_labs().wait(own_labs().make(key, _ORDERS.decode(order), files))
    return without_recording(packed) if brief else packed


async def describe(files: dict[str, bytes], dask_worker: Worker) -> bytes:
    """Return the worker's ``BenchReport``."""
    refuse_strangers(dask_worker)
    return msgspec.json.encode(await own_labs().report(own_labs().describe(files)))


async def attend(question: bytes) -> bytes:
    """Return the worker's ``Attendance``; raises ``LabError`` for an invalid question."""
    attendance = own_labs().attend(_QUESTIONS.decode(question))
    return msgspec.json.encode(await own_labs().report(attendance))


async def fetch(key: str, brief: bool) -> bytes:
    """Return a finished run from the worker's disk; empty if it is not there."""
    return await asyncio.to_thread(own_labs().fetch, key, brief=brief)


async def leave(experiment: str) -> bytes:
    """Let conductors resume at once, without the user's machine."""
    own_labs().leave(experiment)
    return b"left"


async def end_conducting(experiment: str) -> bytes:
    """End the conductors of an experiment because another one follows; their runs continue."""
    own_labs().end_conducting(experiment)
    return b"ended"


def admit_files(files: Files) -> None:
    """Allow the names of the user's own files in orders that are read from now on."""
    paths = [Path(name) for name in files]
    admit(custom_algorithms(path for path in paths if path.suffix != SUFFIX))
    admit_disciplines(custom_disciplines(path for path in paths if path.suffix == SUFFIX))


def refuse_strangers(worker: Worker) -> None:
    """Raise ``LabError`` on a worker that accepts orders from anyone on the network."""
    if not (worker.address.startswith("tls://") or is_loopback(worker.address)):
        raise LabError(
            f"{machine()}: this worker listens on plain tcp beyond its own machine: start "
            "scheduler and worker with TLS (see ccplay cluster certificate)"
        )
