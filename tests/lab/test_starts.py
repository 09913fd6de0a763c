"""What a timeline starts at one moment sends its first data together, and at that moment."""

import shutil
from functools import partial
from pathlib import Path

import psutil
import pytest

from ccplay.bpf.support import lack as bpf_lack
from ccplay.model.base import StartTraffic
from ccplay.model.commands import Build, SetLink, StartTogether
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.udp import StartUdp
from tests.lab.conftest import running
from tests.lab.first_packets import moments
from tests.lab.trust import physical, sleeper

TOGETHER_S = 0.005
"""Largest difference in seconds between starts that connect at the moment, or send no TCP: 1 ms on
an idle machine, 3 ms more if a process waits one turn of the scheduler for its core; programs
started one after another would need 10 ms or more each."""

FLOWS_TOGETHER_S = 0.001
"""Largest difference in seconds between starts of flows, whose first segments the lab writes in
0.02 ms each."""

ON_TIME_S = 0.02
"""Largest lateness of a start in seconds: 2 ms on an idle machine, more for a sweep in progress or
one turn of the scheduler."""

LINEAR = Build(topology=Topology(kind="linear"))


def flows(count: int) -> list[StartTraffic]:
    """Return a number of flows that end soon."""
    return [StartFlow(flow=str(each), cc="reno", duration_s=0.5) for each in range(1, count + 1)]


OTHERS: list[StartTraffic] = [StartPing(ping="p", count=2), StartUdp(udp="u", duration_s=0.5)]


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="no tcpdump")
@pytest.mark.parametrize(
    "commands", [flows(2), flows(8), [*flows(2), *OTHERS]], ids=["two", "eight", "mixed"]
)
@physical
async def test_first_data_of_a_moment_are_sent_together(
    tmp_path_factory: pytest.TempPathFactory, commands: list[StartTraffic]
) -> None:
    with sleeper("SCHED_OTHER"):
        at, (_, sent, begun) = await moments(tmp_path_factory.mktemp("captures"), commands)
    only_flows = all(isinstance(each, StartFlow) for each in commands)
    assert sent[-1] - sent[0] < (FLOWS_TOGETHER_S if only_flows else TOGETHER_S)
    # The lab's clock and the capture's part by as much as it takes to read both.
    assert -0.001 < sent[0] - at < ON_TIME_S
    # Readings are up to 5 ms apart; when the flows were let go is known.
    assert begun[-1] == begun[0] == pytest.approx(sent[0], abs=0.001)


@pytest.mark.parametrize("ahead_s", [0.3, 0.0])
async def test_a_flow_of_a_moment_is_no_faster_than_its_link(ahead_s: float) -> None:
    """At 1 Gbit/s the lab may see data only some milliseconds after it has released the flow.

    One that is too late for its moment is released as soon as it comes, some time before the lab
    continues with it. HTB passes 1 ms at once after idle time, and a packet of 64 KB takes half of
    one.
    """
    rate, size = 1_000_000_000, 50_000_000 if ahead_s else 5_000_000
    link = LinkSetting(rate=rate, delay_us=0, qdisc=Qdisc(kind="bfifo", options={"limit": 302_800}))
    build = Build(topology=Topology(kind="linear"), links={"bottleneck": link}, sample_hz=200.0)
    async with running(build) as lab:
        for count in range(1, 5):
            start = StartFlow(cc="cubic", bytes=size)
            lab.source.send(StartTogether(at=lab.state.now + ahead_s, commands=[start]))
            await lab.until(partial(_have_ended, count))
        took = {name: each.duration_s for name, each in lab.state.flows.items()}
    assert min(took.values()) > size * 8 * 1514 / 1448 / rate - 0.0016, took


def _have_ended(count: int, state: LabState) -> bool:
    return [each.ended is not None for each in state.flows.values()] == [True] * count


