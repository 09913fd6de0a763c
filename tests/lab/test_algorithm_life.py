"""An algorithm as a BPF program lives exactly as long as the lab that brought it."""

import asyncio
import contextlib
import os
import re
import signal
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from ccplay.assets import ALGORITHMS, algorithms
from ccplay.bpf.support import custom_algorithms, lack
from ccplay.errors import UsageError
from ccplay.model.commands import Build, SetCongestionControl, SetLink
from ccplay.model.network import Topology
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import LabSource
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import RunningLab, forked, running
from tests.lab.namespaced import call
from tests.lab.test_leaks import loaded_programs, nothing_left

_missing = lack()
needs_bpf = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

LINEAR = Build(topology=Topology(kind="linear"))

LOSS = 4
"""Number of the congestion state after a timeout."""


def own(folder: Path) -> Path:
    """Write an algorithm with a name that nothing else on this host uses."""
    path = folder / f"t{uuid.uuid4().hex[:7]}.bpf.c"
    path.write_bytes((ALGORITHMS / "template.bpf.c").read_bytes())
    return path


def called(path: Path) -> str:
    return path.name.removesuffix(".bpf.c")


def in_kernel(path: Path) -> list[str]:
    """Return the names under which the whole host offers a file's algorithm."""
    names = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return [name for name in names if name.endswith(f"_{called(path)}")]


def loaded() -> set[int]:
    """Return the numbers of all algorithms in the kernel, with a name or without."""
    return loaded_programs("struct_ops")


def loaded_for(lab: RunningLab) -> set[int]:
    """Return the numbers of the algorithms that a lab has loaded; other labs load theirs."""
    held: set[int] = set()
    for process in parts(lab):
        for each in Path(f"/proc/{process.pid}/fdinfo").glob("*"):
            with contextlib.suppress(OSError):
                held |= set(map(int, re.findall(r"\nmap_id:\s*(\d+)", each.read_text())))
    return held & loaded()


async def gone(path: Path, within_s: float = 60.0) -> bool:
    """Wait until no name is left; the kernel frees it when the lab's last process is reaped."""
    return not await nothing_left(lambda: in_kernel(path), within_s)


async def start(
    path: Path, begin: Callable[[Sequence[str], Build], LabSource] = forked
) -> RunningLab:
    """Start a lab with traffic that uses the algorithm of a file."""
    lab = RunningLab(begin(launch.lab_argv(custom=[path]), LINEAR))
    await lab.until(lambda state: state.phase == "ready")
    lab.send(StartFlow(flow="1", cc=called(path)))
    await lab.until(lambda state: "1" in state.flows and state.flows["1"].acked)
    return lab


def parts(lab: RunningLab) -> list[psutil.Process]:
    """Return the process that made the lab's namespaces, and its server."""
    assert lab.source.pid is not None
    unshare = psutil.Process(lab.source.pid)
    return [unshare, *unshare.children()]


@needs_bpf
@pytest.mark.parametrize("part", ["unshare", "python"])
async def test_after_sigkill_the_host_no_longer_has_it(tmp_path: Path, part: str) -> None:
    """Under traffic: packets in flight keep the algorithm for some seconds, without a name.

    The lab is a separate program, as the first lab of a command is.
    """
    path = own(tmp_path)
    lab = await start(path, LabSource)
    try:
        assert len(in_kernel(path)) == 1
        assert (theirs := loaded_for(lab))
        assert lab.state.flows["1"].cc == called(path)
        (victim,) = [each for each in parts(lab) if part in Path(each.cmdline()[0]).name]
        os.kill(victim.pid, signal.SIGKILL)
        assert await gone(path)
        assert not await nothing_left(lambda: loaded() & theirs)
    finally:
        await lab.close()


@needs_bpf
async def test_an_orderly_end_takes_it_back(tmp_path: Path) -> None:
    """Within 2 s, even if packets in flight are never answered, which would keep it for more."""
    path = own(tmp_path)
    lab = await start(path)
    assert (theirs := loaded_for(lab))
    lab.send(SetLink(loss=1.0))
    await lab.until(lambda state: state.flows["1"].series["ca_state"].last == LOSS)
    await lab.close()
    assert await gone(path, 2.0)
    assert not await nothing_left(lambda: loaded() & theirs, 2.0)


@needs_bpf
async def test_labs_side_by_side_have_each_their_own(tmp_path: Path) -> None:
    """One lab ends, and the other's algorithm keeps working."""
    path = own(tmp_path)
    one, other = await asyncio.gather(start(path), start(path))
    try:
        assert len(set(in_kernel(path))) == 2
        await one.close()
        acked = other.state.flows["1"].acked
        await other.until(lambda state: state.flows["1"].acked > acked)
        # The kernel takes a name back a moment after the lab has ended.
        await other.until(lambda _: len(in_kernel(path)) == 1)
    finally:
        await one.close()
        await other.close()
    assert await gone(path)


@needs_bpf
async def test_a_running_flow_a_host_and_a_download_take_it() -> None:
    """Events, samples and defaults show the name that people use."""
    async with running(LINEAR) as lab:
        lab.send(StartFlow(flow="1", cc="reno"))
        await lab.until(lambda state: "1" in state.flows)
        lab.send(SetCongestionControl(flow="1", cc="scalable.bpf"))
        await lab.until(lambda state: state.flows["1"].cc_changes[-1][1] == "scalable.bpf")
        lab.send(SetCongestionControl(host="h1", cc="veno.bpf"))
        await lab.until(lambda state: state.hosts["h1"] == "veno.bpf")
        lab.send(StartDownload(download="w1", bytes=10**7), StartFlow(flow="2"))
        await lab.until(lambda state: {"w1", "2"} <= set(state.flows))
        assert lab.state.flows["w1"].cc == "veno.bpf"
        assert lab.state.flows["2"].cc == "veno.bpf"
        lab.send(SetCongestionControl(flow="1", cc="dctcp.bpf"))
        await lab.until(lambda state: any("no ECN" in entry.text for entry in state.log))
        assert lab.state.flows["1"].cc_changes[-1][1] == "scalable.bpf"


