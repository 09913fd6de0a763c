"""The cost of tracing per ACK, in a lab and alone, against perf(1), which reads the same flow."""

import asyncio
import resource
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
from rich.console import Console

from ccplay.lab import tracing
from ccplay.lab.tracing import PROBE, complete, lack_of
from ccplay.model.commands import Build, TraceFlow, UntraceFlow
from ccplay.model.network import Topology
from ccplay.model.samples import TraceSamples
from ccplay.model.values import LinkSetting
from ccplay.stream import wire
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, part, running

RATE = 50_000_000
ROUNDS = 5
MEASURED_S = 4.0
BATCH, BATCHES = 100, 200

FIGURES = {
    "lab with a trace, CPU µs/ACK more than without": "under 15",
    "reading, joining and encoding alone, µs/ACK": "under 5",
    "bytes of the stream/ACK": "under 30",
    "peer: perf record and perf script, CPU µs/ACK": "",
    "ratio of perf to the lab": "over 2",
    "ACKs/s": "",
}


async def run(console: Console) -> None:
    """Measure and print."""
    if (missing := lack_of(PROBE)) is not None:
        console.print(f"trace: left out: {missing.reason}")
        return
    rounds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        async with running(_build()) as lab:
            await lab.send(StartFlow(flow="1"))
            await lab.run_for(1.5)
            for name, value in (await _measure(lab)).items():
                rounds.setdefault(name, []).append(value)
    sheet = table(f"a trace of one flow at {RATE / 1e6:g} Mbit/s", "", ("", "measured", "aim"))
    for name, aim in FIGURES.items():
        if name in rounds:
            sheet.add_row(name, Spread.of(rounds[name]).scaled(1, 1), aim)
    console.print(sheet)


def _build() -> Build:
    return Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": LinkSetting(rate=RATE, delay_us=5_000)},
        traces=True,
    )


async def _measure(lab: WatchedLab) -> dict[str, float]:
    """Return the measured values of a lab with a running flow, by name."""
    pid = part(lab.source.pid or 0, "ccplay.lab")
    process = psutil.Process(pid)
    plain = await _cpu_s(lab, process)
    await lab.send(TraceFlow(flow="1"))
    since = lab.events[-1].t
    traced = await _cpu_s(lab, process)
    batches = lab.all(TraceSamples, since)
    await lab.send(UntraceFlow(flow="1"))
    acks = sum(len(each.after_us) + 1 for each in batches)
    more = (traced - plain) / acks * 1e6
    figures = {
        "lab with a trace, CPU µs/ACK more than without": more,
        "reading, joining and encoding alone, µs/ACK": _alone_us(),
        "bytes of the stream/ACK": sum(len(wire.encode(each)) for each in batches) / acks,
        "ACKs/s": acks / MEASURED_S,
    }
    if shutil.which("perf") is not None:
        peer = await asyncio.to_thread(_perf_us)
        figures["peer: perf record and perf script, CPU µs/ACK"] = peer
        figures["ratio of perf to the lab"] = peer / max(more, 0.1)
    return figures


async def _cpu_s(lab: WatchedLab, process: psutil.Process) -> float:
    """Return the CPU seconds that the lab takes in ``MEASURED_S`` seconds of its clock."""
    before = process.cpu_times()
    await lab.run_for(MEASURED_S)
    after = process.cpu_times()
    return after.user + after.system - before.user - before.system


def _perf_us() -> float:
    """Return the CPU µs per ACK that perf takes from record to text, without its start."""
    # The first flow of a lab sends from port 10000, and none sends from port 0.
    start, _ = _perf_s("sport == 0", 0.1)
    cpu, acks = _perf_s("sport == 10000", MEASURED_S)
    return (cpu - start) / max(acks, 1) * 1e6


def _perf_s(condition: str, seconds: float) -> tuple[float, int]:
    """Return the CPU seconds that perf takes to record and print ACKs, and their number."""
    before = _children_s()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        listen = ["perf", "record", "-q", "-a", "-e", "tcp:tcp_probe", "--filter", condition]
        listen += ["-o", str(data), "sleep", str(seconds)]
        subprocess.run(listen, check=True, capture_output=True)
        show = ["perf", "script", "-i", str(data)]
        shown = subprocess.run(show, check=True, capture_output=True)
    return _children_s() - before, shown.stdout.count(b"\n")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _alone_us() -> float:
    """Return the CPU µs per ACK from the bytes of a ring to lines of the stream."""
    ring = bytearray()
    for number in range(BATCH):
        held = (90 + number // 30, 64, 65_536, 20_000 + number * 7, number, 1, 0)
        ring += struct.pack("=IIQQIIIIIHBx", 40, 0, number * 1_200_000, 7, *held)
    data = bytes(ring)
    begun = time.thread_time()
    for _ in range(BATCHES):
        wire.encode(tracing.samples("1", complete(data), 0))
    return (time.thread_time() - begun) / (BATCH * BATCHES) * 1e6
