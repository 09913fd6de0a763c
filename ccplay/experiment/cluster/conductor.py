"""The conductor, which distributes the runs of an experiment: the user's machine, else a worker."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

import msgspec
from distributed import fire_and_forget, get_worker, secede
from distributed.security import Security

from ccplay.errors import LabError, UnsupportedError
from ccplay.experiment.cluster import serving
from ccplay.experiment.cluster.benches import ClusterBenches
from ccplay.experiment.cluster.serving import Labs, key_of
from ccplay.experiment.orders import Handover, failed
from ccplay.experiment.plan import Planned, Run
from ccplay.experiment.pool import Attempt, Bench, BenchLostError, Outcome, Pool
from ccplay.experiment.runner import MOST_LOST
from ccplay.visible import notify

_LOOK_S = 0.5
_AGAIN_S = 30.0
"""Seconds before a conductor without a scheduler, or without suitable workers, tries again."""
_TAKEN_S = 15.0
"""Seconds to wait until a worker conducts an experiment; after that it is left to the scheduler."""
_ASK_S = 10.0
# Created once, at import: msgspec must not inspect a type in two threads at a time.
_HANDOVERS = msgspec.json.Decoder(Handover)


class UserBenches(ClusterBenches):
    """The workers under control of the user's machine, which may hand the experiment over."""

    async def hand_over(self, handover: Handover) -> None:
        """Let a worker distribute the runs from now on, without interrupting current ones.

        Dask starts the conductor elsewhere if its worker dies. Raises ``LabError``.
        """
        self.pause()
        self._leaves = True
        full = msgspec.structs.replace(
            handover, jobs=self._jobs, kernel=self._kernel, mixed_kernels=self._mixed
        )
        try:
            if full.sha256 not in await self._conducted():
                await self._call_all(serving.end_conducting)
                await self._start(full)
            await self._call_all(serving.leave)
        except (TimeoutError, OSError, RuntimeError) as error:
            raise LabError(
                f"{self._address}: the experiment was not handed over: "
                f"{error or 'no answer'}; finished runs are kept on the workers"
            ) from None

    async def _start(self, handover: Handover) -> None:
        if self.client is None:
            raise OSError("not connected")
        asked = self.client.submit(
            conduct,
            self.experiment,
            msgspec.json.encode(handover),
            self.files,
            key=f"{self.experiment}-conductor-{secrets.token_hex(4)}",
            priority=100,
            pure=False,
        )
        fire_and_forget(asked)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAKEN_S):
                while handover.sha256 not in await self._conducted():  # noqa: ASYNC110 - elsewhere
                    await asyncio.sleep(_LOOK_S / 5)

    async def _conducted(self) -> set[str]:
        """Return the handovers conducted by workers, by their digests."""
        for bench in list(self._benches.values()):
            # The last query, so it names what need not be kept; current runs may continue.
            bench.took(await self._attendance(bench.address, [], spare=True))
        return {bench.conducts for bench in self._benches.values()}

    async def _call_all(self, work: object) -> None:
        for bench in list(self._benches.values()):
            await self.call(bench.address, work, self.experiment, within_s=_ASK_S)


def conduct(experiment: str, handover: bytes, files: dict[str, bytes]) -> None:
    """Distribute the runs of an experiment until all are finished: a task of Dask.

    It pauses while the user's machine controls the experiment. Runs that it had distributed before
    its worker died are on the workers, and are not repeated.
    """
    worker = get_worker()
    serving.refuse_strangers(worker)
    serving.admit_files(files)
    plan = _HANDOVERS.decode(handover)
    here = serving.own_labs()
    here.conduct(experiment, plan.sha256)
    address, security = worker.scheduler.address, worker.security
    # Runs need the worker's threads.
    secede()
    asyncio.run(_Conductor(experiment, plan, files, here).conduct(address, security))


class _Conductor(msgspec.Struct, frozen=True):
    """One experiment, conducted by a worker."""

    experiment: str
    plan: Handover
    files: dict[str, bytes]
    here: Labs

    async def conduct(self, address: str, security: Security) -> None:
        """Distribute runs whenever nobody else does, until none is left."""
        try:
            while self._is_unfinished():
                if self.here.watched(self.experiment):
                    await asyncio.sleep(_LOOK_S)
                    continue
                try:
                    if await self._give_out(address, security):
                        return
                except (LabError, UnsupportedError) as error:
                    notify(f"experiment {self.experiment}: {error}")
                    await asyncio.sleep(_AGAIN_S)
        finally:
            self.here.end_conducting(self.experiment, self.plan.sha256)

    def _is_unfinished(self) -> bool:
        return self.here.conducts(self.experiment, self.plan.sha256)

    async def _give_out(self, address: str, security: Security) -> bool:
        """Distribute runs until all are finished; return False if somebody else continues."""
        stop = asyncio.Event()
        # However this ends, current runs belong to somebody.
        benches = ClusterBenches(
            address,
            security,
            stop,
            experiment=self.experiment,
            files=self.files,
            jobs=self.plan.jobs,
            kernel=self.plan.kernel,
            mixed_kernels=self.plan.mixed_kernels,
            conductor=True,
            report=notify,
        )
        watching = asyncio.create_task(self._watch(stop))
        try:
            async with benches:
                pool = Pool(Planned(self._left()), benches, stop, report=notify, lacks=self._lacks)
                await pool.run(self._measure, lambda _, __: None)
        finally:
            watching.cancel()
        return not stop.is_set()

    async def _watch(self, stop: asyncio.Event) -> None:
        """Stop distributing when somebody else does, which another thread records."""
        while self._is_unfinished() and not self.here.watched(self.experiment):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        stop.set()

    def _left(self) -> list[Run]:
        """Return the runs that were neither finished before nor fetched since."""
        fetched = self.here.fetched(self.experiment)
        return [
            run
            for run in self.plan.runs()
            if key_of(self.experiment, self.plan.order(run), self.files) not in fetched
        ]

    def _lacks(self, bench: Bench, run: Run) -> str:
        return bench.lacks(self.plan.order(run))

    async def _measure(self, attempt: Attempt, bench: Bench) -> Outcome:
        """Let a worker make one attempt at a run, and keep it on its disk."""
        order = self.plan.order(attempt.run, attempt.number)
        try:
            finished = await bench.carry_out(order, None)
        except BenchLostError as error:
            if attempt.lost < MOST_LOST:
                raise
            finished = failed(order, str(error))
        return Outcome(finished.result, whole=finished.whole, machine=finished.machine)
