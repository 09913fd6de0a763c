"""The same events give the same LabState, which can also be queried about the past."""

from typing import Any

import pytest
from msgspec.structs import replace

from ccplay.model.commands import ChangeMark, Mark, RemoveMark, SetCongestionControl, StopCapture
from ccplay.model.events import Applied, CaptureEnded, CaptureStarted, Failed, Ready
from ccplay.model.samples import Sweep
from ccplay.model.series import Series
from ccplay.model.values import LinkSetting
from ccplay.state.lab_state import LabState
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.download import Download, DownloadEnded, DownloadStarted
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow
from ccplay.traffic.ping import Ping, PingSample, PingStarted
from ccplay.traffic.udp import StopUdp
from tests.events import folded, link_changed, qdisc, tcp
from tests.ui.synthetic import stream

START = FlowStarted(t=1.0, flow="1", src="s1", dst="d1", cc="reno", port=5201)


def test_samples_land_in_their_series() -> None:
    state = folded(
        START,
        Sweep(t=1.1, tcp=tcp("1", cwnd=10), qdisc=qdisc("r1->r2", qlen=3)),
        Sweep(t=1.2, tcp=tcp(cwnd=12, mss=1448), qdisc=qdisc(qlen=5)),
    )
    cwnd = state.flows["1"].series["cwnd"]
    assert cwnd.values(0, 2) == [10, 12]
    assert state.flows["1"].series["ssthresh"].last is None
    assert state.queues["r1->r2"].series["qlen"].last == 5
    assert state.flows["1"].mss == 1448
    assert state.now == 1.2


def test_a_flow_that_switches_remembers_since_when() -> None:
    state = folded(
        START,
        Sweep(t=1.1, tcp=tcp("1", cc="reno")),
        Applied(t=2.0, command=SetCongestionControl(cc="bbr", flow="1")),
        Sweep(t=2.1, tcp=tcp("1", cc="bbr")),
    )
    flow = state.flows["1"]
    assert state.cc_at(flow, 1.5) == "reno"
    assert state.cc_at(flow, 2.5) == "bbr"
    assert state.log[-1].text == "flow 1 switches reno → bbr"
    assert state.log[-1].is_mark


def test_only_flows_whose_algorithm_was_saved_again_are_reported() -> None:
    again = SetCongestionControl(cc="cubic", flow="1")
    state = folded(
        START,
        Sweep(t=1.1, tcp=tcp("1", cc="cubic")),
        Applied(t=2.0, command=again, renewed=True),
        Applied(t=3.0, command=again),
    )
    said = [each.text for each in state.log if each.is_mark]
    assert said == ["flow 1 continues with the new cubic", "flow 1 stays with cubic"]


def test_every_stream_of_a_flow_is_a_flow_and_all_end_together() -> None:
    state = folded(
        FlowStarted(t=0.0, flow="2", src="s1", dst="d1", cc="cubic", port=5202, streams=3),
        FlowEnded(t=9.0, flow="2", bytes=100, duration_s=9.0, retransmits=4),
    )
    assert list(state.flows) == ["2", "2/2", "2/3"]
    assert {flow.parent for flow in state.flows.values()} == {"2"}
    assert not any(flow.running for flow in state.flows.values())
    assert state.flows["2"].bytes == 100


def test_a_death_is_reported_as_an_error() -> None:
    state = folded(
        START, FlowEnded(t=2.0, flow="1", bytes=0, duration_s=1.0, retransmits=0, error="refused")
    )
    assert state.log[-1].kind == "error"
    assert "refused" in state.log[-1].text


def test_links_remember_what_they_were() -> None:
    slow, fast = LinkSetting(rate=10**6), LinkSetting(rate=10**7)
    state = folded(link_changed(0.1, "r1->r2", slow), link_changed(5.0, "r1->r2", fast))
    at_three, at_six = state.link_at("r1->r2", 3.0), state.link_at("r1->r2", 6.0)
    assert at_three is not None
    assert at_three.setting == slow
    assert at_six is not None
    assert at_six.setting == fast
    assert state.link_at("nowhere", 1.0) is None


