"""Answers are judged only by measured values."""

import pytest

from ccplay.lesson.course import is_right, judge
from ccplay.scenario.values import Bound, Choice, Measure, Page, Question, Range

MEASURES = {"rtt": Measure("pings.p.rtt_us", "RTT", "ms", take="mean")}


def page(question: Question) -> Page:
    return Page("One", "text", measures=MEASURES, question=question)


CHOICES = Question(
    "Where?",
    (
        Choice("low", (Bound("rtt", high=50),)),
        Choice("high", (Bound("rtt", low=100),), usual=True),
    ),
)
REGION = Question("Where?", range=Range("rtt", 0, 200, plot="rtt", width=40))
NUMBER = Question("How much?", range=Range("rtt", 0, 200, tolerance=0.25, usual=Bound("rtt", 90)))


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
