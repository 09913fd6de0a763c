"""However a lab dies, nothing of it is left on the host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest
from msgspec.structs import replace

from ccplay.assets import find_tool
from ccplay.lab.delay_line import NAME
from ccplay.model.commands import Build
from ccplay.model.moving import Trace
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.session.launch import WarmLabs
from ccplay.stream import wire
from ccplay.stream.sources import LabProcess, spawn
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.udp import StartUdp
from tests.terminals import pausing

MARKER = "CCPLAY_TEST_MARKER"
ROUNDS = 50
HOLDERS = (NAME.decode(), "software queue")
"""Names of the processes that hold packets, and map what moves a link."""
BUSY = Build(topology=Topology(kind="dumbbell", pairs=2))
MOVES = LinkSetting(rate=20_000_000, delay_us=5_000, trace=Trace(name="starlink"))
"""A link whose rate, delay and loss a trace gives, so that both processes follow it."""


@dataclass(frozen=True)
class Host:
    """Everything on the host that a lab could leave behind."""

    links: frozenset[str]
    rules: str
    mounts: frozenset[str]

    @classmethod
    def now(cls) -> Host:
        rules = subprocess.run(
            ["iptables-legacy-save"], capture_output=True, text=True, check=False
        ).stdout
        return cls(
            links=frozenset(path.name for path in Path("/sys/class/net").iterdir()),
            rules="\n".join(line for line in rules.splitlines() if line.startswith("-A")),
            mounts=frozenset(Path("/proc/self/mounts").read_text().splitlines()),
        )


def marked(marker: str) -> Iterator[psutil.Process]:
    """Return every process that inherited ``marker`` in its environment."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, psutil.Error):
            if marker.encode() in (path / "environ").read_bytes():
                process = psutil.Process(int(path.name))
                if lives(process):
                    yield process


KINDS = ("net", "mnt", "pid")


def namespaces_of(folder: Path) -> set[str]:
    """Return the network, mount and PID namespaces of the process with this folder in /proc."""
    names = set()
    for kind in KINDS:
        with contextlib.suppress(OSError):
            names.add(str((folder / "ns" / kind).readlink()))
    return names


def inhabitants(marker: str) -> list[psutil.Process]:
    """Return every process in the namespaces made for a lab, with a marker or without."""
    return dwellers(made_for(marked(marker)))


def made_for(processes: Iterable[psutil.Process]) -> set[str]:
    """Return the namespaces of processes that differ from ours."""
    theirs = [namespaces_of(Path(f"/proc/{process.pid}")) for process in processes]
    return set().union(*theirs) - namespaces_of(Path("/proc/self"))


def dwellers(made: set[str]) -> list[psutil.Process]:
    """Return every process in one of these namespaces."""
    return [
        each for each in psutil.process_iter() if namespaces_of(Path(f"/proc/{each.pid}")) & made
    ]


@contextmanager
def numbered(processes: Iterable[psutil.Process]) -> Iterator[set[str]]:
    """Return the PID namespaces of other processes; their numbers are not reused meanwhile."""
    ours = Path("/proc/self/ns/pid").readlink()
    names: set[str] = set()
    with contextlib.ExitStack() as held:
        for process in processes:
            with contextlib.suppress(OSError):
                path = Path(f"/proc/{process.pid}/ns/pid")
                if (name := path.readlink()) != ours and str(name) not in names:
                    held.enter_context(path.open("rb"))
                    names.add(str(name))
        yield names


def lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended, even if another has its number now.

    A zombie does not count: when unshare is killed, the host's init must reap the lab's process.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def programs_held_for(marker: str) -> set[int]:
    """Return the numbers of the BPF programs opened by a lab's processes."""
    held: set[int] = set()
    for process in marked(marker):
        for path in Path(f"/proc/{process.pid}/fdinfo").glob("*"):
            with contextlib.suppress(OSError):
                held |= set(map(int, re.findall(r"\nprog_id:\s(\d+)", path.read_text())))
    return held


def loaded_programs(kind: str = "prog") -> set[int]:
    """Return the numbers of all BPF programs of the host, or of its ``struct_ops``."""
    argv = [find_tool("bpftool") or "bpftool", "-j", kind, "show"]
    said = subprocess.run(argv, capture_output=True, check=True)
    return {each["id"] for each in json.loads(said.stdout)}


async def nothing_left(look: Callable[[], object], within_s: float = 60.0) -> object:
    """Wait until ``look`` finds nothing; return its last finding."""
    for pause in pausing(within_s):
        if not (left := look()):
            return left
        await asyncio.sleep(pause)
    return look()


