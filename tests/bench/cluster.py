"""The cost of a run on a cluster compared to this machine, and the bytes sent per run.

Workers on this machine act as a cluster, so the measured cost is ccplay's and Dask's, not the
network's. Runs of zero length are already on the workers' disk as finished: they take the same way
through the scheduler without running a lab.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

from ccplay.analysis.summary import machine, summarise
from ccplay.experiment.cluster.distribution import ClusterWorkers
from ccplay.experiment.cluster.scheduler import open_scheduler
from ccplay.experiment.cluster.worker import Spool, key_of, pack
from ccplay.experiment.plan import plan_runs
from ccplay.experiment.pool import LocalWorker, Worker
from ccplay.experiment.trial import RunOrder, RunOutcome
from ccplay.model.commands import Build
from ccplay.scenario.reading import parse
from ccplay.session import launch
from ccplay.session.archive import read_recording
from ccplay.stream.sources import LabSource, Source
from tests.bench._figures import Spread, table
from tests.bench._thousands import PLAYGROUND

RUNS = 6
ALONE = 40
TASKS = 200
EXPERIMENT = "0" * 16
SCENARIO = """
duration = "1 s"
topology.kind = "linear"
links.bottleneck = { rate = "5 Mbit/s", delay = "5 ms" }
timeline = [{ at = "0 s", do = "start-flow", cc = "reno" }]
"""


async def run(console: Console) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        await _runs(console, folder)
        await _tasks(console, folder)


@asynccontextmanager
async def _workers(number: int) -> AsyncIterator[ClusterWorkers]:
    async with (
        open_scheduler(f"local:{number}", 4, None, print) as (address, security),
        ClusterWorkers(
            address, security, asyncio.Event(), experiment=EXPERIMENT, files={}
        ) as workers,
    ):
        while len(workers.available()) < number:
            await workers.changed.wait()
            workers.changed.clear()
        yield workers


def _orders(name: str, number: int) -> list[RunOrder]:
    """Return orders of the same short run under different names."""
    case = plan_runs(parse(SCENARIO, Path("bench.toml")))[0].played
    return [RunOrder(scenario=name, case=case, repeat=each) for each in range(1, number + 1)]


async def _runs(console: Console, folder: Path) -> None:
    """Compare real runs here with those of a worker, in turn, since other load changes.

    The time of a run beyond its duration on the lab's clock is the start and the end of a lab, and
    on a worker the overhead of the cluster.
    """
    argv = launch.lab_argv()

    def start(build: Build) -> Source:
        return LabSource(argv, build)

    here = LocalWorker(start, 1, asyncio.Event())
    rests: dict[str, list[float]] = {"here": [], "one worker": []}
    async with _workers(1) as workers:
        places: dict[str, Worker] = {"here": here, "one worker": workers.available()[0]}
        for order in _orders("runs", RUNS):
            for name, worker in places.items():
                begun = time.monotonic()
                record = folder / f"{name}-{order.repeat}".replace(" ", "-")
                finished = await worker.execute(order, record)
                rests[name].append(time.monotonic() - begun - finished.result.duration_s)
            workers.discard_copy(order)
    shown = {name: Spread.of(each) for name, each in rests.items()}
    more = statistics.median(rests["one worker"]) - statistics.median(rests["here"])
    sheet = table(f"{RUNS} runs of 1 s in turn", "", ("", *shown, "more, ms", "aim"))
    cells = (each.scaled(1, 3) for each in shown.values())
    sheet.add_row("s beside the measured time", *cells, f"{1e3 * more:.0f}", "below 50")
    console.print(sheet)


async def _tasks(console: Console, folder: Path) -> None:
    """Pass runs of zero length through the cluster, one after another and many at a time."""
    state = read_recording(PLAYGROUND)
    done = RunOutcome(result=summarise(state, ""), whole=True, machine=machine(state))
    heads = ("", "alone", "with recording", "aim")
    rows: list[list[str]] = [[], [], []]
    async with _workers(2) as workers:
        there = list(workers.available())
        for name, recording in (("alone", folder / "none"), ("with", PLAYGROUND)):
            packed, spool, orders = pack(done, recording), Spool(), _orders(name, ALONE + TASKS)
            for order in orders:
                spool.keep(key_of(EXPERIMENT, order, {}), packed)
            few, many = orders[:ALONE], orders[ALONE:]
            rows[0].append(Spread.of(await _one_by_one(there[0], few, folder)).scaled(1e3, 1))
            begun = time.monotonic()
            await asyncio.gather(*(_fetch(worker, many, folder) for worker in there * 4))
            rows[1].append(f"{TASKS / (time.monotonic() - begun):.0f}")
            rows[2].append(f"{len(packed) / 1e3:.1f}")
            for order in orders:
                workers.discard_copy(order)
    sheet = table("runs of zero length through the scheduler and two workers", "", heads)
    sheet.add_row("ms a run, one by one", *rows[0], "below 50")
    sheet.add_row("runs a second, 4 a worker", *rows[1], "")
    sheet.add_row("kB sent a run", *rows[2], "")
    console.print(sheet)


async def _one_by_one(worker: Worker, orders: list[RunOrder], folder: Path) -> list[float]:
    """Return the seconds of each run."""
    times = []
    for order in orders:
        begun = time.monotonic()
        await worker.execute(order, _to(folder, order))
        times.append(time.monotonic() - begun)
    return times


async def _fetch(worker: Worker, waiting: list[RunOrder], folder: Path) -> None:
    """Fetch one run after another until ``waiting`` is empty."""
    while waiting:
        order = waiting.pop()
        await worker.execute(order, _to(folder, order))


def _to(folder: Path, order: RunOrder) -> Path:
    return folder / f"{order.scenario}-{order.repeat}.ccplay"
