"""What passes the border of a guest: files both ways, and the end of whoever started it."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from platformdirs import user_cache_path

from ccplay.assets import ALGORITHMS
from ccplay.guest import boot
from ccplay.model.commands import Build, SetCongestionControl, StartCapture, StopCapture
from ccplay.model.network import Topology
from ccplay.session import launch
from ccplay.stream.sources import LabSource, recorded_events
from ccplay.traffic.flow import FlowStarted, StartFlow
from tests.lab.conftest import RunningLab
from tests.lab.test_leaks import MARKER, Host, end_what_failed, marked, namespaces_of, nothing_left
from tests.lab.trust import physical

_missing = boot.lack()
pytestmark = [pytest.mark.skipif(_missing is not None, reason=f"{_missing}"), pytest.mark.guest]

_EMULATED_S = 180.0
"""Longest time in seconds for booting, or clang, in an emulated guest on a busy machine; 25 s if
idle."""

BUSY = """
duration = "60 s"
topology = { kind = "linear" }
links.bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "fq_codel" } }
timeline = [{ at = "0 s", do = "start-flow", flow = "1" }]
"""

_BUSY_BYTES = 20_000
"""Size in bytes of a recording that contains the flow's first samples."""


@physical
async def test_own_algorithms_are_edited_here_and_captures_come_out(tmp_path: Path) -> None:
    """The folder's name has a space and a comma, as users' folders may."""
    folder = tmp_path / "my, own"
    folder.mkdir()
    source = Path(shutil.copy(ALGORITHMS / "template.bpf.c", folder / "mine.bpf.c"))
    argv = launch.guest_argv(folder, [source])
    lab = RunningLab(LabSource(argv, Build(topology=Topology(kind="linear"))))
    try:
        await lab.until(lambda state: state.phase == "ready", _EMULATED_S)
        lab.send(StartCapture(capture="c"), StartFlow(flow="1", cc="mine"))
        await lab.until(lambda state: "1" in state.flows, _EMULATED_S)
        _edit(source)
        await lab.until(
            lambda state: any(isinstance(e.command, SetCongestionControl) for e in state.applied),
            _EMULATED_S,
        )
        capture = Path(lab.state.captures["c"].path)
        lab.send(StopCapture(capture="c"))
        await lab.until(lambda state: "c" not in state.captures, _EMULATED_S)
    finally:
        await lab.close()
    assert capture.parent == folder
    _check(capture)


def _edit(source: Path) -> None:
    source.write_text(source.read_text().replace("KEPT 512", "KEPT 900"))


def _check(capture: Path) -> None:
    """A capture begins with a section header block; the flow outlasts the compiling."""
    content = capture.read_bytes()
    assert content.startswith(b"\x0a\x0d\x0d\x0a")
    assert len(content) > 100_000


def test_a_guest_dies_with_a_killed_starter(tmp_path: Path) -> None:
    """Even while it boots, when no program in it notices that stdin has ended."""
    script = (
        "import subprocess, sys; from ccplay.session import launch; from pathlib import Path\n"
        f"argv = launch.guest_argv(Path({str(tmp_path)!r}))\n"
        "pid = subprocess.Popen(argv, stdin=subprocess.PIPE).pid\n"
        # What runs before QEMU is what binds it to us.
        "while 'qemu' not in Path(f'/proc/{pid}/comm').read_text(): pass\n"
        "print(pid, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as starter:
        assert starter.stdout is not None
        guest = psutil.Process(int(starter.stdout.readline()))
        os.kill(starter.pid, signal.SIGKILL)
    gone, _ = psutil.wait_procs([guest], timeout=60)
    assert gone


def test_a_killed_run_in_a_guest_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL to ccplay while a flow fills a link: no QEMU, namespace or file is left."""
    (tmp_path / "temporary").mkdir()
    scenario = tmp_path / "s.toml"
    scenario.write_text(BUSY)
    kept, before = user_cache_path("ccplay"), Host.now()
    cached = _cached(kept)
    marker = f"ccplay-{uuid.uuid4()}"
    command = ["run", str(scenario), "--kernel", "guest", "--record", str(tmp_path / "r.ccplay")]
    argv = [sys.executable, "-P", "-m", "ccplay", *command]
    env = {**os.environ, MARKER: marker, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as run:
        try:
            _await_samples(tmp_path / "r.ccplay", run)
            theirs = list(marked(marker))
            assert any("qemu" in each.name() for each in theirs)
            # Labs in guests have the guest's namespaces, and QEMU needs none.
            spaces = {each for one in theirs for each in namespaces_of(Path(f"/proc/{one.pid}"))}
            assert spaces == namespaces_of(Path("/proc/self"))
        finally:
            run.kill()
            end_what_failed(marker)
    assert not asyncio.run(nothing_left(lambda: [str(each) for each in marked(marker)]))
    assert Host.now() == before
    assert _cached(kept) == cached
    assert not list((tmp_path / "temporary").iterdir())
    assert {each.name for each in tmp_path.iterdir()} == {"s.toml", "temporary", "r.ccplay"}
    assert any(isinstance(each, FlowStarted) for each in recorded_events(tmp_path / "r.ccplay"))


def _cached(folder: Path) -> set[Path]:
    """Return what is in the cache, without the objects that other tests may build."""
    return {each for each in folder.rglob("*") if each.suffix != ".o"}


def _await_samples(recording: Path, run: subprocess.Popen[bytes]) -> None:
    """Wait until the recording shows that a flow has run for about a second."""
    deadline = time.monotonic() + _EMULATED_S
    while not recording.exists() or recording.stat().st_size < _BUSY_BYTES:
        assert time.monotonic() < deadline
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"ccplay ended with exit code {run.wait(0.05)}")
