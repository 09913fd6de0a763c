"""Recordings: the cost of writing, keeping, opening and drawing an hour of 8 flows at 50 Hz.

The hour is made from a real lab's stream. The peers, on the same events in the same run, are
format 1, which had one line per sweep, and ``json.loads`` of every line with the result dropped.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
from rich.console import Console

from ccplay.model.base import Event
from ccplay.model.samples import Sweep
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from tests.bench._figures import Spread, table
from tests.bench._hour import FLOWS, HOUR_S, HZ, hour, sample
from tests.bench.screen import Terminal

AIMS = {
    "open, s": "under 2",
    "replay: at 59:30, ms": "under 1000",
    "draw 30 s anywhere in it, ms": "an instant",
}
ZOOMS = 6
"""Number of zoom steps from 30 s to the whole hour."""
HOME, END = b"\x1b[H", b"\x1b[F"
RATES = (10_000_000, 100_000_000)
ROUNDS = 3
SEEKS = 500
COLUMNS = 80
"""Number of columns of dots across a plot, two per cell."""


async def run(console: Console) -> None:
    """Measure and print."""
    for rate in RATES:
        said = await sample(rate)
        with tempfile.TemporaryDirectory() as folder:
            _measure(console, f"{rate / 1e6:g} Mbit/s", said, Path(folder))


@dataclass
class Written:
    """The cost of writing a recording."""

    cpu_s: float
    sweeps: int
    bytes: int


def _measure(console: Console, name: str, said: list[Event], folder: Path) -> None:
    new, old = folder / "new.ccplay", folder / "old.ccplay"
    blocks, lines = _record(new, hour(said)), _record_1(old, hour(said))
    heads = ("", "blocks", "line a sweep", "ratio", "aim")
    sheet = table(f"an hour of {FLOWS} flows at {HZ} Hz, {name}", "", heads)

    def row(what: str, ours: Spread, theirs: Spread | None = None, digits: int = 0) -> None:
        ratio = f"{theirs.median / ours.median:.1f}" if theirs else ""
        peer = _figure(theirs, digits) if theirs else ""
        sheet.add_row(what, _figure(ours, digits), peer, ratio, AIMS.get(what, ""))

    def each(what: str, figure: Callable[[Written], float], digits: int = 0) -> None:
        ours, theirs = (Spread.of([figure(written)]) for written in (blocks, lines))
        row(what, ours, theirs, digits)

    each("MB", lambda it: it.bytes / 1e6, 1)
    each("bytes a sweep", lambda it: it.bytes / it.sweeps)
    each("write, µs a sweep", lambda it: it.cpu_s / it.sweeps * 1e6, 1)
    each("write at 50 Hz, % of a core", lambda it: it.cpu_s / HOUR_S * 100, 2)
    each("write, sweeps/s", lambda it: it.sweeps / it.cpu_s)
    each("write, MB/s", lambda it: it.bytes / it.cpu_s / 1e6)
    opened, opened_1 = _opened(new, ROUNDS), _opened(old, 1)
    row("open, s", opened["s"], opened_1["s"], 2)
    row("open, s of CPU", opened["cpu"], opened_1["cpu"], 2)
    row("open, MB of memory", opened["mb"], opened_1["mb"])
    row("peer: json.loads of each line, s", _loaded(new), _loaded(old), 2)
    first, seeks = _sought(read_recording(new))
    row("draw the whole hour for the first time, ms", first)
    row("draw 30 s anywhere in it, ms", seeks, digits=1)
    for what, took in _on_screen(new).items():
        row(f"{what}, ms", took)
    console.print(sheet)


def _figure(spread: Spread, digits: int) -> str:
    return (
        spread.scaled(1, digits)
        if spread.least < spread.greatest
        else f"{spread.median:.{digits}f}"
    )


def _record(path: Path, events: Iterable[Event]) -> Written:
    recorder = Recorder(path)
    cpu, sweeps = 0.0, 0
    for event in events:
        began = time.process_time()
        recorder.put(event)
        cpu += time.process_time() - began
        sweeps += isinstance(event, Sweep)
    recorder.close()
    return Written(cpu, sweeps, path.stat().st_size)


def _record_1(path: Path, events: Iterable[Event]) -> Written:
    cpu, sweeps = 0.0, 0
    with path.open("wb") as file:
        for event in events:
            began = time.process_time()
            file.write(wire.encode(event))
            if not isinstance(event, Sweep):
                file.flush()
            cpu += time.process_time() - began
            sweeps += isinstance(event, Sweep)
    return Written(cpu, sweeps, path.stat().st_size)


def _opened(path: Path, rounds: int) -> dict[str, Spread]:
    """Return seconds, CPU seconds and MB of memory to open a recording, each in a new process."""
    argv = [sys.executable, "-m", "tests.bench.recordings", str(path)]
    told = [
        json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(rounds)
    ]
    return {name: Spread.of([each[name] for each in told]) for name in told[0]}


def _open() -> None:
    """Open the recording in ``sys.argv`` and print its seconds, CPU seconds and MB as JSON."""
    process = psutil.Process()
    before, began, cpu = process.memory_info().rss, time.perf_counter(), time.process_time()
    state = read_recording(Path(sys.argv[1]))
    took, used = time.perf_counter() - began, time.process_time() - cpu
    assert state.now >= HOUR_S
    print(json.dumps({"s": took, "cpu": used, "mb": (process.memory_info().rss - before) / 1e6}))


def _loaded(path: Path) -> Spread:
    began = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return Spread.of([time.perf_counter() - began])


def _sought(state: LabState) -> tuple[Spread, Spread]:
    """Return the ms to read the values of the whole hour, and then of windows anywhere in it."""
    began = time.perf_counter()
    _look(state, 0.0, state.now)
    first = (time.perf_counter() - began) * 1e3
    dice = random.Random(1)
    times = []
    for _ in range(SEEKS):
        left = dice.uniform(0.0, state.now - 30.0)
        began = time.perf_counter()
        _look(state, left, left + 30.0)
        times.append((time.perf_counter() - began) * 1e3)
    return Spread.of([first]), Spread.of(times)


def _look(state: LabState, left: float, right: float) -> None:
    """Read what three plots read: the extremes of the window, then those of each column."""
    edges = [left + (right - left) * n / COLUMNS for n in range(COLUMNS + 1)]
    ticks = [state.sweeps.at_or_after(edge) for edge in edges]
    drawn = [
        each.series[name]
        for each in state.flows.values()
        for name in ("cwnd", "ssthresh", "srtt_us")
    ]
    drawn += [each.series["qlen"] for each in state.queues.values()]
    for series in drawn:
        series.extremes(ticks[0], ticks[-1])
        for start, end in pairwise(ticks):
            series.extremes(start, end)


def _on_screen(path: Path) -> dict[str, Spread]:
    """Return the ms that a user waits for ``ccplay replay`` on a terminal, by action."""
    found: dict[str, list[float]] = {}

    def note(what: str, seconds: float) -> None:
        found.setdefault(what, []).append(seconds * 1e3)

    for _ in range(ROUNDS):
        terminal = Terminal(["-m", "ccplay", "replay", str(path), "--at", "3570"])
        try:
            terminal.wait_for(b"ccplay")
            note("replay: first paint", time.monotonic() - terminal.began)
            terminal.wait_for("▶ replay".encode())
            note("replay: at 59:30", time.monotonic() - terminal.began)
            note("replay: at 59:30, of CPU", terminal.cpu_s())
            terminal.key(b" ")
            for name, key in (("home", HOME), ("end", END)):
                note(f"replay: {name} to paint", terminal.key(key))
            zooms = [terminal.key(b"-") for _ in range(ZOOMS)]
            note("replay: slowest zoom to paint", max(zooms))
            note("replay: home, zoomed out, to paint", terminal.key(HOME))
        finally:
            terminal.close()
    return {what: Spread.of(times) for what, times in found.items()}


if __name__ == "__main__":
    _open()
