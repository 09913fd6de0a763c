"""A session of the real program is recorded automatically, and found again, however it ended."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from ccplay.model.commands import SetQdisc
from ccplay.session.archive import read_recording
from tests.lab.test_leaks import MARKER, commands, kill_all, marked
from tests.lab.test_terminal import ENDS_S, SCENARIO
from tests.lab.trust import physical
from tests.terminals import ENTERS, LEAVES, OnTerminal, on_terminal, until

CCPLAY = (sys.executable, "-m", "ccplay")


@dataclass
class User:
    """A user with a folder of sessions and a scenario."""

    folder: Path
    marker: str

    @property
    def environment(self) -> dict[str, str]:
        return {MARKER: self.marker, "XDG_STATE_HOME": str(self.folder / "state")}

    @property
    def argv(self) -> list[str]:
        scenario = self.folder / "steps.toml"
        scenario.write_text(SCENARIO)
        return [*CCPLAY, str(scenario)]

    def run(self, *words: str) -> str:
        """Run a command to its end, and return its output."""
        done = subprocess.run(
            [*CCPLAY, *words],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **self.environment},
        )
        return done.stdout

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("sessions", "--json"))
        return found

    def front(self) -> psutil.Process:
        """Return the process that draws: the child of the one that the shell waits for."""
        return next(
            each
            for each, argv in commands(self.marker)
            if argv[1:3] == ["-m", "ccplay"]
            and "ccplay" in " ".join((each.parent() or each).cmdline())
            and each.parent() in list(marked(self.marker))
        )


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    it = User(tmp_path, f"ccplay-{uuid.uuid4()}")
    yield it
    kill_all(it.marker)


def steps(shown: OnTerminal, *numbers: int) -> None:
    for number in numbers:
        shown.read_until_shown(f"step {number}")


@physical
def test_what_was_done_and_undone_is_in_the_last_session(user: User) -> None:
    with on_terminal(user.argv, environment=user.environment) as shown:
        steps(shown, 0, 1)
        shown.type(b"\x10")
        shown.read_until_shown("type a command")
        shown.type(b"queue pfifo 33")
        shown.read_until_shown("queue: pfifo 33")
        shown.type(b"\r")
        (row,) = user.sessions()
        assert row["running"]
        growing = Path(row["path"])
        until(lambda: '"limit":33' in growing.read_text())
        shown.type(b"z")
        until(lambda: growing.read_text().count('"do":"set-qdisc"') == 2)
        assert "undo: queue bottleneck back to pfifo 50 pkt" in growing.read_text()
        shown.type(b"\x11")
        code, rest = shown.ended(ENDS_S)
    assert code == 0
    assert b"ccplay replay last" in rest
    (row,) = user.sessions()
    assert not row["running"]
    assert (row["scenario"], row["flows"], row["problem"]) == ("steps", 1, "")
    state = read_recording(Path(row["path"]))
    limits = [
        each.command.qdisc.options["limit"]
        for each in state.applied
        if isinstance(each.command, SetQdisc)
    ]
    assert limits == [33, 50]
    # It is shown again by that name, and what it did is a scenario.
    assert "limit = 33" in user.run("script", "last")
    with on_terminal([*CCPLAY, "replay", "last"], environment=user.environment) as shown:
        shown.read_until(ENTERS, b"step 0")
        shown.type(b"\x11")
        assert shown.ended(ENDS_S)[0] == 0
    assert len(user.sessions()) == 1


@physical
def test_a_session_that_was_killed_can_be_read(user: User) -> None:
    with on_terminal(user.argv, environment=user.environment) as shown:
        steps(shown, 0, 1, 2)
        # The front would pass a signal on; this one cannot be.
        user.front().kill()
        shown.ended(ENDS_S)
    (row,) = user.sessions()
    assert (row["flows"], row["running"], row["problem"]) == (1, False, "")
    assert row["seconds"] > 0
    state = read_recording(Path(row["path"]))
    assert "step 0" in [each.text for each in state.log]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@physical
def test_a_signal_asks_nothing_where_nothing_is_recorded(user: User, number: int) -> None:
    argv = [*user.argv, "--no-record"]
    with on_terminal(argv, environment=user.environment) as shown:
        steps(shown, 0)
        user.front().send_signal(number)
        code, rest = shown.ended(ENDS_S)
    assert code == 128 + number
    assert LEAVES in rest
    assert user.sessions() == []
    until(lambda: not list(marked(user.marker)), ENDS_S)


@physical
def test_a_session_that_is_not_recorded_is_saved_when_it_is_left(user: User) -> None:
    argv = [*user.argv, "--no-record"]
    with on_terminal(argv, environment=user.environment) as shown:
        steps(shown, 0)
        shown.type(b"\x11")
        shown.read_until_shown("This session is not recorded")
        saved = user.folder / "saved.ccplay"
        # The field has all of its text selected.
        shown.type(b"\t" + str(saved).encode() + b"\r")
        code, rest = shown.ended(ENDS_S)
    assert code == 0
    assert str(saved).encode() in rest.replace(b"\r\n", b"")
    assert "step 0" in [each.text for each in read_recording(saved).log]
    assert user.sessions() == []
