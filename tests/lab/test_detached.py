"""Experiments without the machine that began them. Workers are real, their runs are no labs."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="ccplay[cluster] is not installed")

from tests.lab import stand_in
from tests.lab.commands import progress
from tests.lab.test_cluster import Cluster, clustered, outcome
from tests.terminals import PATIENCE_S, eventually

RUNS = 8
SCENARIO = """
duration = "{seconds} s"
repeats = {runs}
topology.kind = "linear"
links.bottleneck = {{ rate = "5 Mbit/s", delay = "5 ms", queue = {{ kind = "pfifo", limit = 50 }} }}
timeline = [{{ at = "0 s", do = "start-flow", cc = "reno" }}]
"""


class Experiment:
    """A scenario on a cluster whose workers log the runs that they complete."""

    def __init__(self, cluster: Cluster, seconds: float, scheduler: Process) -> None:
        self.scheduler = scheduler
        self.cluster = cluster
        self.log = cluster.folder / "runs.log"
        self.log.touch()
        self._talk = cluster.folder / "log"
        self.out = cluster.folder / "out"
        self._scenario = cluster.folder / "many.toml"
        self._scenario.write_text(SCENARIO.format(seconds=seconds, runs=RUNS))

    async def worker(self, machine: str, kernel: str = "6.0") -> Process:
        where = (self.cluster.address, str(self.cluster.pair))
        more = {stand_in.LOG: str(self.log), stand_in.KERNEL: kernel}
        worker = await self.cluster.start("tests.lab.stand_in", *where, machine=machine, **more)
        await eventually(lambda: f"{machine}: makes runs" in self._talk.read_text())
        return worker

    async def command(self, *words: str) -> Process:
        return await self.cluster.run(str(self._scenario), "--json", "--out", str(self.out), *words)

    async def said(self, *words: str) -> str:
        process = await self.command(*words)
        async with asyncio.timeout(PATIENCE_S):
            _, talk = await process.communicate()
        assert process.returncode == 0, talk.decode()
        return talk.decode()

    def completed(self) -> list[int]:
        """Return the repeats that workers have completed, sorted."""
        return sorted(int(line.split()[0]) for line in self.log.read_text().splitlines())

    async def until_completed(self, number: int) -> None:
        await eventually(lambda: len(self.completed()) >= number)


@asynccontextmanager
async def experiment(folder: Path, seconds: float = 0.2) -> AsyncIterator[Experiment]:
    async with clustered(folder) as cluster:
        yield Experiment(cluster, seconds, await cluster.scheduler())


def repeats(result: Any) -> list[int]:
    return [run["repeat"] for run in result["cases"]]


async def test_runs_continue_without_the_machine_that_ordered_them(tmp_path: Path) -> None:
    async with experiment(tmp_path) as made:
        await made.worker("one")
        talk = await made.said("--detach")
        assert f"{RUNS} runs continue without this machine" in talk
        assert "--attach" in talk
        await made.until_completed(RUNS)
        assert not list(made.out.glob("runs/*"))
        result = await outcome(await made.command("--attach"))
        assert repeats(result) == [*range(1, RUNS + 1)]
        assert len(list(made.out.glob("runs/*.ccplay"))) == RUNS
        assert made.completed() == [*range(1, RUNS + 1)]
        # What was fetched is kept here, and nowhere else.
        assert not list((tmp_path / "cache").glob("*/ccplay/bench/*-*"))


async def test_who_comes_back_may_leave_again(tmp_path: Path) -> None:
    """Ctrl-C while attached leaves the rest to the cluster; no run is repeated or aborted."""
    async with experiment(tmp_path, seconds=1.0) as made:
        await made.worker("one")
        await made.said("--detach")
        await made.until_completed(1)
        process = await made.command("--attach")
        await progress(process, f"2/{RUNS}")
        process.send_signal(signal.SIGINT)
        _, talk = await process.communicate()
        assert process.returncode == 0, talk.decode()
        assert b"runs continue without this machine" in talk
        result = await outcome(await made.command("--attach"))
        assert repeats(result) == [*range(1, RUNS + 1)]
        assert made.completed() == [*range(1, RUNS + 1)]


async def test_another_worker_conducts_when_one_dies(tmp_path: Path) -> None:
    async with experiment(tmp_path) as made:
        first = await made.worker("first")
        await made.said("--detach")
        await made.worker("second")
        await made.until_completed(2)
        first.kill()
        await made.until_completed(RUNS)
        result = await outcome(await made.command("--attach"))
        assert repeats(result) == [*range(1, RUNS + 1)]
        assert not any(run["errors"] for run in result["cases"])


async def test_what_is_cancelled_ends(tmp_path: Path) -> None:
    """No further run begins; the command that resumes fetches the finished ones."""
    async with experiment(tmp_path, seconds=1.0) as made:
        await made.worker("one")
        await made.said("--detach")
        await made.until_completed(2)
        assert "cancelled" in await made.said("--cancel")
        there = made.completed()
        process = await made.command("--attach")
        await progress(process, f"{len(there)}/{RUNS}")
        assert len(made.completed()) <= len(there) + 1
        result = await outcome(process)
        assert repeats(result) == [*range(1, RUNS + 1)]
        assert made.completed() == [*range(1, RUNS + 1)]


async def test_different_kernels_are_refused(tmp_path: Path) -> None:
    async with experiment(tmp_path) as made:
        await asyncio.gather(made.worker("old", kernel="5.4"), made.worker("new", kernel="6.9"))
        process = await made.command("--detach")
        _, talk = await process.communicate()
        assert process.returncode
        assert b"the workers have different kernels" in talk
        assert b"--mixed-kernels" in talk
