"""Packets followed from host to host: how long each takes, and which never come."""

import os
import signal
import uuid
from typing import Any

import pytest

from ccplay.bpf.support import lack
from ccplay.model.commands import Build
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Monitored, Qdisc
from ccplay.model.variables import DELAY, LOSS, RECEIVED
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import LabSource
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import RunningLab, running
from tests.lab.test_leaks import MARKER, loaded_programs, nothing_left, programs_held_for
from tests.lab.test_traffic import end_of
from tests.lab.test_udp import over
from tests.lab.trust import physical

_missing = lack()
needs_bpf = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

RATE = 10_000_000
DELAY_US = 30_000
LIMIT = 50
FRAME_US = 1514 * 8e6 / RATE
LATE_US = 2_000
"""Lateness in µs of the delay line at times on a busy machine; 0.05 ms at the median."""


def build(*, limit: int = LIMIT, loss: float | None = None, **both: int) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": limit})
    setting: dict[str, Any] = {"rate": RATE, "delay_us": DELAY_US} | both
    links = {
        "h1-r": LinkSetting(mtu=both.get("mtu")),
        "bottleneck": LinkSetting(qdisc=queue, **setting),
        "r->h2": LinkSetting(loss=loss),
    }
    return Build(topology=Topology(kind="linear"), links=links)


def seen(state: LabState, name: str) -> Monitored:
    found = (state.of(Udp) if name in state.of(Udp) else state.flows)[name].monitored
    assert found is not None
    assert found.delay_min_us is not None
    assert found.delay_max_us is not None
    assert found.delay_mean_us is not None
    assert found.delay_min_us <= found.delay_mean_us <= found.delay_max_us
    return found


@needs_bpf
@physical
async def test_an_empty_path_takes_its_links_delay() -> None:
    """Never less, and the 0.2 ms that a packet of 240 bytes takes on the wire."""
    async with running(build()) as lab:
        lab.send(StartUdp(monitor=True, packet_bytes=200, rate_bps=200_000, duration_s=1.0))
        await lab.until(lambda state: over(state, "u1"))
        udp = seen(lab.state, "u1")
        assert udp.sent == udp.received == 125
        assert udp.received_bytes == 125 * 200
        assert udp.delay_min_us is not None
        assert udp.delay_mean_us is not None
        assert udp.delay_min_us >= DELAY_US
        assert udp.delay_mean_us <= DELAY_US + LATE_US


