"""The cost of many flows: the lab's CPU and punctuality, the screen's CPU and key-to-paint time.

Connections are streams of iperf3, of one process per sender at each end. The screen is measured
apart from the lab, with a synthetic stream of as many flows.
"""

import statistics
import time

import psutil
from rich.console import Console

from ccplay.model.commands import Build
from ccplay.model.events import Health
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.bench import screen
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, part, running

COUNTS = ((8, 50.0), (64, 50.0), (1000, 50.0), (1000, 10.0))
"""Numbers of connections, each with sweeps per second."""
PAIRS = 8
DUMBBELL, FAT_TREE = Topology(pairs=PAIRS), Topology(kind="fat-tree")
LABS = (*((DUMBBELL, *each) for each in COUNTS), (FAT_TREE, 64, 50.0))
"""Labs to measure: topology, connections and sweeps per second; the fat tree (k = 4) has 80
observed queues."""
RATE = 100_000_000
MEASURED_S = 10.0


async def run(console: Console) -> None:
    """Measure and print."""
    heads = ("queues", "lab CPU %", "late p50 µs", "late p99 µs", "sweep µs", "missed")
    title = f"a lab with {PAIRS} pairs or a fat tree, {RATE / 1e6:g} Mbit/s"
    labs = table(title, "", ("Hz", "connections", *heads))
    drawn = ("Hz", "flows", "CPU of a core", "kB/s", "key to paint p50 ms", "p95 ms")
    screens = table("the screen, 120x40", "10 %, 25 ms", drawn)
    for topology, count, hz in LABS:
        labs.add_row(f"{hz:g}", str(count), *(await _lab_row(topology, count, hz)))
    for count, hz in COUNTS:
        program = ["-m", "tests.bench.screen", "ccplay", str(count), str(hz)]
        cost = screen.measure(program, b"ccplay", keys=True)
        keys = sorted(each * 1e3 for each in cost.key_to_paint_s)
        screens.add_row(
            f"{hz:g}",
            str(count),
            f"{cost.cpu:.1%}",
            f"{cost.bytes_s / 1e3:.1f}",
            f"{statistics.median(keys):.1f}",
            f"{keys[int(len(keys) * 0.95)]:.1f}",
        )
    console.print(labs)
    console.print(screens)


async def _lab_row(topology: Topology, count: int, hz: float) -> list[str]:
    senders, observed = plan(topology).senders, plan(topology).observed
    async with running(_build(topology, hz)) as lab:
        await lab.send(*(StartFlow(src=src, streams=count // len(senders)) for src in senders))
        await lab.run_for(3.0)
        return [str(len(observed)), *await _lab_cells(lab)]


def _build(topology: Topology, hz: float) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": 1000})
    return Build(
        topology=topology,
        links={"bottleneck": LinkSetting(rate=RATE, delay_us=10_000, qdisc=queue)},
        sample_hz=hz,
    )


async def _lab_cells(lab: WatchedLab) -> list[str]:
    pid = part(lab.source.pid or 0, "ccplay.lab")
    assert pid is not None
    process = psutil.Process(pid)
    before, since, begun = process.cpu_times(), lab.events[-1].t, time.monotonic()
    await lab.run_for(MEASURED_S)
    after, elapsed = process.cpu_times(), time.monotonic() - begun
    used = after.user + after.system - before.user - before.system
    health = lab.all(Health, since)
    figures = ([getattr(each, name) for each in health] for name in _OF_HEALTH)
    medians = [f"{Spread.of(each).median:.0f}" for each in figures]
    return [f"{used / elapsed:.1%}", *medians, str(lab.missed(since))]


_OF_HEALTH = ("late_p50_us", "late_p99_us", "sweep_p50_us")