def commands(marker: str) -> Iterator[tuple[psutil.Process, list[str]]]:
    """Return every process that inherited ``marker``, with its command line, except dying ones."""
    for process in marked(marker):
        with contextlib.suppress(psutil.NoSuchProcess):
            yield process, process.cmdline()


def victims(marker: str, part: str) -> list[psutil.Process]:
    """Return the process to kill: the lab's first, its unshare, or one that holds packets."""
    return [each for each, argv in commands(marker) if part_of(each.name(), argv) == part]


def part_of(name: str, argv: list[str]) -> str | None:
    """Return the part that a process is, by its name and command line; a dying one is none."""
    if argv and Path(argv[0]).name == "unshare":
        return "unshare"
    if name in HOLDERS:
        return name
    return "lab" if "ccplay.lab" in argv else None


def kill_all(marker: str) -> None:
    """Kill every process that inherited ``marker``."""
    for left in marked(marker):
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()


def kill(marker: str, part: str) -> None:
    for victim in victims(marker, part):
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)


def has_name(process: psutil.Process, *names: str) -> bool:
    """Return whether a process still exists, with one of these names."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name() in names
    return False


@dataclass(frozen=True)
class Busy:
    """A lab under traffic, with methods that find its processes."""

    program: LabProcess
    marker: str
    is_fork: bool
    """Whether the lab is a fork of a warm process, whose environment lacks the marker."""

    def processes(self) -> list[psutil.Process]:
        """Return the process that made the namespaces, the lab's first process, and all others."""
        if not self.is_fork:
            return list(marked(self.marker))
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.program.pid)
            return [first, *first.children(recursive=True)]
        return []

    def kill(self, part: str) -> None:
        """Kill one part of the lab, see ``victims``; a lab without that part yet survives."""
        if not self.is_fork:
            kill(self.marker, part)
            return
        found = self.processes()
        chosen = {"unshare": found[:1], "lab": found[1:2]}.get(part, found[2:])
        for each in chosen:
            with contextlib.suppress(psutil.NoSuchProcess):
                if part not in HOLDERS or has_name(each, part):
                    each.kill()


async def start(marker: str, warm: WarmLabs | None, build: Build = BUSY) -> Busy:
    """Start a busy lab: a program that carries ``marker``, or a fork of a warm process."""
    argv = launch.lab_argv()
    if warm is not None and (words := launch.words_of(argv)) is not None:
        lab = Busy(await warm.fork(*words), marker, is_fork=True)
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(MARKER, marker)
            lab = Busy(await spawn(argv), marker, is_fork=False)
    for command in (
        build,
        StartFlow(flow="1"),
        StartPing(ping="p1"),
        StartDownload(download="w1", bytes=10**7),
        StartUdp(udp="u1", rate_bps=4_000_000, monitor=True),
    ):
        lab.program.stdin.write(wire.encode(command))
    return lab


async def read_until(events: asyncio.StreamReader, word: bytes) -> None:
    """Read the lab's events until one of kind ``word``, or its end."""
    async for line in events:
        if line.startswith(b'{"event":"' + word + b'"'):
            return


async def drain(output: asyncio.StreamReader) -> None:
    while await output.read(1 << 16):
        pass


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmLabs]:
    """Return a process that forks labs, as in a command that starts several."""
    labs = WarmLabs()
    yield labs
    labs.close()


Look: TypeAlias = Callable[[list[psutil.Process]], None]
"""Sees the processes of a lab as a part of it is killed."""


async def kill_and_check(
    lab: Busy, part: str, begun: Awaitable[None], before: Host, after_s: float, *, look: Look
) -> None:
    """Kill a part of a lab ``after_s`` seconds after ``begun``; then the host is as ``before``."""
    program = lab.program
    with contextlib.ExitStack() as until_checked:
        try:
            await begun
            reader = asyncio.create_task(drain(program.stdout))
            await asyncio.wait([reader], timeout=after_s)
            theirs = dwellers(made_for(lab.processes()))
            look(theirs)
            made = until_checked.enter_context(numbered(theirs))
            if part != "pipe":
                lab.kill(part)
            # A dead delay line is mended and the lab lives on, so the pipe is closed in any case.
            program.stdin.close()
            await asyncio.wait_for(program.wait(), 60)
            reader.cancel()
        finally:
            program.kill()
            program.close()
            end_what_failed(lab.marker)
        await check_nothing_is_left(lab.marker, theirs, before)
        # Nor what was started since.
        assert not await nothing_left(lambda: [str(each) for each in filter(lives, dwellers(made))])