def test_a_lost_ping_is_a_gap_and_counted() -> None:
    state = folded(
        PingStarted(t=0.0, ping="p1", src="s1", dst="d1", interval_s=0.2),
        PingSample(t=0.2, ping="p1", seq=1, rtt_us=20_000),
        PingSample(t=0.4, ping="p1", seq=2, rtt_us=None),
    )
    ping = state.of(Ping)["p1"]
    assert (ping.sent, ping.lost) == (2, 1)
    assert ping.series["rtt_us"].values(0, 2) == [20_000]


def test_a_download_has_tcp_samples_of_its_own() -> None:
    state = folded(
        DownloadStarted(t=0.0, download="w1", src="s1", dst="d1", bytes=1000, cc="cubic"),
        Sweep(t=0.1, tcp=tcp("w1", cc="reno")),
        DownloadEnded(t=0.5, download="w1", bytes=1000, duration_s=0.4),
    )
    flow = state.flows["w1"]
    assert flow.kind == "download"
    assert (state.cc_at(flow, 0.05), state.cc_at(flow, 0.3)) == ("cubic", "reno")
    assert state.of(Download)["w1"].duration_s == 0.4


def test_marks_and_failures_are_in_the_log() -> None:
    state = folded(
        Ready(t=0.1),
        Applied(t=1.0, command=Mark(text="now look")),
        Failed(t=2.0, command=None, message="no such thing"),
    )
    assert state.phase == "ready"
    assert [(e.kind, e.text) for e in state.log] == [
        ("mark", "now look"),
        ("error", "no such thing"),
    ]


def test_what_ended_just_before_it_was_to_stop_is_no_error() -> None:
    state = folded(Failed(t=2.0, command=StopUdp(udp="u1"), message="udp 'u1' has ended"))
    assert [each.kind for each in state.log] == ["warning"]


def test_samples_of_a_flow_that_never_started_and_unknown_events_change_nothing() -> None:
    state = folded(Sweep(t=1.0, tcp=tcp("9")), UnknownEvent(t=2.0, kind="eclipse", raw=b"{}"))
    assert not state.flows
    assert state.now == 1.0


def test_a_mark_stands_at_the_moment_that_it_is_about_and_can_be_moved() -> None:
    state = folded(
        Applied(t=9.0, command=Mark(text="late", at=3.0, name="m1")),
        Applied(t=10.0, command=Mark(text="now", name="m2")),
        Applied(t=11.0, command=ChangeMark(name="m1", at=4.5)),
        Applied(t=12.0, command=ChangeMark(name="m2", text="then")),
        Applied(t=13.0, command=ChangeMark(name="unknown", at=1.0)),
    )
    assert [(e.t, e.text, e.name) for e in state.log if e.is_mark] == [
        (4.5, "late", "m1"),
        (10.0, "then", "m2"),
    ]


def test_a_mark_that_is_removed_leaves_a_line_of_the_log_and_no_mark() -> None:
    """Removing a mark adds a line to the log, which never gets shorter: readers keep a position."""
    state = folded(
        Applied(t=9.0, command=Mark(text="oh", at=3.0, name="m1")),
        Applied(t=10.0, command=RemoveMark(name="m1")),
    )
    assert [(e.t, e.kind, e.text) for e in state.log] == [
        (10.0, "info", "mark 'oh' at 00:03 is removed")
    ]
    state.apply(Applied(t=11.0, command=Mark(text="again", name="m1")))
    state.apply(Applied(t=12.0, command=ChangeMark(name="m1", at=2.0)))
    assert [(e.t, e.text) for e in state.log if e.is_mark] == [(2.0, "again")]


