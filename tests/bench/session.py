"""The cost of a running lab with 8 flows at 50 Hz: CPU, bytes of its stream, punctuality.

The peer reads the same sockets as often, as a user would by hand: ``ss -tinHO`` in every sender.
"""

import os
import time
from pathlib import Path

import psutil
from rich.console import Console

from ccplay.lab.netns import Namespace
from ccplay.model.commands import Build
from ccplay.model.events import Health
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, delay_line, family, part, running
from tests.bench.probe import inside

FLOWS = 8
HZ = 50
RATE = 10_000_000
ROUNDS = 3
MEASURED_S = 10.0
PEER_POLLS = 20


async def run(console: Console) -> None:
    """Measure and print."""
    rounds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        async with running(_build()) as lab:
            await lab.send(*(StartFlow(src=f"s{n}") for n in range(1, FLOWS + 1)))
            await lab.run_for(2.0)
            for name, value in (await _measure(lab)).items():
                rounds.setdefault(name, []).append(value)
    heads = ("", "measured", "aim")
    sheet = table(f"a lab with {FLOWS} flows at {HZ} Hz, {RATE / 1e6:g} Mbit/s", "", heads)
    for name, (factor, digits, aim) in FIGURES.items():
        if name in rounds:
            sheet.add_row(name, Spread.of(rounds[name]).scaled(factor, digits), aim)
    console.print(sheet)


FIGURES = {
    "lab, % of a core": (100, 1, "under 8"),
    "delay line, % of a core": (100, 1, ""),
    "peer: ss in 8 namespaces, % of a core": (100, 1, ""),
    "ratio of ss to lab": (1, 1, ""),
    "sweep late p50 µs": (1, 0, ""),
    "sweep late p99 µs": (1, 0, ""),
    "sweep took p50 µs": (1, 0, ""),
    "sweeps missed": (1, 0, ""),
    "stream kB/s": (1e-3, 1, ""),
    "steal %": (100, 0, ""),
}
"""Factor, digits after the point and aim of each measured value, by its name."""


def _build() -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": 100})
    return Build(
        topology=Topology(pairs=FLOWS),
        links={"bottleneck": LinkSetting(rate=RATE, delay_us=10_000, qdisc=queue)},
        sample_hz=HZ,
    )


async def _measure(lab: WatchedLab) -> dict[str, float]:
    """Return the measured values of one lab while its flows run, by name."""
    pid = lab.source.pid
    assert pid is not None
    parts = {
        "lab, % of a core": part(pid, "ccplay.lab"),
        "delay line, % of a core": delay_line(pid),
    }
    running = {name: psutil.Process(pid) for name, pid in parts.items() if pid is not None}
    before = {name: _cpu_s(process) for name, process in running.items()}
    since, written, begun = lab.events[-1].t, lab.written, time.monotonic()
    await lab.run_for(MEASURED_S)
    elapsed = time.monotonic() - begun
    found = {name: (_cpu_s(running[name]) - before[name]) / elapsed for name in running}
    found["stream kB/s"] = (lab.written - written) / elapsed
    health = lab.all(Health, since)
    found["sweep late p50 µs"] = Spread.of([each.late_p50_us for each in health]).median
    found["sweep late p99 µs"] = Spread.of([each.late_p99_us for each in health]).median
    found["sweep took p50 µs"] = Spread.of([each.sweep_p50_us for each in health]).median
    found["sweeps missed"] = lab.missed(since)
    found["steal %"] = lab.worst_steal(since)
    if os.geteuid() == 0:
        peer = _ss_cpu(pid) * HZ
        found["peer: ss in 8 namespaces, % of a core"] = peer
        found["ratio of ss to lab"] = peer / found["lab, % of a core"]
    return found


def _ss_cpu(pid: int) -> float:
    """Return the CPU seconds to run ss once in every sender's namespace."""
    holders = [each for each, argv in family(pid).items() if argv[:1] == ["cat"]]
    senders = [Namespace(f"n{each}", each) for each in holders if _has_flow(each)]
    assert len(senders) == FLOWS
    before = os.times()
    for _ in range(PEER_POLLS):
        for sender in senders:
            inside(sender, "ss", "-tinHO")
    after = os.times()
    spent = after.children_user + after.children_system
    return (spent - before.children_user - before.children_system) / PEER_POLLS


def _has_flow(pid: int) -> bool:
    """Return whether the namespace of ``pid`` has a connection to an iperf3 server."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    ports = [int(line.split()[2].rpartition(":")[2], 16) for line in lines]
    return any(5201 <= port < 5201 + FLOWS for port in ports)


def _cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)
