"""A recording gives the same state when it is read again, and so does every part of it."""

import asyncio
import random
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.model.base import Event
from ccplay.model.commands import Mark, SetCongestionControl
from ccplay.model.events import Applied, Hello, Log, Ready
from ccplay.model.samples import QdiscSamples, Sweep, Sweeps, TcpSamples
from ccplay.model.series import Series
from ccplay.model.values import Monitored
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.stream.sources import ReplaySource, recorded_events
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.download import DownloadProgress, DownloadStarted
from ccplay.traffic.flow import FlowEnded, FlowStarted
from ccplay.traffic.ping import PingSample, PingStarted
from ccplay.traffic.udp import UdpEnded, UdpSample, UdpStarted
from tests.events import HELLO, PLAYGROUND, folded, health, recorded


def everything(value: object) -> Any:
    """Return all of a state in a form that can be compared."""
    if isinstance(value, Hello):
        return replace(value, format=0)
    if isinstance(value, dict):
        return {key: everything(each) for key, each in value.items()}
    if isinstance(value, list):
        return [everything(each) for each in value]
    if type(value).__name__ == "array":
        return value.tobytes()  # type: ignore[attr-defined]
    if type(value).__module__.startswith(
        ("ccplay.state.", "ccplay.traffic.", "ccplay.model.series")
    ):
        if isinstance(value, Series):
            value.read_on()
        names = getattr(value, "__slots__", None) or vars(value)
        # The version counts a block of sweeps as one event; intakes and feeds are temporary.
        left_out = ("version", "flow_intake", "queue_intake", "feed", "_feed")
        return {n: everything(getattr(value, n)) for n in names if n not in left_out}
    return value


def to_the_microsecond(events: Iterable[Event | UnknownEvent]) -> Iterator[Any]:
    """Round the times of sweeps to the microsecond, as the lab does since format 2."""
    for event in events:
        if isinstance(event, Sweep):
            yield replace(event, t=round(event.t, 6))
        else:
            yield event


def test_a_real_recording_means_the_same_in_the_new_format(tmp_path: Path) -> None:
    stream = list(to_the_microsecond(recorded_events(PLAYGROUND)))
    path = recorded(tmp_path / "x.ccplay", stream)
    assert everything(read_recording(path)) == everything(folded(*stream))
    assert path.stat().st_size < PLAYGROUND.stat().st_size / 3
    kinds = {type(event) for event in recorded_events(path)}
    assert Sweeps in kinds
    assert Sweep not in kinds


async def test_a_replay_comes_to_the_same_state(tmp_path: Path) -> None:
    path = recorded(tmp_path / "x.ccplay", recorded_events(PLAYGROUND))
    session = Session(ReplaySource(path))
    await session.run()
    assert session.error is None
    assert everything(session.state) == everything(read_recording(path))