@pytest.mark.parametrize("round_", [n for n in range(ROUNDS) if n % 5 != 4])
async def test_a_killed_lab_leaves_nothing(round_: int, warm: WarmLabs) -> None:
    """SIGKILL at a random moment, to each part in turn.

    Every other lab of each kind is a separate program, as the first lab of a command is; the others
    are forks of a warm process, as all later ones are.
    """
    chance = random.Random(round_)
    before = Host.now()
    lab = await start(f"ccplay-{uuid.uuid4()}", warm if round_ // 5 % 2 else None)
    # A quarter of the labs die while they still build, the others under traffic.
    word = chance.choice((b"hello", b"ready", b"flow-started", b"health"))
    part = ("lab", "unshare", "delay line", "pipe")[round_ % 5]
    begun = read_until(lab.program.stdout, word)
    await kill_and_check(lab, part, begun, before, chance.uniform(0, 0.3), look=lambda _: None)


def traces_of(processes: Iterable[psutil.Process]) -> set[int]:
    """Return the inodes of the traces in memory that processes have open or mapped."""
    found = set()
    for process in processes:
        folder = Path(f"/proc/{process.pid}")
        with contextlib.suppress(OSError):
            maps = (folder / "maps").read_text().splitlines()
            found |= {int(each.split()[4]) for each in maps if "/memfd:trace" in each}
            for each in (folder / "fd").iterdir():
                if "/memfd:trace" in str(each.readlink()):
                    found.add(each.stat().st_ino)
    return found


@pytest.mark.parametrize(
    ("part", "forks"),
    [("lab", False), ("unshare", True), *((each, False) for each in HOLDERS), ("pipe", True)],
)
async def test_a_lab_killed_while_a_trace_moves_a_link_leaves_nothing(
    part: str, forks: bool, warm: WarmLabs
) -> None:
    """SIGKILL while both processes that hold packets follow it: its memory is gone, too."""
    before = Host.now()
    build = replace(BUSY, links={"r1->r2": MOVES})
    lab = await start(f"ccplay-{uuid.uuid4()}", warm if forks else None, build)
    traces = set[int]()

    async def moves() -> None:
        # Its monitor, the last to start, has been compiled then.
        await read_until(lab.program.stdout, b"udp-started")
        async for line in lab.program.stdout:
            if b"trace_capacity_bps" in line and b"trace_delay_us" in line:
                return

    def look(theirs: list[psutil.Process]) -> None:
        mapped = [traces_of([each]) for each in theirs if has_name(each, *HOLDERS)]
        assert len(mapped) == 2
        assert all(mapped)
        traces.update(traces_of(theirs))

    await kill_and_check(lab, part, moves(), before, random.Random(part).uniform(0, 0.3), look=look)
    assert not traces & traces_of(psutil.process_iter())


@pytest.mark.parametrize("round_", [n for n in range(ROUNDS) if n % 5 == 4])
async def test_a_killed_screen_leaves_nothing(round_: int) -> None:
    """SIGKILL to the program on the terminal at a random moment of its lab."""
    chance = random.Random(round_)
    before = Host.now()
    marker = f"ccplay-{uuid.uuid4()}"
    terminal, inside = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ccplay"),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, MARKER: marker, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(inside)
    # A terminal that nobody reads would make the program wait.
    loop = asyncio.get_running_loop()
    loop.add_reader(terminal, swallow, loop, terminal)
    try:
        pauses = pausing(60.0)
        while not victims(marker, "lab"):
            assert process.returncode is None
            await asyncio.sleep(next(pauses))
        await asyncio.wait([asyncio.create_task(process.wait())], timeout=chance.uniform(0, 1.5))
        theirs = inhabitants(marker)
        process.kill()
        await process.wait()
    finally:
        loop.remove_reader(terminal)
        os.close(terminal)
        end_what_failed(marker)
    await check_nothing_is_left(marker, theirs, before)


def swallow(loop: asyncio.AbstractEventLoop, terminal: int) -> None:
    try:
        os.read(terminal, 1 << 16)
    except OSError:
        loop.remove_reader(terminal)


def end_what_failed(marker: str) -> None:
    """After a failure, end everything that could disturb the next test."""
    if sys.exc_info()[0] is not None:
        kill_all(marker)


async def check_nothing_is_left(
    marker: str, theirs: Sequence[psutil.Process], before: Host
) -> None:
    assert theirs, "the lab was to live in namespaces of its own"
    assert not await nothing_left(lambda: [str(each) for each in marked(marker)])
    # The first process of a namespace has lost its environment already while it ends the others.
    assert not await nothing_left(lambda: list(filter(lives, theirs)))
    assert Host.now() == before
