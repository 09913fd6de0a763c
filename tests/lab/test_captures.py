"""Captures of a link: complete, bounded, readable by others, and never over another file."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest

from ccplay.lab.capture_writer import STATISTICS_SIZE
from ccplay.model.commands import Build, StartCapture, StopCapture
from ccplay.model.events import CaptureEnded
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import Events, RunningLab, running
from tests.lab.test_leaks import MARKER, drain, marked, nothing_left, read_until
from tests.terminals import eventually

RATE = 10_000_000

BUILD = Build(
    topology=Topology(kind="linear"),
    links={"bottleneck": LinkSetting(rate=RATE, delay_us=5_000)},
    label="a run",
)

needs_tcpdump = pytest.mark.skipif(shutil.which("tcpdump") is None, reason="no tcpdump")
pytestmark = needs_tcpdump


def capturing(captures: Path, *options: str) -> AbstractAsyncContextManager[RunningLab]:
    """Run a lab that writes captures there; ``options`` are further ones of unshare(1)."""
    argv, at = launch.lab_argv(captures=captures), len(launch.UNSHARE)
    return running(BUILD, argv=[*argv[:at], *options, *argv[at:]])


def ended(state: LabState, text: str) -> bool:
    """Return whether the log reports a capture's end in these words."""
    return any(each.text.startswith("capture c") and text in each.text for each in state.log)


async def quiet(lab: RunningLab) -> int:
    """Wait until no more packets pass; return how many have passed in both directions.

    Half a second is longer than a full queue, a round trip and a retransmission take.
    """
    passed = -1
    while (now := _passed(lab.state)) != passed:
        passed = now
        await lab.run_for(0.5)
    return passed


def _passed(state: LabState) -> int:
    rows = (state.queues[link].series["packets"] for link in ("r->h2", "r->h1"))
    return int(sum(each.last or 0 for each in rows))


async def captured(lab: RunningLab) -> None:
    await lab.until(lambda state: "c1" in state.captures)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def capinfos(path: Path) -> str:
    """Return Wireshark's summary of a file."""
    argv = ["capinfos", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


async def packets_in(path: Path) -> list[str]:
    """Read a file with tcpdump, one line per packet."""
    process = await asyncio.create_subprocess_exec(
        *("tcpdump", "-tt", "-n", "-r", str(path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode().splitlines()


async def test_a_capture_holds_every_packet_that_crossed_the_link(tmp_path: Path) -> None:
    """In both directions, as the queues count them; tcpdump reads the file."""
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture())
        await captured(lab)
        assert lab.state.captures["c1"].path == str(tmp_path / "a-run-r-h2.pcapng")
        lab.send(StartFlow(flow="1", bytes=300_000))
        await lab.until(lambda state: "1" in state.flows and not state.flows["1"].running)
        counted = await quiet(lab)
        lab.send(StopCapture(capture="c1"))
        await lab.until(lambda state: ended(state, "packets in"))
        assert not lab.state.captures
    path = only_file(tmp_path)
    lines = await packets_in(path)
    assert len(lines) == counted
    payload = [line for line in lines if " length 1448" in line]
    assert len(payload) >= 300_000 / 1448
    stamps = [float(line.split()[0]) for line in lines]
    assert stamps == sorted(stamps)
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    if shutil.which("capinfos"):
        said = capinfos(path)
        assert "pcapng" in said
        assert f"Number of packets:   {len(lines)}" in said


async def test_a_rootless_lab_captures_with_what_need_not_become_somebody_else(
    tmp_path: Path,
) -> None:
    """If tcpdump insists on its own user, dumpcap captures; the file is as complete."""
    if (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    options = launch.ROOTLESS if os.geteuid() == 0 else ()
    async with capturing(tmp_path, *options) as lab:
        assert lab.state.hello is not None
        tools = {each.name: each for each in lab.state.hello.capabilities.tools}
        if not (tools["tcpdump"].available or tools["dumpcap"].available):
            pytest.skip(f"{tools['tcpdump'].reason} ({tools['tcpdump'].remedy})")
        lab.send(StartCapture(), StartFlow(flow="1", bytes=300_000))
        await lab.until(lambda state: "1" in state.flows and not state.flows["1"].running)
        counted = await quiet(lab)
        lab.send(StopCapture(capture="c1"))
        await lab.until(lambda state: ended(state, "packets in"))
    assert len(await packets_in(only_file(tmp_path))) == counted


async def test_a_capture_ends_before_its_bound(tmp_path: Path) -> None:
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture(max_bytes=20_000), StartFlow())
        await lab.until(lambda state: ended(state, "full at"))
    path = only_file(tmp_path)
    # Without the next packet, of 128 bytes kept, 36 of its block and 12 of its direction.
    assert 20_000 - 128 - 48 - STATISTICS_SIZE <= path.stat().st_size <= 20_000
    assert len(await packets_in(path)) >= (20_000 - 500) // (128 + 48)


async def test_captures_never_write_over_a_file_or_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "a-run-r-h2.pcapng").symlink_to(precious)
    (tmp_path / "a-run-r-h2-2.pcapng").write_text("mine")
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture(link="r->h2"), StartCapture(link="h1-r", capture="c2"))
        await lab.until(lambda state: len(state.captures) == 2)
        paths = {each.link: Path(each.path).name for each in lab.state.captures.values()}
    assert paths == {"r->h2": "a-run-r-h2-3.pcapng", "r->h1": "a-run-r-h1.pcapng"}
    assert precious.read_text() == "precious"
    assert (tmp_path / "a-run-r-h2-2.pcapng").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files that others own")
async def test_under_sudo_a_file_belongs_to_who_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture())
        await captured(lab)
    owner = only_file(tmp_path).stat()
    assert (owner.st_uid, owner.st_gid) == (12345, 12346)


