"""One flow alone on a path, and what its samples say of the algorithm that drove it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean, median
from typing import TypeAlias

from ccplay.analysis.theory import Theory
from ccplay.analysis.trust import HealthResult, judge
from ccplay.model.base import Command, Event
from ccplay.model.commands import Build, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.series import Series, Timeline
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import StartFlow, StopFlow
from tests.lab.conftest import RunningLab, forked

PACKET_BITS = 1514 * 8
"""Length of a full packet on the wire in bits."""

_MSS = 1448

OPEN, RECOVERY = 0, 3

_STARTED_S = 400.0
"""Longest time in seconds for the start of a lab and a flow, against hangs only. A guest's kernel
boots first, emulated: on two cores with ten others that took more than two minutes."""


@dataclass(frozen=True)
class Track:
    """The place of a flow that rides alone: hosts, cable, and the link whose queue is sampled."""

    src: str
    dst: str
    cable: str
    link: str


LINEAR = Track("h1", "h2", "bottleneck", "r->h2")


def hop(number: int) -> Track:
    """Return one hop of a parking lot, which cross flows have to themselves if none goes along."""
    near, far = f"r{number}", f"r{number + 1}"
    return Track(f"s{number}", f"d{number}", f"{near}-{far}", f"{near}->{far}")


@dataclass(frozen=True)
class Path:
    """A bottleneck; by default 16.5 packets fit into the wires and 50 more into the queue."""

    rate: int = 10_000_000
    delay_us: int = 10_000
    """One-way delay in µs."""
    limit: int = 50
    loss: float = 0.0
    mark: int | None = None
    """Packets in the queue from which on packets are marked CE; both hosts then agree on ECN."""

    @property
    def wires(self) -> float:
        """Number of packets in flight without a queue."""
        return self.rate * self.delay_us * 2e-6 / PACKET_BITS

    def links(self, track: Track) -> dict[str, LinkSetting]:
        both = LinkSetting(rate=self.rate, delay_us=self.delay_us, qdisc=self._queue)
        return {track.cable: both, track.link: LinkSetting(loss=self.loss, mark=self.mark)}

    def commands(self, track: Track) -> list[Command]:
        """Commands that turn the path of another ride into this one."""
        return [
            SetLink(link=track.cable, rate=self.rate, delay_us=self.delay_us),
            SetQdisc(link=track.cable, qdisc=self._queue),
            SetLink(link=track.link, loss=self.loss, mark=self.mark or 0),
        ]

    @property
    def _queue(self) -> Qdisc:
        return Qdisc(kind="pfifo", options={"limit": self.limit})


@dataclass
class Sample:
    """The flow and its queue in one sweep."""

    t: float
    cc: str
    ca_state: int
    cwnd: int
    ssthresh: int | None
    srtt_s: float
    acked: int
    lost: int
    qlen: int
    own: dict[str, int]
    """The algorithm's own variables, as far as it knows them."""


