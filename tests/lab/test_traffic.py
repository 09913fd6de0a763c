"""Real traffic over a real network: it starts, is seen, switches, ends, and says why it died."""

import contextlib
import signal
import socket
import subprocess

import psutil
import pytest

from ccplay.lab.netns import Namespace
from ccplay.lab.traffic.program import SERVERS
from ccplay.model.commands import Build, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.download import Download, DownloadProgress, StartDownload
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import Ping, StartPing
from tests.lab.conftest import SHARING, Events, RunningLab, running
from tests.lab.namespaced import call
from tests.lab.trust import physical

pytestmark = pytest.mark.xdist_group("traffic")

RATE = 10_000_000

BUILD = Build(
    topology=Topology(kind="dumbbell", pairs=1),
    links={
        "bottleneck": LinkSetting(
            rate=RATE, delay_us=5_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
        )
    },
)


def says(state: LabState, text: str) -> bool:
    return any(text in entry.text for entry in state.log)


def flow_is_open(state: LabState, flow: str = "1") -> bool:
    return flow in state.flows and state.flows[flow].series["cwnd"].last is not None


async def end_of(lab: RunningLab, flow: str) -> None:
    await lab.until(lambda state: flow in state.flows and not state.flows[flow].running)


def programs(lab: RunningLab, *words: str) -> list[psutil.Process]:
    """Return the lab's programs whose command lines contain all the words."""
    found = []
    for process in psutil.Process(lab.source.pid).children(recursive=True):
        # One that has just been killed may still wait to be reaped, or be gone by now.
        with contextlib.suppress(psutil.NoSuchProcess):
            line = process.cmdline()
            if line[:1] == [words[0]] and set(words) <= set(line):
                found.append(process)
    return found


async def kill(lab: RunningLab, *words: str) -> None:
    """Kill the only program with these words, once it has its final command line."""
    await lab.until(lambda _: len(programs(lab, *words)) == 1)
    programs(lab, *words)[0].send_signal(signal.SIGKILL)


@SHARING
async def test_a_running_flow_switches_its_algorithm_and_keeps_its_connection(
    lab: RunningLab,
) -> None:
    """The samples name the same algorithm as the kernel's socket."""
    lab.send(StartFlow(flow="s", cc="reno"))
    await lab.until(lambda state: flow_is_open(state, "s"))
    flow = lab.state.flows["s"]
    assert (flow.cc, flow.src, flow.dst) == ("reno", "s1", "d1")
    lab.send(SetCongestionControl(flow="s", cc="bbr"))
    await lab.until(lambda _: flow.cc == "bbr")
    acked = flow.series["bytes_acked"].last
    assert acked is not None
    await lab.until(lambda _: (flow.series["bytes_acked"].last or 0) > acked)
    lab.send(StopFlow(flow="s"))
    await end_of(lab, "s")
    assert flow.error is None
    assert flow.bytes >= acked
    # Samples between its stop and the end of its connection may count more.
    stopped = lab.state.sweeps.before_or_at(flow.started + flow.duration_s)
    assert flow.retransmits >= (flow.series["total_retrans"].at(stopped) or 0)
    assert [cc for _, cc in flow.cc_changes] == ["reno", "bbr"]


@SHARING
async def test_a_switch_reaches_every_stream_even_before_it_is_open(lab: RunningLab) -> None:
    lab.send(StartFlow(flow="m", cc="reno", streams=3))
    lab.send(SetCongestionControl(flow="m", cc="cubic"))
    names = ("m", "m/2", "m/3")
    await lab.until(lambda state: all(flow_is_open(state, name) for name in names))
    await lab.until(lambda state: all(state.flows[name].cc == "cubic" for name in names))


@physical
async def test_a_flow_opens_within_a_round_trip_or_so_where_the_queue_is_full() -> None:
    """iperf3 negotiates with its receiver for four round trips first, here of 0.6 s each."""
    async with running(BUILD) as lab:
        lab.send(
            SetLink(rate=2_000_000, delay_us=20_000),
            StartFlow(cc="cubic"),
            StartPing(interval_s=0.2),
        )
        # 100 packets wait 0.6 s at 2 Mbit/s; the least that CUBIC leaves of them is 70 %.
        await lab.until(lambda state: "p1" in state.of(Ping) and rtt_s(state) > 0.4)
        lab.send(StartFlow(cc="reno"))
        await lab.until(lambda state: flow_is_open(state, "2"))
        applied = next(
            each
            for each in lab.state.applied
            if isinstance(each.command, StartFlow) and each.command.flow == "2"
        )
        # From when its programs run: starting them takes a busy machine some tenths of a second.
        took_s = lab.state.flows["2"].started - applied.t
        # The handshake is one; where the full queue drops its SYN, the next one comes 1 s later.
        assert took_s < max(0.7, rtt_s(lab.state)) + 1.2


