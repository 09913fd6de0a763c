"""When packets leave a discipline in software, seen from outside; and swaps after saving a file.

A custom discipline notes when each packet arrived and when it was chosen. From that and the link's
rate follow the moments at which packets are due, in order: free = max(free, since) + L * 8 / rate.
A capture at the far end of the link, with the kernel's timestamps, shows when they really arrived.
"""

import asyncio
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ccplay.model.commands import Build
from ccplay.model.events import Hello
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import Spread, table
from tests.bench._running import WatchedLab, family, running

LINK = "r->h2"
RATES = (1_000_000, 10_000_000, 50_000_000, 100_000_000)
MEASURED_S = 4.0
SAVES = 10

_RECORD = struct.Struct("=ddII")
_MOST = 1 << 17

_SOURCE = """
import mmap, os, struct
from ccplay.lab.disciplines.base import Discipline, Fifo

PARAMETERS = {{"limit": "{limit} packets"}}
RECORD = struct.Struct("=ddII")

class Noting(Discipline):
    def configure(self, options):
        self.queue, self.limit, self.at = Fifo(), options.count("limit"), 0
        descriptor = os.open({path!r}, os.O_RDWR)
        self.notes = mmap.mmap(descriptor, 0)
        os.close(descriptor)

    def enqueue(self, packet, now):
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now):
        packet = self.queue.pop()
        if packet is not None and self.at < {most}:
            RECORD.pack_into(
                self.notes, self.at * RECORD.size, packet.arrived, now, packet.length, {version}
            )
            self.at += 1
        return packet
"""


class Note(NamedTuple):
    """The discipline's note of a packet; moments are of the monotonic clock, in seconds."""

    arrived: float
    chosen: float
    length: int
    version: int


async def run(console: Console) -> None:
    """Measure and print."""
    sheet = table(
        "lateness outside the process: from the due moment to the far end of the link",
        "p99 under 200 us up to 50 Mbit/s",
        ("Mbit/s", "packets", "chosen p50 us", "p99", "there p50 us", "p99", "greatest"),
    )
    with tempfile.TemporaryDirectory() as folder:
        for rate in RATES:
            sheet.add_row(f"{rate / 1e6:g}", *await _lateness(Path(folder), rate))
        console.print(sheet)
        sheet = table("from the save of a file to the first packet under it", "", ("", "ms"))
        sheet.add_row("at 10 Mbit/s, a full queue", await _saves(Path(folder)))
        console.print(sheet)


def _write(folder: Path, rate: int, version: int) -> tuple[Path, Path]:
    """Write the discipline; return its file, and that of its notes."""
    notes, file = folder / "notes", folder / "noting.py"
    if not version:
        notes.write_bytes(bytes(_RECORD.size * _MOST))
    limit = max(100, rate // 200_000)
    file.write_text(_SOURCE.format(limit=limit, path=str(notes), most=_MOST, version=version + 1))
    return file, notes


def _read(notes: Path) -> list[Note]:
    found = (Note(*each) for each in _RECORD.iter_unpack(notes.read_bytes()))
    return [each for each in found if each.length]


def _first(notes: Path) -> Note:
    """Return the note of the first packet since the notes were last cleared."""
    with notes.open("rb") as file:
        return Note(*_RECORD.unpack(file.read(_RECORD.size)))


def _is_first(notes: Path, version: int) -> bool:
    return _first(notes).version == version


def _build(rate: int) -> Build:
    setting = LinkSetting(rate=rate, delay_us=5_000, qdisc=Qdisc(kind="noting"))
    return Build(topology=Topology(kind="linear"), links={LINK: setting})


async def _lateness(folder: Path, rate: int) -> tuple[str, ...]:
    file, notes = _write(folder, rate, 0)
    capture = folder / "far.pcap"
    async with running(_build(rate), [file]) as lab:
        begun = _listen(lab, capture)
        # The first line of tcpdump reports that it is capturing.
        assert begun.stderr is not None
        await asyncio.to_thread(begun.stderr.readline)
        offset = time.time() - time.monotonic()
        await lab.send(StartFlow(cc="cubic"))
        await lab.run_for(MEASURED_S)
        begun.terminate()
        await asyncio.to_thread(begun.communicate)
    noted = _read(notes)
    there = [moment - offset for moment, _ in _frames(capture)]
    lengths = [length for _, length in _frames(capture)]
    assert lengths == [each.length for each in noted[: len(lengths)]]
    due = list(_due(noted, rate))
    chosen = sorted(each.chosen - at for each, at in zip(noted, due, strict=True))
    arrived = sorted(moment - at for moment, at in zip(there, due, strict=False))
    return (
        f"{len(there):,}",
        *_shares(chosen, (50, 99)),
        *_shares(arrived, (50, 99)),
        f"{arrived[-1] * 1e6:.0f}",
    )


def _shares(ordered: list[float], shares: tuple[int, ...]) -> list[str]:
    cuts = statistics.quantiles(ordered, n=100)
    return [f"{cuts[share - 1] * 1e6:.0f}" for share in shares]


def _due(noted: list[Note], rate: int) -> Iterator[float]:
    """Yield the moment at which each packet is due, from arrivals and the link's rate alone."""
    free = since = chosen = 0.0
    for each in noted:
        if each.arrived >= chosen:
            # The packet before had left, so this one begins a new queue.
            since = each.arrived
        free = max(free, since)
        yield free
        free += each.length * 8 / rate
        chosen = each.chosen


def _listen(lab: WatchedLab, capture: Path) -> subprocess.Popen[str]:
    """Start a capture of what arrives at the far end of the link."""
    network = lab.all(Hello)[0].network
    interface = network.link("h2->r").interface
    assert lab.source.pid is not None
    for pid in family(lab.source.pid):
        if f" {interface}:" in Path(f"/proc/{pid}/net/dev").read_text():
            break
    words = ["nsenter", f"--net=/proc/{pid}/ns/net", "tcpdump", "-Z", "root", "-Q", "in"]
    words += ["-i", interface, "-s", "64", "-B", "16384", "--time-stamp-precision=nano"]
    words += ["-w", str(capture), "ip"]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def _frames(capture: Path) -> Iterator[tuple[float, int]]:
    """Yield the Unix time and wire length of each frame in a pcap file; see pcap-savefile(5)."""
    data = capture.read_bytes()
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("=IIII", data, at)
        yield seconds + nanoseconds / 1e9, length
        at += 16 + kept


async def _saves(folder: Path) -> str:
    """Save the file repeatedly while a flow fills the queue; return the spread of swap times."""
    rate = 10_000_000
    file, notes = _write(folder, rate, 0)
    took = []
    async with running(_build(rate), [file]) as lab:
        await lab.send(StartFlow(cc="cubic"))
        await lab.run_for(1.5)
        for version in range(1, SAVES + 1):
            # Cleared in place, because the discipline's process has the file mapped.
            with notes.open("r+b") as old:
                old.write(bytes(_RECORD.size * _MOST))
            moment = time.monotonic()
            _write(folder, rate, version)
            await lab.until(partial(_is_first, notes, version + 1), 10.0)
            took.append(_first(notes).chosen - moment)
            await lab.run_for(0.5)
    return Spread.of(took).scaled(1e3)
