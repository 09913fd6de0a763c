"""The time to build, load and swap algorithms that are BPF programs."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console

from ccplay.assets import ALGORITHMS
from ccplay.bpf.build import build
from ccplay.bpf.libbpf import register
from ccplay.bpf.support import lack
from ccplay.model.commands import Build, SetCongestionControl
from ccplay.model.events import Hello
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import LabSource
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import Spread, table
from tests.terminals import eventually

ROUNDS = 10
BUILD = Build(
    topology=Topology(kind="linear"),
    links={"bottleneck": LinkSetting(rate=10_000_000, delay_us=10_000)},
)


class Swapped:
    """A sink that notes the moments of all sweeps and the Unix time at which the lab began."""

    def __init__(self) -> None:
        self.began = 0.0
        self.sweeps: list[float] = []

    def put(self, event: object) -> None:
        if isinstance(event, Hello):
            self.began = event.wall_time
        elif isinstance(event, Sweep):
            self.sweeps.append(event.t)

    def close(self) -> None:
        pass


async def run(console: Console) -> None:
    """Print the time to build and load an algorithm, and to change one under a running flow."""
    if (missing := lack()) is not None:
        console.print(f"algorithms: {missing.reason} ({missing.remedy})")
        return
    template = (ALGORITHMS / "template.bpf.c").read_text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benched.bpf.c"
        cold, cached, loaded = [], [], []
        for _ in range(ROUNDS):
            path.write_text(f"{template}/* {os.urandom(8).hex()} */\n")
            begun = time.perf_counter()
            build(path)
            built = time.perf_counter()
            image, _ = build(path)
            again = time.perf_counter()
            _, registered = register(image, "benched")
            loaded.append(time.perf_counter() - again)
            registered.close()
            cold.append(built - begun)
            cached.append(again - built)
        swaps = await _swaps(path, template)
    sheet = table(
        f"an algorithm as a BPF program, {ROUNDS} times, ms: median (least-greatest)",
        "save to first sample under the new code within 1.5 s",
        ("", "takes"),
    )
    for name, taken in (
        ("clang builds it", cold),
        ("found in the cache", cached),
        ("loaded, checked and registered", loaded),
        ("from save to first sample under the new code", swaps),
    ):
        sheet.add_row(name, Spread.of(taken).scaled(1e3))
    console.print(sheet)


async def _swaps(path: Path, template: str) -> list[float]:
    notes = Swapped()
    session = Session(LabSource(launch.lab_argv(custom=[path]), BUILD), sinks=[notes])
    running = asyncio.create_task(session.run())
    state: LabState = session.state
    taken = []
    try:
        await eventually(lambda: state.phase == "ready")
        session.send(StartFlow(flow="1", cc="benched"))
        await eventually(lambda: "1" in state.flows)
        for number in range(ROUNDS):
            saved = time.time()
            # The increase is part of the code, so the object differs.
            source = template.replace("INCREASE 1 ", f"INCREASE {number + 2} ")
            # The comment is new, so the object can't come from the cache.
            source += f"/* {os.urandom(8).hex()} */\n"
            await asyncio.to_thread(path.write_text, source)
            await eventually(lambda: _swapped(state) > number)  # noqa: B023 - awaited here
            swap = [each.t for each in state.applied if _is_swap(each.command)][-1]
            await eventually(lambda: notes.sweeps[-1] > swap)  # noqa: B023 - awaited here
            first = next(t for t in notes.sweeps if t > swap)
            taken.append(notes.began + first - saved)
    finally:
        await session.close()
        await running
    return taken


def _is_swap(command: object) -> bool:
    return isinstance(command, SetCongestionControl)


def _swapped(state: LabState) -> int:
    return sum(_is_swap(each.command) for each in state.applied)
