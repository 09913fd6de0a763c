"""``python -m tests.soak --kills N``: SIGKILLs random processes of random labs.

A program runs a lab of some kind. Up to four of its processes are killed, one after another, at
random moments; if the program survives, its front process is killed last. Afterwards nothing of it
may be on this machine, and its messages may hold no traceback. Files may remain where a killed
program could not remove them, but not longer than until the next program of that kind ends.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil
from rich.console import Console
from rich.table import Table

from tests.lab.test_leaks import MARKER, inhabitants, marked
from tests.soak.leaks import Traces
from tests.soak.terminal import COMPLAINTS, ROOT

MOST_OF_ONE = 4
"""Greatest number of processes killed in one program."""

START_S, END_S = 60.0, 60.0
"""Seconds within which a lab has processes, and within which a killed program has ended."""

_FLOWS = """
  { at = "0 s", do = "start-ping", src = "SRC", dst = "DST" },
  { at = "0.2 s", do = "start-flow", src = "SRC", dst = "DST" },
  { at = "0.3 s", do = "start-udp", src = "SRC", dst = "DST", rate = "1 Mbit/s" },
  { at = "0.4 s", do = "start-download", src = "SRC", dst = "DST" },
"""


def _scenario(topology: str, links: str, src: str, dst: str, more: str = "") -> str:
    flows = _FLOWS.replace("SRC", src).replace("DST", dst)
    head = 'title = "Kills"\nduration = "6 s"\n'
    return f"{head}topology = {topology}\n{links}\ntimeline = [{flows}{more}]\n"


_QUEUE = 'links.bottleneck = {{ rate = "10 Mbit/s", delay = "5 ms", queue = {{ kind = "{}" }} }}'
_PAIRS = '{ kind = "dumbbell", pairs = 2 }'
_LEAVES = '{ kind = "leaf-spine", leaves = 2, spines = 2, hosts = 2 }'
_TIERS = 'links.core = { rate = "10 Mbit/s", delay = "5 ms" }'

_DUMBBELL = _scenario(_PAIRS, _QUEUE.format("pfifo"), "s1", "d1")
_FABRIC = _scenario(_LEAVES, _TIERS, "h1", "h3")


@dataclass(frozen=True)
class Kind:
    """A kind of lab: its scenario, and the options of ``ccplay run`` after it."""

    scenario: str
    options: tuple[str, ...] = ()
    rootless: bool = False
    once: bool = True
    """Whether the program makes one run, not an experiment with a directory."""


KINDS: Mapping[str, Kind] = {
    "dumbbell": Kind(_DUMBBELL),
    "fabric": Kind(_FABRIC),
    "MPTCP": Kind(
        _scenario(
            _LEAVES, _TIERS, "h1", "h3",
            '  { at = "0.5 s", do = "start-flow", src = "h2", dst = "h4", mptcp = true },\n',
        )
    ),
    "software queue": Kind(_scenario(_PAIRS, _QUEUE.format("codel.py"), "s1", "d1")),
    "BPF algorithm": Kind(
        _scenario(
            _PAIRS, _QUEUE.format("pfifo"), "s1", "d1",
            '  { at = "0.5 s", do = "start-flow", src = "s2", dst = "d2", cc = "vegas.bpf" },\n',
        )
    ),
    "shared, with browsers": Kind(_DUMBBELL, ("--share", "--web")),
    "experiment": Kind(_DUMBBELL, ("--repeats", "4", "--jobs", "2"), once=False),
    "workers": Kind(_DUMBBELL, ("--repeats", "4", "--cluster", "local:2"), once=False),
    "rootless": Kind(_DUMBBELL, rootless=True),
}  # fmt: skip


@dataclass
class Row:
    """What became of the programs of one kind."""

    programs: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    """Kills by what the process was."""
    survived: int = 0
    """Kills after which the program made its run to the end."""
    slowest_s: float = 0.0
    """Longest time from the last kill until nothing was left."""
    left: list[str] = field(default_factory=list)
    """What stayed on this machine."""
    faults: list[str] = field(default_factory=list)
    """Tracebacks, and programs that did not end."""


@dataclass
class Kills:
    """Kills of random processes until there were enough, several programs at a time."""

    folder: Path
    seed: int
    rows: dict[str, Row] = field(default_factory=lambda: {name: Row() for name in KINDS})
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    @property
    def count(self) -> int:
        """Number of processes killed so far."""
        return sum(row.killed.total() for row in self.rows.values())

    @property
    def failed(self) -> bool:
        """Whether anything was left, or a program failed to end in good order."""
        return any(row.left or row.faults for row in self.rows.values())

    def run(self, wanted: int, jobs: int) -> None:
        """Kill ``wanted`` processes, in ``jobs`` programs at a time."""
        threads = [threading.Thread(target=self._work, args=(wanted,)) for _ in range(jobs)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for name in KINDS:
            self._tidy(name)

    def show(self, console: Console) -> None:
        """Print a row for each kind of lab, then everything that was left or failed."""
        heads = ("lab", "programs", "kills", "of them", "survived", "until gone", "left", "faults")
        table = Table(*heads, title=f"{self.count} SIGKILLs, seed {self.seed}")
        for name, row in self.rows.items():
            table.add_row(
                name,
                str(row.programs),
                str(row.killed.total()),
                ", ".join(f"{what} {count}" for what, count in row.killed.most_common()),
                str(row.survived),
                f"at most {row.slowest_s:.1f} s",
                str(len(row.left)),
                str(len(row.faults)),
            )
        console.print(table)
        for name, row in self.rows.items():
            for each in [*row.left, *row.faults]:
                console.print(f"{name}: {each}", markup=False, soft_wrap=True)

    def _work(self, wanted: int) -> None:
        while self.count < wanted:
            with self._lock:
                number = next(self._numbers)
            chance = random.Random(f"{self.seed}-{number}")
            name = chance.choice([*KINDS])
            with _Program(KINDS[name], self.folder / name, f"{number}") as program:
                self._one(program, chance, self.rows[name], number)
            said = (
                f"\r{self.count} kills, {sum(row.programs for row in self.rows.values())} programs"
            )
            print(said, end="", file=sys.stderr, flush=True)

    def _one(self, program: _Program, chance: random.Random, row: Row, number: int) -> None:
        traces = Traces(program.marker)
        # A quarter of the programs lose their first process while they start.
        if chance.random() < 0.75:
            program.wait_for_lab()
        killed = ""
        for _ in range(chance.randint(1, MOST_OF_ONE)):
            if program.ended(chance.uniform(0.0, 1.5)):
                break
            traces.look()
            if killed := _kill_one(program.marker, chance):
                with self._lock:
                    row.killed[killed] += 1
        if program.ended(END_S if chance.random() < 0.3 else 0.5):
            survived = program.process.returncode == 0
        else:
            survived = False
            traces.look()
            program.process.kill()
            with self._lock:
                row.killed["front, at the end"] += 1
        begun = time.monotonic()
        ended = program.ended(END_S)
        left = traces.left()
        took = time.monotonic() - begun
        said = program.said()
        with self._lock:
            row.programs += 1
            row.survived += survived
            row.slowest_s = max(row.slowest_s, took)
            row.left += [f"{number}: after {killed}: {each}" for each in left]
            if not ended:
                row.faults.append(f"{number}: still running {END_S:.0f} s after {killed}")
            if any(each.decode() in said for each in COMPLAINTS):
                row.faults.append(f"{number}: after {killed}: {said[-1500:]}")
        traces.end()

    def _tidy(self, name: str) -> None:
        """Let a program of each kind end by itself; then no file of the killed ones may be left."""
        row = self.rows[name]
        if not row.programs:
            return
        with _Program(KINDS[name], self.folder / name, "tidy") as program:
            if not program.ended(180.0) or program.process.returncode:
                row.faults.append(f"after all kills: {program.said()[-500:]}")
            for place in ("tmp", "run"):
                found = (self.folder / name / place).rglob("*")
                row.left += [f"file {each}" for each in found if not each.is_dir()]


class _Program:
    """A ``ccplay run`` whose folders for temporary files and sockets are its kind's own."""

    def __init__(self, kind: Kind, place: Path, number: str) -> None:
        self.marker = f"ccplay-{uuid.uuid4()}"
        self._folder = place / number
        for each in (place, self._folder, place / "tmp", place / "run", place / "home"):
            each.mkdir(mode=0o700, exist_ok=True)
        scenario = self._folder / "kills.toml"
        scenario.write_text(kind.scenario)
        words = ["run", str(scenario), *kind.options]
        words += ["--record", str(self._folder / "kills.ccplay")] if kind.once else []
        words += [] if kind.once else ["--out", str(self._folder / "out")]
        # An ordinary user in a namespace of users, who may read what root may.
        user = ["unshare", "--user", "--map-user", "1000", "--map-group", "1000"]
        self._output = self._folder / "output.txt"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*(user if kind.rootless else ()), sys.executable, "-m", "ccplay", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={
                    **os.environ,
                    MARKER: self.marker,
                    "PYTHONPATH": str(ROOT),
                    "TMPDIR": str(place / "tmp"),
                    "XDG_RUNTIME_DIR": str(place / "run"),
                    "XDG_STATE_HOME": str(place / "home"),
                    "XDG_CONFIG_HOME": str(place / "home"),
                    "XDG_CACHE_HOME": str(place / "home" / "cache"),
                    "HOME": str(place / "home"),
                },
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in marked(self.marker):
            with contextlib.suppress(psutil.Error):
                each.kill()
        self.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ended(self, within_s: float) -> bool:
        """Wait for the front process; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        return self.process.poll() is not None

    def wait_for_lab(self) -> None:
        """Wait until there is a process in a lab's namespaces, or the program has ended."""
        deadline = time.monotonic() + START_S
        while not inhabitants(self.marker) and time.monotonic() < deadline:
            if self.ended(0.05):
                return

    def said(self) -> str:
        """Return what the program wrote."""
        return self._output.read_text(errors="replace")


def _kill_one(marker: str, chance: random.Random) -> str:
    """Kill a process of a random name; return that name, or nothing if there was none."""
    found: dict[str, list[psutil.Process]] = {}
    for each in {*marked(marker), *inhabitants(marker)}:
        with contextlib.suppress(psutil.Error):
            found.setdefault(_called(each), []).append(each)
    if not found:
        return ""
    name = chance.choice(sorted(found))
    try:
        chance.choice(found[name]).kill()
    except psutil.Error:
        return ""
    return name


def _called(process: psutil.Process) -> str:
    """Return what a process is: a program's name, or the module that Python runs."""
    name, argv = process.name(), process.cmdline()
    if "-m" in argv and name.startswith("python"):
        return argv[argv.index("-m") + 1]
    return name
