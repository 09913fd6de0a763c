"""A lesson in words: its Markdown, answers and measurements, for terminals and pages."""

from __future__ import annotations

from itertools import pairwise

from markdown_it import MarkdownIt

from ccplay.lesson.judge import Verdict
from ccplay.scenario.lesson import units
from ccplay.scenario.lesson.values import Page
from ccplay.share.frames import Board


def markdown() -> MarkdownIt:
    """Return the parser of a lesson's Markdown, which may be a stranger's.

    HTML, links and images stay as they are written: they are shown, and nobody can follow them.
    """
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.disable(["link", "image", "autolink", "reference"])


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


def outcome(board: Board) -> list[str]:
    """Return what the run says about a question, the right answer first; empty before the reveal.

    If the run decides nothing, that is the reason.
    """
    if board.phase != "revealed" or not board.ask:
        return []
    if board.right is None:
        return [board.problem or "the measurements do not decide this"]
    if board.choices:
        right = board.choices[int(board.right)]
    else:
        right = units.in_unit(board.right, board.unit)
    found = [f"The right answer: {right}"]
    if board.voted_right is not None and (voters := sum(board.counts)):
        found.append(f"Votes: {board.voted_right} of {voters} right")
    if not board.usual:
        found.append("This run's result is unusual; the explanation describes the usual one.")
    return found


def bins(board: Board, votes: int) -> list[str]:
    """Return the range of answers, of regions that of the middle, of each of ``votes`` counts."""
    width = (board.high - board.low) / max(votes, 1)
    edges = [f"{board.low + at * width:.4g}" for at in range(votes + 1)]
    # A vote on the edge counts in the upper range.
    return [f"{low} to {'' if high == edges[-1] else '<'}{high}" for low, high in pairwise(edges)]