@needs_bpf
@physical
async def test_a_full_queue_takes_its_backlog_over_the_rate() -> None:
    async with running(build()) as lab:
        lab.send(StartFlow(monitor=True, cc="reno", duration_s=4.0, streams=2))
        await end_of(lab, "1")
        flow = seen(lab.state, "1")
        # Behind 50 frames, one on the wire and its own; the burst of HTB makes one or two of them
        # pass at once.
        full = DELAY_US + (LIMIT + 1) * FRAME_US
        assert flow.delay_min_us is not None
        assert flow.delay_max_us is not None
        assert DELAY_US <= flow.delay_min_us <= DELAY_US + 2 * FRAME_US + LATE_US
        assert flow.delay_max_us >= full - 3 * FRAME_US
        # What the queue has dropped is what did not come: but for what was dropped at the very end,
        # behind the newest that arrived.
        drops = lab.state.queues["r->h2"].series["drops"].last or 0
        assert drops > 5
        assert flow.sent - flow.received == pytest.approx(drops, abs=2 + drops / 10)
        # Sweep by sweep it is told too, of each stream.
        for name in ("1", "1/2"):
            series = lab.state.flows[name].own["monitor_one_way_delay_us"]
            values = series.values(series.first, series.end)
            assert min(values) >= DELAY_US
            # Each the mean of 20 ms. The worst may be of a moment when the machine was busy.
            worst = sorted(values)[-len(values) // 20]
            assert full - 10 * FRAME_US <= worst <= full + FRAME_US + LATE_US
        # Payload that arrived is what was acknowledged, but for what came twice or is just coming.
        first = lab.state.flows["1"]
        assert flow.received_bytes == pytest.approx(first.bytes, rel=0.05)


@needs_bpf
@physical
async def test_what_becomes_of_cross_traffic_is_reported_while_it_runs() -> None:
    """Twice the link's rate: half of it is lost, and the queue stays full."""
    rate, limit = 1_000_000, 20
    async with running(build(limit=limit, rate=rate)) as lab:
        lab.send(StartUdp(monitor=True, rate_bps=2 * rate))
        # Ten counts a second, each of the last second.
        await lab.until(lambda state: (u := state.find(Udp, "u1")) and u.timeline.end > 29)
        udp = lab.state.of(Udp)["u1"]
        assert udp.ended is None
        # The third second, when the queue has long been full.
        received, loss, delay_us = (
            udp.series[each.name].at(29) for each in (RECEIVED, LOSS, DELAY)
        )
        payload = 1024 / (1024 + 42)
        assert received == pytest.approx(rate * payload, rel=0.1)
        assert loss == pytest.approx(1 - payload / 2, abs=0.1)
        full_us = DELAY_US + limit * (1024 + 42) * 8e6 / rate
        assert delay_us == pytest.approx(full_us, rel=0.2)


@needs_bpf
@physical
async def test_fragments_count_as_the_packet_that_they_are_of() -> None:
    """1024 bytes over an MTU of 400 are three fragments; if one is lost, the whole packet is."""
    async with running(build(mtu=400, loss=0.1)) as lab:
        lab.send(StartUdp(monitor=True, rate_bps=RATE // 10, duration_s=1.0))
        await lab.until(lambda state: over(state, "u1"))
        udp, told = seen(lab.state, "u1"), lab.state.of(Udp)["u1"]
        assert udp.sent == told.sent == 122
        # iperf3 leaves unread what had come while it waited for its turn, as it hears of the end.
        assert 0.9 * udp.received <= told.received <= udp.received
        assert udp.received_bytes == udp.received * 1024
        # A share of 0.9 ^ 3 arrives, and four standard deviations are 20.
        assert udp.received == pytest.approx(122 * 0.729, abs=20)
        assert udp.delay_min_us is not None
        assert udp.delay_min_us >= DELAY_US


@needs_bpf
async def test_with_offloads_every_segment_counts() -> None:
    async with running(build(limit=1000, rate=1_000_000_000, delay_us=2_000)) as lab:
        lab.send(StartFlow(monitor=True, cc="cubic", duration_s=1.0))
        await end_of(lab, "1")
        flow = seen(lab.state, "1")
        assert lab.state.links["r->h2"][-1].offloads
        # All of them full but the last of a write.
        assert flow.received_bytes == pytest.approx(flow.received * 1448, rel=0.02)
        assert flow.delay_min_us is not None
        assert flow.delay_min_us >= 2_000


@needs_bpf
async def test_no_monitor_is_left_behind_whatever_ends_the_lab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = f"ccplay-{uuid.uuid4()}"
    monkeypatch.setenv(MARKER, marker)
    lab = RunningLab(LabSource(launch.lab_argv(), build()))
    await lab.until(lambda state: state.phase == "ready")
    assert programs_held_for(marker) == set()
    lab.send(StartFlow(monitor=True))
    await lab.until(lambda state: "1" in state.flows and state.flows["1"].own)
    programs = programs_held_for(marker)
    assert len(programs & loaded_programs()) == 2
    assert lab.source.pid is not None
    os.kill(lab.source.pid, signal.SIGKILL)
    await lab.close()
    assert not await nothing_left(lambda: programs & loaded_programs())


async def test_where_it_is_not_to_be_had_the_flow_runs_and_it_is_reported() -> None:
    if (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    argv = launch.lab_argv()
    at = argv.index("--fork")
    async with running(build(), argv=[*argv[:at], *launch.ROOTLESS, *argv[at:]]) as lab:
        lab.send(StartFlow(monitor=True, bytes=100_000), StartUdp(monitor=True, duration_s=0.2))
        await end_of(lab, "1")
        await lab.until(lambda state: over(state, "u1"))
        why = "one-way delays are not measured: BPF programs need root"
        assert sum(why in each.text for each in lab.state.log) == 1
        assert lab.state.flows["1"].monitored is lab.state.of(Udp)["u1"].monitored is None
        assert lab.state.flows["1"].error is lab.state.of(Udp)["u1"].error is None
