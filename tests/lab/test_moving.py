"""Links that move, on a real path: when packets depart, what is lost, and live changes."""

import os
import random
import signal
import struct
from bisect import bisect_left
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from ccplay.model.commands import Build, SetClasses, SetLink, SetQdisc, StartCapture, StopCapture
from ccplay.model.moving import Trace
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.session import launch
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.trace import delivery
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import RunningLab, all_arrived, forked, running
from tests.lab.test_software import Seen, ask
from tests.lab.trust import physical, sleeper

LINK, BACK = "r->h2", "r->h1"
RATE = 10_000_000

pytestmark = pytest.mark.xdist_group("software")


def build(trace: Trace | None = None, qdisc: Qdisc | None = None) -> Build:
    link = LinkSetting(
        rate=RATE,
        delay_us=5_000,
        qdisc=qdisc or Qdisc(kind="pfifo", options={"limit": 60}),
        trace=trace,
    )
    return Build(
        topology=Topology(kind="linear"), links={"bottleneck": LinkSetting(delay_us=0), LINK: link}
    )


def queue_now(state: LabState) -> str:
    qdisc = state.links[LINK][-1].setting.qdisc
    assert qdisc is not None
    return qdisc.kind


def _moments(seed: int) -> list[int]:
    """Return 10 s of opportunities at 10 Mbit/s in the mean, in bursts and gaps."""
    chance = random.Random(seed)
    times: list[int] = []
    now = 0.0
    while now < 10_000:
        times += [max(1, round(now))] * chance.choice((1, 1, 2, 6))
        now += chance.expovariate(RATE / (2.5 * 1504 * 8e3))
    return times


def _frames(capture: Path) -> list[tuple[float, int]]:
    """Return Unix time and length of the enhanced packet blocks of a pcapng file of ours."""
    data, at, found = capture.read_bytes(), 0, []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("=II", data, at)
        if kind == 6:
            high, low, _, original = struct.unpack_from("=IIII", data, at + 12)
            found.append(((high << 32 | low) / 1e9, original))
        at += length
    return found


@physical
async def test_packets_depart_at_the_opportunities(tmp_path: Path) -> None:
    """Datagrams of full packets always wait, so each opportunity carries exactly one of them.

    Which opportunity carried the first captured one is found by trying: at any other the distances
    are as random as the trace. Its times of arrival are known to some milliseconds beforehand.
    """
    times = _moments(1)
    (tmp_path / "random.up").write_text("".join(f"{each}\n" for each in times))
    trace = delivery.load(Trace(rate="random.up"), tmp_path, {})
    argv = launch.lab_argv(captures=tmp_path)
    # 600 packets last for 0.7 s, longer than a busy machine lets iperf3 wait.
    async with running(build(trace, Qdisc(kind="pfifo", options={"limit": 600})), argv=argv) as lab:
        ready, hello = lab.state.ready_at, lab.state.hello
        assert hello is not None
        assert ready is not None
        lab.send(StartUdp(rate_bps=2 * RATE, packet_bytes=1472, duration_s=8.0))
        await lab.run_for(1.5)
        lab.send(StartCapture(link=LINK, capture="c"))
        await lab.until(lambda state: state.captures)
        with sleeper():
            await lab.run_for(4.0)
        path = Path(lab.state.captures["c"].path)
        lab.send(StopCapture(capture="c"))
        await lab.until(lambda state: not state.captures)
        frames = _frames(path)
    start = hello.wall_time + ready
    departures = [moment - start for moment, length in frames if length == 1514]
    assert len(departures) > 2000
    near = bisect_left(times, departures[0] * 1e3)
    best = off = 1.0
    for first in range(max(0, near - 60), near + 60):
        late = sorted(at - due / 1e3 for at, due in zip(departures, times[first:], strict=False))
        spread = late[int(len(late) * 0.99)] - late[0]
        best, off = min((best, off), (spread, late[0]))
    assert best < 0.001, f"{best * 1e3:.3f} ms"
    # The trace began when the network was ready: where ghosts of other runs over it are aligned.
    assert abs(off) < 0.001, f"{off * 1e3:.3f} ms"


