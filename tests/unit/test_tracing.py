"""Traces of flows: formats of tracepoints, filters, rows into events, and their fold."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ccplay import blocks, wire
from ccplay.bounds import Bounds
from ccplay.errors import ScenarioError, UnsupportedError, WireError
from ccplay.lab import perf, tracing
from ccplay.lab.inet_diag import Connection
from ccplay.lab.tracepoints import PROBE, STATE_SET, Tracepoint, parse
from ccplay.model import (
    CaStateChanged,
    Failed,
    FlowStarted,
    TraceEnded,
    TraceFlow,
    TraceLost,
    TraceSamples,
    TraceStarted,
    UntraceFlow,
)
from ccplay.scenario.reading import parse as parse_scenario
from ccplay.state import LabState
from ccplay.trace import Trace

FORMAT = """name: tcp_probe
ID: 2273
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__u8 saddr[28];\toffset:8;\tsize:28;\tsigned:0;
\tfield:__u16 sport;\toffset:64;\tsize:2;\tsigned:0;
\tfield:__u32 snd_cwnd;\toffset:88;\tsize:4;\tsigned:0;
\tfield:__u32 ssthresh;\toffset:92;\tsize:4;\tsigned:0;
\tfield:__u32 snd_wnd;\toffset:96;\tsize:4;\tsigned:0;
\tfield:__u32 srtt;\toffset:100;\tsize:4;\tsigned:0;
\tfield:__u64 sock_cookie;\toffset:112;\tsize:8;\tsigned:0;
\tfield:const void * skaddr;\toffset:128;\tsize:8;\tsigned:0;

print fmt: "family=%s ID: 7 snd_cwnd=%u", REC->snd_cwnd
"""

STARTED = FlowStarted(t=1.0, flow="1", src="h1", dst="h2", cc="cubic", port=5201)


def record(ns: int, cwnd: int, cookie: int = 7) -> bytes:
    """A record of perf's as the kernel writes it: header, moment, length, the tracepoint's own."""
    own = bytearray(140)
    struct.pack_into("=H", own, 0, 2273)
    struct.pack_into("=IIII", own, 88, cwnd, 0x7FFFFFFF, 65_536, 20_000)
    struct.pack_into("=QxxxxxxxxQ", own, 112, cookie, 0xFFFF)
    return struct.pack("=IHHQI", 9, 0, 8 + 8 + 4 + len(own), ns, len(own)) + bytes(own)


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


def test_a_format_gives_number_and_places() -> None:
    """Arrays are left out, and what is printed says nothing of places."""
    point = parse(PROBE, FORMAT)
    assert point.id == 2273
    assert point.fields["snd_cwnd"] == (88, 4)
    assert point.fields["skaddr"] == (128, 8)
    assert "saddr" not in point.fields


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "its format is not understood"),
        (FORMAT.replace("sock_cookie", "cookie"), "this kernel's tcp_probe does not tell sock_co"),
        (FORMAT.replace("offset:100", "offset:84"), "in another order than is known"),
    ],
)
def test_a_kernel_whose_records_differ(text: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        tracing.reader(parse(PROBE, text))


def test_records_are_read_where_the_format_says() -> None:
    read = tracing.reader(parse(PROBE, FORMAT))
    assert read(b"before" + record(5_000, 42), 6) == (
        5_000,
        42,
        0x7FFFFFFF,
        65_536,
        20_000,
        7,
        65535,
    )


def test_a_ring_is_sorted_by_kind() -> None:
    """Losses are counted, and what nobody reads is left out."""
    point = parse(PROBE, FORMAT)
    lost = struct.pack("=IHHQQ", 2, 0, 24, 1, 12)
    strange = struct.pack("=IHHQII4x", 9, 0, 28, 1, 8, 99)
    found: dict[int, list[tuple[int, ...]]] = {2273: []}
    data = record(1, 10) + lost + strange + record(2, 11) + lost
    assert perf.sort_records(data, {2273: tracing.reader(point)}, found) == 24
    assert [row[:2] for row in found[2273]] == [(1, 10), (2, 11)]


def test_filters_name_sockets_where_all_are_known() -> None:
    """State changes tell no cookie; sockets that are not open yet have none."""
    one, two = Connection("1", 10_000, 5201), Connection("1/2", 10_001, 5201)
    ports = "sport >= 10000 && sport < 10002"
    sports = range(10_000, 10_002)
    one.cookie = 11
    assert tracing.condition([], sports) == {PROBE: ports, STATE_SET: ports}
    assert tracing.condition([one, two], sports) == {PROBE: ports, STATE_SET: ports}
    two.cookie = 12
    known = "sock_cookie == 11 || sock_cookie == 12"
    assert tracing.condition([one, two], sports) == {PROBE: known, STATE_SET: ports}


def test_what_is_traced_becomes_series_of_their_own() -> None:
    state = LabState()
    for event in (
        STARTED,
        TraceStarted(t=1.0, flow="1"),
        samples(2.0, [10, 11, 12]),
        CaStateChanged(t=2.0015, flow="1", ca_state=3),
        samples(2.01, [7, 7]),
    ):
        state.apply(event)
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
        "the kernel does not tell every segment it traces",
        "flow 1 was traced: 5 segments; 7 were missed, all traces together",
    ]


def test_a_trace_that_cannot_be_spoils_nothing() -> None:
    """It is said, as a warning: errors make a run untrustworthy."""
    state = LabState()
    state.apply(Failed(t=1.0, command=TraceFlow(flow="1"), message="flow 1 is sampled, not traced"))
    assert [entry.kind for entry in state.log] == ["warning"]


def test_traces_of_what_never_started_are_passed_over() -> None:
    state = LabState()
    state.apply(samples(1.0, [10]))
    state.apply(CaStateChanged(t=1.0, flow="x", ca_state=1))
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
    bounds = Bounds()
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


def test_ssthresh_is_told_apart_from_what_the_kernel_makes_of_it() -> None:
    """In Open the tracepoint tells 3/4 of cwnd where ssthresh is less: then it is as it was."""
    trace = Trace()
    fields = {"flow": "1", "after_us": [1, 1, 1, 1], "srtt_us": 1, "snd_wnd": 1}
    cwnd, said = [10, 20, 21, 30, 15], [None, 18, 18, 22, 15]
    trace.add(
        TraceSamples(t=1.0, cwnd=blocks.row(cwnd), ssthresh=blocks.row(said), **fields)  # type: ignore[arg-type]
    )
    assert [trace.series["ssthresh"].at(tick) for tick in range(5)] == [None, 18, 18, 18, 15]


def test_a_machine_without_a_way_says_so() -> None:
    point = Tracepoint(STATE_SET, 1, {})
    with pytest.raises(UnsupportedError, match="does not tell cong_state, skaddr"):
        tracing.reader(point)
