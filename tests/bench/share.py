"""The cost of 200 spectators, of which 20 do not read, for a session with two flows at 50 Hz.

Delays are from a sweep in the lab to a spectator's socket; a screen paints ten times per second.
"""

import asyncio
import json
import os
import sys
import tempfile

import psutil
from rich.console import Console

from ccplay.model.commands import Build
from ccplay.model.events import Health
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.session.session import Session
from ccplay.share import sockets
from ccplay.share.presenter import Sharing
from ccplay.stream.sources import LabSource
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import table

SPECTATORS, STILL = 200, 20
MEASURED_S = 15.0
HZ = 50


async def run(console: Console) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        alone = await _measure(0)
        shared = await _measure(SPECTATORS)
    sheet = table(
        f"{SPECTATORS} spectators, {STILL} of them still; two flows at {HZ} Hz",
        "",
        ("", "not shared", "shared", "aim"),
    )
    for name, aim in FIGURES.items():
        sheet.add_row(
            name, *(f"{each[name]:.4g}" if name in each else "" for each in (alone, shared)), aim
        )
    console.print(sheet)


FIGURES = {
    "presenter, % of a core": "",
    "server, % of a core": "",
    "sweeps missed": "none more",
    "kB/s for each spectator": "under 10",
    "delay p50 ms": "",
    "delay p95 ms": "under 150: 250 with a frame",
    "gaps of those who read": "0",
}
"""Aim of each measured value, by its name; empty if it has none."""


async def _measure(spectators: int) -> dict[str, float]:
    queue = Qdisc(kind="pfifo", options={"limit": 100})
    build = Build(
        topology=Topology(pairs=2),
        links={"bottleneck": LinkSetting(rate=10_000_000, delay_us=10_000, qdisc=queue)},
        sample_hz=HZ,
    )
    sharing = Sharing("bench") if spectators else None
    sinks = [sharing] if sharing else []
    session = Session(LabSource(launch.lab_argv(), build), title="bench", sinks=sinks)
    playing = asyncio.create_task(session.run())
    try:
        while session.state.ready_at is None:  # noqa: ASYNC110 - the state has no event
            await asyncio.sleep(0.05)
        for number in (1, 2):
            session.send(StartFlow(src=f"s{number}", cc="cubic"))
        await asyncio.sleep(2)
        return await _observe(session, sharing, spectators)
    finally:
        await session.close()
        await playing


async def _observe(session: Session, sharing: Sharing | None, spectators: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    crowd = None
    if sharing is not None:
        path = sockets.find(sharing.name).path
        words = [str(MEASURED_S), str(path), str(spectators), str(STILL)]
        crowd = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench._crowd", *words, stdout=asyncio.subprocess.PIPE
        )
        assert crowd.stdout is not None
        await crowd.stdout.readline()
    watched = {"presenter, % of a core": psutil.Process()}
    if sharing is not None:
        watched["server, % of a core"] = psutil.Process(sharing._process.pid)
    before = {name: sum(each.cpu_times()[:2]) for name, each in watched.items()}
    since = session.state.now
    await asyncio.sleep(MEASURED_S)
    for name, each in watched.items():
        figures[name] = (sum(each.cpu_times()[:2]) - before[name]) / MEASURED_S * 100
    healths = [each for each in session.state.healths if each.t > since]
    figures["sweeps missed"] = sum(_missed(each) for each in healths)
    if crowd is not None and crowd.stdout is not None:
        found = json.loads(await crowd.stdout.readline())
        await crowd.wait()
        terminals = found["terminal"]
        figures["kB/s for each spectator"] = terminals["bytes"] / 1e3
        figures["delay p50 ms"] = terminals["p50"] * 1e3
        figures["delay p95 ms"] = terminals["p95"] * 1e3
        figures["gaps of those who read"] = found["gaps"]
    return figures


def _missed(health: Health) -> int:
    return health.missed