async def test_each_is_answered_by_itself_and_one_that_is_refused_keeps_none_back() -> None:
    commands: list[StartTraffic] = [
        StartFlow(flow="a", cc="reno", bytes=1000),
        StartFlow(flow="b", cc="none-such", bytes=1000),
        StartDownload(download="w", bytes=1000),
        StartFlow(flow="a", cc="reno", bytes=1000),
    ]
    async with running(LINEAR) as lab:
        at = round(lab.state.now + 0.2, 6)
        lab.source.send(StartTogether(at=at, commands=commands))
        await lab.until(
            lambda state: len(state.traffic) == 2 and all(t.ended for t in state.traffic.values())
        )
        assert {each.due for each in lab.state.applied} == {at}
        names = [getattr(each.command, "flow", "w") for each in lab.state.applied]
        assert names == ["a", "w"]
        refused = [each.text for each in lab.state.log if each.kind == "error"]
        assert len(refused) == 2
        assert "'none-such'" in refused[0]
        assert "the name 'a' is taken" in refused[1]


async def test_what_is_stopped_before_its_moment_leaves_no_program_behind() -> None:
    """``a`` is stopped while its client waits for the moment; ``b`` still starts."""
    async with running(LINEAR) as lab:
        at = lab.state.now + 2.0
        commands: list[StartTraffic] = [StartFlow(flow=each, cc="reno") for each in "ab"]
        lab.source.send(StartTogether(at=at, commands=commands))
        await lab.until(lambda _: iperfs(lab.source.pid) == 4)
        lab.send(StopFlow(flow="a"))
        await lab.until(lambda state: "b" in state.flows)
        assert [each.text for each in lab.state.log if "stopped before it began" in each.text]
        assert "a" not in lab.state.flows
        await lab.until(lambda _: iperfs(lab.source.pid) == 2)


@physical
async def test_a_flow_whose_first_syn_is_lost_starts_at_its_moment() -> None:
    """The kernel repeats a SYN after 1 s (RFC 6298, 2.1), and a session asks 1.3 s before."""
    async with running(LINEAR) as lab:
        lab.send(SetLink(loss=1.0))
        await lab.until(lambda state: len(state.applied) == 1)
        asked = lab.state.now
        lab.source.send(StartTogether(at=asked + 1.5, commands=flows(1)))
        await lab.until(lambda state: state.now > asked + 0.7)
        lab.send(SetLink(loss=0.0))
        await lab.until(lambda state: "1" in state.flows)
        assert lab.state.flows["1"].started == pytest.approx(asked + 1.5, abs=ON_TIME_S)


async def test_programs_that_wait_die_with_the_lab() -> None:
    async with running(LINEAR) as lab:
        lab.source.send(StartTogether(at=1e6, commands=flows(2)))
        await lab.until(lambda _: iperfs(lab.source.pid) == 4)
        assert lab.source.pid is not None
        there = psutil.Process(lab.source.pid).children(recursive=True)
    assert not [each for each in there if each.is_running()]


async def test_what_starts_with_the_network_begins_as_it_stands() -> None:
    build = Build(topology=Topology(kind="linear"), first=flows(2))
    async with running(build) as lab:
        await lab.until(lambda state: len(state.applied) == 2)
        assert {each.due for each in lab.state.applied} == {lab.state.ready_at}


@physical
async def test_what_starts_soon_after_begins_at_its_own_moment() -> None:
    """Connections take two RTTs of 100 ms to open; the moments are 20 ms apart."""
    moments = {"b": 0.03, "a": 0.05}
    path = LinkSetting(rate=10_000_000, delay_us=50_000)
    build = Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": path},
        soon=[
            StartTogether(at=at, commands=[StartFlow(flow=flow, cc="reno", bytes=100_000)])
            for flow, at in moments.items()
        ],
    )
    async with running(build) as lab:
        await lab.until(lambda state: all(each in state.flows for each in moments))
        for flow, at in moments.items():
            assert lab.state.ready_at is not None
            late_s = lab.state.flows[flow].started - lab.state.ready_at - at
            assert 0.0 <= late_s < ON_TIME_S


@pytest.mark.skipif(bpf_lack() is not None, reason=f"{bpf_lack()}")
async def test_what_a_script_names_is_built_before_the_network_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build = Build(topology=Topology(kind="linear"), prepared=["none-such", "reno.bpf"])
    async with running(build) as lab:
        built = [each.t for each in lab.state.log if "building reno.bpf" in each.text]
        assert len(built) == 1
        assert lab.state.ready_at is not None
        assert built[0] < lab.state.ready_at


def iperfs(pid: int | None) -> int:
    """Return the number of processes below ``pid`` that have become iperf3."""
    children = psutil.Process(pid).children(recursive=True)
    return sum(each.name() == "iperf3" for each in children)
