"""A terminal that stalls costs a session nothing; one that is gone ends screen and lab."""

import asyncio
import fcntl
import shlex
import signal
import sys
import termios
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from ccplay.analysis.trust import judge
from ccplay.model.commands import Build, Mark
from ccplay.model.events import Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.session import launch
from ccplay.session.archive import read_recording
from ccplay.stream.sources import LabSource
from ccplay.stream.wire import decode_event
from ccplay.traffic.flow import StartFlow
from tests.lab.test_leaks import MARKER, commands, kill_all, marked, victims
from tests.lab.trust import note, physical
from tests.terminals import ENTERS, LEAVES, OnTerminal, eventually, on_terminal, until

STEPS = 6
SCENARIO = """
duration = "60 s"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 50 } }
timeline = [
  { at = "0 s", do = "start-flow", cc = "reno" },
"""
SCENARIO += "".join(
    f'  {{ at = "{n} s", do = "mark", text = "step {n}" }},\n' for n in range(STEPS)
)
SCENARIO += "]\n"

ENDS_S = 30.0
"""Longest time in seconds for the end: half a second when idle, at most two by design, and more
beside other tests. What waits for something that does not happen never ends."""

PUNCTUAL_S = 0.7
"""Largest lateness of a step in seconds: steps are played at the first of 50 sweeps a second, and a
busy machine misses some."""

SYNCHRONISED = b"\x1b[?2026;2$y"
"""Reply of a terminal that can show a frame as a whole; each frame then has three writes."""


@dataclass
class Run:
    """``ccplay`` with a recorded scenario, and a marker of its processes."""

    folder: Path
    marker: str
    parent: str = ""

    @property
    def recording(self) -> Path:
        return self.folder / "it.ccplay"

    @property
    def argv(self) -> list[str]:
        scenario = self.folder / "steps.toml"
        scenario.write_text(SCENARIO)
        # An earlier attempt of the same test may have left one.
        self.recording.unlink(missing_ok=True)
        words = [sys.executable, "-m", "ccplay", str(scenario), "--record", str(self.recording)]
        if self.parent != "make":
            return words
        # It starts one command itself, and stays its parent.
        (self.folder / "Makefile").write_text(f"play:\n\t@{shlex.join(words)}\n")
        return ["make", "-s", "-C", str(self.folder), "play"]

    def marks(self) -> dict[str, float]:
        """Return the moments of the marks since the network was ready, from the recording."""
        state = read_recording(self.recording)
        note(judge(state))
        return {
            done.command.text: done.t - (state.ready_at or 0.0)
            for done in state.applied
            if isinstance(done.command, Mark)
        }

    def has_played(self, step: int) -> bool:
        """Return whether a step of the timeline is in the recording."""
        return f'"step {step}"' in self.recording.read_text()

    def screen(self) -> psutil.Process:
        """Return the screen's process: the leader of its session, or the child of the leader."""
        return next(p for p, argv in commands(self.marker) if argv[1:3] == ["-m", "ccplay"])


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    it = Run(tmp_path, f"ccplay-{uuid.uuid4()}")
    yield it
    kill_all(it.marker)


def nothing_is_left_of(run: Run) -> None:
    until(lambda: not list(marked(run.marker)), ENDS_S)
    if run.recording.exists() and (recorded := run.recording.read_bytes()):
        assert recorded.endswith(b"\n")
        assert decode_event(recorded.splitlines()[-1])


def stall(shown: OnTerminal, run: Run) -> None:
    """Read until the first steps are drawn, then stop reading until the last is recorded."""
    shown.read_until_shown("step 0")
    shown.type(SYNCHRONISED)
    shown.read_until_shown("step 1")
    # Other themes: whole screens, more than the kernel keeps for a terminal.
    shown.type(b"tttt")
    until(lambda: run.has_played(STEPS - 1))


@pytest.mark.parametrize(
    ("parent", "state"),
    [
        ("make", "starting"),
        ("make", "showing"),
        ("make", "asking"),
        ("", "showing"),
        ("ignoring", "showing"),
        ("make", "stalled"),
    ],
)
@physical
def test_a_closed_terminal_ends_screen_and_lab(run: Run, parent: str, state: str) -> None:
    """The kernel signals only the leader of the terminal's session, which is make here."""
    run.parent = parent
    with on_terminal(
        run.argv, environment={MARKER: run.marker}, ignoring_hangup=parent == "ignoring"
    ) as shown:
        shown.read_until(ENTERS)
        if state == "stalled":
            stall(shown, run)
        elif state != "starting":
            shown.read_until_shown("step 0")
        if state == "asking":
            shown.type(b"f")
            shown.read_until_shown("New flow")
        shown.hang_up()
        nothing_is_left_of(run)
        shown.ended(ENDS_S)


