"""Records of the ring buffer become trace events, which the state applies."""

import struct
from pathlib import Path

import pytest

from ccplay.errors import ScenarioError, WireError
from ccplay.lab import tracing
from ccplay.lab.tracing import SegmentCount, SegmentRecord, complete
from ccplay.model import blocks
from ccplay.model.commands import Build, TraceFlow, UntraceFlow
from ccplay.model.events import Failed, TraceEnded, TraceLost, TraceStarted
from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.scenario.reading import parse as parse_scenario
from ccplay.scenario.values import Step
from ccplay.session.steps import Script
from ccplay.stream import wire
from ccplay.stream.sources import RecordingLimits
from ccplay.traffic.flow import FlowStarted, StartFlow
from tests.events import folded

STARTED = FlowStarted(t=1.0, flow="1", src="h1", dst="h2", cc="cubic", port=5201)


def record(ns: int, cwnd: int, *, busy: bool = False, segment: bool = True) -> bytes:
    """Return a record in the kernel's layout: its length and page offset, then ``struct told``."""
    header = 40 | (1 << 31 if busy else 0)
    told = (cwnd, 0x7FFFFFFF, 65_536, 20_000, 9, segment, 1)
    return struct.pack("=IIQQIIIIIHBx", header, 0, ns, 7, *told)


def samples(t: float, cwnd: list[int], flow: str = "1") -> TraceSamples:
    steps = blocks.row(cwnd)
    return TraceSamples(
        t=t,
        flow=flow,
        after_us=[1000] * (len(cwnd) - 1),
        cwnd=steps,
        ssthresh=None,
        srtt_us=20_000,
        snd_wnd=65_536,
    )


def test_a_ring_is_read_up_to_what_is_not_yet_written() -> None:
    data = record(1_000, 10) + record(2_000, 11, segment=False) + record(3_000, 12, busy=True)
    found = complete(data + record(4_000, 13))
    assert [(each.ns, each.cwnd, each.segments) for each in found] == [
        (1_000, 10, 1),
        (2_000, 11, 0),
    ]
    assert found[0].cookie == 7


def test_records_become_one_event() -> None:
    """Records become one event with times of the lab's clock; an infinite ssthresh is None."""
    found = complete(record(5_000_900, 10) + record(5_020_100, 11))
    assert tracing.samples("1", found, 4_000) == TraceSamples(
        t=0.001,
        flow="1",
        after_us=[20],
        cwnd=blocks.row([10, 11]),
        ssthresh=None,
        srtt_us=20_000,
        snd_wnd=65_536,
    )


def counted(*counts: tuple[int, int]) -> list[SegmentRecord]:
    """Return records of (segments counted by the kernel, segments that the record stands for)."""
    return [SegmentRecord(40, 0, 7, 10, 10, 1, 1, segs_in, n, 0) for segs_in, n in counts]


def test_what_was_never_told_is_known_from_the_kernels_count() -> None:
    """Missing segments are those the kernel counted but did not report.

    Segments before the trace, in the socket's backlog, or merged into one ACK are not missing.
    """
    count = SegmentCount()
    count.add_records(counted((3, 1), (6, 1), (6, 2)))
    assert count.missing(at_the_end=False) == 0
    count.add_records([])
    # Three segments are missing, and one is not yet reported.
    count.add_records(counted((11, 1), (11, 1)))
    assert count.missing(at_the_end=False) == 3
    assert count.missing(at_the_end=False) == 0
    count.add_records(counted((12, 1), (15, 1)))
    assert count.missing(at_the_end=False) == 0
    assert count.missing(at_the_end=True) == 0
    count.add_records(counted((17, 1)))
    assert count.missing(at_the_end=True) == 3
    assert count.reported == 9


def test_a_short_trace_is_counted_at_its_end() -> None:
    count = SegmentCount()
    count.add_records(counted((3, 1), (4, 1)))
    count.add_records(counted((7, 1)))
    assert count.missing(at_the_end=True) == 2