async def test_a_trace_starts_stops_and_is_replaced_while_packets_flow() -> None:
    seen = Seen()
    async with running(build(), seen) as lab:
        assert queue_now(lab.state) == "pfifo"
        lab.send(StartUdp(rate_bps=2_000_000, duration_s=6.0, monitor=True))
        await lab.until(lambda state: state.traffic)
        for trace, kind in (
            (Trace(name="lte-still"), "pfifo.py"),
            (Trace(model="starlink", options={"seed": 2, "loss": 0.0}), "pfifo.py"),
            (Trace(), "pfifo"),
            (Trace(model="wifi"), "pfifo.py"),
        ):
            assert await ask(lab, seen, SetLink(link=LINK, trace=trace)) == ""
            setting = lab.state.links[LINK][-1].setting
            assert (setting.trace or Trace()) == trace
            assert queue_now(lab.state) == kind
            assert setting.rate == RATE
            await lab.run_for(0.6)
        assert await ask(lab, seen, SetQdisc(link=LINK, qdisc=Qdisc(kind="bfifo"))) == ""
        assert queue_now(lab.state) == "bfifo.py"
        assert await ask(lab, seen, SetLink(link=LINK, trace=Trace())) == ""
        await lab.until(lambda state: udp_of(state).ended is not None)
        assert queue_now(lab.state) == "bfifo"
        assert all_arrived(udp_of(lab.state))


def udp_of(state: LabState) -> Udp:
    (udp,) = state.traffic.values()
    assert isinstance(udp, Udp)
    return udp


@physical
async def test_the_capacity_is_reported_and_used() -> None:
    seen = Seen()
    async with running(build(Trace(model="starlink", options={"rate": 8_000_000})), seen) as lab:
        lab.send(StartFlow(flow="1", cc="cubic"))
        await lab.run_for(4.0)
        queue = lab.state.queues[LINK]
        capacity = queue.own["trace_capacity_bps"]
        state = lab.state
        first, last = state.sweeps.before_or_at(state.now - 2.5), state.sweeps.end - 1
        values = capacity.values(first, last)
        carried = queue.series["bytes"]
        before, after = carried.at(first), carried.at(last)
        seconds = state.sweeps.time(last) - state.sweeps.time(first)
    assert before is not None
    assert after is not None
    # The queue is never empty then, so what leaves is the capacity; its steps are of 100 ms.
    assert (after - before) * 8 / seconds == pytest.approx(sum(values) / len(values), rel=0.1)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (SetLink(link="h1->r", trace=Trace(name="train")), "give the link a rate"),
        (SetLink(link=LINK, trace=Trace(rate="a.up", digest="0" * 64)), "has not received"),
        (SetLink(link=LINK, trace=Trace(name="trian")), "did you mean"),
        (SetLink(link=LINK, trace=Trace(model="cell", options={"rate": 1})), "must be from"),
    ],
)
async def test_what_can_not_move_a_link_is_refused(command: SetLink, why: str) -> None:
    seen = Seen()
    async with running(build(), seen) as lab:
        assert why in await ask(lab, seen, command)
        assert queue_now(lab.state) == "pfifo"


async def test_a_link_that_moves_has_no_classes_and_no_kernels_queue() -> None:
    seen = Seen()
    async with running(build(Trace(name="train")), seen) as lab:
        classes = [TrafficClass(name=name, share=0.5, traffic=["1"]) for name in ("a", "b")]
        refused = await ask(lab, seen, SetClasses(link=LINK, classes=classes))
        assert "classes" in refused
        refused = await ask(lab, seen, SetQdisc(link=LINK, qdisc=Qdisc(kind="pfifo_fast")))
        assert "has no pfifo_fast" in refused
        assert queue_now(lab.state) == "pfifo.py"


