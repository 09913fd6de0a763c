"""A flow's times are those of its packets to the millisecond, however seldom it is sampled."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ccplay.analysis.summary import summarise
from ccplay.model.commands import Build, StartCapture, StopCapture
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import running
from tests.lab.first_packets import firsts
from tests.lab.trust import physical, sleeper

MOST_OFF_S = 0.002
"""Largest error of a flow's duration in seconds: its start and end are each between two readings 1
ms apart, at any rate of sweeps from 5 to 100 ms apart."""

pytestmark = pytest.mark.skipif(shutil.which("tcpdump") is None, reason="no tcpdump")

DELAY_US = 5_000

SYN, ACK = 0x02, 0x10


class Segment(NamedTuple):
    """A TCP segment received by the sender."""

    t: float
    port: int
    flags: int
    ack: int


def segments(path: Path) -> Iterator[Segment]:
    """Yield the segments in a capture that go to the ports of the flows' senders."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # an enhanced packet block, times in nanoseconds
            high, low = struct.unpack_from("<II", data, at + 12)
            frame = data[at + 28 :]
            tcp = 14 + 4 * (frame[14] & 15)
            to, ack, flags = (*struct.unpack_from("!H4xI", frame, tcp + 2), frame[tcp + 13])
            if frame[23] == 6 and 10_000 <= to < 32_000:
                yield Segment((high << 32 | low) * 1e-9, to, flags, ack)
        at += length


def duration(path: Path, size: int) -> float:
    """Return the time from the first data to the last byte's ACK in a capture."""
    # What arrives is captured before the delay of its link: so much before the host has it.
    begun = firsts(path.parent).data[0] - DELAY_US * 1e-6
    first, acked = dict[int, int](), dict[int, int]()
    for each in segments(path):
        if each.flags & SYN:
            first[each.port] = each.ack
        elif each.flags & ACK and each.port in first:
            gained = (each.ack - first[each.port]) & 0xFFFFFFFF
            acked[each.port] = max(acked.get(each.port, 0), gained)
            if sum(acked.values()) >= size:
                return each.t - begun
    raise AssertionError(f"only {acked} of {size} bytes in {path}")


async def flow_of(folder: Path, sample_hz: float, size: int, streams: int) -> Flow:
    """Send ``size`` bytes and return the flow's result; the capture is left in ``folder``."""
    bottleneck = LinkSetting(rate=20_000_000, delay_us=DELAY_US)
    build = Build(
        topology=Topology(kind="linear"), links={"bottleneck": bottleneck}, sample_hz=sample_hz
    )
    async with running(build, argv=launch.lab_argv(captures=folder)) as lab:
        lab.send(StartCapture(link="h1->r"))
        await lab.until(lambda state: state.captures)
        lab.send(StartFlow(flow="1", cc="reno", bytes=size, streams=streams))
        await lab.until(lambda state: "1" in state.flows and not state.flows["1"].running)
        lab.send(StopCapture(capture="c1"))
        await lab.until(lambda state: not state.captures)
        # So long it takes until a lab has looked at itself.
        await lab.until(lambda state: state.healths)
    assert not summarise(lab.state, "times").errors
    return lab.state.flows["1"]


@pytest.mark.parametrize("sample_hz", [10.0, 50.0, 200.0])
@pytest.mark.parametrize(("size", "streams"), [(2_000_000, 1), (10_000, 1), (1_000_000, 4)])
@physical
async def test_a_flow_takes_as_long_as_its_packets_say(
    tmp_path_factory: pytest.TempPathFactory, sample_hz: float, size: int, streams: int
) -> None:
    """10,000 bytes are less than an initial window: all is over between two sweeps."""
    folder = tmp_path_factory.mktemp("captures")
    # The lab must read the flow within a millisecond of its first data and of its last ACK.
    with sleeper("SCHED_OTHER"):
        flow = await flow_of(folder, sample_hz, size, streams)
    (path,) = folder.iterdir()
    assert flow.bytes == size
    assert flow.duration_s == pytest.approx(duration(path, size), abs=MOST_OFF_S)