def test_what_is_traced_becomes_series_of_their_own() -> None:
    state = folded(
        STARTED,
        TraceStarted(t=1.0, flow="1"),
        samples(2.0, [10, 11, 12]),
        CaStateChanged(t=2.0015, flow="1", ca_state=3),
        samples(2.01, [7, 7]),
    )
    trace = state.flows["1"].trace
    assert trace is not None
    moments = [trace.moments.time(tick) for tick in range(5)]
    assert moments == pytest.approx([2.0, 2.001, 2.002, 2.01, 2.011])
    assert trace.series["cwnd"].values(0, 5) == [10, 11, 12, 7, 7]
    assert trace.series["ssthresh"].at(0) is None
    assert trace.ca_state.timeline.time(0) == 2.0015
    assert trace.ca_state.at(0) == 3
    assert state.traced == {"1"}
    assert state.flows["1"].series["cwnd"].last is None, "what is sampled stays what it is"
    state.apply(TraceLost(t=2.5, segments=3))
    state.apply(TraceLost(t=2.7, segments=4))
    state.apply(TraceEnded(t=3.0, flow="1", segments=5))
    assert not state.traced
    assert [entry.text for entry in state.log] == [
        "the kernel does not report every segment it traces",
        "flow 1 was traced: 5 segments; 7 were missed, all traces together",
    ]


def test_a_trace_that_cannot_be_spoils_nothing() -> None:
    """A trace that is refused is logged as a warning, since an error makes a run untrustworthy."""
    state = folded(
        Failed(t=1.0, command=TraceFlow(flow="1"), message="flow 1 is sampled, not traced")
    )
    assert [entry.kind for entry in state.log] == ["warning"]


def test_traces_of_what_never_started_are_passed_over() -> None:
    state = folded(samples(1.0, [10]), CaStateChanged(t=1.0, flow="x", ca_state=1))
    assert not state.flows


def test_a_batch_travels_as_one_line() -> None:
    event = samples(2.0, [10, 11, 12])
    assert wire.decode_event(wire.encode(event)) == event


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'"after_us":[1,2],"cwnd":[1,1]', "cwnd: not a value for each of 3 sweeps"),
        (b'"after_us":[' + b",".join([b"1"] * 1000) + b'],"cwnd":1', "1001 segments at once"),
    ],
)
def test_a_hostile_batch_is_refused(line: bytes, why: str) -> None:
    whole = (
        b'{"event":"trace-samples","t":1.0,"flow":"1","ssthresh":null,"srtt_us":1,"snd_wnd":1,'
        + line
        + b"}"
    )
    with pytest.raises(WireError, match=why):
        wire.decode_event(whole)


def test_a_trace_that_goes_back_in_time_is_refused() -> None:
    bounds = RecordingLimits()
    bounds.check(samples(2.0, [10, 11]))
    bounds.check(samples(1.0, [10], flow="2"))
    with pytest.raises(WireError, match="flow 1 goes back"):
        bounds.check(samples(2.0, [10]))


SCENARIO = """
title = "T"
duration = "10 s"
topology = { kind = "linear" }
timeline = [
  { at = "1 s", do = "start-flow", flow = "a" },
  { at = "1 s", do = "start-download", download = "w1" },
  { at = "1 s", do = "trace-flow", flow = "FLOW" },
  { at = "2 s", do = "untrace-flow", flow = "a" },
]
"""


@pytest.mark.parametrize("flow", ["a", "w1"])
def test_a_scenario_traces_flows_and_downloads(flow: str) -> None:
    case = parse_scenario(SCENARIO.replace("FLOW", flow), Path("x.toml")).case()
    assert [step.command for step in case.timeline][2:] == [
        TraceFlow(flow=flow),
        UntraceFlow(flow="a"),
    ]


def test_a_scenario_traces_nothing_that_never_starts() -> None:
    with pytest.raises(ScenarioError, match='no flow "b" is ever started'):
        parse_scenario(SCENARIO.replace("FLOW", "b"), Path("x.toml"))


def test_the_lab_learns_beforehand_that_there_will_be_traces() -> None:
    start, trace = Step(0.0, StartFlow(flow="1")), Step(1.0, TraceFlow(flow="1"), number=1)
    assert not Script([start]).prepare(Build()).traces
    assert Script([start, trace]).prepare(Build()) == Build(
        reserved=["1"], traces=True, first=[StartFlow(flow="1")]
    )


@pytest.mark.parametrize(
    ("trace", "traced"),
    [
        (Step(2.0, TraceFlow(flow="1")), ["1"]),
        (Step(2.5, TraceFlow(flow="1")), []),
        (Step(2.0, TraceFlow(flow="2")), []),
        (Step(2.0, TraceFlow(flow="1"), after="2"), []),
    ],
)
def test_the_lab_learns_beforehand_which_first_acks_are_traced(
    trace: Step, traced: list[str]
) -> None:
    start = Step(2.0, StartFlow(flow="1"))
    assert Script([start, trace]).prepare(Build()).traced == traced
