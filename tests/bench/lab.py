"""The cost of a lab's start, memory and end, against bare Mininet with the same nodes.

A lab's start lasts from the spawn of its process to the first sweep: routed, shaped, delayed,
sampled. Forked labs are those that a command starts after its first. Mininet's start lasts from the
spawn of a Python that imports it until nodes and links are started. Most of that import is
distutils, which setuptools provides wherever it is installed.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ccplay.model import topologies
from ccplay.model.base import Command, Event
from ccplay.model.commands import Build
from ccplay.model.events import Building, Hello, LinkChanged, Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.session import launch
from ccplay.session.launch import WarmLabs
from ccplay.stream.sources import LabSource, Starter, spawn
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import FlowStarted, StartFlow
from ccplay.traffic.ping import PingStarted, StartPing
from tests.bench._figures import Spread, table
from tests.bench._running import family

ROUNDS = 9

NETWORKS = {
    "linear": Topology(kind="linear"),
    "dumbbell, 2 pairs": Topology(pairs=2),
    "dumbbell, 4 pairs": Topology(pairs=4),
    "leaf-spine": Topology(kind="leaf-spine"),
    "super-spine": Topology(kind="super-spine"),
    "loopless": Topology(kind="loopless"),
    "fat tree, k = 4": Topology(kind="fat-tree"),
}

BUSY = "dumbbell, 2 pairs"
TRAFFIC = (StartFlow(src="s1"), StartFlow(src="s2"), StartPing())
"""Commands for the traffic that runs while a busy lab is stopped."""

PHASES = {
    "spawned": "namespaces, Python, imports, survey",
    "hello": "nodes (with Mininet's import)",
    "links": "links and addresses",
    "done": "shaping and delay",
    "shaped": "hosts' congestion controls",
    "ready": "until the first sweep",
}
"""Description of each phase of a start, by its name, in order."""


class Cost(NamedTuple):
    """The cost of one lab, or of one network in Mininet."""

    start: float
    """Seconds from the spawn until the network is up."""
    stop: float
    """Seconds from the request to end until no process is left."""
    memory: float
    """Bytes of memory (PSS) of all processes."""


async def run(console: Console) -> None:
    """Measure and print."""
    starts, sizes, stops = await _starts_and_stops()
    console.print(starts)
    console.print(sizes)
    console.print(await _phases())
    console.print(_python())
    console.print(stops)


async def _starts_and_stops() -> tuple[Table, Table, Table]:
    heads = ("", "ccplay ms", "Mininet ms", "ratio")
    starts = table(
        "lab start, to the first sweep", "no slower than bare Mininet", (*heads, "forked ms")
    )
    labs = WarmLabs()
    await _lab(NETWORKS[BUSY], kill=False, start=labs.start)
    sizes = table("memory of all processes (PSS)", "", ("", "ccplay MB", "Mininet MB", "ratio"))
    stops = table("lab stop, to nothing left", "under 50 ms", heads)
    for name, network in NETWORKS.items():
        ours, killed, theirs = list[Cost](), list[float](), list[Cost]()
        forked = list[float]()
        for _ in range(ROUNDS):
            ours.append(await _lab(network, kill=False))
            killed.append((await _lab(network, kill=True)).stop)
            theirs.append(_mininet(network))
            forked.append((await _lab(network, kill=False, start=labs.start)).start)
        closed, stopped = [each.stop for each in ours], [each.stop for each in theirs]
        start = [each.start for each in ours], [each.start for each in theirs]
        starts.add_row(name, *_compared(*start), Spread.of(forked).scaled(1e3))
        size = [each.memory for each in ours], [each.memory for each in theirs]
        sizes.add_row(name, *_compared(*size, 1e-6))
        if name == BUSY:
            rounds = [await _lab(network, kill=False, commands=TRAFFIC) for _ in range(ROUNDS)]
            busy = [each.stop for each in rounds]
            stops.add_row(f"{name}: busy, stdin closed", *_compared(busy, stopped))
        stops.add_row(f"{name}: stdin closed", *_compared(closed, stopped))
        stops.add_row(f"{name}: SIGKILL", *_compared(killed, stopped))
    return starts, sizes, stops


def _compared(own: list[float], peer: list[float], scale: float = 1e3) -> tuple[str, str, str]:
    ours, theirs = Spread.of(own), Spread.of(peer)
    ratio = theirs.median / ours.median
    return ours.scaled(scale), theirs.scaled(scale), f"{ratio:.2f}x"


async def _lab(
    network: Topology, *, kill: bool, commands: Sequence[Command] = (), start: Starter = spawn
) -> Cost:
    """Return the cost of a lab that is busy with ``commands``, ended in order or with SIGKILL."""
    lab = LabSource(launch.lab_argv(), Build(topology=network), start=start)
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
    memory = _memory(family(lab.pid))
    with _watched(family(lab.pid)) as processes:
        begun = time.monotonic()
        if kill:
            os.kill(lab.pid, signal.SIGKILL)
        else:
            await lab.close()
        _wait_for(processes)
        stopped = time.monotonic() - begun
    await lab.close()
    return Cost(started, stopped, memory)


def _memory(pids: Iterable[int]) -> float:
    """Return the proportional set size of processes in bytes; each has its part of shared pages."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return float(total)


def _mininet(network: Topology) -> Cost:
    """Return the cost of the same network in bare Mininet."""
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
        memory = _memory(family(process.pid))
        begun = time.monotonic()
        process.stdin.close()
        process.wait()
        return Cost(started, time.monotonic() - begun, memory)


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
    """Return a table of the phases of a start, in order, with their times."""
    rounds = [await _marks(Build()) for _ in range(ROUNDS)]
    sheet = table("what a start of dumbbell, 2 pairs, consists of", "", ("", "ms"))
    for name, text in PHASES.items():
        sheet.add_row(text, Spread.of([marks[name] for marks in rounds]).scaled(1e3, 1))
    return sheet


async def _marks(build: Build) -> dict[str, float]:
    """Return the seconds of each phase of one start."""
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


def _phase(event: Event | UnknownEvent) -> str | None:
    """Return the name of the phase that begins with an event; None if none does."""
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
    "the delay line, where one is started anew": "import ccplay.lab.delay_line",
    "the peer's Mininet": "import mininet.net",
}


def _python() -> Table:
    """Return a table of the time that starting Python and importing take."""
    sheet = table("Python's own share: a process that starts, imports, ends", "", ("", "ms"))
    for name, code in IMPORTS.items():
        taken = []
        for _ in range(ROUNDS):
            begun = time.monotonic()
            subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
            taken.append(time.monotonic() - begun)
        sheet.add_row(name, Spread.of(taken).scaled(1e3))
    return sheet
