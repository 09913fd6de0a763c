"""Runs on the workers of a real scheduler, which are killed and restarted under an experiment."""

import asyncio
import contextlib
import os
import socket
import sys
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="ccplay[cluster] is not installed")

from ccplay.experiment.cluster.scheduler import write_certificate
from ccplay.experiment.store import read_run_directory, recording_of
from ccplay.stream.sources import recorded_events
from tests.lab.commands import finish, progress, start
from tests.lab.test_leaks import MARKER, marked, nothing_left

RACE = (
    *("race", "--case", "50 ms", "--repeats", "2", "--json"),
    *("--set", 'timeline.0.bytes="1 MB"', "--set", 'timeline.1.bytes="1 MB"'),
)
MANY = """
duration = "2 s"
repeats = 6
topology.kind = "linear"
links.bottleneck = { rate = "5 Mbit/s", delay = "5 ms", queue = { kind = "pfifo", limit = 50 } }
timeline = [{ at = "0 s", do = "start-flow", cc = "reno" }]
"""
_PATIENCE_S = 240.0


class Cluster:
    """A scheduler with TLS and two workers that appear as different machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pair = folder / "pair"
        paths = [str(path) for path in write_certificate(self.pair)]
        self._tls = ("--tls-ca-file", paths[0], "--tls-cert", paths[0], "--tls-key", paths[1])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tls://127.0.0.1:{self._port}"
        self._processes: list[Process] = []

    async def scheduler(self) -> Process:
        words = ("--host", f"tls://127.0.0.1:{self._port}", "--no-dashboard")
        return await self.start("dask", "scheduler", *words, *self._tls)

    async def dask_worker(self, machine: str) -> Process:
        words = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
        place = ("--local-directory", str(self.folder / machine))
        return await self.start(
            "dask", "worker", self.address, *words, *place, *self._tls, machine=machine
        )

    async def worker(self, machine: str) -> Process:
        words = ("--jobs", "1", "--certificate", str(self.pair))
        return await self.start(
            "ccplay", "cluster", "worker", self.address, *words, machine=machine
        )

    async def run(self, *words: str) -> Process:
        said = ("--cluster", self.address, "--certificate", str(self.pair))
        return await start("run", *words, *said)

    async def start(self, module: str, *words: str, machine: str = "", **more: str) -> Process:
        place = {"CCPLAY_MACHINE": machine, "XDG_CACHE_HOME": str(self.folder / "cache" / machine)}
        with (self.folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, *words),
                env=os.environ | place | more,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    async def close(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@asynccontextmanager
async def clustered(folder: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        await cluster.close()


async def outcome(process: Process) -> Any:
    """Return the result that a run prints, once it has succeeded."""
    code, result, talk = await finish(process)
    assert code == 0, talk
    return result


async def test_two_workers_make_the_runs_that_this_machine_makes(tmp_path: Path) -> None:
    """A race with two repeats: the same keys and seeds, and metrics within their intervals."""
    here = await outcome(await start("run", *RACE, "--out", tmp_path / "here"))
    async with clustered(tmp_path) as cluster:
        await cluster.scheduler()
        await cluster.dask_worker("first")
        await cluster.worker("second")
        there = await outcome(await cluster.run(*RACE, "--out", str(tmp_path / "there")))
        await _strangers_are_refused(cluster, tmp_path / "stranger")
    assert there.keys() == here.keys()
    for one, other in zip(here["cases"], there["cases"], strict=True):
        assert one.keys() == other.keys()
        assert (one["name"], one["repeat"]) == (other["name"], other["repeat"])
    assert {run["machine"] for run in there["cases"]} <= {"first", "second"}
    assert _seeds(tmp_path / "there") == _seeds(tmp_path / "here") == [1, 2]
    (one,), (other,) = here["statistics"], there["statistics"]
    assert one["reported"] == other["reported"]
    # Not in every race: the flow that does not win never completes, and shares may not converge.
    seldom = {"flows.1.fct_s", "flows.2.fct_s", "converged_s"}
    assert one["figures"].keys() ^ other["figures"].keys() <= seldom
    twice = [
        metric
        for metric in one["reported"]
        if all(each["figures"].get(metric, {"n": 0})["n"] == 2 for each in (one, other))
    ]
    assert {"checkpoint.ratio", "flows.1.goodput_bps", "flows.2.goodput_bps"} <= {*twice}
    for metric in twice:
        first, second = one["figures"][metric], other["figures"][metric]
        # Of two values each, whose t is 12.7: wide, but nobody's own choice.
        widest = max(each["high"] - each["low"] for each in (first, second))
        assert abs(first["mean"] - second["mean"]) <= max(widest, 0.5 * first["mean"]), metric
    # What was fetched is kept here, and nowhere else.
    assert not list((tmp_path / "cache").glob("*/ccplay/bench/*-*"))


MOVES = """
duration = "3 s"
topology.kind = "linear"
links.bottleneck = { rate = "9 Mbit/s", trace = "paths/even.up", queue.kind = "pfifo" }
timeline = [{ at = "0 s", do = "start-flow", cc = "reno" }]
"""


async def test_a_worker_has_the_traces_that_lie_beside_the_scenario(tmp_path: Path) -> None:
    """Every 4 ms a packet may leave, so the capacity is 3 Mbit/s: less than the link's own rate."""
    (tmp_path / "mine" / "paths").mkdir(parents=True)
    (tmp_path / "mine" / "paths" / "even.up").write_text("4\n8\n12\n")
    (path := tmp_path / "mine" / "moves.toml").write_text(MOVES)
    async with clustered(tmp_path) as cluster:
        await cluster.scheduler()
        await cluster.worker("elsewhere")
        result = await outcome(await cluster.run(str(path), "--json"))
    (run,) = result["cases"]
    assert run["machine"] == "elsewhere"
    assert run["errors"] == []
    assert 1e6 < run["flows"][0]["goodput_bps"] < 3.1e6