def test_flows_that_start_together_have_the_places_that_were_asked_for() -> None:
    """Flows have places in the order of their commands, so colours are the same in each run."""
    asked = [
        Applied(t=1.0, command=StartFlow(flow=name, src="s1", dst="d1")) for name in ("1", "2", "3")
    ]
    second = FlowStarted(t=1.1, flow="2", src="s1", dst="d1", cc="cubic", port=5202, streams=2)
    other = FlowStarted(t=1.2, flow="9", src="s1", dst="d1", cc="cubic", port=5209)
    state = folded(*asked, second, START, other)
    assert state.places == {"1": 0, "2": 1, "3": 2, "2/2": 3, "9": 4}


@pytest.mark.parametrize("together", [2, 7, 50])
def test_sweeps_folded_together_are_as_one_by_one(together: int) -> None:
    """Sweeps applied together give the same state as applied singly, whatever else changes."""
    events = [*stream(pairs=3, flows=3, seconds=12.0)]
    for at, event in enumerate(events):
        if isinstance(event, Sweep) and event.tcp is not None and at % 5 == 0:
            tcp = event.tcp
            ssthresh = [None, *tcp.ssthresh[1:]]
            cc = [("bbr" if at % 3 else "reno"), *tcp.cc[1:]]
            own: dict[str, list[int | None]] = {"bbr_bw_bps": [at, *[None] * (len(cc) - 1)]}
            events[at] = replace(event, tcp=replace(tcp, ssthresh=ssthresh, cc=cc), own=own)
    one, many = LabState(), LabState()
    swept: list[Sweep] = []
    for event in events:
        one.apply(event)
        if isinstance(event, Sweep):
            swept.append(event)
        if swept and (not isinstance(event, Sweep) or len(swept) == together):
            many.apply_sweeps(swept)
            swept = []
        if not isinstance(event, Sweep):
            many.apply(event)
    if swept:
        many.apply_sweeps(swept)
    assert (one.now, one.version) == (many.now, many.version)
    assert [*map(one.sweeps.time, range(one.sweeps.end))] == [
        *map(many.sweeps.time, range(many.sweeps.end))
    ]
    for name, flow in one.flows.items():
        other = many.flows[name]
        assert (flow.cc_changes, flow.acked, flow.mss, flow.sent) == (
            other.cc_changes,
            other.acked,
            other.mss,
            other.sent,
        )
        for mine, theirs in ((flow.series, other.series), (flow.own, other.own)):
            assert {key: (each.first, _held(each)) for key, each in mine.items()} == {
                key: (each.first, _held(each)) for key, each in theirs.items()
            }
    for link, queue in one.queues.items():
        assert {key: _held(each) for key, each in queue.series.items()} == {
            key: _held(each) for key, each in many.queues[link].series.items()
        }


def _held(series: Series) -> list[float | None]:
    return [series.at(tick) for tick in range(series.first, series.end)]


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({}, "file", "capture c1: 7 packets in c1.pcapng"),
        ({"full": True}, "warning", "capture c1: 7 packets in c1.pcapng, full at 900 B"),
        ({"dropped": 3}, "warning", "capture c1: 7 packets in c1.pcapng, 3 more dropped"),
        ({"error": "no space"}, "error", "capture c1: 7 packets in c1.pcapng: no space"),
    ],
)
def test_the_log_shows_how_a_capture_ended(changes: dict[str, Any], kind: str, said: str) -> None:
    ended = CaptureEnded(t=2.0, capture="c1", path="c1.pcapng", packets=7, bytes=900, dropped=0)
    started = CaptureStarted(t=1.0, capture="c1", link="r1->r2", path="c1.pcapng")
    state = folded(started, replace(ended, **changes))
    assert (state.log[-1].kind, state.log[-1].text) == (kind, said)
    assert not state.captures
    assert not folded(started, Applied(t=1.5, command=StopCapture(capture="c1"))).captures
