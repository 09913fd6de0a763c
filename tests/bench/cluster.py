"""A cluster: what a run costs more than in the local pool, and what thousands of results cost.

Two workers on this machine stand for a cluster: what is measured is ccplay's and Dask's own cost,
not the network's. The runs of zero length are finished already and lie on the workers' disk.
"""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from ccplay.analysis.summary import machine, summarise
from ccplay.cluster.benches import ClusterBenches
from ccplay.cluster.places import opened
from ccplay.cluster.spool import Spool, key_of, pack
from ccplay.experiment.bench import Bench
from ccplay.experiment.orders import Finished, Order
from ccplay.experiment.plan import plan
from ccplay.experiment.runner import Experiment
from ccplay.model.commands import Build
from ccplay.report.terminal.progress import Teller
from ccplay.scenario.file.reading import parse
from ccplay.session import launch
from ccplay.session.recorded import read_recording
from ccplay.stream.sources import LabSource, Source
from tests.bench import _thousands
from tests.bench._figures import table

RUNS = 8
TASKS = 400
THOUSANDS = 10_000
EXPERIMENT = "0" * 16
SCENARIO = """
duration = "2 s"
repeats = {repeats}
topology.kind = "linear"
links.bottleneck = {{ rate = "5 Mbit/s", delay = "5 ms" }}
timeline = [{{ at = "0 s", do = "start-flow", cc = "reno" }}]
"""


async def run(console: Console) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        await _runs(console)
        await _tasks(console, folder)
        _results(console, folder)


async def _runs(console: Console) -> None:
    """Compare real runs, one after the other, with one worker and without."""
    here = await _made(None)
    there = await _made("local:1")
    sheet = table(f"{RUNS} runs of 2 s, one after the other", "", ("", "here", "one worker", "aim"))
    sheet.add_row("s a run", f"{here:.3f}", f"{there:.3f}", "")
    sheet.add_row("more, ms a run", "", f"{1e3 * (there - here):.0f}", "below 50")
    console.print(sheet)


async def _made(where: str | None) -> float:
    """Return the seconds of a run, without the start of workers and scheduler."""
    scenario = parse(SCENARIO.format(repeats=RUNS), Path("bench.toml"))
    stop = asyncio.Event()
    teller = Teller(Console(file=io.StringIO()), 1, story=False)
    argv = launch.lab_argv()

    def start(build: Build) -> Source:
        return LabSource(argv, build)

    if where is None:
        begun = time.monotonic()
        await Experiment(scenario, start, stop, teller).measure()
        return (time.monotonic() - begun) / RUNS
    async with (
        opened(where, 1, None, print) as (address, security),
        ClusterBenches(address, security, stop, experiment=EXPERIMENT, files={}) as benches,
    ):
        begun = time.monotonic()
        await Experiment(scenario, start, stop, teller, benches=benches).measure()
        return (time.monotonic() - begun) / RUNS


async def _tasks(console: Console, folder: Path) -> None:
    """Count finished runs that two workers hand over in a second, alone and with a recording."""
    run = plan(parse(SCENARIO.format(repeats=1), Path("bench.toml")))[0]
    state = read_recording(_thousands.PLAYGROUND)
    done = Finished(result=summarise(state, run.case.name), whole=True, machine=machine(state))
    rows = []
    for name, recording in (("alone", folder / "none"), ("with recording", _thousands.PLAYGROUND)):
        packed, spool = pack(done, recording), Spool()
        orders = [Order(scenario=name, case=run.played, repeat=number) for number in range(TASKS)]
        for order in orders:
            spool.keep(key_of(EXPERIMENT, order, {}), packed)
        stop = asyncio.Event()
        async with (
            opened("local:2", 4, None, print) as (address, security),
            ClusterBenches(address, security, stop, experiment=EXPERIMENT, files={}) as benches,
        ):
            begun = time.monotonic()
            waiting = list(orders)
            await asyncio.gather(
                *(_fetch(bench, waiting, folder / name) for bench in [*benches.there()] * 4)
            )
            rows.append((name, TASKS / (time.monotonic() - begun), len(packed)))
            for order in orders:
                benches.settled(order)
    heads = ("", *(name for name, *_ in rows))
    sheet = table(f"{TASKS} finished runs, fetched from two workers", "", heads)
    sheet.add_row("runs a second", *(f"{rate:.0f}" for _, rate, _ in rows))
    sheet.add_row("kB sent a run", *(f"{size / 1e3:.1f}" for *_, size in rows))
    console.print(sheet)


async def _fetch(bench: Bench, waiting: list[Order], to: Path) -> None:
    """Fetch one run after the other until there are none."""
    while waiting:
        order = waiting.pop()
        await bench.carry_out(order, to.with_name(f"{to.name}-{order.repeat}"))


def _results(console: Console, folder: Path) -> None:
    """Read and report a directory of thousands of runs, each in a process of its own."""
    there = _thousands.make(folder / "thousands", THOUSANDS)
    sheet = table(f"{THOUSANDS:,} runs of {_thousands.CASES} cases", "", ("", "s", "MB", "aim"))
    for name, words in (
        ("compare", ("compare", str(there), str(there), "--table")),
        ("report", ("report", str(there), "--out", str(folder / "report"))),
    ):
        begun = time.monotonic()
        command = [sys.executable, "-c", _MEASURED, *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peak = int(done.stderr.rsplit("peak ", 1)[-1])
        seconds = time.monotonic() - begun
        sheet.add_row(name, f"{seconds:.1f}", f"{peak / 1024:.0f}", "60 s, 500 MB")
    console.print(sheet)


_MEASURED = """
import resource, sys
from ccplay.cli import main
code = main(sys.argv[1:])
whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
most = max(resource.getrusage(who).ru_maxrss for who in whose)
print("peak", most, file=sys.stderr)
sys.exit(code)
"""
