"""The screen adapts to its terminal, and restores it however the program ends."""

import os
import pty
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from ccplay.ui.terminal import Pastes, Writer
from tests.terminals import ENTERS, LEAVES, PATIENCE_S, on_terminal, until

RECORDING = Path(__file__).parent / "recordings" / "playground.ccplay"
REPLAY = [sys.executable, "-m", "ccplay", "replay", str(RECORDING)]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_the_terminal_back(number: signal.Signals) -> None:
    with on_terminal(REPLAY) as shown:
        assert ENTERS in shown.read_until(b"events")
        shown.process.send_signal(number)
        code, rest = shown.ended(PATIENCE_S)
    assert LEAVES in rest
    assert code == 128 + number


def test_escape_and_the_next_key_in_one_read_are_two_keys() -> None:
    """Over a slow line they come together, as a terminal sends alt and a key."""
    with on_terminal(REPLAY) as shown:
        shown.read_until_shown("? help")
        shown.type(b"?")
        shown.read_until_shown("Help")
        shown.type(b"\x1be")
        shown.read_until_shown("copy the tc lines")


def test_the_screen_is_drawn_on_stdout_alone_and_quitting_is_no_failure(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file, on_terminal(REPLAY, stderr=file.fileno()) as shown:
        shown.read_until(ENTERS, b"events")
        shown.type(b"\x11")
        assert shown.ended(PATIENCE_S)[0] == 0
    assert log.read_bytes() == b""


@pytest.mark.parametrize(
    ("environment", "most"),
    [
        ({"TERM": "dumb", "COLORTERM": ""}, 0),
        ({"NO_COLOR": "1"}, 0),
        ({"TERM": "linux", "COLORTERM": ""}, 8),
        ({"TERM": "xterm-256color", "COLORTERM": ""}, 256),
        ({}, 1 << 24),
    ],
    ids=["dumb", "NO_COLOR", "linux", "256", "truecolor"],
)
def test_a_terminal_receives_no_colours_that_it_lacks(
    environment: dict[str, str], most: int
) -> None:
    with on_terminal(REPLAY, environment=environment) as shown:
        drawn = shown.read_until(b"events", b"help")
        # A dialog is drawn by Textual itself.
        shown.type(b"?")
        drawn += shown.read_until(b"scroll")
        shown.type(b"\x1b\x11")
    codes = re.findall(rb"\x1b\[([0-9;]*)m", drawn)
    colours = {
        1 << 24: any(b"8;2;" in each for each in codes),
        256: any(b"8;5;" in each for each in codes),
        8: any(re.fullmatch(rb"(.*;)?(3|4|9|10)[0-7](;.*)?", each) for each in codes),
    }
    assert max((depth for depth, used in colours.items() if used), default=0) == most


def test_a_replay_without_keys_is_refused() -> None:
    with on_terminal(["sh", "-c", 'exec "$@" </dev/null', "sh", *REPLAY]) as shown:
        code, said = shown.ended(PATIENCE_S)
    assert code == 2
    assert (
        said == b"ccplay: replay needs a terminal: it reads keys from stdin and draws on stdout\r\n"
    )


def test_a_recording_that_ends_in_rubbish_is_no_success(tmp_path: Path) -> None:
    cut = tmp_path / "cut.ccplay"
    cut.write_bytes(b"".join(RECORDING.read_bytes().splitlines(keepends=True)[:200]) + b"oh!\n")
    with on_terminal([*REPLAY[:-1], str(cut)]) as shown:
        shown.read_until_shown("^q")
        shown.type(b"\x11")
        code, rest = shown.ended(PATIENCE_S)
    assert code == 4
    assert b"ccplay: " + str(cut).encode() + b":201: " in rest


CRASHING = """
import sys
from ccplay import cli
from ccplay.session import session
def crash(*_): raise RuntimeError("a fault of ours")
session.LabState.apply = crash
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_crash_is_no_success() -> None:
    with on_terminal([sys.executable, "-c", CRASHING, *REPLAY[3:]]) as shown:
        code, rest = shown.ended(PATIENCE_S)
    assert b"a fault of ours" in rest
    assert code == 1


def test_nobody_can_suspend_to_a_shell_that_is_not_there() -> None:
    """Ctrl-Z is refused if no shell could resume the program, which leads its own session."""
    with on_terminal(REPLAY) as shown:
        shown.read_until(b"events")
        shown.type(b"\x1a")
        shown.read_until(b"ccplay was not started by a shell")
        shown.type(b"\x11")
        assert shown.ended(PATIENCE_S)[0] == 0


class Watched:
    """A writer on a terminal that nobody reads yet."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.caught_up, self.lost = threading.Event(), threading.Event()
        self.writer = Writer(self.theirs, caught_up=self.caught_up.set, lost=self.lost.set)

    def fill(self) -> int:
        """Write more bytes than the kernel buffers, wait for a refusal, and return their number."""
        frame = b"x" * 100_000
        assert self.writer.takes_frame()
        self.writer.put(frame)
        until(lambda: not self.writer.takes_frame())
        return len(frame)


def test_a_writer_refuses_frames_until_all_is_read() -> None:
    it = Watched()
    put = it.fill()
    assert not it.caught_up.is_set()
    assert not it.writer.wait(0.0)
    read = 0
    while read < put:
        read += len(os.read(it.ours, 1 << 16))
    assert it.caught_up.wait(PATIENCE_S)
    assert it.writer.takes_frame()
    assert it.writer.wait(0.0)
    os.close(it.ours)


def test_a_writer_notices_that_its_terminal_is_gone() -> None:
    it = Watched()
    it.writer.put(b"x")
    assert it.writer.wait(PATIENCE_S)
    os.close(it.ours)
    it.writer.put(b"x")
    assert it.lost.wait(PATIENCE_S)
    it.writer.put(b"x" * 100)
    assert it.writer.wait(0.0)


def test_a_control_key_ends_a_paste_whose_end_was_lost() -> None:
    """A paste over a line that broke would otherwise swallow every key, even that which quits."""
    pastes = Pastes()
    assert pastes.completed("\x11", 5.0) == "\x11"
    assert pastes.completed("\x1b[200~abc", 6.0) == "\x1b[200~abc"
    assert pastes.completed("\x11", 6.5) == "\x11", "it may belong to the text"
    assert pastes.completed("d", 9.0) == "d"
    assert pastes.completed("\x11", 11.0) == "\x1b[201~\x11"
    assert pastes.completed("\x1b[200~abc\x1b[20", 20.0).endswith("\x1b[20")
    assert pastes.completed("1~", 20.1) == "1~"
    assert pastes.completed("\x11", 30.0) == "\x11", "its end came in two reads"
