"""Disciplines in software against the kernel's of the same names, under a guest's kernel.

Both take turns on one path, under the same traffic. An emulated guest's clock counts instructions,
so nothing is late however busy the machine is, and all differences are those of the disciplines.
Python carries the rate in good health, as the lateness in the table shows.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from statistics import quantiles

from rich.console import Console

from ccplay.guest import boot
from ccplay.model.base import Option
from ccplay.model.commands import Build, SetQdisc
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.events import Health, Hello, Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from tests.bench._figures import table
from tests.bench._running import WatchedLab

LINK = "r->h2"
RATE = 5_000_000
DELAY_US = 10_000
BASE_MS = 2 * DELAY_US / 1e3
WARM_UP_S, MEASURED_S = 4.0, 16.0
BOOT_S, PATIENCE_S = 400.0, 60.0
"""Most seconds for a boot, and most seconds per second of the guest's clock, on a busy machine."""


@dataclass(frozen=True)
class Seen:
    """The measurements of the traffic through one discipline."""

    queue_ms: tuple[float, float]
    """Median and 95th percentile of backlog / rate, in ms."""
    ping_ms: tuple[float, float]
    """Median and 95th percentile of a ping's RTT minus the base RTT, in ms."""
    goodput: float
    """Goodput of all flows as a fraction of the link's rate."""
    drops: int
    marks: int
    late_us: float
    """Lateness of sent packets in µs: the 99th percentile in the worst second."""

    @property
    def signals(self) -> int:
        return self.drops + self.marks

    def differs(self, other: Seen) -> list[str]:
        """Return the names of measurements that differ too much from ``other``, the kernel's."""
        found = []
        if abs(self.goodput - other.goodput) > 0.03:
            found.append("goodput")
        for what, mine, theirs in (
            ("queue", self.queue_ms, other.queue_ms),
            ("ping", self.ping_ms, other.ping_ms),
        ):
            # Slack: a frame takes 2.4 ms, and sawtooths do not end at the same place.
            for share, slack, ours, kernels in zip((0.3, 0.3), (3, 6), mine, theirs, strict=True):
                if abs(ours - kernels) > max(slack, share * kernels):
                    found.append(f"{what} {'p50' if slack == 3 else 'p95'}")
        for what, mine_n, theirs_n in (
            ("drops", self.drops, other.drops),
            ("marks", self.marks, other.marks),
        ):
            # A third, plus three standard deviations of a count.
            if abs(mine_n - theirs_n) > theirs_n / 3 + 3 * math.sqrt(max(theirs_n, 9)):
                found.append(what)
        return found


class GuestLab(WatchedLab):
    """A lab in a guest; a second of its clock may take up to a minute."""

    def __init__(self, build: Build) -> None:
        super().__init__(build, argv=launch.guest_argv(paced=False))

    async def run_for(self, seconds: float) -> None:
        end = self.events[-1].t + seconds
        await self.until(lambda: self.events[-1].t >= end, seconds * PATIENCE_S)


async def run(console: Console) -> None:
    """Measure and print."""
    if (missing := boot.lack()) is not None:
        console.print(f"guest_disciplines: {missing}")
        return
    heads = ("discipline", "queue p50 ms", "p95", "ping p50 ms", "p95", "goodput")
    sheet = table(
        f"CUBIC with and without ECN, a ping; {RATE / 1e6:g} Mbit/s, {BASE_MS:g} ms, in a guest",
        "goodput within 3 %; median within 30 % or 3 ms, p95 within 30 % or 6 ms; drops and marks "
        "within a third and three standard deviations",
        (*heads, "drops", "marks", "late p99 us", "beyond bounds"),
    )
    link = LinkSetting(rate=RATE, delay_us=DELAY_US, qdisc=_fifo())
    build = Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": link},
        sample_hz=20.0,
        first=[
            StartFlow(flow="1", cc="cubic"),
            StartFlow(flow="2", cc="cubic", ecn=True),
            StartPing(ping="p", interval_s=0.05),
        ],
    )
    lab = GuestLab(build)
    try:
        await lab.until(lambda: lab.all(Ready), BOOT_S)
        there = {each.name for each in lab.all(Hello)[0].capabilities.qdiscs if each.available}
        console.print(f"guest: Linux {lab.all(Hello)[0].capabilities.kernel}")
        for kind in _both(there):
            kernels = await _measure(lab, Qdisc(kind=kind, options=_options(kind)))
            ours = await _measure(lab, Qdisc(kind=f"{kind}.py", options=_options(kind)))
            for name, seen, beyond in (
                (kind, kernels, ""),
                (f"{kind}.py", ours, ", ".join(ours.differs(kernels)) or "none"),
            ):
                row = (name, *_words(seen), beyond)
                sheet.add_row(*row)
                # Each row is printed at once, because all of them take minutes.
                console.print("  ".join(row))
            sheet.add_section()
    finally:
        await lab.source.close()
        await asyncio.gather(lab._pump, return_exceptions=True)
    console.print(sheet)


def _fifo() -> Qdisc:
    return Qdisc(kind="pfifo", options={"limit": 200})


def _both(there: set[str]) -> list[str]:
    """Return the kinds that run in the guest's kernel and in software."""
    return [
        each.kind
        for each in DISCIPLINES.values()
        if each.software and each.in_kernel and {each.kind, f"{each.kind}.py"} <= there
    ]


def _options(kind: str) -> dict[str, Option]:
    """Return a discipline's parameters: ECN if it can mark, and the rate if it needs that."""
    options: dict[str, Option] = {}
    names = DISCIPLINES[kind].names
    if "ecn" in names:
        options["ecn"] = True
    if kind in ("red", "choke"):
        options["bandwidth"] = RATE
    return options


async def _measure(lab: WatchedLab, qdisc: Qdisc) -> Seen:
    await lab.send(SetQdisc(link=LINK, qdisc=_fifo()), SetQdisc(link=LINK, qdisc=qdisc))
    await lab.run_for(WARM_UP_S)
    since = lab.events[-1].t
    await lab.run_for(MEASURED_S)
    sweeps = [each for each in lab.all(Sweep, since) if each.qdisc is not None]
    queues = [each.qdisc for each in sweeps if each.qdisc is not None]
    at = queues[0].link.index(LINK)
    assert queues[-1].kind[at] == qdisc.kind, queues[-1].kind
    seconds, acked = lab.acked(since)
    pings = [each - BASE_MS for each in lab.rtts_ms(since)]
    late = [each.delay_late_p99_us or 0.0 for each in lab.all(Health, since)]
    first, last = queues[0], queues[-1]
    return Seen(
        queue_ms=_median_and_p95([each.backlog[at] * 8e3 / RATE for each in queues]),
        ping_ms=_median_and_p95(pings),
        goodput=acked * 8 / seconds / RATE,
        drops=last.drops[at] - first.drops[at],
        marks=(last.ecn_marks[at] or 0) - (first.ecn_marks[at] or 0),
        late_us=max(late, default=0.0),
    )


def _median_and_p95(values: list[float]) -> tuple[float, float]:
    cuts = quantiles(values, n=20, method="inclusive")
    return cuts[9], cuts[18]


def _words(seen: Seen) -> tuple[str, ...]:
    delays = (*seen.queue_ms, *seen.ping_ms)
    counts = (str(seen.drops), str(seen.marks), f"{seen.late_us:.0f}")
    return (*(f"{each:.1f}" for each in delays), f"{seen.goodput:.1%}", *counts)