def rtt_s(state: LabState) -> float:
    """Return the RTT of the newest ping in seconds."""
    return (state.of(Ping)["p1"].series["rtt_us"].last or 0.0) / 1e6


@physical
async def test_a_flow_ends_after_its_bytes() -> None:
    async with running(BUILD) as lab:
        lab.send(StartFlow(flow="b", bytes=500_000))
        await end_of(lab, "b")
    flow = lab.state.flows["b"]
    assert flow.error is None
    # It counts what was asked for; it is read between sweeps, so few of those see more. 50 kB
    # are 40 ms, and iperf3 takes some of them to end.
    assert flow.bytes == 500_000
    acked = flow.series["bytes_acked"]
    seen = [each - 1 for each in acked.values(acked.first, acked.end)]
    assert sum(each < 500_000 for each in seen) > 5
    assert max(seen) < 550_000


@physical
async def test_a_flow_ends_after_its_time() -> None:
    async with running(BUILD) as lab:
        lab.send(StartFlow(duration_s=0.7))
        await end_of(lab, "1")
        flow = lab.state.flows["1"]
        assert flow.error is None
        # Timers are never early, and a busy machine may be late.
        assert 0.699 <= flow.duration_s <= 1.2
        assert flow.bytes * 8 / flow.duration_s <= RATE


@SHARING
async def test_traffic_against_the_stream_fills_the_other_queue(lab: RunningLab) -> None:
    """A flow from the receiver's side is the reverse direction."""
    lab.send(StartFlow(flow="back", src="d1"))
    await lab.until(lambda state: flow_is_open(state, "back"))
    assert lab.state.flows["back"].dst == "s1"
    await lab.until(lambda state: (state.queues["r2->r1"].series["qlen"].last or 0) > 10)


SIZE = 1_500_000
"""Size of a download that takes more than a second, so that progress, reported every tenth of one,
is certain."""


@physical
async def test_a_download_is_sampled_and_told_of() -> None:
    events = Events()
    async with running(BUILD, events) as lab:
        lab.send(StartDownload(bytes=SIZE, cc="reno"))
        await lab.until(lambda state: "w1" in state.of(Download) and state.of(Download)["w1"].ended)
        download = lab.state.of(Download)["w1"]
        assert download.error is None
        assert download.bytes == SIZE
        seen = [each.bytes for each in events.of(DownloadProgress)]
        assert seen
        assert all(0 < each <= SIZE for each in seen)
        assert seen == sorted(seen)
        # Not faster than the link, and not slower than slow start explains, three times over.
        least = SIZE * 8 / RATE
        assert download.duration_s is not None
        assert least * 0.9 <= download.duration_s <= 3 * least
        sampled = lab.state.flows["w1"]
        assert (sampled.cc, sampled.kind) == ("reno", "download")


@SHARING
async def test_pings_come_back_and_are_counted(lab: RunningLab) -> None:
    lab.send(StartPing(ping="p", count=3, interval_s=0.1))
    await lab.until(lambda state: "p" in state.of(Ping) and state.of(Ping)["p"].ended)
    ping = lab.state.of(Ping)["p"]
    assert (ping.sent, ping.lost, ping.error) == (3, 0, None)


@SHARING
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("iperf3", "-c"), "iperf3 was killed by SIGKILL"),
        (("iperf3", "-s"), "(receiver: iperf3 was killed by SIGKILL)"),
    ],
    ids=["sender", "receiver"],
)
async def test_a_flow_that_dies_reports_why(
    lab: RunningLab, words: tuple[str, ...], reason: str
) -> None:
    name = f"dies{words[1]}"
    lab.send(StartFlow(flow=name))
    await lab.until(lambda state: flow_is_open(state, name))
    await kill(lab, *words)
    await end_of(lab, name)
    error = lab.state.flows[name].error
    assert error is not None
    assert reason in error
    # The session goes on.
    lab.send(StartFlow(flow=f"{name}-next"))
    await lab.until(lambda state: flow_is_open(state, f"{name}-next"))


def rules(host: Namespace) -> list[str]:
    """Return the firewall rules and the routing rules by port of a host."""
    net = ("nsenter", f"--net={host.path}")
    said = ""
    for argv in (("iptables-legacy", "-t", "mangle", "-S"), ("ip", "rule")):
        said += subprocess.run([*net, *argv], check=True, capture_output=True, text=True).stdout
    return [line for line in said.splitlines() if "dport" in line]


