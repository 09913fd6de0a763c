"""The accuracy of rate and delay: goodput against the framing limit, delay by ping, and its CPU.

The framing limit is the greatest possible goodput of TCP: of the 1514 bytes of a frame, Ethernet
header included, 1448 are payload.
"""

import os
import subprocess
import sys

import psutil
from rich.console import Console
from rich.table import Table

from ccplay.model.commands import Build, SetLink
from ccplay.model.events import Health, LinkChanged
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing, StopPing
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, delay_line, running

FRAMING = 1448 / 1514
RATES = (1_500_000, 10_000_000, 100_000_000, 1_000_000_000)
ROUNDS = 3
WARM_UP_S = 2.0
MEASURED_S = 5.0

DELAYS_US = (1_000, 5_000, 20_000, 50_000, 100_000)
PINGS = 100
PING_EVERY_S = 0.02
DELAY_LINE_RATES = (10_000_000, 100_000_000, 1_000_000_000)


async def run(console: Console) -> None:
    """Measure and print."""
    console.print(await _goodput())
    console.print(await _added_delay())
    console.print(await _delay_line_cpu())


def _setting(rate: int, delay_us: int = 0) -> LinkSetting:
    """Return the setting of a link with a queue long enough that TCP never lets it empty."""
    limit = 100 if rate < 50_000_000 else 1000
    limit = max(limit, int(2 * delay_us * 1e-6 * rate / 8 / 1514))
    return LinkSetting(
        rate=rate, delay_us=delay_us, qdisc=Qdisc(kind="pfifo", options={"limit": limit})
    )


def _build(rate: int, delay_us: int = 0, pairs: int = 1) -> Build:
    links = {"bottleneck": _setting(rate, delay_us)}
    return Build(topology=Topology(pairs=pairs), links=links)


async def _goodput() -> Table:
    heads = ("Mbit/s", "ccplay %", "tc by hand %", "ratio", "offloads", "steal", "missed")
    sheet = table("goodput through HTB, of the framing limit 1448/1514", "99 %", heads)
    for rate in RATES:
        own, peer, steal, missed, offloads = [], [], 0.0, 0, False
        for _ in range(ROUNDS):
            async with running(_build(rate)) as lab:
                since = await _flow(lab)
                await lab.run_for(MEASURED_S)
                seconds, octets = lab.acked(since)
                own.append(octets * 8 / seconds / rate / FRAMING)
                steal = max(steal, lab.worst_steal(since))
                missed += lab.missed(since)
                offloads = lab.all(LinkChanged)[-1].offloads
            peer.append(_by_hand(rate) / rate / FRAMING)
        sheet.add_row(
            _rate(rate),
            Spread.of(own).scaled(100, 1),
            Spread.of(peer).scaled(100, 1),
            f"{Spread.of(own).median / Spread.of(peer).median:.3f}",
            "on" if offloads else "off",
            f"{steal:.0%}",
            str(missed),
        )
    return sheet


async def _flow(lab: WatchedLab, src: str | None = None) -> float:
    """Start a flow, let it fill the queue, and return the lab time from which to measure."""
    await lab.send(StartFlow(src=src, cc="cubic"))
    await lab.run_for(WARM_UP_S)
    return lab.events[-1].t


def _by_hand(rate: int) -> float:
    user = () if os.geteuid() == 0 else launch.ROOTLESS
    argv = [*launch.UNSHARE, *user, sys.executable, "-m", "tests.bench._by_hand", str(rate)]
    result = subprocess.run([*argv, str(MEASURED_S)], check=True, stdout=subprocess.PIPE, text=True)
    return float(result.stdout)


async def _added_delay() -> Table:
    """Delay the link from s1 and ping s2, a path without the bottleneck and without a queue."""
    heads = ("asked ms", "idle: off by", "p99", "loaded: off by", "p99", "lost")
    sheet = table("added delay by ping, median", "within 0.5 ms", heads)
    rows: dict[int, list[str]] = {delay_us: [f"{delay_us / 1e3:g}"] for delay_us in DELAYS_US}
    lost = dict.fromkeys(DELAYS_US, 0)
    async with running(_build(100_000_000, 10_000, pairs=2)) as lab:
        bases: list[float] = []
        for load in (False, True):
            if load:
                await _flow(lab, "s2")
            base = Spread.of(await _ping(lab, 0)).median
            bases.append(base)
            for delay_us in DELAYS_US:
                rtts = await _ping(lab, delay_us)
                off = sorted(rtt - base - delay_us / 1e3 for rtt in rtts)
                rows[delay_us] += [
                    f"{off[len(off) // 2]:+.2f}",
                    f"{off[len(off) * 99 // 100]:+.2f}",
                ]
                lost[delay_us] += PINGS - len(rtts)
    for delay_us, row in rows.items():
        sheet.add_row(*row, str(lost[delay_us]))
    sheet.caption = f"in ms; RTT without added delay {bases[0]:.2f} idle, {bases[1]:.2f} loaded"
    return sheet


async def _ping(lab: WatchedLab, delay_us: int) -> list[float]:
    await lab.send(SetLink(link="s1->r1", delay_us=delay_us))
    since = lab.events[-1].t
    await lab.send(StartPing(src="s1", dst="s2", interval_s=PING_EVERY_S))
    await lab.until(lambda: len(lab.rtts_ms(since)) >= PINGS)
    await lab.run_for(delay_us / 1e6 + 0.1)
    await lab.send(StopPing(ping=lab.last_ping()))
    return lab.rtts_ms(since)[:PINGS]


async def _delay_line_cpu() -> Table:
    heads = ("Mbit/s", "CPU %", "of it user %", "late p50 µs", "p99", "goodput %", "steal")
    sheet = table("the delay line: one flow, 10 ms each way, % of a core", "", heads)
    for rate in DELAY_LINE_RATES:
        cpu, user, p50, p99, goodput, steal = [], [], [], [], [], 0.0
        for _ in range(ROUNDS):
            async with running(_build(rate, 10_000)) as lab:
                since = await _flow(lab)
                pid = delay_line(lab.source.pid or 0)
                if pid is None:
                    sheet.caption = "no delay line: this kernel has netem"
                    return sheet
                process = psutil.Process(pid)
                before = process.cpu_times()
                await lab.run_for(MEASURED_S)
                seconds, octets = lab.acked(since)
                used = process.cpu_times()
                user.append((used.user - before.user) / seconds)
                cpu.append(user[-1] + (used.system - before.system) / seconds)
                goodput.append(octets * 8 / seconds / rate / FRAMING)
                steal = max(steal, lab.worst_steal(since))
                for health in lab.all(Health, since):
                    p50.append(health.delay_late_p50_us or 0.0)
                    p99.append(health.delay_late_p99_us or 0.0)
        sheet.add_row(
            _rate(rate),
            Spread.of(cpu).scaled(100, 1),
            Spread.of(user).scaled(100, 1),
            Spread.of(p50).scaled(1),
            Spread.of(p99).scaled(1),
            Spread.of(goodput).scaled(100, 1),
            f"{steal:.0%}",
        )
    return sheet


def _rate(rate: int) -> str:
    return f"{rate / 1e6:g}"