async def test_others_have_their_turn_while_a_replay_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replay yields to other tasks while it reads, so that the screen is drawn at once."""
    monkeypatch.setattr("ccplay.stream.sources._TURN_S", 0.0)
    reading = asyncio.create_task(Session(ReplaySource(PLAYGROUND)).run())
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 100


# --- random streams -----------------------------------------------------------------------------

FLOWS, LINKS = ("1", "1/2", "2", "w1"), ("r1->r2", "r2->r1")
# Made once: making and checking a strategy for each value took most of the time.
COUNT = st.one_of(st.integers(0, 3), st.integers(0, 1 << 45))
A_COUNT_OR_NONE = st.one_of(st.none(), COUNT)
SOME_FLOWS = st.lists(st.sampled_from(FLOWS), unique=True, max_size=3)
SOME_LINKS = st.lists(st.sampled_from(LINKS), unique=True, max_size=2)
AN_ALGORITHM = st.sampled_from(("reno", "bbr"))
A_KIND = st.sampled_from(("pfifo", "codel"))
A_DELAY = st.one_of(st.none(), st.floats(0, 1e15))
A_FLOW = st.sampled_from(("1", "2"))
STREAMS = st.integers(1, 2)
AN_RTT = st.sampled_from((None, 20.5))
A_SWITCH = st.sampled_from("xy")
EVENTS = st.integers(0, 40)
A_GAP = st.sampled_from((0, 1, 19_999, 20_000, 700_000))
REPEATS = st.integers(0, 12)
OTHERS = 13
"""Number of kinds of events in ``an_event`` that are not sweeps."""
A_PLACE = st.sampled_from(range(2 * OTHERS))


@st.composite
def tcp_samples(draw: st.DrawFn) -> TcpSamples:
    flows = draw(SOME_FLOWS)
    fields: dict[str, Any] = {
        name: [draw(COUNT) for _ in flows] for name in ("cwnd", "bytes_acked", "mss", "srtt_us")
    }
    fields |= {
        name: [0] * len(flows) for name in TcpSamples.__struct_fields__ if name not in fields
    }
    fields |= {
        "flow": flows,
        "cc": [draw(AN_ALGORITHM) for _ in flows],
        "ssthresh": [draw(A_COUNT_OR_NONE) for _ in flows],
    }
    return TcpSamples(**fields)


@st.composite
def qdisc_samples(draw: st.DrawFn) -> QdiscSamples:
    links = draw(SOME_LINKS)
    fields: dict[str, Any] = {name: [0] * len(links) for name in QdiscSamples.__struct_fields__}
    fields |= {
        "link": links,
        "kind": [draw(A_KIND) for _ in links],
        "qlen": [draw(COUNT) for _ in links],
        "ecn_marks": [draw(A_COUNT_OR_NONE) for _ in links],
    }
    return QdiscSamples(**fields)


@st.composite
def monitored(draw: st.DrawFn) -> Monitored:
    sent, received, size = (draw(COUNT) for _ in range(3))
    delay = draw(A_DELAY)
    return Monitored(
        sent=sent,
        received=received,
        received_bytes=size,
        delay_mean_us=delay,
        delay_min_us=delay,
        delay_max_us=delay,
    )


TCP = st.one_of(st.none(), tcp_samples())
QDISC = st.one_of(st.none(), qdisc_samples())
MONITORED = monitored()


def an_event(draw: st.DrawFn, t: float) -> Event | UnknownEvent:
    """Return an event of a random kind; about half of them are sweeps."""
    flow = draw(A_FLOW)
    names = {"src": "s1", "dst": "d1"}

    others: tuple[Callable[[], Event | UnknownEvent], ...] = (
        lambda: FlowStarted(
            t=t, flow=flow, src="s1", dst="d1", cc="reno", port=1, streams=draw(STREAMS)
        ),
        lambda: FlowEnded(t=t, flow=flow, bytes=1, duration_s=1.0, retransmits=0),
        lambda: DownloadStarted(t=t, download="w1", bytes=9, **names),
        lambda: DownloadProgress(t=t, download="w1", bytes=draw(COUNT)),
        lambda: PingStarted(t=t, ping="p1", interval_s=0.2, **names),
        lambda: PingSample(t=t, ping="p1", seq=1, rtt_us=draw(AN_RTT)),
        lambda: UdpStarted(t=t, udp="u1", rate_bps=1, packet_bytes=1, port=1, **names),
        lambda: UdpSample(t=t, udp="u1", monitored=draw(MONITORED)),
        lambda: UdpEnded(
            t=t, udp="u1", sent=9, received=draw(COUNT), jitter_us=None, duration_s=1.0
        ),
        lambda: Applied(t=t, command=SetCongestionControl(flow=flow, cc=draw(A_SWITCH))),
        lambda: Applied(t=t, command=Mark(text="now")),
        lambda: Log(t=t, level="info", text="so"),
        lambda: UnknownEvent(t, "eclipse", f'{{"event":"eclipse","t":{t}}}'.encode()),
    )
    chosen = draw(A_PLACE)
    assert len(others) == OTHERS
    return others[chosen]() if chosen < OTHERS else Sweep(t=t, tcp=draw(TCP), qdisc=draw(QDISC))


@st.composite
def streams(draw: st.DrawFn) -> list[Event | UnknownEvent]:
    events: list[Event | UnknownEvent] = [HELLO, Ready(t=0.0)]
    us = 0
    for _ in range(draw(EVENTS)):
        us += draw(A_GAP)
        event = an_event(draw, us / 1e6)
        # A lab's samples mostly stay the same for long.
        again = draw(REPEATS) if isinstance(event, Sweep) else 0
        events.append(event)
        for _ in range(again):
            us += 20_000
            events.append(replace(event, t=us / 1e6))
    return events


@settings(max_examples=200, deadline=None)
@given(stream=streams())
def test_any_stream_means_the_same_when_read_again(stream: Sequence[Event | UnknownEvent]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = recorded(Path(folder) / "x.ccplay", stream)
        assert everything(read_recording(path)) == everything(folded(*stream))


# --- what is cut short --------------------------------------------------------------------------


def test_every_part_of_a_recording_is_one(tmp_path: Path) -> None:
    """Of a recording that a crash has cut anywhere, all complete lines are read."""
    whole = recorded(tmp_path / "x.ccplay", recorded_events(PLAYGROUND)).read_bytes()
    cut, dice = tmp_path / "cut.ccplay", random.Random(1)
    for length in [dice.randrange(whole.index(b"\n") + 1, len(whole)) for _ in range(50)]:
        cut.write_bytes(whole[:length])
        lines = whole[:length].count(b"\n")
        assert sum(1 for _ in recorded_events(cut)) == lines
        assert read_recording(cut).now <= read_recording(tmp_path / "x.ccplay").now


def test_a_crash_of_ours_costs_no_more_than_two_seconds(tmp_path: Path) -> None:
    """A process that dies after ``put``, without ``close``, loses at most 2.5 s."""
    script = """
        import os, sys
        from pathlib import Path
        from ccplay.stream.sinks import Recorder
        from ccplay.stream.sources import recorded_events
        recorder = Recorder(Path(sys.argv[2]))
        for event in recorded_events(Path(sys.argv[1])):
            if event.t > 25.0:
                os._exit(9)
            recorder.put(event)
    """
    path = tmp_path / "x.ccplay"
    argv = [sys.executable, "-c", textwrap.dedent(script), str(PLAYGROUND), str(path)]
    assert subprocess.run(argv, check=False).returncode == 9
    assert 22.5 < read_recording(path).now <= 25.0


def test_a_file_that_may_not_grow_stays_valid(tmp_path: Path) -> None:
    """A recording stays readable after a failed write: RLIMIT_FSIZE stands in for a full disk."""
    script = """
        import resource, signal, sys
        from pathlib import Path
        from ccplay.errors import RecordingError
        from ccplay.stream.sinks import Recorder
        from ccplay.stream.sources import recorded_events
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        recorder = Recorder(Path(sys.argv[2]))
        try:
            for event in recorded_events(Path(sys.argv[1])):
                recorder.put(event)
        except RecordingError as error:
            print(error)
        recorder.close()
    """
    path = tmp_path / "x.ccplay"
    argv = [sys.executable, "-c", textwrap.dedent(script), str(PLAYGROUND), str(path)]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert said == f"recording to {path} stopped: File too large\n"
    assert path.stat().st_size == 60_000
    assert 1.0 < read_recording(path).now < 30.0


async def test_a_health_sample_does_not_end_a_block(tmp_path: Path) -> None:
    between = [Sweep(t=0.1), health(0.5), Sweep(t=0.6)]
    path = recorded(tmp_path / "x", [HELLO, *between, Ready(t=1.0)])
    blocks = [each for each in recorded_events(path) if isinstance(each, Sweeps)]
    assert [each.after_us for each in blocks] == [[500_000]]