async def _strangers_are_refused(cluster: Cluster, folder: Path) -> None:
    """A client with another certificate reaches no worker."""
    write_certificate(folder)
    cluster.pair = folder
    process = await cluster.run(*RACE)
    out, talk = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
    assert process.returncode == 5
    assert not out
    assert b"no scheduler at tls://127.0.0.1" in talk


async def test_no_run_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """A worker is killed during a run, then the scheduler, which is restarted."""
    (path := tmp_path / "many.toml").write_text(MANY)
    async with clustered(tmp_path) as cluster:
        scheduler = await cluster.scheduler()
        await cluster.worker("stays")
        worker = await cluster.dask_worker("dies")
        process = await cluster.run(str(path), "--json", "--out", str(tmp_path / "out"))
        await progress(process, "1/6")
        worker.kill()
        await progress(process, "2/6")
        scheduler.kill()
        await scheduler.wait()
        await cluster.scheduler()
        result = await outcome(process)
    assert [run["repeat"] for run in result["cases"]] == [1, 2, 3, 4, 5, 6]
    assert not any(run["errors"] or run["interrupted"] for run in result["cases"])
    assert _seeds(tmp_path / "out") == [1, 2, 3, 4, 5, 6]


def _seeds(out: Path) -> list[int]:
    """Return the seed of each run's network from its recording."""
    found = []
    for run in read_run_directory(out).cases:
        recording = recording_of(out, run)
        assert recording is not None
        hello = next(iter(recorded_events(recording)))
        found.append(hello.build.seed)  # type: ignore[union-attr]
    return found


async def test_workers_of_a_killed_command_end_and_leave_no_key(tmp_path: Path) -> None:
    """They have no scheduler any more that could tell them to end."""
    (tmp_path / "many.toml").write_text(MANY)
    (tmp_path / "tmp").mkdir()
    marker = f"ccplay-{uuid.uuid4()}"
    cache, temporary = str(tmp_path / "cache"), str(tmp_path / "tmp")
    run = await start(
        *("run", tmp_path / "many.toml", "--cluster", "local:2", "--out", tmp_path / "out"),
        env=os.environ | {MARKER: marker, "XDG_CACHE_HOME": cache, "TMPDIR": temporary},
        stdout=asyncio.subprocess.DEVNULL,
    )
    await progress(run, "1/6")
    run.kill()
    await run.wait()
    assert not await nothing_left(lambda: [str(each) for each in marked(marker)])
    assert not list((tmp_path / "tmp").rglob("*"))
