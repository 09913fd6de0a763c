"""Marks in front of a queue from a threshold on, and what DCTCP makes of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from statistics import fmean, quantiles

import pytest

from ccplay import launch
from ccplay.errors import LabError
from ccplay.lab.bpf.marker import lack_of_marking
from ccplay.lab.modules import find_tool
from ccplay.model.commands import Build, SetLink, StartFlow
from ccplay.model.events import AnyEvent
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc, Topology
from ccplay.source import LabSource
from ccplay.wire import UnknownEvent
from tests.lab.conftest import RunningLab
from tests.lab.namespaced import call
from tests.lab.test_traffic import flow_is_open

_missing = lack_of_marking()
pytestmark = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

LINK = "r->h2"
LIMIT = 200
K = 20
"""Packets. 17 fit into the wires: RFC 8257 asks for more than a seventh of those."""


@dataclass
class Seen:
    """What the sweeps say of the queue, and of the one flow; also the sink that takes them."""

    qlen: list[int] = field(default_factory=list)
    marks: int | None = None
    drops: int = 0
    delivered_ce: int = 0

    def put(self, event: AnyEvent | UnknownEvent) -> None:
        if not isinstance(event, Sweep) or event.qdisc is None:
            return
        at = event.qdisc.link.index(LINK)
        self.marks, self.drops = event.qdisc.ecn_marks[at], event.qdisc.drops[at]
        if event.tcp is not None:
            self.qlen.append(event.qdisc.qlen[at])
            self.delivered_ce = event.tcp.delivered_ce[0]

    def close(self) -> None:
        pass


def build(cc: str, mark: int | None) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": LIMIT})
    link = LinkSetting(rate=100_000_000, delay_us=1_000, qdisc=queue, mark=mark)
    return Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": link},
        congestion_controls={"h1": cc, "h2": cc},
        sample_hz=100.0,
    )


async def started(cc: str, mark: int | None = K, *, ecn: bool = False) -> tuple[RunningLab, Seen]:
    seen = Seen()
    lab = RunningLab(LabSource(launch.lab_argv(), build(cc, mark)), seen)
    await lab.until(lambda state: state.phase == "ready")
    lab.send(StartFlow(flow="1", ecn=ecn))
    await lab.until(lambda state: flow_is_open(state, "1"))
    return lab, seen


async def settled(cc: str) -> Seen:
    """Return three seconds of a flow, one after its start."""
    lab, seen = await started(cc)
    await lab.run_for(1.0)
    seen.qlen.clear()
    await lab.run_for(3.0)
    await lab.close()
    return seen


async def test_dctcp_holds_the_queue_near_the_threshold_and_cubic_fills_it() -> None:
    dctcp, cubic = await settled("dctcp"), await settled("cubic")
    # It swings round K by a few packets: the cut is alpha / 2 of 37, its growth one an RTT. Half
    # and double leave room for a machine that is busy.
    assert K / 2 < fmean(dctcp.qlen) < K + 5
    assert quantiles(dctcp.qlen, n=100)[-1] < 2 * K
    assert dctcp.drops == 0
    # CUBIC has no ECN, so nothing stops it before the queue is full.
    assert fmean(cubic.qlen) > 3 * K
    assert quantiles(cubic.qlen, n=100)[-1] > 0.8 * LIMIT
    assert cubic.marks == 0


async def test_every_mark_counted_comes_back_to_the_sender() -> None:
    lab, seen = await started("dctcp")
    # What waits while the receiver's own call holds the socket is acknowledged all at once, since
    # Linux 6.7, whether marked or not: on a busy machine then one ACK speaks for both.
    with contextlib.suppress(LabError):
        lab.namespace("h2").sysctl({"net.ipv4.tcp_backlog_ack_defer": 0})
    await lab.until(lambda _: (seen.marks or 0) > 200)
    # No more marks: those under way come in, and the counts must meet.
    lab.send(SetLink(link=LINK, mark=0))
    await lab.until(lambda state: state.links[LINK][-1].setting.mark == 0)
    await lab.run_for(0.5)
    marks = seen.marks
    # What is marked may still be dropped. What is sent again is never marked (RFC 3168, 6.1.5).
    assert marks is not None
    assert marks - seen.drops <= seen.delivered_ce <= marks
    lab.send(SetLink(link=LINK, mark=5))
    await lab.until(lambda _: (seen.marks or 0) > (marks or 0))
    assert lab.state.links[LINK][-1].setting.mark == 5
    await lab.close()


async def test_a_flow_of_another_algorithm_with_ecn_heeds_marks_as_losses() -> None:
    lab, seen = await started("reno", ecn=True)
    await lab.run_for(2.0)
    await lab.close()
    assert lab.state.flows["1"].ecn
    # Half of 37 packets do not fill the wires any more, as RFC 3168 has it.
    assert (seen.marks or 0) > 0
    assert seen.drops == 0
    assert max(seen.qlen[50:]) < 3 * K


async def test_marking_is_refused_where_no_queue_forms() -> None:
    lab, _ = await started("cubic", None)
    lab.send(SetLink(link="h1->r", mark=10))
    await lab.until(lambda state: "no queue to mark in" in state.log[-1].text)
    lab.send(SetLink(link=LINK, mark=-1))
    await lab.until(lambda state: "marks from 0" in state.log[-1].text)
    await lab.close()


async def test_no_marker_is_left_behind_whatever_ends_the_lab() -> None:
    before = markers()
    lab, _ = await started("dctcp")
    assert markers() > before
    assert lab.source.pid is not None
    os.kill(lab.source.pid, signal.SIGKILL)
    await lab.close()
    deadline = time.monotonic() + 10
    while markers() > before and time.monotonic() < deadline:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    assert markers() <= before


def markers() -> int:
    """Return how many marking programs the whole host has loaded."""
    bpftool = find_tool("bpftool")
    assert bpftool is not None
    said = subprocess.run([bpftool, "-j", "prog", "show"], capture_output=True, check=True)
    return [each.get("name") for each in json.loads(said.stdout)].count("mark")


def test_rootless_labs_say_what_marking_needs() -> None:
    said = call("tests.lab.test_marking:ask_rootless", rootless=True)
    assert "need root of the host" in said


async def ask_rootless() -> str:
    """Say why the marker is not to be had; runs inside namespaces of its own."""
    missing = lack_of_marking()
    return "" if missing is None else f"{missing.reason}; {missing.remedy}"
