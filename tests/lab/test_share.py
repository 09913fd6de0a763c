"""A real session is shared, and watched on another terminal, from the beginning and from now."""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.lab.test_leaks import MARKER, commands, kill_all, marked
from tests.lab.test_terminal import ENDS_S, SCENARIO
from tests.terminals import on_terminal, until

CCPLAY = [sys.executable, "-m", "ccplay"]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    marker = f"ccplay-{uuid.uuid4()}"
    yield {
        MARKER: marker,
        "XDG_RUNTIME_DIR": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    kill_all(marker)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "steps.toml"
    path.write_text(SCENARIO)
    return path


def test_a_session_is_watched_on_another_terminal(
    environment: dict[str, str], scenario: Path
) -> None:
    play = [*CCPLAY, str(scenario), "--share"]
    with on_terminal(play, environment=environment) as presenter:
        presenter.read_until_shown("step 1")
        with on_terminal([*CCPLAY, "watch", "steps"], environment=environment) as spectator:
            spectator.read_until_shown("following", "step 0")
            presenter.read_until_shown("1 watching")
            # The presenter freezes, and so does who follows; then they go their own ways.
            presenter.type(b" ")
            spectator.read_until_shown("frozen")
            spectator.type(b"i")
            spectator.read_until_shown("Its RTT is")
            spectator.type(b"ix\x1b[C")
            spectator.read_until_shown("roaming")
            spectator.type(b"F")
            spectator.read_until_shown("following")
            presenter.type(b"M")
            presenter.read_until_shown("on all screens")
            presenter.type(b"look here\r")
            spectator.read_until_shown("look here")
            presenter.type(b"\x11")
            code, _ = presenter.ended(ENDS_S)
            assert code == 0
            spectator.read_until_shown("stopped sharing")
            spectator.type(b"\x11")
            code, _ = spectator.ended(ENDS_S)
            assert code == 0
    until(lambda: not list(marked(environment[MARKER])), ENDS_S)
    assert not list(Path(environment["XDG_RUNTIME_DIR"]).rglob("*.share"))


def test_a_run_without_a_screen_is_watched(environment: dict[str, str], scenario: Path) -> None:
    run = [*CCPLAY, "run", str(scenario), "--share", "--set", 'duration="20 s"']
    with subprocess.Popen(
        run, env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        said = running.stderr
        assert said is not None
        until(lambda: b"ccplay watch steps" in said.readline())
        watch = [*CCPLAY, "watch", "--from-now", "--restricted"]
        with on_terminal(watch, environment=environment) as spectator:
            spectator.read_until_shown("watching", "live")
            listed = subprocess.run(
                [*CCPLAY, "watch", "--list"],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                check=True,
            )
            assert listed.stdout.startswith("steps  ")
            assert "1 watching" in listed.stdout
            spectator.read_until_shown("Ended: ")
            spectator.type(b"\x11")
            assert spectator.ended(ENDS_S)[0] == 0
        running.communicate()
        assert running.returncode == 0


@pytest.mark.parametrize(("module", "code"), [("ccplay.share.relay", 0), ("ccplay.lab", 5)])
def test_a_run_whose_server_or_lab_is_killed_reports_it_and_leaves_no_socket(
    environment: dict[str, str], scenario: Path, module: str, code: int
) -> None:
    """What a run measured is whole without spectators, but not without its lab."""
    run = [*CCPLAY, "run", str(scenario), "--share", "--set", 'duration="6 s"']
    with subprocess.Popen(
        run, env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        said = running.stderr
        assert said is not None
        until(lambda: b"step 0" in said.readline())
        for each, argv in list(commands(environment[MARKER])):
            if module in argv:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        out, rest = running.communicate()
        assert running.returncode == code, out + rest
        assert (b"has ended" in rest) if code == 0 else (b"error: the lab " in out)
    until(lambda: not list(marked(environment[MARKER])), ENDS_S)
    assert not list(Path(environment["XDG_RUNTIME_DIR"]).rglob("*.share"))
