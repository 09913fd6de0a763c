"""DualPI2 in software against the kernel's (Linux 6.17 and newer), under a guest's kernel.

A CUBIC flow and an L4S flow share a link, through each queue in turn. For a guest with such a
kernel run ``ccplay guest PACKAGE ...`` with packages of a distribution that builds sch_dualpi2,
such as Ubuntu.
"""

import asyncio
from itertools import product
from statistics import median

from rich.console import Console

from ccplay.guest import boot
from ccplay.model.commands import Build, SetLink, SetQdisc
from ccplay.model.events import Health, Hello, Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import table
from tests.bench.guest_disciplines import BOOT_S, GuestLab

LINK, HOSTS, CC = "r1->r2", ("s2", "d2"), "prague.bpf"
RATES, DELAY_US = (20_000_000, 40_000_000), 10_000
"""Rates of the link in bits per second, and its delay in µs; at the higher rate ccplay's queue may
be late in an emulated guest, as the table's last column shows."""
WARM_UP_S, MEASURED_S = 4.0, 15.0
QUEUES = (
    Qdisc(kind="dualpi2"),
    Qdisc(kind="dualpi2", options={"min_qlen_step": 1}),
    Qdisc(kind="dualpi2.py"),
)
"""Queues compared: the kernel's with its defaults, the kernel's with RFC 9332's Th_len, which
ccplay's has too, and ccplay's."""
HEADS = (
    "queue",
    "CUBIC",
    "L4S",
    "L4S delay p50 us",
    "classic delay p50 us",
    "p'",
    "drops",
    "marks",
)


async def run(console: Console) -> None:
    """Measure and print."""
    if (missing := boot.lack()) is not None:
        console.print(f"guest_l4s: {missing}")
        return
    sheet = table(
        f"CUBIC and an L4S flow; {2 * DELAY_US / 1e3:g} ms, in a guest",
        "each its half; the L4S queue below 2 ms, the classic one around its target of 15 ms",
        (*HEADS, "late p99 us"),
    )
    link = LinkSetting(rate=RATES[0], delay_us=DELAY_US, qdisc=Qdisc(kind="pfifo"))
    build = Build(
        topology=Topology(kind="dumbbell", pairs=2),
        links={"bottleneck": link},
        congestion_controls=dict.fromkeys(HOSTS, CC),
        sample_hz=20.0,
        first=[
            StartFlow(flow="cubic", src="s1", cc="cubic"),
            StartFlow(flow="l4s", src="s2", l4s=True),
        ],
    )
    lab = GuestLab(build)
    try:
        await lab.until(lambda: lab.all(Ready), BOOT_S)
        capabilities = lab.all(Hello)[0].capabilities
        console.print(f"guest: Linux {capabilities.kernel}")
        there = {each.name for each in capabilities.qdiscs if each.available}
        for rate, qdisc in product(RATES, QUEUES):
            if qdisc.kind in there:
                name = " ".join([qdisc.kind, *(f"{k} {v}" for k, v in qdisc.options.items())])
                sheet.add_row(f"{rate / 1e6:g}", name, *await _measure(lab, rate, qdisc))
    finally:
        await lab.source.close()
        await asyncio.gather(lab._pump, return_exceptions=True)
    console.print(sheet)


async def _measure(lab: GuestLab, rate: int, qdisc: Qdisc) -> tuple[str, ...]:
    await lab.send(SetLink(link=LINK, rate=rate), SetQdisc(link=LINK, qdisc=qdisc))
    await lab.run_for(WARM_UP_S)
    since = lab.events[-1].t
    await lab.run_for(MEASURED_S)
    sweeps = [each for each in lab.all(Sweep, since) if each.qdisc is not None]
    first, last = sweeps[0], sweeps[-1]
    assert first.qdisc is not None
    assert last.qdisc is not None
    at = last.qdisc.link.index(LINK)
    assert last.qdisc.kind[at] == qdisc.kind, last.qdisc.kind
    shares = [
        (_acked(last, flow) - _acked(first, flow)) * 8 / (last.t - first.t) / rate
        for flow in ("cubic", "l4s")
    ]
    medians = [
        median(each.queue_own[f"dualpi2_{name}"][at] or 0 for each in sweeps)
        for name in ("l4s_delay_us", "classic_delay_us", "prob_1000000")
    ]
    drops = last.qdisc.drops[at] - first.qdisc.drops[at]
    marks = (last.qdisc.ecn_marks[at] or 0) - (first.qdisc.ecn_marks[at] or 0)
    late = [each.delay_late_p99_us or 0.0 for each in lab.all(Health, since)]
    return (
        *(f"{each:.1%}" for each in shares),
        *(f"{each:.0f}" for each in medians[:2]),
        f"{medians[2] / 1e6:.2%}",
        *(str(drops), str(marks), f"{max(late, default=0.0):.0f}"),
    )


def _acked(sweep: Sweep, flow: str) -> int:
    assert sweep.tcp is not None
    return sweep.tcp.bytes_acked[sweep.tcp.flow.index(flow)]
