"""Disciplines in software, on a real path: what they do to delay, and that nothing gets lost."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil
import pytest

from ccplay.model.base import Option
from ccplay.model.commands import Build, SetClasses, SetLink, SetQdisc
from ccplay.model.events import Applied, Failed, Log
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import PingSample, StartPing
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import RunningLab, all_arrived, forked, running
from tests.lab.trust import physical

RATE = 10_000_000
BASE_MS = 20.0
FRAME_MS = 1514 * 8 / RATE * 1e3

pytestmark = pytest.mark.xdist_group("software")


@dataclass
class Seen:
    """Pings, sweeps and replies; also the sink that receives them."""

    pings: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    """Numbers of the pings, as their replies arrived."""
    sweeps: list[Sweep] = field(default_factory=list)
    answers: list[Applied | Failed] = field(default_factory=list)
    log: list[Log] = field(default_factory=list)

    def put(self, event: object) -> None:
        if isinstance(event, PingSample) and event.rtt_us is not None:
            self.pings.append(event.rtt_us / 1e3)
            self.order.append(event.seq)
        elif isinstance(event, Sweep) and event.qdisc is not None:
            self.sweeps.append(event)
        elif isinstance(event, Applied | Failed):
            self.answers.append(event)
        elif isinstance(event, Log):
            self.log.append(event)

    def close(self) -> None:
        pass


def build(qdisc: Qdisc, rate: int = RATE) -> Build:
    link = LinkSetting(rate=rate, delay_us=10_000, qdisc=Qdisc(kind="pfifo"))
    links = {"bottleneck": link, "r->h2": LinkSetting(qdisc=qdisc)}
    return Build(topology=Topology(kind="linear"), links=links)


async def ask(lab: RunningLab, seen: Seen, command: SetQdisc | SetLink | SetClasses) -> str:
    """Send a command; return the reason of its failure, or nothing."""
    before = len(seen.answers)
    lab.send(command)
    await lab.until(lambda _: len(seen.answers) > before)
    answer = seen.answers[before]
    return answer.message if isinstance(answer, Failed) else ""


@physical
async def test_delay_stays_near_the_target_beside_a_flow() -> None:
    """A CUBIC flow fills 100 packets of a FIFO, 121 ms, but only a few ms under each of these.

    CoDel's target is 5 ms, which it lets packets exceed for an interval of 100 ms; PIE's is 15 ms,
    around which it swings. A ping has its own queue with FQ-CoDel, and waits for a frame or two.
    Slow start ends before the measurement, because CoDel needs seconds for the queue it leaves.
    """
    seen = Seen()
    async with running(build(Qdisc(kind="pfifo", options={"limit": 100})), seen) as lab:
        lab.send(StartFlow(cc="cubic"), StartPing(interval_s=0.02))
        await lab.run_for(2.0)
        for kind, most in (("codel", 15.0), ("fq_codel", 3 * FRAME_MS), ("pie", 30.0)):
            own = Qdisc(kind=f"{kind}.py")
            assert await ask(lab, seen, SetQdisc(link="r->h2", qdisc=own)) == ""
            await lab.run_for(3.0)
            seen.pings.clear()
            seen.sweeps.clear()
            await lab.run_for(2.0)
            assert median(seen.pings) - BASE_MS < most, kind
            first, last = seen.sweeps[0].qdisc, seen.sweeps[-1].qdisc
            assert first is not None
            assert last is not None
            assert last.kind[0] == f"{kind}.py"
            # The flow uses the link, and the observed queue is that in software.
            duration = seen.sweeps[-1].t - seen.sweeps[0].t
            assert (last.bytes[0] - first.bytes[0]) * 8 / duration > 0.85 * RATE
            assert any(each.queue_own.get("queue_sojourn_us") for each in seen.sweeps)


@physical
async def test_a_flow_with_ecn_is_marked_and_loses_nothing() -> None:
    seen = Seen()
    async with running(build(Qdisc(kind="codel.py", options={"ecn": True})), seen) as lab:
        lab.send(StartFlow(flow="1", cc="cubic", ecn=True))
        await lab.run_for(4.0)
        last = seen.sweeps[-1]
        assert last.qdisc is not None
        assert last.tcp is not None
        assert last.qdisc.ecn_marks[0]
        # The receiver has seen the mark in the packet: it was set, and the checksum with it.
        assert last.tcp.delivered_ce[0] > 0
        assert last.tcp.total_retrans[0] == 0


@physical
async def test_a_queue_moves_between_kernel_and_software_without_loss() -> None:
    """Some 300 packets wait during the swap, and each arrives; RTT is base + backlog / rate."""
    seen = Seen()
    roomy = Qdisc(kind="pfifo", options={"limit": 2000})
    patient: dict[str, Option] = {"limit": 2000, "target": 5_000_000, "interval": 5_000_000}
    async with running(build(roomy), seen) as lab:
        lab.send(StartUdp(rate_bps=12_000_000, packet_bytes=1400, duration_s=3.0, monitor=True))
        lab.send(StartPing(interval_s=0.05))
        kinds = (
            Qdisc(kind="codel.py", options=patient),
            Qdisc(kind="drr.py", options={"limit": 2000}),
            roomy,
            Qdisc(kind="codel.py", options=patient),
            roomy,
        )
        for qdisc in kinds:
            await lab.run_for(0.5)
            assert await ask(lab, seen, SetQdisc(link="r->h2", qdisc=qdisc)) == ""
        await lab.until(lambda state: "u1" in state.of(Udp) and state.of(Udp)["u1"].ended)
        assert all_arrived(lab.state.of(Udp)["u1"])
        most = max(each.qdisc.backlog[0] for each in seen.sweeps if each.qdisc is not None)
        assert most > 300_000
        drops = [each.qdisc.drops[0] for each in seen.sweeps if each.qdisc is not None]
        assert drops[-1] == 0
        took = [each.took_s for each in seen.answers if isinstance(each, Applied)]
        assert took
        waited = (max(seen.pings) - BASE_MS) / 1e3
        assert waited == pytest.approx(most * 8 / RATE, rel=0.15)


def acked(lab: RunningLab, flow: str) -> int:
    """Return the acknowledged bytes of all streams of a flow."""
    return round(sum(each.acked for each in lab.state.streams[flow].values()))


@physical
async def test_classes_of_drr_share_between_hosts() -> None:
    """One host has four flows and the other one; each has half, and CoDel in its class.

    CoDel keeps both queues short: a ping of the first host waits for some 5 ms in its own class,
    and for a frame of the other.
    """
    seen = Seen()
    halves = Qdisc(kind="drr.py", options={"flows": 2, "by": "source", "inner": "codel"})
    link = LinkSetting(rate=RATE, delay_us=10_000, qdisc=halves)
    made = Build(topology=Topology(kind="dumbbell", pairs=2), links={"bottleneck": link})
    async with running(made, seen) as lab:
        one, other = StartFlow(flow="4", src="s1", streams=4), StartFlow(flow="1", src="s2")
        lab.send(one, other, StartPing(src="s1", interval_s=0.02))
        await lab.run_for(3.0)
        seen.pings.clear()
        before = [acked(lab, each) for each in ("4", "1")]
        await lab.run_for(4.0)
        many, few = (acked(lab, each) - was for each, was in zip(("4", "1"), before, strict=True))
        # Its own CoDel may leave a single flow without packets for a moment.
        assert few == pytest.approx(many, rel=0.25)
        assert (many + few) * 8 / 4.0 > 0.8 * RATE
        assert median(seen.pings) - BASE_MS < 20.0
        told = seen.sweeps[-1].queue_own
        assert {"drr_class_0_delay_us", "drr_class_1_drops"} <= told.keys()


async def test_what_cannot_be_is_refused_with_the_reason() -> None:
    seen = Seen()
    async with running(build(Qdisc(kind="codel.py")), seen) as lab:
        assert "carries up to 100 Mbit/s" in await ask(
            lab, seen, SetLink(link="r->h2", rate=1_000_000_000)
        )
        assert "set mark to 0" in await ask(lab, seen, SetLink(link="r->h2", mark=20))
        assert "filters no ACKs" in await ask(
            lab, seen, SetQdisc(qdisc=Qdisc(kind="cake.py", options={"ack_filter": True}))
        )
        shared = [TrafficClass(name="all", share=1.0, qdisc=Qdisc(kind="red.py"))]
        assert "serves a whole link, never one of its classes" in await ask(
            lab, seen, SetClasses(link="r->h2", classes=shared)
        )
        # From the kernel's queue, too, and another one works afterwards.
        filtering = Qdisc(kind="cake.py", options={"ack_filter": True})
        for qdisc, refusal in (
            (Qdisc(kind="pfifo"), ""),
            (filtering, "filters no ACKs"),
            (Qdisc(kind="codel.py"), ""),
        ):
            assert refusal in await ask(lab, seen, SetQdisc(link="r->h2", qdisc=qdisc))
        assert isinstance(seen.answers[-1], Applied)
        # After all of this it is as it was.
        setting = lab.state.links["r->h2"][-1].setting
        assert setting.qdisc is not None
        assert (setting.qdisc.kind, setting.rate) == ("codel.py", RATE)
        lab.send(StartFlow(bytes=100_000))
        await lab.until(lambda state: any(flow.ended for flow in state.flows.values()))


def processes_of(lab: int | None, name: str = "software queue") -> list[int]:
    """Return the PIDs of a lab's processes of this name: that of disciplines in software."""
    found = []
    for each in psutil.Process(lab).children(recursive=True) if lab else ():
        with suppress(OSError):
            if Path(f"/proc/{each.pid}/comm").read_text().strip() == name:
                found.append(each.pid)
    return found


