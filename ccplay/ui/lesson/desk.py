"""The leading side of a lesson, which turns pages, records answers and reveals results."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ccplay.lesson.course import Course
from ccplay.lesson.judge import right_answers
from ccplay.lesson.words import measured_lines
from ccplay.scenario.lesson.values import Look, Page
from ccplay.session.session import Session
from ccplay.share.frames import Board, Votes

_ROUND = 64
"""Factor by which the round is multiplied in a question's number, before the page is added; larger
than any lesson's number of pages."""


class Desk:
    """The leading side of a lesson: its keys turn pages, start runs and reveal results."""

    leads = True

    def __init__(self, course: Course, session: Session, keep: Callable[[], None]) -> None:
        """Open the lesson; ``keep`` saves its progress."""
        self.course = course
        self.title = ""
        self.draft = 0.0
        self._votes: dict[int, Votes] = {}
        """Latest votes of spectators, by question."""
        self._session = session
        self._keep = keep
        self._rounds = [0] * len(course.turns)
        self._begin_draft()

    @property
    def leading(self) -> Desk:
        """Actions of the keys that lead the lesson."""
        return self

    @property
    def at(self) -> int:
        """Index of the open page."""
        return self.course.at

    @property
    def question(self) -> int:
        """Number of the open question, which every vote contains."""
        return self._rounds[self.course.at] * _ROUND + self.course.at + 1

    @property
    def answer(self) -> float | None:
        """The answer given on this page; None if there is none."""
        return self.course.turn.answer

    @property
    def votes(self) -> Votes | None:
        """Latest votes of spectators on this page's question; None if there are none."""
        return self._votes.get(self.question)

    @votes.setter
    def votes(self, votes: Votes | None) -> None:
        if votes is not None:
            self._votes[votes.question] = votes

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer to this page's question; empty if there are none."""
        return self.votes.counts if self.votes is not None else ()

    @property
    def voters(self) -> int:
        """Number of votes on this page's question."""
        return self.votes.voters if self.votes is not None else 0

    @property
    def look(self) -> Look:
        """View of the network that the page asks for."""
        return self.course.page.look

    @property
    def revealed_until(self) -> float | None:
        """End of the page's run, in seconds of the stream; None before the reveal."""
        turn = self.course.turn
        return turn.span.ended if turn.span is not None and turn.verdict is not None else None

    def named(self, name: str) -> str:
        """Return the lab's name for the traffic that the page calls ``name``."""
        span = self.course.turn.span
        return span.names.get(name, name) if span is not None else name

    @property
    def board(self) -> Board:
        """The open page with its question, and its results once they are revealed."""
        course = self.course
        page, turn = course.page, course.turn
        board = Board(
            title=self.title[:500],
            page=course.at + 1,
            pages=len(course.turns),
            heading=page.title,
            lines=tuple(page.text.splitlines()),
            phase=course.phase(self._session.state.now),
            until=turn.span.ended if turn.span is not None else 0.0,
        )
        board = _with_question(board, page, self.question, open=course.answerable)
        verdict = turn.verdict
        if verdict is None:
            return board
        answers = right_answers(page.question, verdict) if page.question is not None else None
        return _replace(
            board,
            counts=self.counts,
            voted_right=self.votes.right if self.votes is not None else None,
            answers=answers,
            right=verdict.right,
            measured=tuple(measured_lines(page, verdict)),
            problem=verdict.problem,
            usual=verdict.usual,
            why=tuple(page.why.splitlines()),
        )

    def give(self, value: float) -> bool:
        """Set the answer; return whether it counts, which it does only before the run."""
        taken = self.course.answer(value)
        if taken:
            self._keep()
        return taken

    def advance(self) -> None:
        """Start the run, reveal the result, or open the next page, whichever is next."""
        at = self.course.at
        self.course.advance(self._session.state)
        self._moved(at)

    def back(self) -> None:
        """Open the previous page."""
        at = self.course.at
        self.course.turn_page(-1)
        self._moved(at)

    def again(self) -> None:
        """Repeat the page; spectators vote again."""
        self._rounds[self.course.at] += 1
        self.course.again()
        self._begin_draft()
        self._keep()

    def _moved(self, before: int) -> None:
        if self.course.at != before:
            self._begin_draft()
        self._keep()

    def _begin_draft(self) -> None:
        question = self.course.page.question
        if question is not None and question.range is not None:
            wanted = question.range
            middle = (wanted.low + wanted.high - wanted.width) / 2
            self.draft = middle if self.answer is None else self.answer


def _replace(board: Board, **changed: object) -> Board:
    return msgspec.structs.replace(board, **changed)


def _with_question(board: Board, page: Page, number: int, *, open: bool) -> Board:  # noqa: A002
    question = page.question
    if question is None:
        return board
    board = _replace(board, question=number, ask=question.ask, open=open)
    if question.range is None:
        return _replace(board, choices=tuple(each.text for each in question.choices))
    wanted = question.range
    return _replace(
        board,
        low=wanted.low,
        high=wanted.high,
        width=wanted.width,
        unit=page.measures[wanted.measure].unit,
        plot=wanted.plot,
    )
