"""A recording gives the same state when it is read again, and a hostile file does no harm."""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccplay.errors import RecordingError
from ccplay.model.base import Event
from ccplay.model.commands import Mark, SetCongestionControl
from ccplay.model.events import Applied, Health, Hello, Log, Ready
from ccplay.model.samples import QdiscSamples, Sweep, Sweeps, TcpSamples
from ccplay.model.series import Series
from ccplay.model.values import Monitored
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import ReplaySource, recorded_events
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.download import DownloadProgress, DownloadStarted
from ccplay.traffic.flow import FlowEnded, FlowStarted
from ccplay.traffic.ping import PingSample, PingStarted
from ccplay.traffic.udp import UdpEnded, UdpSample, UdpStarted
from tests.events import HELLO

REAL = Path(__file__).parents[1] / "ui" / "recordings" / "playground.ccplay"
"""Recording of a real lab, in format 1."""


def folded(events: Iterable[object]) -> LabState:
    state = LabState()
    for event in events:
        state.apply(event)
    return state


def written(path: Path, events: Iterable[Event | UnknownEvent]) -> Path:
    recorder = Recorder(path)
    for event in events:
        recorder.put(event)
    recorder.close()
    return path


def everything(value: object) -> Any:
    """Return all of a state in a form that can be compared."""
    if isinstance(value, Hello):
        return msgspec.structs.replace(value, format=0)
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
            yield msgspec.structs.replace(event, t=round(event.t, 6))
        else:
            yield event


def test_a_real_recording_means_the_same_in_the_new_format(tmp_path: Path) -> None:
    stream = list(to_the_microsecond(recorded_events(REAL)))
    path = written(tmp_path / "x.ccplay", stream)
    assert everything(read_recording(path)) == everything(folded(stream))
    assert path.stat().st_size < REAL.stat().st_size / 3
    kinds = {type(event) for event in recorded_events(path)}
    assert Sweeps in kinds
    assert Sweep not in kinds


async def test_a_replay_comes_to_the_same_state(tmp_path: Path) -> None:
    path = written(tmp_path / "x.ccplay", recorded_events(REAL))
    session = Session(ReplaySource(path))
    await session.run()
    assert session.error is None
    assert everything(session.state) == everything(read_recording(path))


async def test_others_have_their_turn_while_a_replay_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replay yields to other tasks while it reads, so that the screen is drawn at once."""
    monkeypatch.setattr("ccplay.stream.sources._TURN_S", 0.0)
    reading = asyncio.create_task(Session(ReplaySource(REAL)).run())
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

    def sweep() -> Event:
        return Sweep(
            t=t,
            tcp=draw(TCP),
            qdisc=draw(QDISC),
        )

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
    return others[chosen]() if chosen < OTHERS else sweep()


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
            events.append(msgspec.structs.replace(event, t=us / 1e6))
    return events


@settings(max_examples=200, deadline=None)
@given(stream=streams())
def test_any_stream_means_the_same_when_read_again(
    stream: Sequence[Event | UnknownEvent],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "x.ccplay", stream)
        assert everything(read_recording(path)) == everything(folded(stream))


# --- what is cut short --------------------------------------------------------------------------


def test_every_part_of_a_recording_is_one(tmp_path: Path) -> None:
    """Of a recording that a crash has cut anywhere, all complete lines are read."""
    whole = written(tmp_path / "x.ccplay", recorded_events(REAL)).read_bytes()
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
    argv = [sys.executable, "-c", textwrap.dedent(script), str(REAL), str(path)]
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
    argv = [sys.executable, "-c", textwrap.dedent(script), str(REAL), str(path)]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert said == f"recording to {path} stopped: File too large\n"
    assert path.stat().st_size == 60_000
    assert 1.0 < read_recording(path).now < 30.0


# --- strangers' recordings ----------------------------------------------------------------------


def lines(*records: object) -> bytes:
    return b"".join(
        each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in records
    )


HELLO_LINE = wire.encode(HELLO)
SWEEP = {"event": "sweep", "t": 2.0}
FLOW = {"event": "flow-started", "t": 1, "src": "a", "dst": "b", "cc": "x", "port": 1}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (lines(SWEEP, SWEEP | {"t": 1.0}), "x:3: time goes back, from 2.000000 to 1.000000 s"),
        (lines(SWEEP | {"t": -1.0}), "x:2: not an event"),
        (lines(b'{"event":"ready","t":1e400}\n'), "x:2: "),
        (lines(SWEEP | {"t": 1e12}), "x:2: "),
        (lines({"event": "sweeps", "t": 1.0, "after_us": 20_000}), "x:2: event 'sweeps'"),
        (lines({"event": "sweeps", "t": 1.0, "after_us": [-1]}), "x:2: event 'sweeps'"),
        (lines({"event": "ping-sample", "t": 1, "ping": "p", "seq": 1, "rtt_us": 1e300}), "x:2: "),
        (lines(FLOW | {"flow": "1/2"}), "x:2: event 'flow-started'"),
        (lines(FLOW | {"flow": "1", "streams": 10**9}), "x:2: event 'flow-started'"),
        (lines(*(FLOW | {"flow": str(n), "streams": 128} for n in range(99))), "x:80: more than"),
        (b'{"event":"ready","t":1,"x":' + b"[" * 100_000 + b"\n", "x:2: "),
        (b'{"event":"log","t":1,"level":"info","text":"\xff"}\n', "x:2: "),
        (b'{"event":"log","t":1,"level":"info","text":"\\ud800"}\n', "x:2: "),
        (b"\x1b]0;owned\x07\n", r"x:2: not an event: �\]0;owned�"),
        (b"\n", "x:2: not an event"),
    ],
)
def test_what_would_lead_the_reader_astray_is_refused_with_its_line(
    tmp_path: Path, more: bytes, reason: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(HELLO_LINE + more)
    with pytest.raises(RecordingError, match=reason) as caught:
        read_recording(path)
    assert wire.printable(str(caught.value)) == str(caught.value)


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(RecordingError, match="longer than"):
        read_recording(path)
    with pytest.raises(RecordingError, match="not a regular file"):
        read_recording(Path("/dev/zero"))


def test_a_few_bytes_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Short blocks, each of a thousand flows over a thousand sweeps, are refused at 1 GiB."""
    flows = [str(n) for n in range(1000)]
    fields = {"cwnd": [0] * 1000}
    tcp = {"flow": flows, "cc": ["x"] * 1000, "fields": fields}
    blocks = ({"event": "sweeps", "t": n, "after_us": [1] * 999, "tcp": tcp} for n in range(1, 200))
    path = tmp_path / "x"
    path.write_bytes(HELLO_LINE + lines(*blocks))
    with pytest.raises(RecordingError, match="x:28: its samples need more than the limit of 1 GiB"):
        read_recording(path)


