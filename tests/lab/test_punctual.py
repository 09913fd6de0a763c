"""Neither a paused terminal nor anything else moves a step of a run without a word about it."""

import asyncio
import json
import os
import pty
import signal
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ccplay.lab.delay_line import NAME
from ccplay.session.archive import read_recording
from tests.lab.commands import finish, progress, start
from tests.terminals import eventually

SCENARIO = """
duration = "4 s"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 50 } }
timeline = [
  { at = "0 s", do = "start-flow", cc = "reno" },
  { at = "2 s", do = "set-link", link = "bottleneck", rate = "5 Mbit/s" },
  { at = "3 s", do = "set-link", link = "bottleneck", rate = "20 Mbit/s" },
]
"""


@asynccontextmanager
async def running(path: Path, **streams: Any) -> AsyncIterator[Process]:
    """Run ``SCENARIO``, recorded beside ``path``; processes that are left at the end are killed."""
    path.write_text(SCENARIO)  # noqa: ASYNC240 - a small file
    words = ("run", path, "--json", "--record", path.with_suffix(".ccplay"))
    process = await start(*words, **streams)
    try:
        async with asyncio.timeout(120):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_run_continues_to_its_end_while_its_terminal_is_paused(tmp_path: Path) -> None:
    """Ctrl-S from the first output on; the result waits for Ctrl-Q, and is complete."""
    recording = tmp_path / "mine.ccplay"
    person, terminal = pty.openpty()
    said: list[bytes] = []
    first = asyncio.Event()

    def listen() -> None:
        said.append(os.read(person, 1 << 16))
        first.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(person, listen)
    both = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    try:
        async with running(tmp_path / "mine.toml", **both) as process:
            await first.wait()
            termios.tcflow(terminal, termios.TCOOFF)
            await eventually(
                lambda: recording.exists() and b'"event":"ended"' in recording.read_bytes()[-200:]
            )
            assert process.returncode is None
            assert b'"scenario"' not in b"".join(said)
            termios.tcflow(terminal, termios.TCOON)
            assert await process.wait() == 0
            await eventually(lambda: b"".join(said).rstrip().endswith(b"}"))
    finally:
        loop.remove_reader(person)
        os.close(person)
        os.close(terminal)
    (case,) = json.loads(b"{" + b"".join(said).partition(b"{")[2])["cases"]
    assert case["errors"] == []
    steps = [each for each in read_recording(recording).applied if each.due is not None]
    # The flow, two changes of the link, and the flow's end. A busy machine may need a tenth of a
    # second for each; paused as the terminal was, none would have come before the test's end.
    assert len(steps) == 4
    assert all(each.due is not None and 0 <= each.t - each.due < 1 for each in steps)


async def test_a_run_that_was_stopped_over_its_steps_is_not_trusted(tmp_path: Path) -> None:
    async with running(tmp_path / "mine.toml") as process:
        await progress(process, "flow 1 starts")
        process.send_signal(signal.SIGSTOP)
        # Time itself is what is awaited: the lab's, past both steps. They are then late by more
        # than 0.5 s, however slow the machine.
        await asyncio.sleep(5.0)
        process.send_signal(signal.SIGCONT)
        _, result, talk = await finish(process)
    (case,) = result["cases"]
    health = case["health"]
    assert not health["trustworthy"]
    assert health["late_steps"] >= 2
    reasons = "; ".join(health["reasons"])
    assert "the step due at 2.0 s (link bottleneck → 5 Mbit/s) took effect at" in reasons
    assert "ccplay was suspended or starved of CPU for" in reasons
    assert "was suspended" in talk


async def test_a_delay_line_that_died_makes_its_run_untrustworthy(tmp_path: Path) -> None:
    async with running(tmp_path / "mine.toml") as process:
        await progress(process, "flow 1 starts")
        children = psutil.Process(process.pid).children(recursive=True)
        lines = [each for each in children if each.name() == NAME.decode()]
        if not lines:
            pytest.skip("netem delays here")
        lines[0].kill()
        _, result, _ = await finish(process)
    (case,) = result["cases"]
    assert not case["health"]["trustworthy"]
    assert any("the delay line died (signal 9)" in each for each in case["health"]["reasons"])
    assert case["errors"] == []