@pytest.mark.parametrize("name", ["delay line", "software queue"])
async def test_a_process_that_dies_while_the_network_is_built_is_replaced(name: str) -> None:
    """The order that it did not carry out reaches its successor."""
    seen = Seen()
    lab = RunningLab(forked(launch.lab_argv(), build(Qdisc(kind="codel.py"))), seen)
    try:
        await lab.until(lambda _: processes_of(lab.source.pid, name))
        (pid,) = processes_of(lab.source.pid, name)
        os.kill(pid, signal.SIGSTOP)
        await lab.until(lambda state: state.phase == "ready" or "shaping" in step(state))
        os.kill(pid, signal.SIGKILL)
        await lab.until(lambda state: state.phase == "ready")
        link = lab.state.links["r->h2"][-1].setting
        assert link.delay_us == 10_000
        assert link.qdisc is not None
        assert link.qdisc.kind == "codel.py"
        assert [each.level for each in seen.log if "died" in each.text] == ["warning"]
        lab.send(StartPing(count=20, interval_s=0.02))
        await lab.until(lambda _: len(seen.pings) == 20)
        assert min(seen.pings) >= BASE_MS
    finally:
        await lab.close()


def step(state: LabState) -> str:
    """Return the step of building that was reported last."""
    return "" if state.building is None else state.building.step


@physical
async def test_a_process_that_dies_is_started_again() -> None:
    """Meanwhile packets wait in the kernel at the link's rate, and the log reports it."""
    seen = Seen()
    async with running(build(Qdisc(kind="codel.py")), seen) as lab:
        lab.send(StartFlow(flow="1", cc="cubic"))
        await lab.run_for(1.0)
        assert lab.source.pid is not None
        (pid,) = processes_of(lab.source.pid)
        os.kill(pid, signal.SIGKILL)
        await lab.until(lambda _: any("was started again" in each.text for each in seen.log))
        sent = seen.sweeps[-1].qdisc
        await lab.run_for(1.5)
        now = seen.sweeps[-1].qdisc
        assert sent is not None
        assert now is not None
        assert now.bytes[0] - sent.bytes[0] > 1_000_000
        assert now.kind[0] == "codel.py"
        assert now.drops[0] >= sent.drops[0]
