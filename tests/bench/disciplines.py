"""Disciplines in software: packets per second, lateness and CPU against the kernel's FIFO; swaps.

Lateness is the time from when a packet is due, according to the rate and the packets before it, to
the verdict that sends it. A capture at the far end, outside the process, checks that.
"""

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from rich.console import Console
from rich.table import Table

from ccplay.lab.custom.loading import fill_template
from ccplay.lab.software_queue import NAME
from ccplay.model.base import Option
from ccplay.model.commands import Build, SetLink, SetQdisc
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.events import Applied, Health, Hello
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.bench import _departures
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, family, running

LINK = "r->h2"
RATES = (1_000_000, 10_000_000, 50_000_000, 100_000_000)
WARM_UP_S = 1.5
MEASURED_S = 3.0
SWAPS = 5

SOFTWARE = [f"{each.kind}.py" for each in DISCIPLINES.values() if each.software]


async def run(console: Console) -> None:
    """Measure and print."""
    heads = ("discipline", "Mbit/s", "packets/s", "of it", "late p50 us", "p99 us", "CPU", "lab")
    sheet = table(
        "a CUBIC flow through each; CPU is of one core, of the process and of the lab with it",
        "up to 50 Mbit/s at least, p99 under 200 us",
        heads,
    )
    swaps: list[Table] = []
    for rate in RATES:
        link = LinkSetting(rate=rate, delay_us=5_000, qdisc=_fifo(rate))
        build = Build(topology=Topology(kind="linear"), links={LINK: link})
        async with running(build) as lab:
            await lab.send(StartFlow(cc="cubic"))
            for qdisc in (_fifo(rate), *(_own(kind, rate) for kind in SOFTWARE)):
                await lab.send(SetQdisc(link=LINK, qdisc=qdisc))
                sheet.add_row(qdisc.kind, f"{rate / 1e6:g}", *await _measure(lab, rate))
            if rate == RATES[1]:
                swaps.append(await _swaps(lab, rate))
        sheet.add_section()
    console.print(sheet)
    for each in swaps:
        console.print(each)
    await _departures.run(console)


def _fifo(rate: int) -> Qdisc:
    return Qdisc(kind="pfifo", options={"limit": max(100, rate // 200_000)})


def _own(kind: str, rate: int) -> Qdisc:
    options: dict[str, Option] = {}
    if kind in ("red.py", "choke.py"):
        options["bandwidth"] = rate
    return Qdisc(kind=kind, options=options)


async def _measure(lab: WatchedLab, rate: int) -> tuple[str, ...]:
    await lab.run_for(WARM_UP_S)
    since = lab.events[-1].t
    spent = _cpu_s(lab)
    await lab.run_for(MEASURED_S)
    seconds = lab.events[-1].t - since
    cpu = (_cpu_s(lab) - spent) / seconds
    sweeps = [each for each in lab.all(Sweep, since) if each.qdisc is not None]
    first, last = sweeps[0], sweeps[-1]
    assert first.qdisc is not None
    assert last.qdisc is not None
    length = last.t - first.t
    packets = (last.qdisc.packets[0] - first.qdisc.packets[0]) / length
    octets = (last.qdisc.bytes[0] - first.qdisc.bytes[0]) / length
    healths = lab.all(Health, since)
    late = [
        Spread.of([value for each in healths if (value := getattr(each, name)) is not None] or [0])
        for name in ("delay_late_p50_us", "delay_late_p99_us")
    ]
    return (
        f"{packets:,.0f}",
        f"{octets * 8 / rate:.1%}",
        *(f"{each.median:.0f}" for each in late),
        f"{cpu:.0%}",
        f"{Spread.of([each.lab_cpu for each in healths]).median:.0%}",
    )


def _cpu_s(lab: WatchedLab) -> float:
    """Return the CPU seconds used by the process of the disciplines; 0 if there is none."""
    assert lab.source.pid is not None
    for pid in family(lab.source.pid):
        if Path(f"/proc/{pid}/comm").read_bytes().strip() == NAME:
            times = psutil.Process(pid).cpu_times()
            return float(times.user + times.system)
    return 0.0


async def saves() -> list[float]:
    """Return the seconds from saving a file to the first packet under its new version."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "saved.py"
        text = fill_template("saved")
        file.write_text(text)
        link = LinkSetting(rate=RATES[1], delay_us=5_000, qdisc=Qdisc(kind="saved"))
        build = Build(topology=Topology(kind="linear"), links={LINK: link})
        async with running(build, [file]) as lab:
            began = lab.all(Hello)[0].wall_time
            await lab.send(StartFlow(cc="cubic"))
            took = []
            for number in range(4 * SWAPS):
                # Files are looked at in intervals, so the moments of saving must not be.
                await lab.run_for(0.3 + 0.0137 * number)
                before = len(lab.all(Applied))

                def swapped(lab: WatchedLab = lab, before: int = before) -> bool:
                    return len(lab.all(Applied)) > before

                saved = time.time()
                await asyncio.to_thread(file.write_text, f"{text}# {number}\n")
                await lab.until(swapped)
                took.append(began + lab.all(Applied)[-1].t - saved)
        return took


async def _swaps(lab: WatchedLab, rate: int) -> Table:
    """Return a table of the time to swap disciplines, parameters and rates under a flow."""
    sheet = table(
        "from a command to the first packet under the new discipline", "50 ms", ("", "ms")
    )
    took: dict[str, list[float]] = {}
    for _ in range(SWAPS):
        for name, qdisc in (
            ("kernel to kernel", Qdisc(kind="bfifo")),
            ("kernel to software", _own("codel.py", rate)),
            ("software to software", _own("pie.py", rate)),
            ("other parameters", Qdisc(kind="pie.py", options={"target": 10_000})),
            ("software to kernel", _fifo(rate)),
        ):
            await lab.send(SetQdisc(link=LINK, qdisc=qdisc))
            took.setdefault(name, []).append(lab.all(Applied)[-1].took_s)
            await lab.run_for(0.3)
    await lab.send(SetQdisc(link=LINK, qdisc=_own("codel.py", rate)))
    for mbits in (9, 10):
        await lab.send(SetLink(link=LINK, rate=mbits * 1_000_000))
        took.setdefault("another rate", []).append(lab.all(Applied)[-1].took_s)
    took["a user's own, from saving its file"] = await saves()
    for name, seconds in took.items():
        sheet.add_row(name, Spread.of(seconds).scaled(1e3, 1))
    return sheet