async def test_a_flow_leaves_no_rule_behind() -> None:
    """Whether it ends by itself, is stopped before or after it opens, dies, or does not start."""
    async with running(BUILD) as lab:
        sender, receiver = lab.namespace("s1"), lab.namespace("d1")
        with receiver.entered():
            taken = socket.create_server(("", SERVERS[4]))
        lab.send(StartFlow(flow="a", l4s=True, bytes=20_000))
        lab.send(*(StartFlow(flow=each, l4s=True) for each in "bcde"))
        await lab.until(lambda state: says(state, "Address already in use"))
        taken.close()
        await lab.until(lambda state: all(flow_is_open(state, each) for each in "bc"))
        assert any("--set-tos" in line for line in rules(sender))
        lab.send(StopFlow(flow="b"), StartFlow(flow="f", l4s=True), StopFlow(flow="f"))
        await kill(lab, "iperf3", "-c", str(SERVERS[2]))
        for each in "abc":
            await end_of(lab, each)
        lab.send(StopFlow(flow="d"))
        await lab.until(lambda _: not rules(sender))


@SHARING
async def test_a_ping_and_a_download_that_die_report_why(lab: RunningLab) -> None:
    lab.send(StartPing(ping="dying"), StartDownload(download="dead", bytes=100_000_000))
    await lab.until(lambda state: "dying" in state.of(Ping) and flow_is_open(state, "dead"))
    await kill(lab, "ping", "-n")
    await kill(lab, "wget", "--no-config")
    await lab.until(
        lambda state: state.of(Ping)["dying"].ended and state.of(Download)["dead"].ended
    )
    assert lab.state.of(Ping)["dying"].error == "ping was killed by SIGKILL"
    assert lab.state.of(Download)["dead"].error == "wget was killed by SIGKILL"


@SHARING
async def test_a_command_that_does_not_fit_is_refused_with_what_there_is(lab: RunningLab) -> None:
    lab.send(
        StartFlow(flow="a"),
        StartFlow(flow="a"),
        StopFlow(flow="7"),
        StartFlow(src="x1"),
        StartFlow(src="r1"),
        StartFlow(cc="cubik"),
        StartFlow(bytes=0),
        StartFlow(flow="a/2"),
        StartPing(interval_s=0.0001),
    )
    await lab.until(lambda state: says(state, "interval: must be from 10 ms"))
    for text in (
        "the name 'a' is taken",
        "no flow '7'; running: a",
        "no host 'x1'; hosts: s1, d1",
        "no host 'r1'",
        "congestion control 'cubik' is not in this kernel (has: ",
        "bytes: must be from 1 B",
        "a name can't contain spaces or '/'",
    ):
        assert says(lab.state, text), text


@SHARING
async def test_new_connections_use_what_their_host_was_given(lab: RunningLab) -> None:
    """Some kernels restrict cubic, so that the sysctl would refuse it in a namespace."""
    for flow, cc in (("n1", "cubic"), ("n2", "bbr"), ("n3", "reno")):
        lab.send(SetCongestionControl(host="s1", cc=cc), StartFlow(flow=flow))
        await lab.until(lambda state, flow=flow: flow_is_open(state, flow))  # type: ignore[misc]
        assert lab.state.flows[flow].cc == cc


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_switch_that_is_refused_halfway_switches_nothing(after: int) -> None:
    """A host has two routes here, and a flow three sockets; the kernel refuses one of them."""
    told = call("tests.lab.traffic_cases:refused_halfway", min(after, 1), after)
    assert told == [["reno", "reno"], ["cubic", "cubic", "cubic"]]


@SHARING
async def test_counters_continue_when_the_queue_is_replaced(lab: RunningLab) -> None:
    lab.send(StartFlow(flow="q"))
    await lab.until(lambda state: flow_is_open(state, "q"))
    await lab.until(lambda state: (state.queues["r1->r2"].series["bytes"].last or 0) > 300_000)
    lab.send(SetQdisc(link="r1->r2", qdisc=Qdisc(kind="bfifo", options={"limit": 30_000})))
    queue = lab.state.queues["r1->r2"]
    await lab.until(lambda _: queue.kind == "bfifo")
    before = queue.series["bytes"].last
    assert before is not None
    assert before > 300_000
    await lab.until(lambda _: (queue.series["bytes"].last or 0) > before)
    values = queue.series["bytes"].values(0, queue.series["bytes"].end)
    assert values == sorted(values)
    lab.send(SetQdisc(link="r1->r2", qdisc=Qdisc(kind="pfifo", options={"limit": 100})))
    await lab.until(lambda _: queue.kind == "pfifo")
