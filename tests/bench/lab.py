"""What a lab's start and its end cost, against bare Mininet with the same nodes and links.

Ours counts from the spawn of ``ccplay lab`` to the first sweep: routed, shaped, delayed, sampled.
Mininet's counts from the spawn of a Python that imports it, makes nodes and links, and starts them.
Most of that import is distutils, which setuptools provides wherever it is installed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Sequence

from rich.console import Console
from rich.table import Table

from ccplay.model import topologies
from ccplay.model.commands import AnyCommand, Build
from ccplay.model.events import AnyEvent, Building, Hello, LinkChanged, Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.traffic_commands import StartFlow, StartPing
from ccplay.model.traffic_events import FlowStarted, PingStarted
from ccplay.session import launch
from ccplay.stream.sources import LabSource
from ccplay.stream.wire import UnknownEvent
from tests.bench._figures import Spread, table
from tests.bench._running import family

ROUNDS = 9

NETWORKS = {
    "linear": Topology(kind="linear"),
    "dumbbell, 2 pairs": Topology(pairs=2),
    "dumbbell, 4 pairs": Topology(pairs=4),
    "fat tree, k = 4": Topology(kind="fat-tree"),
}

BUSY = "dumbbell, 2 pairs"
TRAFFIC = (StartFlow(src="s1"), StartFlow(src="s2"), StartPing())
"""What a lab is stopped amidst."""

PHASES = {
    "spawned": "namespaces, Python, imports, survey",
    "hello": "nodes (with Mininet's import)",
    "links": "links and addresses",
    "done": "shaping and delay",
    "shaped": "hosts' congestion controls",
    "ready": "until the first sweep",
}
"""What begins when, in this order."""


async def run(console: Console) -> None:
    """Measure and print."""
    starts, stops = await _starts_and_stops()
    console.print(starts)
    console.print(await _phases())
    console.print(_python())
    console.print(stops)


async def _starts_and_stops() -> tuple[Table, Table]:
    heads = ("", "ccplay ms", "Mininet ms", "ratio")
    starts = table("lab start, to the first sweep", "no slower than bare Mininet", heads)
    stops = table("lab stop, to nothing left", "under 50 ms", heads)
    for name, network in NETWORKS.items():
        own, closed, killed, peer, stopped = [], [], [], [], []
        for _ in range(ROUNDS):
            start, stop = await _lab(network, kill=False)
            own.append(start)
            closed.append(stop)
            killed.append((await _lab(network, kill=True))[1])
            start, stop = _mininet(network)
            peer.append(start)
            stopped.append(stop)
        starts.add_row(name, *_compared(own, peer))
        if name == BUSY:
            rounds = [await _lab(network, kill=False, commands=TRAFFIC) for _ in range(ROUNDS)]
            busy = [stop for _, stop in rounds]
            stops.add_row(f"{name}: busy, stdin closed", *_compared(busy, stopped))
        stops.add_row(f"{name}: stdin closed", *_compared(closed, stopped))
        stops.add_row(f"{name}: SIGKILL", *_compared(killed, stopped))
    return starts, stops


def _compared(own: list[float], peer: list[float]) -> tuple[str, str, str]:
    ours, theirs = Spread.of(own), Spread.of(peer)
    ratio = theirs.median / ours.median
    return ours.scaled(1e3), theirs.scaled(1e3), f"{ratio:.2f}x"


async def _lab(
    network: Topology, *, kill: bool, commands: Sequence[AnyCommand] = ()
) -> tuple[float, float]:
    """Return the seconds that a lab took to start and to be gone, busy with ``commands``."""
    lab = LabSource(launch.lab_argv(), Build(topology=network))
    begun = time.monotonic()
    events = lab.events()
    async for event in events:
        if isinstance(event, Sweep):
            break
    started = time.monotonic() - begun
    for command in commands:
        lab.send(command)
    running = 0
    while running < len(commands):
        running += isinstance(await anext(events), FlowStarted | PingStarted)
    assert lab.pid is not None
    with _watched(family(lab.pid)) as processes:
        begun = time.monotonic()
        if kill:
            os.kill(lab.pid, signal.SIGKILL)
        else:
            await lab.close()
        _wait_for(processes)
        stopped = time.monotonic() - begun
    await lab.close()
    return started, stopped


def _mininet(network: Topology) -> tuple[float, float]:
    """Return the seconds that bare Mininet took to start and to be gone."""
    plan = topologies.plan(network)
    cables = [f"{link.src}-{link.dst}" for link, _ in plan.cables]
    user = () if os.geteuid() == 0 else launch.ROOTLESS
    argv = [*launch.UNSHARE, *user, sys.executable, "-m", "tests.bench._bare_mininet", *cables]
    begun = time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        started = time.monotonic() - begun
        begun = time.monotonic()
        process.stdin.close()
        process.wait()
        return started, time.monotonic() - begun


@contextlib.contextmanager
def _watched(pids: Iterable[int]) -> Generator[list[int]]:
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        yield descriptors
    finally:
        for each in descriptors:
            os.close(each)


def _wait_for(processes: list[int]) -> None:
    """Wait until every process has ended."""
    left = list(processes)
    while left:
        ended, _, _ = select.select(left, [], [], 5.0)
        assert ended, "a process outlives its lab"
        left = [each for each in left if each not in ended]


async def _phases() -> Table:
    """Say where the time of a start goes, in the order of the stream."""
    rounds = [await _marks(Build()) for _ in range(ROUNDS)]
    sheet = table("what a start of dumbbell, 2 pairs, consists of", "", ("", "ms"))
    for name, text in PHASES.items():
        sheet.add_row(text, Spread.of([marks[name] for marks in rounds]).scaled(1e3, 1))
    return sheet


async def _marks(build: Build) -> dict[str, float]:
    """Return how long each phase of one start took."""
    lab = LabSource(launch.lab_argv(), build)
    moment, phase, took = time.monotonic(), "spawned", dict.fromkeys(PHASES, 0.0)
    async for event in lab.events():
        now = time.monotonic()
        took[phase] += now - moment
        moment = now
        if isinstance(event, Sweep):
            break
        phase = _phase(event) or phase
    await lab.close()
    return took


def _phase(event: AnyEvent | UnknownEvent) -> str | None:
    """Name what begins with an event."""
    match event:
        case Hello():
            return "hello"
        case Building(step="links" | "done"):
            return event.step
        case LinkChanged(link=link) if link.startswith("r2"):
            return "shaped"
        case Ready():
            return "ready"
    return None


IMPORTS = {
    "a bare Python": "pass",
    "asyncio, msgspec": "import asyncio, msgspec",
    "all of the lab": "import ccplay.lab.server",
    "the delay line, where one is started anew": "import ccplay.lab.delay.line",
    "the peer's Mininet": "import mininet.net",
}


def _python() -> Table:
    """Say what of it is Python starting and importing."""
    sheet = table("Python's own share: a process that starts, imports, ends", "", ("", "ms"))
    for name, code in IMPORTS.items():
        taken = []
        for _ in range(ROUNDS):
            begun = time.monotonic()
            subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
            taken.append(time.monotonic() - begun)
        sheet.add_row(name, Spread.of(taken).scaled(1e3))
    return sheet
