"""Judges answers to a page's question by the measurements of its run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.scenario.lesson.values import Page, Question


class Verdict(msgspec.Struct, frozen=True):
    """The measurements of a page's run, and the answer that they make right."""

    values: Mapping[str, float | None]
    """Values of measures in their units, by name; None if not measured."""
    right: float | None = None
    """Index of the right choice, or the measured number; None if the run decides nothing."""
    usual: bool = True
    """Whether this is the outcome that the page explains."""
    problem: str = ""
    """Reason why the run decides nothing; empty if it decides."""


def judge(page: Page, values: Mapping[str, float | None]) -> Verdict:
    """Return the verdict on a page's question according to these values."""
    question = page.question
    if question is None:
        return Verdict(values)
    if question.range is not None:
        value = values.get(question.range.measure)
        if value is None:
            return Verdict(values, problem=_unmeasured(page, [question.range.measure]))
        usual = question.range.usual
        return Verdict(values, value, usual is None or usual.holds(value))
    needed = {bound.measure for choice in question.choices for bound in choice.when}
    if missing := sorted(name for name in needed if values.get(name) is None):
        return Verdict(values, problem=_unmeasured(page, missing))
    right = [
        number
        for number, choice in enumerate(question.choices)
        if all(bound.holds(values.get(bound.measure)) for bound in choice.when)
    ]
    if len(right) != 1:
        how = "several answers are" if right else "no answer is"
        return Verdict(values, problem=f"according to this run's measurements, {how} right")
    some = any(choice.usual for choice in question.choices)
    return Verdict(values, float(right[0]), not some or question.choices[right[0]].usual)


def right_answers(question: Question, verdict: Verdict) -> tuple[float, float] | None:
    """Return the least and the greatest right answer; None if the run decides nothing.

    The answer to a question for a region is its lower end.
    """
    right, asked = verdict.right, question.range
    if right is None:
        return None
    if asked is None:
        return right, right
    if asked.plot:
        return right - asked.width, right
    tolerance = asked.tolerance * abs(right)
    return right - tolerance, right + tolerance


def is_right(question: Question, answer: float, verdict: Verdict) -> bool | None:
    """Return whether an answer is right; None if the run decides nothing."""
    answers = right_answers(question, verdict)
    return None if answers is None else answers[0] <= answer <= answers[1]


def _unmeasured(page: Page, names: list[str]) -> str:
    texts = ", ".join(page.measures[name].text for name in names if name in page.measures)
    return f"this run did not measure: {texts}"
