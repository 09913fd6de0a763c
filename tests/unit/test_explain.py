"""Each sentence about a flow follows from numbers, and is left out where they do not carry it."""

from typing import Any

import pytest

from ccplay.analysis import explain
from ccplay.analysis.explain import Cut, Evidence, RoundTrip, Waiting, explain_flow, gather
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.traffic.udp import UdpStarted
from tests.events import PLAYGROUND


@pytest.fixture(scope="module")
def state() -> LabState:
    return read_recording(PLAYGROUND)


def evidence(**known: Any) -> Evidence:
    least: dict[str, Any] = {"flow": "1", "cc": "reno", "cwnd": 50.0}
    return Evidence(**least | known)


def cut(**known: Any) -> Cut:
    least: dict[str, Any] = {"t": 9.0, "before": 100.0, "after": 50.0, "cc": "reno", "ca_state": 3}
    return Cut(**least | known)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"ca_state": 4}, "Loss: a retransmission timeout has expired"),
        ({"ca_state": 3}, "Recovery: it retransmits what was lost"),
        ({"ca_state": 2}, "CWR: congestion was reported without a loss"),
        ({"ca_state": 1}, "Disorder: duplicate or selective ACKs arrive"),
        ({}, "Slow start: no loss has set ssthresh yet; cwnd is 50 segments"),
        ({"ssthresh": 60.0}, "Slow start: cwnd is 50 segments, below ssthresh 60"),
        (
            {"ssthresh": 50.0},
            "Congestion avoidance: cwnd is 50 segments, ssthresh 50: it grows by one",
        ),
        ({"ssthresh": 40.0, "cc": "cubic.bpf"}, "ssthresh 40: it grows along a cubic curve."),
        (
            {"ssthresh": 40.0, "cc": "vegas"},
            "Congestion avoidance: cwnd is 50 segments, ssthresh 40.",
        ),
        ({"cc": "bbr"}, "bbr follows its model of the path"),
        ({"cc": "bbr", "pacing_gain": 2.89}, "gain is 2.89: it is in startup"),
        ({"cc": "bbr", "pacing_gain": 1.25}, "gain is 1.25: it probes for more bandwidth"),
        ({"cc": "bbr", "pacing_gain": 1.0}, "gain is 1.00: it cruises"),
        ({"cc": "bbr", "pacing_gain": 0.75}, "gain is 0.75: it sends less than was delivered"),
    ],
)
def test_what_it_is_doing(known: dict[str, Any], words: str) -> None:
    assert words in explain.doing(evidence(**known))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, ""),
        (cut(), "At 00:09 cwnd fell from 100 to 50 segments, 0.50 of it: Reno's half (RFC 5681)."),
        (cut(after=70.0, cc="cubic"), "0.70 of it: CUBIC's 0.7 (RFC 9438)."),
        (cut(before=5.0, after=3.0, cc="cubic"), "CUBIC's 0.7"),
        (cut(retransmitted=1), "; 1 segment retransmitted."),
        (cut(after=1.0, ca_state=4), "to 1 segment, because of a retransmission timeout."),
        (cut(after=4.0, cc="bbr", ca_state=0), "BBR's minimum: every 10 s BBR goes down to it"),
        (cut(after=25.0, steps=2), "to 25 segments, in 2 reductions."),
    ],
)
def test_what_made_cwnd_fall(found: Cut | None, words: str) -> None:
    said = explain.reduced(evidence(cut=found))
    assert words in said if words else not said