@needs_bpf
async def test_a_bad_one_is_refused_with_its_reason_and_the_lab_lives(tmp_path: Path) -> None:
    path = own(tmp_path)
    source = path.read_text()
    path.write_text(source.replace("return reno_undo_cwnd(sk);", "return nonsense(sk);"))
    async with running(LINEAR, argv=launch.lab_argv(custom=[path])) as lab:
        lab.send(StartFlow(flow="1", cc=called(path)))
        line = source[: source.index("return reno_undo_cwnd")].count("\n") + 1
        said = f"{path.name}:{line}"
        await lab.until(lambda state: any(said in entry.text for entry in state.log))
        lab.send(StartFlow(flow="2", cc="reno"))
        await lab.until(lambda state: "2" in state.flows and state.flows["2"].acked)


@needs_bpf
async def test_one_that_was_refused_is_looked_at_again_when_it_is_saved(tmp_path: Path) -> None:
    """Until it can be chosen; a save without changes is reported as such."""
    path = own(tmp_path)
    source, undo = path.read_text(), "return reno_undo_cwnd(sk);"
    path.write_text(source.replace(undo, "return nonsense(sk);"))
    async with running(LINEAR, argv=launch.lab_argv(custom=[path])) as lab:
        lab.send(StartFlow(flow="1", cc=called(path)))
        await lab.until(lambda state: said(state, "'nonsense'"))
        path.write_text(source.replace(undo, "return rubbish(sk);"))
        await lab.until(lambda state: said(state, "can't be used yet", "'rubbish'"))
        path.write_text(source)
        await lab.until(lambda state: said(state, "was saved and can be chosen now"))
        lab.send(StartFlow(flow="1", cc=called(path)))
        await lab.until(lambda state: "1" in state.flows and state.flows["1"].acked)
        path.write_text(source)
        await lab.until(lambda state: said(state, "without a change to the program"))


def said(state: LabState, *words: str) -> bool:
    """Return whether one entry of the log contains all of these words."""
    return any(all(word in entry.text for word in words) for entry in state.log)


@needs_bpf
async def test_saving_the_file_swaps_it_under_a_running_flow(tmp_path: Path) -> None:
    """A mark shows it; a mistake changes nothing, and the old version leaves the kernel."""
    path = own(tmp_path)
    source, name = path.read_text(), called(path)
    lab = await start(path)
    try:
        assert lab.state.hello is not None
        assert lab.state.hello.capabilities.congestion_controls[0].name == name
        (before,) = in_kernel(path)
        path.write_text(source.replace("return max(cwnd * KEPT", "return nonsense(cwnd * KEPT"))
        await lab.until(lambda state: any("keeps the old version" in e.text for e in state.log))
        assert in_kernel(path) == [before]
        # A window of 4 whatever happens: 4 segments an RTT of 20 ms are a fifth of the rate.
        path.write_text(
            source.replace("tcp_cong_avoid_ai(tp, max(", "set_cwnd(tp, 4); (void)(max(").replace(
                "if (in_slow_start(tp)) {", "if (0) {"
            )
        )
        await lab.until(lambda state: any("was saved" in e.text for e in state.log))
        asked = SetCongestionControl(flow="1", cc=name)
        await lab.until(lambda state: any(asked == each.command for each in state.applied))
        assert lab.state.applied[-1].renewed
        await lab.until(lambda state: state.flows["1"].series["cwnd"].last == 4)
        assert lab.state.flows["1"].cc == name
        # A program that starts just now holds it, too, until it is exec'd.
        assert not await nothing_left(lambda: before in in_kernel(path))
    finally:
        await lab.close()


def test_a_rootless_lab_reports_why_it_has_none() -> None:
    found, _ = call("tests.lab.traffic_cases:survey", rootless=True)
    features = {each["name"]: each for each in found["congestion_controls"]}
    for name in algorithms():
        assert "root of the host" in features[name]["reason"]
        assert features[name]["remedy"] == "start the lab as root"


def test_names_that_linux_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Linux already has a congestion control 'vegas'"):
        custom_algorithms([tmp_path / "vegas.bpf.c"])


@needs_bpf
async def test_an_algorithm_that_does_no_good_is_reported_and_harms_nobody_else(
    tmp_path: Path,
) -> None:
    """Its cwnd stays at 1; the other flow still has the link."""
    path = own(tmp_path)
    text = path.read_text()
    stuck = text.replace("acked = tcp_slow_start(tp, acked);", "set_cwnd(tp, 1);\n\t\treturn;")
    assert stuck != text
    path.write_text(stuck)
    lab = await start(path)
    try:
        lab.send(StartFlow(flow="2", cc="reno"))
        await lab.until(lambda state: any("keeps cwnd at 1" in e.text for e in state.log))
        # Reno, beside a flow of one segment an RTT, grows past its start.
        await lab.until(lambda state: "2" in state.flows)
        await lab.until(lambda state: (state.flows["2"].series["cwnd"].last or 0) > 10)
    finally:
        await lab.close()
