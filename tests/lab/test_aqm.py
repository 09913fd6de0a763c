"""What disciplines in software promise, on a real path: short queues, and shares."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

import pytest

from ccplay.bpf.support import lack
from ccplay.model.commands import Build, SetQdisc
from ccplay.model.events import SojournTimes
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.report.data.findings import counted
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from tests.lab.conftest import RunningLab, running
from tests.lab.test_software import BASE_MS, FRAME_MS, RATE, Seen
from tests.lab.trust import physical

pytestmark = pytest.mark.xdist_group("software")

_missing = lack()


@dataclass
class Watched(Seen):
    """Events with sojourn times and flows."""

    sojourns: Counter[int] = field(default_factory=Counter)
    own: dict[str, list[int]] = field(default_factory=dict)
    rtts_ms: dict[str, list[float]] = field(default_factory=dict)
    acked: dict[str, list[int]] = field(default_factory=dict)

    def put(self, event: object) -> None:
        super().put(event)
        if isinstance(event, SojournTimes):
            self.sojourns.update(dict(zip(event.upto_us, event.packets, strict=True)))
        elif isinstance(event, Sweep):
            for name, (value, *_) in event.queue_own.items():
                if value is not None:
                    self.own.setdefault(name, []).append(value)
            if event.tcp is not None:
                for row, flow in enumerate(event.tcp.flow):
                    rtt_ms = event.tcp.srtt_us[row] / 1e3
                    self.rtts_ms.setdefault(flow, []).append(rtt_ms)
                    self.acked.setdefault(flow, []).append(event.tcp.bytes_acked[row])

    def forget(self) -> None:
        """Discard all events, to begin a measurement."""
        for each in (self.pings, self.sojourns, self.own, self.rtts_ms, self.acked):
            each.clear()

    def sojourn_ms(self) -> float:
        """Return the median sojourn time in ms."""
        found = counted(self.sojourns)
        assert found is not None
        return found.quantile(0.5)

    def share(self, *flows: str) -> float:
        """Return these flows' share of all acknowledged bytes."""
        grown = {flow: each[-1] - each[0] for flow, each in self.acked.items()}
        return sum(grown[each] for each in flows) / sum(grown.values())


async def measure(lab: RunningLab, seen: Watched, kind: str, settle_s: float, for_s: float) -> None:
    """Install a discipline, let it settle, and measure its effect."""
    lab.send(SetQdisc(link=lab.state.hello.network.observed[0], qdisc=Qdisc(kind=kind)))  # type: ignore[union-attr]
    await lab.run_for(settle_s)
    seen.forget()
    await lab.run_for(for_s)


def path(pairs: int, kind: str, rate: int = RATE) -> Build:
    link = LinkSetting(rate=rate, delay_us=10_000, qdisc=Qdisc(kind="pfifo"))
    links = {"bottleneck": link, "r1->r2": LinkSetting(qdisc=Qdisc(kind=kind))}
    cc = {f"{end}2": "prague.bpf" for end in "sd"} if pairs == 2 and kind == "dualpi2.py" else {}
    topology = Topology(kind="dumbbell", parameters={"pairs": pairs})
    return Build(topology=topology, links=links, congestion_controls=cc)


@pytest.mark.parametrize("flows", [1, 8])
@physical
async def test_packets_wait_around_the_target(flows: int) -> None:
    """The median: CoDel's target is 5 ms, PIE's is 15 ms; a FIFO of 400 packets holds 484 ms.

    CoDel lets a flow's queue exceed its target for 100 ms at a time, and eight flows together need
    ever more drops until they react: 5 times the target. With FQ-CoDel a packet also waits for one
    of each other flow, 10 ms with eight, and two of its own for their next turns. PIE checks every
    15 ms, and swings around its target up to twice as much.
    """
    seen = Watched()
    async with running(path(1, "pfifo"), seen) as lab:
        lab.send(*(StartFlow(flow=f"{number}", cc="cubic") for number in range(flows)))
        await lab.run_for(1.5)
        for kind, most in (("codel", 25.0), ("fq_codel", 15.0 + 2 * flows * FRAME_MS), ("pie", 30)):
            await measure(lab, seen, f"{kind}.py", 4.0, 3.0)
            assert seen.sojourn_ms() < most, kind
            # And the link is in use: no queue is short because nothing comes.
            total = sum(each[-1] - each[0] for each in seen.acked.values())
            assert total * 8 / 3.0 > 0.8 * RATE, kind


@pytest.mark.parametrize("kind", ["fq.py", "sfq.py", "cake.py"])
@physical
async def test_a_ping_passes_a_bulk_flow(kind: str) -> None:
    """It waits for the frame being sent, and for one or two whose turn is earlier."""
    seen = Watched()
    async with running(path(1, kind), seen) as lab:
        lab.send(StartFlow(cc="cubic"), StartPing(interval_s=0.02))
        await measure(lab, seen, kind, 2.0, 1.5)
        assert median(seen.pings) - BASE_MS < 3 * FRAME_MS
        # The flow's own wait, so there is a queue to pass; CAKE keeps that at 5 ms.
        assert seen.sojourn_ms() > (20 if kind != "cake.py" else 2)


@physical
async def test_cake_shares_by_host_and_others_by_flow() -> None:
    """Four flows of one host compete with one of another: a half each, or four fifths and one."""
    seen = Watched()
    async with running(path(2, "cake.py"), seen) as lab:
        lab.send(*(StartFlow(flow=f"a{n}", src="s1", cc="cubic") for n in range(4)))
        lab.send(StartFlow(flow="b", src="s2", cc="cubic"))
        await measure(lab, seen, "cake.py", 3.0, 4.0)
        assert 0.4 < seen.share("b") < 0.6
        await measure(lab, seen, "fq_codel.py", 3.0, 4.0)
        assert 0.14 < seen.share("b") < 0.28


@pytest.mark.skipif(_missing is not None, reason=f"{_missing}")
@physical
async def test_dualpi2_gives_l4s_its_half_without_a_queue() -> None:
    """RFC 9332, section 2.1: equal rates, the L4S queue marked from 1 ms on.

    Each has at least a third: RTTs differ, and eight seconds have few teeth of CUBIC's. At 40
    Mbit/s a frame takes 0.3 ms. As ECT(0) the same flow would wait some 15 ms with CUBIC.
    """
    seen = Watched()
    async with running(path(2, "dualpi2.py", 40_000_000), seen) as lab:
        lab.send(StartFlow(flow="classic", src="s1", cc="cubic"))
        lab.send(StartFlow(flow="l4s", src="s2", l4s=True))
        await lab.run_for(4.0)
        seen.forget()
        await lab.run_for(8.0)
        assert 1 / 3 < seen.share("l4s") < 2 / 3
        assert median(seen.own["dualpi2_l4s_delay_us"]) < 2000
        assert median(seen.own["dualpi2_classic_delay_us"]) > 5000
        assert median(seen.rtts_ms["l4s"]) < BASE_MS + 2
        assert median(seen.rtts_ms["classic"]) > BASE_MS + 5