@physical
def test_a_stalled_terminal_delays_no_step_and_is_drawn_whole_afterwards(run: Run) -> None:
    with on_terminal(run.argv, size=(50, 160), environment={MARKER: run.marker}) as shown:
        stall(shown, run)
        late = {n: run.marks()[f"step {n}"] - n for n in range(STEPS)}
        assert all(0 <= each < PUNCTUAL_S for each in late.values()), late
        # The frames with the last steps were dropped.
        shown.read_until_shown("ccplay  steps", *(f"step {n}" for n in range(STEPS)))
        shown.type(b"\x11")
        assert shown.ended(ENDS_S)[0] == 0
    nothing_is_left_of(run)


@pytest.mark.parametrize("parent", ["", "make"])
@physical
def test_a_signal_ends_the_screen_on_a_stalled_terminal_too(run: Run, parent: str) -> None:
    run.parent = parent
    with on_terminal(run.argv, environment={MARKER: run.marker}) as shown:
        stall(shown, run)
        screen = run.screen()
        screen.send_signal(signal.SIGTERM)
        # Not read before it has ended: it waits for nobody.
        until(lambda: not screen.is_running() or screen.status() == psutil.STATUS_ZOMBIE, ENDS_S)
        nothing_is_left_of(run)
        code, rest = shown.ended(ENDS_S)
    assert LEAVES in rest
    assert parent or code == 128 + signal.SIGTERM


@pytest.mark.parametrize("parent", ["", "make"])
@physical
def test_ctrl_z_gives_the_terminal_to_the_shell_while_the_lab_continues(
    run: Run, parent: str
) -> None:
    run.parent = parent
    shell = ["bash", "--norc", "--noprofile", "-i"]
    environment = {MARKER: run.marker, "PS1": "$ ", "HISTFILE": ""}
    with on_terminal(shell, environment=environment) as shown:
        shown.type(shlex.join(run.argv).encode() + b"\n")
        shown.read_until(ENTERS, b"step 1")
        shown.type(b"\x1a")
        shown.read_until(LEAVES, b"Stopped")
        shown.type(b"echo $((6 * 7))\n")
        shown.read_until(b"42")
        # The timeline is played and recorded by a process that nobody stopped.
        until(lambda: run.has_played(4))
        shown.type(b"fg\n")
        shown.read_until(ENTERS, b"ccplay  steps", b"step 0", b"step 4")
        shown.type(b"\x11")
        shown.read_until(LEAVES, b"$ ")
        shown.type(b"echo ended with $?; exit\n")
        shown.read_until(b"ended with 0")
        shown.ended(ENDS_S)
    late = {name: t - int(name.removeprefix("step ")) for name, t in run.marks().items()}
    assert all(0 <= each < PUNCTUAL_S for each in late.values()), late
    nothing_is_left_of(run)


@physical
def test_a_screen_whose_lab_was_killed_is_no_success(run: Run) -> None:
    with on_terminal(run.argv, environment={MARKER: run.marker}) as shown:
        shown.read_until_shown("step 0")
        (unshare,) = victims(run.marker, "unshare")
        unshare.kill()
        shown.read_until_shown("(^q)")
        shown.type(b"\x11")
        code, rest = shown.ended(ENDS_S)
    assert code == 5
    assert b"ccplay: the lab ended by signal 9" in rest


@physical
def test_a_lab_that_hangs_is_not_waited_for(run: Run) -> None:
    with on_terminal(run.argv, environment={MARKER: run.marker}) as shown:
        shown.read_until_shown("step 0")
        for process in victims(run.marker, "lab"):
            process.suspend()
        shown.type(b"\x11")
        assert shown.ended(ENDS_S)[0] == 0
    nothing_is_left_of(run)


@physical
async def test_a_busy_lab_ends_at_once_though_nobody_reads_its_events() -> None:
    source = LabSource(launch.lab_argv(), Build(topology=Topology(kind="linear"), sample_hz=200))
    events = source.events()
    assert isinstance(events, AsyncGenerator)
    async with asyncio.timeout(60):
        async for event in events:
            if isinstance(event, Ready):
                source.send(StartFlow(flow="1", streams=64))
            if isinstance(event, Sweep) and event.tcp is not None and len(event.tcp.flow) >= 64:
                break
        await eventually(lambda: unread(source) >= FULL)
    began = time.monotonic()
    await asyncio.gather(events.aclose(), source.close())
    # It takes 0.3 s; who reads no more of what it says is kept waiting for the full ten.
    assert time.monotonic() - began < 5.0


FULL = 60_000
"""Number of bytes in a full pipe of 64 KiB that holds whole lines only; see pipe(7)."""


def unread(source: LabSource) -> int:
    """Return the number of bytes that wait in the lab's pipe."""
    assert source._process is not None
    pipe = source._process.output.get_extra_info("pipe")
    waiting = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return int.from_bytes(waiting, sys.byteorder)
