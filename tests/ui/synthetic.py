"""A synthetic but plausible session: sawtooth flows through a queue that fills and drops."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from ccplay.model.base import Command, Event
from ccplay.model.commands import SetCongestionControl, SetQdisc
from ccplay.model.events import Applied, Building, Failed, Hello, HostChanged, LinkChanged, Ready
from ccplay.model.samples import QdiscSamples, Sweep, TcpSamples
from ccplay.model.values import Feature, LinkSetting, Qdisc
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import FlowStarted, StartFlow
from ccplay.traffic.ping import PingSample, PingStarted
from tests.events import CAPABILITIES, HELLO, health, qdisc, tcp
from tests.ui.hand_made import dumbbell

RATE = 10_000_000
BASE_US = 20_000
LIMIT = 100
MSS = 1448


def hello(pairs: int, hz: float) -> Hello:
    """Return the first event of a session."""
    known = replace(
        CAPABILITIES,
        kernel="6.18",
        congestion_controls=_features("reno", "cubic", "bbr"),
        qdiscs=_features("pfifo", "bfifo", "tbf"),
        delay_engines=_features("delay line"),
    )
    of_lab = {"capabilities": known, "network": dumbbell(pairs)}
    return replace(HELLO, format=1, wall_time=1.7e9, sample_hz=hz, **of_lab)


def _features(*names: str) -> list[Feature]:
    return [Feature(name=name, available=True) for name in names]


@dataclass
class Sender:
    """A flow's window: additive increase or a cubic curve, reduced when the queue drops."""

    name: str
    cc: str
    start: float
    cwnd: float = 10.0
    ssthresh: int | None = None
    lost_at: float = 0.0
    before: float = 10.0
    state: int = 0
    retrans: int = 0
    acked: float = 0.0
    srtt: float = BASE_US

    def step(self, t: float, dt: float, rtt_s: float, share: float) -> None:
        """Let cwnd and counters grow for ``dt`` seconds at a rate of ``share`` bit/s."""
        self.srtt += (rtt_s * 1e6 - self.srtt) * 0.2
        self.acked += share * dt / 8
        self.state = 3 if t < self.lost_at + rtt_s else 0
        if self.state:
            return
        if self.ssthresh is None or self.cwnd < self.ssthresh:
            self.cwnd *= 1 + 0.7 * dt / rtt_s
        elif self.cc == "cubic":
            wait = t - self.lost_at
            k = (self.before * 0.3 / 0.4) ** (1 / 3)
            self.cwnd = max(self.cwnd, 0.4 * (wait - k) ** 3 + self.before)
        else:
            self.cwnd += dt / rtt_s

    def lose(self, t: float) -> None:
        """Reduce cwnd after a loss: to 0.7 of it with CUBIC, to half otherwise."""
        self.before, self.lost_at = self.cwnd, t
        self.cwnd = max(self.cwnd * (0.7 if self.cc == "cubic" else 0.5), 2.0)
        self.ssthresh, self.state = int(self.cwnd), 3
        self.retrans += 3


