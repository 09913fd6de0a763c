"""Marks in front of a queue from a threshold on, and what DCTCP makes of them."""

import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean, quantiles

import pytest

from ccplay.errors import LabError
from ccplay.lab.egress import lack_of_marking
from ccplay.model.base import Event
from ccplay.model.commands import Build, SetLink
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import RunningLab, running
from tests.lab.namespaced import call
from tests.lab.test_leaks import MARKER, loaded_programs, nothing_left, programs_held_for
from tests.lab.test_traffic import flow_is_open, says
from tests.lab.trust import physical

_missing = lack_of_marking()
pytestmark = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

LINK = "r->h2"
LIMIT = 200
K = 20
"""Marking threshold in packets. 17 fit into the wires, and RFC 8257 asks for more than a seventh of
those."""


@dataclass
class Seen:
    """The queue and the only flow in each sweep; also the sink that receives the sweeps."""

    qlen: list[int] = field(default_factory=list)
    marks: int | None = None
    drops: int = 0
    delivered_ce: int = 0

    def put(self, event: Event | UnknownEvent) -> None:
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


@asynccontextmanager
async def started(
    cc: str, mark: int | None = K, *, ecn: bool = False, fork: bool = True
) -> AsyncIterator[tuple[RunningLab, Seen]]:
    seen = Seen()
    async with running(build(cc, mark), seen, fork=fork) as lab:
        lab.send(StartFlow(flow="1", ecn=ecn))
        await lab.until(lambda state: flow_is_open(state, "1"))
        yield lab, seen


async def settled(cc: str) -> Seen:
    """Return three seconds of a flow, beginning one second after its start."""
    async with started(cc) as (lab, seen):
        await lab.run_for(1.0)
        seen.qlen.clear()
        await lab.run_for(3.0)
    return seen


@physical
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
    seen = Seen()
    async with running(build("dctcp", K), seen) as lab:
        # What waits while the receiver's own call holds the socket is acknowledged all at once,
        # since Linux 6.7, whether marked or not: on a busy machine then one ACK speaks for both.
        with contextlib.suppress(LabError):
            lab.namespace("h2").sysctl({"net.ipv4.tcp_backlog_ack_defer": 0})
        lab.send(StartFlow(flow="1"))
        await lab.until(lambda _: (seen.marks or 0) > 200)
        # No more marks: those under way come in, and the counts must meet.
        lab.send(SetLink(link=LINK, mark=0))
        await lab.until(lambda state: state.links[LINK][-1].setting.mark == 0)
        await lab.run_for(0.5)
        marks = seen.marks
        # What is marked may be dropped. What is sent again is never marked (RFC 3168, 6.1.5).
        assert marks is not None
        assert marks - seen.drops <= seen.delivered_ce <= marks
        lab.send(SetLink(link=LINK, mark=5))
        await lab.until(lambda state: state.links[LINK][-1].setting.mark == 5)
        await lab.until(lambda _: (seen.marks or 0) > marks)


@physical
async def test_a_flow_of_another_algorithm_with_ecn_heeds_marks_as_losses() -> None:
    async with started("reno", ecn=True) as (lab, seen):
        await lab.run_for(0.5)
        seen.qlen.clear()
        await lab.run_for(1.5)
    assert lab.state.flows["1"].ecn
    # Half of 37 packets do not fill the wires any more, as RFC 3168 has it.
    assert (seen.marks or 0) > 0
    assert seen.drops == 0
    assert max(seen.qlen) < 3 * K


async def test_marking_is_refused_where_no_queue_forms() -> None:
    async with started("cubic", None) as (lab, _):
        lab.send(SetLink(link="h1->r", mark=10), SetLink(link=LINK, mark=-1))
        await lab.until(lambda state: says(state, "no queue to mark in"))
        await lab.until(lambda state: says(state, "mark: must be from 0"))


async def test_no_marker_is_left_behind_whatever_ends_the_lab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = f"ccplay-{uuid.uuid4()}"
    monkeypatch.setenv(MARKER, marker)
    async with started("dctcp", fork=False) as (lab, _):
        programs = programs_held_for(marker)
        assert programs & loaded_programs()
        assert lab.source.pid is not None
        os.kill(lab.source.pid, signal.SIGKILL)
    assert not await nothing_left(lambda: programs & loaded_programs())


def test_rootless_labs_report_what_marking_needs() -> None:
    said = call("tests.lab.test_marking:ask_rootless", rootless=True)
    assert "need root of the host" in said


async def ask_rootless() -> str:
    """Return why the marker is unavailable; runs inside namespaces of its own."""
    missing = lack_of_marking()
    return "" if missing is None else f"{missing.reason}; {missing.remedy}"