async def test_a_process_that_dies_leaves_the_trace_running() -> None:
    seen = Seen()
    async with running(build(Trace(name="lte-still")), seen) as lab:
        assert lab.source.pid is not None
        for each in psutil.Process(lab.source.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if each.name() == "software queue":
                    os.kill(each.pid, signal.SIGKILL)
        await lab.until(lambda state: any("started again" in each.text for each in state.log))
        lab.send(StartPing(count=20, interval_s=0.02))
        await lab.until(lambda _: len(seen.pings) == 20)
        assert lab.state.links[LINK][-1].setting.trace == Trace(name="lte-still")


async def test_undo_brings_the_fixed_rate_back() -> None:
    seen = Seen()
    async with running(build(), seen) as lab:
        session: Session = lab.session
        assert await ask(lab, seen, SetLink(link=LINK, trace=Trace(name="train"))) == ""
        session.undo()
        await lab.until(lambda state: queue_now(state) == "pfifo")
        assert not lab.state.links[LINK][-1].setting.trace


@physical
async def test_delay_follows_a_file_and_no_packet_overtakes(tmp_path: Path) -> None:
    """One-way delays of 20 ms and 60 ms take turns every 200 ms: a square wave of pings.

    Where it falls by 40 ms, packets wait for the one ahead, so replies stay in order; a busy
    machine adds to each, and the edge of a step may be anywhere in a ping.
    """
    delays = ["20"] * 20 + ["60"] * 20
    (tmp_path / "square.owd").write_text("".join(f"{each}\n" for each in delays))
    trace = delivery.load(Trace(delay="square.owd"), tmp_path, {})
    seen = Seen()
    async with running(build(trace), seen) as lab:
        assert queue_now(lab.state) == "pfifo"
        lab.send(StartPing(count=120, interval_s=0.01))
        await lab.until(lambda _: len(seen.pings) == 120)
        assert await ask(lab, seen, SetLink(link=LINK, trace=Trace())) == ""
        lab.send(StartPing(count=10, interval_s=0.02))
        await lab.until(lambda _: len(seen.pings) == 130)
    moved, fixed = seen.pings[:120], seen.pings[120:]
    low = [each for each in moved if 20 <= each < 30]
    high = [each for each in moved if 60 <= each < 70]
    assert min(moved) >= 20
    assert len(low) > 25
    assert len(high) > 25
    assert len(low) + len(high) > 80
    # Where the delay falls, replies still arrive in the order of their pings.
    assert seen.order[:120] == sorted(seen.order[:120])
    # The fixed delay of 5 ms is back.
    assert max(sorted(fixed)[:8]) < 15


@physical
async def test_each_direction_has_its_own_trace_and_replies_come_in_bursts(tmp_path: Path) -> None:
    """One way a packet may leave each millisecond, back several of them every 50 ms.

    Pings leave 10 ms apart, so of those whose replies come together each waited 10 ms less than the
    one before: aggregation, as of ACKs on Wi-Fi. Nothing overtakes.
    """
    (tmp_path / "even.up").write_text("".join(f"{each}\n" for each in range(1, 101)))
    (tmp_path / "bursts.up").write_text("50\n" * 10)
    there, back = (
        delivery.load(Trace(rate=name), tmp_path, {}) for name in ("even.up", "bursts.up")
    )
    both = build(there)
    moved = replace(both.links[LINK], trace=back, delay_us=0)
    seen = Seen()
    lab = RunningLab(
        forked(launch.lab_argv(), replace(both, links={**both.links, BACK: moved})), seen
    )
    try:
        await lab.until(lambda state: state.phase == "ready")
        found = {name: changes[-1].setting.trace for name, changes in lab.state.links.items()}
        assert (found[LINK], found[BACK]) == (there, back)
        lab.send(StartPing(count=100, interval_s=0.01))
        await lab.until(lambda _: len(seen.pings) == 100)
    finally:
        await lab.close()
    assert seen.order == sorted(seen.order)
    together = [-22 < later - before < -6 for before, later in pairwise(seen.pings)]
    # Four of five; a busy machine sends pings later, and spoils some.
    assert sum(together) > 60
    assert max(seen.pings) - min(seen.pings) > 30