@pytest.mark.parametrize(
    "found", [cut(after=70.0), cut(after=50.0, cc="cubic"), cut(cc="vegas"), cut(cc="bbr")]
)
def test_a_reduction_that_follows_no_rule_is_given_none(found: Cut) -> None:
    said = explain.reduced(evidence(cut=found))
    assert said.endswith("of it.")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, ""),
        (cut(ca_state=0), ""),
        (cut(dropped=(("r1->r2", 3),)), "queue r1->r2 dropped 3 packets, counting all traffic."),
        (
            cut(ca_state=2, marked=(("r1->r2", 1),)),
            "queue r1->r2 marked 1 packet, counting all traffic.",
        ),
        (cut(ca_state=2), ""),
        (cut(lossy=(("a->b", 0.01),)), "before; a->b loses 1 % on purpose."),
        (cut(), "No observed queue on its path dropped"),
    ],
)
def test_why_it_fell(found: Cut | None, words: str) -> None:
    said = explain.cause(evidence(cut=found))
    assert words in said if words else not said


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        ({"unacked": 50.0}, "cwnd limits it: 50 of 50 segments of cwnd are in flight."),
        ({"unacked": 50.0, "ca_state": 3}, ""),
        ({"unacked": 20.0}, "cwnd does not limit it at this moment: 20 of 50"),
        (
            {"unacked": 20.0, "mss": 1000, "window_bytes": 20_000.0},
            "The receiver's window limits it",
        ),
        (
            {"unacked": 20.0, "mss": 1000, "window_bytes": 90_000.0},
            "Neither cwnd nor the receiver's",
        ),
        (
            {"unacked": 20.0, "cc": "bbr", "pacing_bps": 1e7, "goodput_bps": 9.6e6},
            "Pacing limits it, at 10 Mbit/s",
        ),
        (
            {"unacked": 20.0, "cc": "bbr", "pacing_bps": 1e7, "goodput_bps": 2e6},
            "cwnd does not limit it",
        ),
        (
            {"unacked": 20.0, "cc": "reno", "pacing_bps": 1e7, "goodput_bps": 9.6e6},
            "cwnd does not limit it",
        ),
    ],
)
def test_what_limits_it(known: dict[str, Any], words: str) -> None:
    said = explain.limited(evidence(**known))
    assert words in said if words else not said


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        ({"srtt_us": 98_000.0}, ""),
        (
            {"srtt_us": 100_000.0, "base_rtt_us": 20_000.0},
            "100 ms, 80% of it queueing: with empty queues it would be 20 ms.",
        ),
        (
            {"srtt_us": 40_000.0, "min_rtt_us": 20_000.0},
            "50% of it queueing: the lowest that it has measured is 20 ms.",
        ),
        ({"srtt_us": 20_400.0, "base_rtt_us": 20_000.0}, "hardly more than without queueing"),
    ],
)
def test_how_much_of_the_rtt_is_queueing(known: dict[str, Any], words: str) -> None:
    said = explain.delayed(evidence(rtt=RoundTrip(**known)))
    assert words in said if words else not said


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        (None, "No packet waits"),
        (
            Waiting(link="a->b", packets=10.0, delay_us=12_000.0),
            "Queue a->b holds 10 packets, 12 ms at its rate.",
        ),
        (
            Waiting(link="a->b", packets=1.0, delay_us=None, in_flight=(("1", 5.0),)),
            "holds 1 packet.",
        ),
        (
            Waiting(link="a->b", packets=9.0, delay_us=None, in_flight=(("2", 6.0), ("1", 4.0))),
            "flow 2 has the most, 60%.",
        ),
        (
            Waiting(link="a->b", packets=9.0, delay_us=None, in_flight=(("1", 6.0), ("2", 4.0))),
            "this flow has the most, 60%.",
        ),
    ],
)
def test_who_holds_the_queue(waiting: Waiting | None, words: str) -> None:
    assert words in explain.queued(evidence(waiting=waiting))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        ({"goodput_bps": 5e6}, ""),
        ({"goodput_bps": 5e6, "rate_bps": 1e7}, "5 Mbit/s, 50% of 10 Mbit/s, alone on that link."),
        ({"goodput_bps": 5e6, "rate_bps": 1e7, "sharing": 1}, "with one other flow."),
        ({"goodput_bps": 5e6, "rate_bps": 1e7, "sharing": 3}, "with 3 other flows."),
        (
            {"goodput_bps": 5e6, "rate_bps": 1e7, "beside": ("UDP u1",)},
            "50% of 10 Mbit/s, beside UDP u1 on that link.",
        ),
        (
            {"goodput_bps": 5e6, "rate_bps": 1e7, "sharing": 1, "beside": ("UDP u1",)},
            "with one other flow, beside UDP u1.",
        ),
    ],
)
def test_what_it_gets(known: dict[str, Any], words: str) -> None:
    said = explain.gets(evidence(**known))
    assert words in said if words else not said


def test_a_flow_beside_udp_is_not_alone() -> None:
    state = read_recording(PLAYGROUND)
    start = UdpStarted(
        t=state.now, udp="u1", src="s1", dst="d1", rate_bps=1_500_000, packet_bytes=1024, port=5
    )
    before = gather(state, "1", 9.0)
    state.apply(start)
    state.traffic["u1"].started = 1.0
    after = gather(state, "1", 9.0)
    assert before is not None
    assert after is not None
    assert before.beside == ()
    assert [each.split()[-1] for each in after.beside] == ["u1"]
    assert "alone" not in explain.gets(after)


def test_a_real_flow_is_explained(state: LabState) -> None:
    said = explain_flow(state, "1", 9.0)
    assert said == [
        (
            "Congestion avoidance: cwnd is 64 segments, ssthresh 58: it grows by one segment a "
            "round trip."
        ),
        (
            "At 00:08 cwnd fell from 116 to 58 segments, 0.50 of it: Reno's half (RFC 5681); "
            "2 segments retransmitted."
        ),
        "In the round trip before it, queue r1->r2 dropped 2 packets, counting all traffic.",
        "cwnd limits it: 64 of 64 segments of cwnd are in flight.",
        "Its RTT is 108 ms, 82% of it queueing: with empty queues it would be 20 ms.",
        (
            "Queue r1->r2 holds 78 packets, 93.3 ms at its rate; of the segments in flight over it "
            "this flow has the most, 68%."
        ),
        "Over the last second it delivered 8.85 Mbit/s, 88% of 10 Mbit/s, with one other flow.",
    ]


def test_a_real_cut_of_cubic_is_found(state: LabState) -> None:
    found = gather(state, "2", 12.0)
    assert found is not None
    assert found.cut is not None
    assert (found.cut.before, found.cut.after) == (46.0, 32.0)
    assert found.cut.dropped == (("r1->r2", 6),)


def test_a_switch_of_the_algorithm_ends_what_was_before(state: LabState) -> None:
    switched = state.flows["1"].cc_changes[1][0]
    for t in (switched + 0.2, switched + 3):
        found = gather(state, "1", t)
        assert found is not None
        assert found.cut is None or found.cut.t >= switched


@pytest.mark.parametrize(("flow", "t"), [("1", 0.1), ("1", 1e6), ("no", 5.0), ("2", 1.0)])
def test_of_a_flow_that_does_not_run_nothing_is_reported(
    state: LabState, flow: str, t: float
) -> None:
    if t > state.now:
        flow = next((n for n, each in state.flows.items() if each.ended is not None), "no")
    assert explain_flow(state, flow, t) == []