@dataclass
class Ride:
    """All samples of a flow and of the queue that it has alone."""

    path: Path
    flow: str
    link: str
    samples: list[Sample] = field(default_factory=list)
    health: HealthResult = field(default_factory=lambda: judge(LabState()))
    """Timekeeping of the lab, known after its end."""

    def take(self, event: Event | UnknownEvent) -> None:
        """Add the sample of the flow from a sweep."""
        if not isinstance(event, Sweep) or event.tcp is None or event.qdisc is None:
            return
        tcp, at = event.tcp, event.qdisc.link.index(self.link)
        if self.flow not in tcp.flow:
            return
        row = tcp.flow.index(self.flow)
        if tcp.bytes_acked[row] < _MSS:
            # Only the cookie by which iperf3 knows its connections again; traffic is still to come.
            return
        self.samples.append(
            Sample(
                t=event.t,
                cc=tcp.cc[row],
                ca_state=tcp.ca_state[row],
                cwnd=tcp.cwnd[row],
                ssthresh=tcp.ssthresh[row],
                srtt_s=tcp.srtt_us[row] * 1e-6,
                acked=tcp.bytes_acked[row],
                lost=tcp.total_retrans[row],
                qlen=event.qdisc.qlen[at],
                own={
                    name: own for name, rows in event.own.items() if (own := rows[row]) is not None
                },
            )
        )

    def since(self, seconds: float) -> Ride:
        """Return the samples from some seconds after the first one on."""
        begin = self.samples[0].t + seconds
        samples = [each for each in self.samples if each.t >= begin]
        return replace(self, samples=samples)

    @property
    def goodput(self) -> float:
        """Return the acknowledged payload in bits per second."""
        first, last = self.samples[0], self.samples[-1]
        return (last.acked - first.acked) * 8 / (last.t - first.t)

    def teeth(self) -> Iterator[list[Sample]]:
        """Yield stretches of avoidance between two reductions, without the first and the last.

        The samples are those in state Open with cwnd at ssthresh or above.
        """
        stretch: list[Sample] = []
        begun = False
        for before, now in pairwise(self.samples):
            if now.ca_state == OPEN and (now.ssthresh is None or now.cwnd >= now.ssthresh):
                stretch.append(now)
            elif before.ca_state == OPEN and now.ca_state != OPEN:
                if begun and len(stretch) > 5:
                    yield stretch
                stretch, begun = [], True

    def cuts(self) -> list[float]:
        """Return the share of cwnd left by each reduction: the new ssthresh over the old cwnd."""
        return [
            after[0].ssthresh / before[-1].cwnd
            for before, after in pairwise(self.teeth())
            if after[0].ssthresh is not None
        ]

    def at_cuts(self, variable: str) -> list[int]:
        """Return the last value of an own variable before each of ``cuts``."""
        return [before[-1].own[variable] for before, _ in pairwise(self.teeth())]

    def every_cut(self) -> list[float]:
        """Return the share of cwnd left at each entry into Recovery, from any state and size."""
        found = []
        for at, (before, now) in enumerate(pairwise(self.samples)):
            if before.ca_state != RECOVERY and now.ca_state == RECOVERY and now.ssthresh:
                peak = max(each.cwnd for each in self.samples[max(at - 2, 0) : at + 1])
                found.append(now.ssthresh / peak)
        return found

    def cut(self) -> float:
        return median(self.cuts())

    def tops(self) -> list[int]:
        return [tooth[-1].cwnd for tooth in self.teeth()]

    def period(self) -> float:
        """Return the mean time between two reductions in seconds."""
        ends = [tooth[-1].t for tooth in self.teeth()]
        return (ends[-1] - ends[0]) / (len(ends) - 1)

    def growth(self, begin: float = 0.0, end: float = 1.0) -> float:
        """Return the median growth in segments per RTT in this part of each tooth that is whole."""
        # A burst of losses may end a tooth at once, which hides its growth.
        teeth = list(self.teeth())
        whole = [each for each in teeth if 2 * len(each) >= max(map(len, teeth))]
        return median(gained(each[int(len(each) * begin) : int(len(each) * end)]) for each in whole)

    def theory(self) -> Theory:
        """Return the theory for these samples."""
        timeline = Timeline()
        names = ("ca_state", "cwnd", "ssthresh", "srtt_us")
        series = {name: Series(timeline) for name in names}
        cc = self.samples[0].cc
        for each in self.samples:
            tick = timeline.append(each.t)
            values = (each.ca_state, each.cwnd, each.ssthresh, each.srtt_s * 1e6)
            for name, value in zip(names, values, strict=True):
                series[name].put(tick, value)
        found = Theory(
            Flow(name="1", src="h1", dst="h2", cc=cc, started=self.samples[0].t, series=series)
        )
        found.follow()
        return found

    def longest_gap(self) -> float:
        """Return the longest time in seconds between two samples."""
        return max(later.t - each.t for each, later in pairwise(self.samples))

    def mean_queue(self) -> float:
        return fmean(each.qlen for each in self.samples)

    def losses(self) -> int:
        return self.samples[-1].lost - self.samples[0].lost


def gained(samples: list[Sample]) -> float:
    """Return the growth in segments per RTT."""
    first, last = samples[0], samples[-1]
    rtts = sum((b.t - a.t) / b.srtt_s for a, b in pairwise(samples))
    return (last.cwnd - first.cwnd) / rtts