async def test_what_can_not_be_captured_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with capturing(tmp_path / "missing") as lab:
        for command, text in (
            (StartCapture(), "No such file or directory"),
            (StartCapture(link="x-y"), "no link 'x-y'; links: bottleneck, h1-r, r-h2"),
            (StartCapture(max_bytes=1), "capture: size: must be from 10 kB to 1 GB"),
            (StartCapture(snaplen=1), "capture: snaplen: must be from 64 B to 65535 B"),
            (StopCapture(capture="c7"), "no capture 'c7' is running; running: none"),
        ):
            lab.send(command)
            await lab.until(lambda state, text=text: any(text in e.text for e in state.log))  # type: ignore[misc]


@pytest.mark.parametrize("program", ["tcpdump", "ccplay.lab.capture_writer"])
async def test_a_capture_that_dies_reports_why_and_the_lab_continues(
    tmp_path: Path, program: str
) -> None:
    async with capturing(tmp_path) as lab:
        lab.send(StartCapture(), StartFlow())
        await captured(lab)
        await lab.until(lambda state: "1" in state.flows)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(word.endswith(program) for word in process.cmdline()):
                    process.send_signal(signal.SIGKILL)
        await lab.until(lambda state: ended(state, "was killed by SIGKILL"))
        assert lab.state.flows["1"].running
    path = only_file(tmp_path)
    await packets_in(path)


@pytest.mark.parametrize("part", ["lab", "unshare", "pipe"])
async def test_a_killed_lab_leaves_a_readable_file_and_no_process(
    tmp_path: Path, part: str
) -> None:
    """The capture dies with the lab at any moment; the part already written can be read."""
    marker = f"ccplay-{uuid.uuid4()}"
    process = await asyncio.create_subprocess_exec(
        *launch.lab_argv(captures=tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, MARKER: marker},
    )
    assert process.stdin is not None
    for command in (BUILD, StartCapture(), StartFlow(flow="1")):
        process.stdin.write(wire.encode(command))
    assert process.stdout is not None
    await read_until(process.stdout, b"flow-started")
    reader = asyncio.create_task(drain(process.stdout))
    path = only_file(tmp_path)
    await eventually(lambda: path.stat().st_size >= 50_000)
    if part == "unshare":
        process.kill()
    elif part == "lab":
        psutil.Process(process.pid).children()[0].kill()
    process.stdin.close()
    await asyncio.wait_for(process.wait(), 60)
    reader.cancel()
    assert not await nothing_left(lambda: [str(each) for each in marked(marker)])
    size = path.stat().st_size
    assert len(await packets_in(path)) >= 50_000 / (1514 + 48)
    assert path.stat().st_size == size


async def test_captures_that_run_at_the_end_are_completed(tmp_path: Path) -> None:
    """An orderly end reports them just before its last event."""
    events = Events()
    async with capturing(tmp_path) as lab:
        lab.session.sinks.append(events)
        lab.send(StartCapture(), StartFlow(flow="1"))
        await lab.until(lambda state: "1" in state.flows)
        await lab.run_for(0.5)
    (end,) = events.of(CaptureEnded)
    path = only_file(tmp_path)
    assert end.error is None
    assert end.bytes == path.stat().st_size
    assert end.packets == len(await packets_in(path))
