"""A lesson in words: answers and measurements, for terminals and pages."""

from __future__ import annotations

from ccplay.lesson.judge import Verdict
from ccplay.scenario.lesson import units
from ccplay.scenario.lesson.values import Page


def answer_words(page: Page, answer: float | None) -> str:
    """Return an answer to a page's question in words; empty without one."""
    question = page.question
    if question is None or answer is None:
        return ""
    if question.range is None:
        return question.choices[int(answer)].text
    measure = page.measures[question.range.measure]
    text = units.format_value(measure, answer)
    if not question.range.plot:
        return text
    return f"{text} to {units.format_value(measure, answer + question.range.width)}"


def right_words(page: Page, verdict: Verdict) -> str:
    """Return the right answer in words, or the reason why there is none."""
    question = page.question
    if question is None:
        return ""
    if verdict.right is None:
        return verdict.problem
    if question.range is None:
        return question.choices[int(verdict.right)].text
    return units.format_value(page.measures[question.range.measure], verdict.right)


def measured_lines(page: Page, verdict: Verdict) -> list[tuple[str, str]]:
    """Return the description of each measure, and its value with unit."""
    return [
        (measure.text, units.format_value(measure, verdict.values.get(name)))
        for name, measure in page.measures.items()
    ]