class Riders:
    """The sink of a lab, which passes each sweep to the rides."""

    def __init__(self) -> None:
        self.all: list[Ride] = []
        self.on_their_way: list[Ride] = []

    def put(self, event: Event | UnknownEvent) -> None:
        for each in self.on_their_way:
            each.take(event)

    def start(self, ride: Ride) -> Ride:
        self.all.append(ride)
        self.on_their_way.append(ride)
        return ride

    def close(self) -> None:
        pass


Leg: TypeAlias = tuple[str, Path, float]
"""Algorithm, path and seconds of a ride."""


async def ride(cc: str, path: Path, seconds: float) -> Ride:
    """Let one flow ride alone in a lab for some seconds."""
    return (await ride_in_turn([[(cc, path, seconds)]]))[0]


async def ride_in_turn(
    groups: Sequence[Sequence[Leg]], argv: Sequence[str] = (), sample_hz: float = 100.0
) -> list[Ride]:
    """Let groups of flows ride one after the other, each flow over a bottleneck of its own.

    If all are delayed in software, packets of one flow are slightly late because of those of
    another: by milliseconds with six flows, enough to distort an estimate of bandwidth. Groups do
    not affect later ones, because nodes keep no metrics of connections, see tcp(7). But hosts that
    agreed on ECN continue to do so, so groups with a path that marks come last. ``argv`` starts the
    lab, if given.
    """
    marks = [any(path.mark is not None for _, path, _ in legs) for legs in groups]
    assert marks == sorted(marks)
    most = max(map(len, groups))
    tracks = [hop(number) for number in range(1, most + 1)] if most > 1 else [LINEAR]
    alone, beside = Topology(kind="linear"), Topology(kind="parking-lot", parameters={"hops": most})
    links: dict[str, LinkSetting] = {}
    for (_, path, _), track in zip(groups[0], tracks, strict=False):
        links |= path.links(track)
    build = Build(
        topology=beside if most > 1 else alone,
        links=links,
        sample_hz=sample_hz,
        congestion_controls=_at_both_ends(groups[0], tracks),
    )
    async with _riding(build, argv) as (lab, riders):
        for number, legs in enumerate(groups):
            if number:
                await _change(lab, legs, tracks)
            pairs = zip(legs, tracks, strict=False)
            await asyncio.gather(
                *(_one(lab, riders, f"{track.src}-{number}", leg, track) for leg, track in pairs)
            )
    return riders.all


async def _change(lab: RunningLab, legs: Sequence[Leg], tracks: Sequence[Track]) -> None:
    """Turn the paths of one group into those of the next once their queues are empty."""
    await lab.swept()
    for (_, path, _), track in zip(legs, tracks, strict=False):
        lab.send(*path.commands(track))
    for host, cc in _at_both_ends(legs, tracks).items():
        lab.send(SetCongestionControl(cc=cc, host=host))


def _at_both_ends(legs: Sequence[Leg], tracks: Sequence[Track]) -> dict[str, str]:
    """Return by host the algorithms of legs whose paths mark, where both ends agree on ECN."""
    return {
        host: cc
        for (cc, path, _), track in zip(legs, tracks, strict=False)
        if path.mark is not None
        for host in (track.src, track.dst)
    }


@asynccontextmanager
async def _riding(
    build: Build, argv: Sequence[str] = ()
) -> AsyncIterator[tuple[RunningLab, Riders]]:
    """Start a lab, and end it; then record its timekeeping in each ride."""
    riders = Riders()
    lab = RunningLab(forked(argv or launch.lab_argv(), build), riders)
    try:
        await lab.until(lambda state: state.phase == "ready", _STARTED_S)
        yield lab, riders
    finally:
        await lab.close()
        for each in riders.all:
            each.health = judge(lab.state)


async def _one(lab: RunningLab, riders: Riders, flow: str, leg: Leg, track: Track) -> Ride:
    """Let a flow ride for some seconds from its first data on."""
    cc, path, seconds = leg
    taken = riders.start(Ride(path, flow, track.link))
    lab.send(StartFlow(flow=flow, src=track.src, dst=track.dst, cc=cc))
    await lab.until(lambda _: len(taken.samples) > 0, _STARTED_S)
    await lab.run_for(seconds)
    riders.on_their_way.remove(taken)
    lab.send(StopFlow(flow=flow))
    await lab.until(lambda state: state.flows[flow].ended, _STARTED_S)
    return taken
