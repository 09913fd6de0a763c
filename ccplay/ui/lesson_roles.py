"""The two sides of a lesson on the screen: the presenter leads, spectators vote."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from ccplay.lesson.course import TakenLesson, measured_lines, right_answers
from ccplay.scenario.values import LessonPage
from ccplay.session.session import Session
from ccplay.share.frames import Board, Votes

if TYPE_CHECKING:
    from ccplay.share.sockets import WatchSource

# --- the interface between the screen and a lesson, and the side of spectators, who vote ----------

Asks: TypeAlias = Literal["", "choices", "number", "region"]
"""Kind of answer that can be given now; empty for none."""

_STEPS = 25
"""Number of key presses that move a region from the lowest value to the highest."""


def asks(lesson: Role) -> Asks:
    """Return the kind of answer that the open page accepts now."""
    board = lesson.board
    if board is None or not board.open or not board.question:
        return ""
    if board.choices:
        return "choices"
    return "region" if board.plot else "number"


def step(board: Board) -> float:
    """Return the distance that one key press moves the region, in units of the axis."""
    return (board.high - board.low) / _STEPS


def placed(board: Board, low: float) -> float:
    """Return the lower end of the region nearest to ``low`` that fits between the bounds."""
    return min(max(low, board.low), board.high - board.width)


def region(lesson: Role) -> tuple[str, float, float] | None:
    """Return the plot of the region to draw, and the region's ends on the axis; None if none."""
    board = lesson.board
    if board is None or not board.plot:
        return None
    low = lesson.draft if asks(lesson) else lesson.answer
    return None if low is None else (board.plot, low, low + board.width)


class Voter:
    """A spectator's side of a lesson, which shows the presenter's page and votes."""

    leads = False
    leading = None

    def __init__(self, source: WatchSource) -> None:
        self.draft = 0.0
        self._source = source
        self._votes: dict[int, float] = {}
        self._drafted = 0

    @property
    def board(self) -> Board | None:
        """The page that the presenter has opened; None if there is none."""
        board = self._source.board
        if board is not None and board.question != self._drafted:
            self._drafted = board.question
            self.draft = (board.low + board.high - board.width) / 2
        return board

    @property
    def answer(self) -> float | None:
        """The vote cast on this page; None if there is none."""
        board = self._source.board
        return None if board is None else self._votes.get(board.question)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer, once the answer is revealed."""
        board = self._source.board
        return () if board is None else board.counts

    @property
    def voters(self) -> int:
        """Number of votes for all answers, once the answer is revealed."""
        return sum(self.counts)

    def give(self, value: float) -> bool:
        """Send a vote, which replaces an earlier one; return whether it counts."""
        board = self._source.board
        if board is None or not board.open:
            return False
        self._votes[board.question] = value
        self._source.vote(board.question, value)
        return True


# --- the leading side of a lesson, which turns pages, records answers and reveals results ---------

_ROUND = 64
"""Factor by which the round is multiplied in a question's number, before the page is added; larger
than any lesson's number of pages."""


class Leader:
    """The leading side of a lesson: its keys turn pages, start runs and reveal results."""

    leads = True

    def __init__(self, course: TakenLesson, session: Session, keep: Callable[[], None]) -> None:
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
    def leading(self) -> Leader:
        """Actions of the keys that lead the lesson."""
        return self

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
        return replace(
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

    def repeat_page(self) -> None:
        """Repeat the page; spectators vote again."""
        self._rounds[self.course.at] += 1
        self.course.restart_page()
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


def _with_question(board: Board, page: LessonPage, number: int, *, open: bool) -> Board:  # noqa: A002
    question = page.question
    if question is None:
        return board
    board = replace(board, question=number, ask=question.ask, open=open)
    if question.range is None:
        return replace(board, choices=tuple(each.text for each in question.choices))
    wanted = question.range
    return replace(
        board,
        low=wanted.low,
        high=wanted.high,
        width=wanted.width,
        unit=page.measures[wanted.measure].unit,
        plot=wanted.plot,
    )


Role: TypeAlias = Leader | Voter
"""Either side of a lesson, with one interface for the screen."""
