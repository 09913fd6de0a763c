"""Answers are judged only by measured values."""

import pytest

from ccplay.lesson.course import RunSpan, is_right, judge, measured
from ccplay.model.samples import Sweep
from ccplay.scenario.values import (
    AnswerChoice,
    Bound,
    LessonPage,
    Measure,
    PageQuestion,
    Range,
    Take,
)
from ccplay.traffic.ping import PingSample, PingStarted
from ccplay.traffic.udp import UdpSample, UdpStarted
from tests.events import folded, monitored, qdisc, tcp
from tests.unit.test_state import START

MEASURES = {"rtt": Measure("pings.p.rtt_us", "RTT", "ms", take="mean")}


def page(question: PageQuestion) -> LessonPage:
    return LessonPage("One", "text", measures=MEASURES, question=question)


CHOICES = PageQuestion(
    "Where?",
    (
        AnswerChoice("low", (Bound("rtt", high=50),)),
        AnswerChoice("high", (Bound("rtt", low=100),), usual=True),
    ),
)
REGION = PageQuestion("Where?", range=Range("rtt", 0, 200, plot="rtt", width=40))
NUMBER = PageQuestion(
    "How much?", range=Range("rtt", 0, 200, tolerance=0.25, usual=Bound("rtt", 90))
)


@pytest.mark.parametrize(("value", "right", "usual"), [(20.0, 0, False), (100.0, 1, True)])
def test_the_choice_whose_conditions_hold_is_right(value: float, right: int, usual: bool) -> None:
    verdict = judge(page(CHOICES), {"rtt": value})
    assert (verdict.right, verdict.usual, verdict.problem) == (right, usual, "")
    assert is_right(CHOICES, float(right), verdict)
    assert not is_right(CHOICES, float(1 - right), verdict)


def test_what_fits_no_choice_or_was_not_measured_decides_nothing() -> None:
    between, missing = judge(page(CHOICES), {"rtt": 70.0}), judge(page(CHOICES), {"rtt": None})
    assert (between.right, missing.right) == (None, None)
    assert "no answer" in between.problem
    assert "did not measure: RTT" in missing.problem
    assert is_right(CHOICES, 0.0, between) is None


def test_a_region_is_right_where_the_measured_value_lies_in_it() -> None:
    verdict = judge(page(REGION), {"rtt": 100.0})
    answers = {low: is_right(REGION, low, verdict) for low in (59.0, 60.0, 100.0, 101.0)}
    assert answers == {59.0: False, 60.0: True, 100.0: True, 101.0: False}


def test_a_number_is_right_within_its_tolerance_of_the_measured_one() -> None:
    verdict = judge(page(NUMBER), {"rtt": 100.0})
    answers = {value: is_right(NUMBER, value, verdict) for value in (74.0, 75.0, 125.0, 126.0)}
    assert answers == {74.0: False, 75.0: True, 125.0: True, 126.0: False}
    assert verdict.usual
    assert not judge(page(NUMBER), {"rtt": 80.0}).usual


@pytest.mark.parametrize(
    ("metric", "take", "unit", "expected"),
    [
        ("flows.1.cwnd", "mean", "", 20),
        ("flows.1.cwnd", "least", "segments", 10),
        ("queues.r1->r2.qlen", "greatest", "packets", 5),
        ("queues.r1->r2.qlen", "growth", "", 5),
        ("pings.p1.rtt_us", "last", "ms", 40),
        ("udp.u1.monitor_one_way_delay_us", "mean", "ms", 50),
        ("flows.9.cwnd", "mean", "", None),
        ("pings.p9.rtt_us", "mean", "ms", None),
        ("udp.u1.monitor_what", "mean", "", None),
    ],
)
def test_samples_of_every_subject_are_measured(
    metric: str, take: Take, unit: str, expected: float | None
) -> None:
    state = folded(
        START,
        PingStarted(t=1.0, ping="p1", src="s1", dst="d1", interval_s=0.2),
        UdpStarted(t=1.0, udp="u1", src="s1", dst="d1", rate_bps=1, packet_bytes=1, port=1),
        Sweep(t=1.1, tcp=tcp("1", cwnd=10), qdisc=qdisc("r1->r2", qlen=3)),
        UdpSample(t=1.2, udp="u1", monitored=monitored(10, 10, 50_000.0)),
        PingSample(t=1.2, ping="p1", seq=1, rtt_us=20_000.0),
        Sweep(t=1.3, tcp=tcp("1", cwnd=30), qdisc=qdisc("r1->r2", qlen=5)),
        PingSample(t=1.4, ping="p1", seq=2, rtt_us=40_000.0),
        UdpSample(t=1.4, udp="u1", monitored=monitored(20, 20, 50_000.0)),
        Sweep(t=9.0, tcp=tcp("1", cwnd=99), qdisc=qdisc("r1->r2", qlen=99)),
    )
    measure = Measure(metric, "what", unit, take)
    assert measured(state, {"m": measure}, RunSpan(1.0, 2.0)) == {"m": expected}
