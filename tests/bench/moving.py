"""How late packets depart on a link that moves, beside the same link at a fixed rate.

Both are the same discipline in software, kept full by UDP packets of the whole MTU at one and a
half times the rate. Opportunities come at the mean of the rate, so the packets are as many.
"""

import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console

from ccplay.model.commands import Build
from ccplay.model.events import Health
from ccplay.model.moving import Trace
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.trace import delivery
from ccplay.traffic.udp import StartUdp
from tests.bench._figures import table
from tests.bench._running import running

LINK = "r->h2"
RATES = (1_000_000, 10_000_000, 50_000_000, 100_000_000)
MEASURED_S = 5.0
_OPPORTUNITY_BITS = 1504 * 8


async def run(console: Console) -> None:
    """Measure and print."""
    heads = ("rate", "fixed p50 us", "fixed p99 us", "trace p50 us", "trace p99 us")
    found = table("Lateness of departures", "p99 within 1 ms, as at a fixed rate", heads)
    with tempfile.TemporaryDirectory() as folder:
        for rate in RATES:
            fixed = await _lateness(rate, None)
            moved = await _lateness(rate, _trace(Path(folder), rate))
            found.add_row(f"{rate / 1e6:g} Mbit/s", *fixed, *moved)
    console.print(found)


def _trace(folder: Path, rate: int) -> Trace:
    """Return a trace of 2 s whose opportunities have this rate."""
    count = 2 * rate // _OPPORTUNITY_BITS
    times = (max(1, round(number * 2000 / count)) for number in range(1, count + 1))
    (folder / f"{rate}.up").write_text("".join(f"{each}\n" for each in times))
    return delivery.load(Trace(rate=f"{rate}.up"), folder, {})


async def _lateness(rate: int, trace: Trace | None) -> tuple[str, str]:
    """Return the median over the seconds of both percentiles, in us."""
    qdisc = Qdisc(kind="pfifo.py", options={"limit": 100})
    setting = LinkSetting(rate=rate, delay_us=0, qdisc=qdisc, trace=trace)
    links = {"bottleneck": LinkSetting(delay_us=0), LINK: setting}
    async with running(Build(topology=Topology(kind="linear"), links=links)) as lab:
        udp = StartUdp(rate_bps=rate * 3 // 2, packet_bytes=1472, duration_s=MEASURED_S + 2)
        await lab.send(udp)
        begun = lab.events[-1].t + 1
        await lab.run_for(MEASURED_S + 1)
        every = [each for each in lab.all(Health, begun) if each.delay_late_p99_us is not None]
    halves = [each.delay_late_p50_us for each in every if each.delay_late_p50_us is not None]
    most = [each.delay_late_p99_us for each in every if each.delay_late_p99_us is not None]
    return f"{median(halves):.0f}", f"{median(most):.0f}"