def stream(
    *,
    pairs: int = 2,
    flows: int = 2,
    seconds: float = 40.0,
    hz: float = 50.0,
    busy: bool = True,
    apart_s: float = 2.5,
) -> Iterator[Event]:
    """Yield a whole session, with flows that start ``apart_s`` seconds after each other."""
    yield hello(pairs, hz)
    for step in range(1, 5):
        yield Building(t=0.02 * step, step=f"link {step}", done=step, total=4)
    fifo = Qdisc(kind="pfifo", options={"limit": LIMIT})
    for name in ("r1->r2", "r2->r1"):
        setting = LinkSetting(rate=RATE, delay_us=BASE_US // 2, qdisc=fifo)
        yield LinkChanged(t=0.1, link=name, setting=setting, offloads=False, delay_engine="netem")
    yield HostChanged(t=0.1, host="s1", cc="cubic")
    yield Ready(t=0.12)
    if not busy:
        return
    yield PingStarted(t=0.4, ping="p1", src="s1", dst="d1", interval_s=0.2)
    algorithms = ("cubic", "reno", "bbr")
    senders = [
        Sender(str(n + 1), algorithms[n % 2], 1.0 + apart_s * n, before=10.0) for n in range(flows)
    ]
    yield from _run(senders, pairs, seconds, hz)


def _run(senders: list[Sender], pairs: int, seconds: float, hz: float) -> Iterator[Event]:
    drops = missed = sent = pings = 0
    qlen, dt, limit = 0.0, 1 / hz, LIMIT
    told: set[str] = set()
    turn = 0
    for tick in range(8, int(seconds * hz)):
        t = tick * dt
        active = [each for each in senders if each.start <= t]
        for number, each in enumerate(senders):
            if each.start <= t and each.name not in told:
                told.add(each.name)
                pair = number % pairs + 1
                src, dst = f"s{pair}", f"d{pair}"
                start = StartFlow(flow=each.name, src=src, dst=dst, cc=each.cc)
                yield FlowStarted(t=t, flow=each.name, src=src, dst=dst, cc=each.cc, port=5000)
                yield Applied(t=t, command=start)
        if abs(t - 22.0) < dt / 2:
            limit = 40
            queue = Qdisc(kind="pfifo", options={"limit": limit})
            setting = LinkSetting(rate=RATE, delay_us=BASE_US // 2, qdisc=queue)
            yield LinkChanged(
                t=t, link="r1->r2", setting=setting, offloads=False, delay_engine="netem"
            )
            yield Applied(t=t, command=SetQdisc(qdisc=queue))
        if abs(t - 14.0) < dt / 2 and senders:
            senders[0].cc = "reno"
            yield Applied(t=t, command=SetCongestionControl(cc="reno", flow=senders[0].name))
        if abs(t - 30.0) < dt / 2:
            yield Failed(t=t, command=None, message='queue "fq" is not in this kernel (has: pfifo)')
        bdp = RATE * BASE_US / 1e6 / 8 / 1514
        demand = sum(each.cwnd for each in active)
        qlen = max(0.0, min(limit * 1.02, demand - bdp))
        rtt_s = BASE_US / 1e6 + qlen * 1514 * 8 / RATE
        if demand - bdp > limit and active:
            loser = active[turn % len(active)]
            turn += 1
            if t > loser.lost_at + rtt_s:
                drops += 3
                loser.lose(t)
        for each in active:
            each.step(t, dt, rtt_s, RATE * 0.956 * each.cwnd / max(demand, 1.0))
        sent += int(RATE / 8 * dt) if active else 0
        yield Sweep(t=t, tcp=_tcp(active), qdisc=_qdisc(qlen, limit, drops, sent))
        if tick % int(hz / 5) == 0:
            pings += 1
            yield PingSample(t=t, ping="p1", seq=pings, rtt_us=rtt_s * 1e6 + (tick * 7919 % 400))
        if tick % int(hz) == 0:
            late = {"late_p50_us": 40, "late_p99_us": 300, "sweep_p50_us": 150, "host_cpu": 0.3}
            yield health(t, ticks=int(hz), missed=missed, **late)


def _tcp(active: list[Sender]) -> TcpSamples | None:
    if not active:
        return None
    return tcp(
        [each.name for each in active],
        cc=[each.cc for each in active],
        ca_state=[each.state for each in active],
        cwnd=[int(each.cwnd) for each in active],
        ssthresh=[each.ssthresh for each in active],
        srtt_us=[int(each.srtt) for each in active],
        min_rtt_us=BASE_US,
        mss=MSS,
        total_retrans=[each.retrans for each in active],
        bytes_acked=[int(each.acked) for each in active],
    )


def _qdisc(qlen: float, limit: int, drops: int, sent: int) -> QdiscSamples:
    packets = int(min(qlen, limit))
    return qdisc(
        ["r1->r2", "r2->r1"],
        backlog=[packets * 1514, 0],
        qlen=[packets, 0],
        drops=[drops, 0],
        ecn_marks=None,
        bytes=[sent, sent // 30],
        packets=[sent // 1514, sent // 1514],
    )


class SyntheticSource:
    """A source of given events: all at once, or at the pace of the wall clock."""

    def __init__(self, events: Iterator[Event], *, live: bool = False, paced: bool = False) -> None:
        self.live = live
        self.paced = paced
        self.sent: list[Command] = []
        self.stays = live
        """Whether the source stays open, silently, after its last event."""
        self.drained = False
        self._events = events

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Yield the events."""
        import asyncio
        import time

        began = time.monotonic()
        for event in self._events:
            if self.paced:
                wait = began + event.t - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
            yield event
        self.drained = True
        if self.stays:
            await asyncio.Event().wait()

    def send(self, command: Command) -> None:
        """Remember the command."""
        self.sent.append(command)

    async def close(self) -> None:
        """Do nothing, because the source holds nothing open."""