def test_a_flow_that_comes_back_late_does_not_either(tmp_path: Path) -> None:
    """A gap in a flow's samples counts as much memory as values do."""
    flows = [str(n) for n in range(900)]
    tcp = {"flow": flows, "cc": ["x"] * 900, "fields": {"cwnd": [0] * 900}}
    idle = ({"event": "sweeps", "t": n, "after_us": [1] * 999} for n in range(1, 100))
    block = {"event": "sweeps", "after_us": [], "tcp": tcp}
    path = tmp_path / "x"
    path.write_bytes(HELLO_LINE + lines(block | {"t": 0}, *idle, block | {"t": 200}))
    with pytest.raises(RecordingError, match="samples"):
        read_recording(path)


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-5, 5), max_size=3),
)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value[:3]):
            yield from places(each, (*path, at))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_changed_recording_is_read_or_refused(data: st.DataObject) -> None:
    """A random value anywhere causes no hang and no error but one that names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        whole = [json.loads(line) for line in _some_lines()]
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(whole) - 1))
            *way, name = data.draw(st.sampled_from([each for each in places(whole[at]) if each]))
            holder = whole[at]
            for step in way:
                holder = holder[step]
            holder[name] = data.draw(HOSTILE)
            if not isinstance(whole[at], dict):
                break
        path.write_bytes(lines(*whole))
        began = time.monotonic()
        try:
            read_recording(path)
        except RecordingError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017 - it need not be refused
        # A busy machine may take seconds; more would be a hang.
        assert time.monotonic() - began < 20


def _some_lines() -> list[bytes]:
    """Return up to three lines of each kind in a real recording."""
    if not _SOME:
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder) / "x", recorded_events(REAL))
            seen: dict[str, int] = {}
            for line in path.read_bytes().splitlines():
                kind = json.loads(line)["event"]
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] <= 3:
                    _SOME.append(line)
    return _SOME


_SOME: list[bytes] = []


async def test_a_health_sample_does_not_end_a_block(tmp_path: Path) -> None:
    health = Health(
        t=0.5, ticks=1, missed=0, late_p50_us=0, late_p99_us=0, sweep_p50_us=0,
        lab_cpu=0, host_cpu=0, steal=0,
    )  # fmt: skip
    path = written(tmp_path / "x", [HELLO, Sweep(t=0.1), health, Sweep(t=0.6), Ready(t=1.0)])
    blocks = [each for each in recorded_events(path) if isinstance(each, Sweeps)]
    assert [each.after_us for each in blocks] == [[500_000]]
