"""What the screen needs of a lesson, and the side of those who watch it and vote."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from ccplay.scenario.lesson.values import Look
from ccplay.share.frames import Board, Votes

Asks: TypeAlias = Literal["", "choices", "number", "region"]
"""What can be answered now; empty for nothing."""

_STEPS = 25
"""Steps of the keys from the least answer to the greatest."""


class Leading(Protocol):
    """What the keys of whoever leads a lesson do; a part of ``Desk``."""

    votes: Votes | None

    @property
    def at(self) -> int:
        """Number of the page, from 0."""

    @property
    def look(self) -> Look:
        """What the page shows of the network."""

    def named(self, name: str) -> str:
        """Return what the lab calls traffic of the page."""

    def advance(self) -> None:
        """Run, reveal, or open the next page."""

    def back(self) -> None:
        """Open the page before."""

    def again(self) -> None:
        """Take the page once more."""


class Lectern(Protocol):
    """What the screen needs of a lesson."""

    draft: float
    """Lower end of the region that is being moved."""

    @property
    def board(self) -> Board | None:
        """The page that is open; None without one."""

    @property
    def answer(self) -> float | None:
        """The answer given on this page; None without one."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The votes that may be seen now."""

    @property
    def voters(self) -> int:
        """How many have voted, as far as that may be seen."""

    @property
    def leads(self) -> bool:
        """Whether keys turn pages here."""

    @property
    def leading(self) -> Leading | None:
        """What they do; None where they turn no pages."""

    def give(self, value: float) -> bool:
        """Answer; return whether it counts."""

    def correct(self, board: Board) -> bool | None:
        """Return whether the answer is right; None where that can't be known."""


def asks(lectern: Lectern) -> Asks:
    """Return what the open page lets a person answer now."""
    board = lectern.board
    if board is None or not board.open or not board.question:
        return ""
    if lectern.leads and board.phase not in ("asking", "reading"):
        return ""
    if board.choices:
        return "choices"
    return "region" if board.plot else "number"


def step(board: Board) -> float:
    """Return by how much a key moves the region."""
    return (board.high - board.low) / _STEPS


def region(lectern: Lectern) -> tuple[str, float, float] | None:
    """Return plot, lower and upper end of the region that is drawn; None without one."""
    board = lectern.board
    if board is None or not board.plot:
        return None
    low = lectern.draft if asks(lectern) else lectern.answer
    return None if low is None else (board.plot, low, low + board.width)


class Watched(Protocol):
    """The part of a ``WatchSource`` that is about a lesson."""

    board: Board | None

    def vote(self, question: int, choice: float) -> None:
        """Vote on the question of a lesson."""


class Seat:
    """Watches a lesson and votes."""

    leads = False
    leading = None

    def __init__(self, source: Watched) -> None:
        self.draft = 0.0
        self._source = source
        self._votes: dict[int, float] = {}
        self._drafted = 0

    @property
    def board(self) -> Board | None:
        """The page that the presenter has open."""
        board = self._source.board
        if board is not None and board.question != self._drafted:
            self._drafted = board.question
            self.draft = (board.low + board.high - board.width) / 2
        return board

    @property
    def answer(self) -> float | None:
        """The vote cast on this page."""
        board = self._source.board
        return None if board is None else self._votes.get(board.question)

    @property
    def counts(self) -> tuple[int, ...]:
        """The votes of all, once the answer is revealed."""
        board = self._source.board
        return () if board is None else board.counts

    @property
    def voters(self) -> int:
        """The same, added up."""
        return sum(self.counts)

    def give(self, value: float) -> bool:
        """Vote; a later vote takes the place of an earlier one."""
        board = self._source.board
        if board is None or not board.open:
            return False
        self._votes[board.question] = value
        self._source.vote(board.question, value)
        return True

    def correct(self, board: Board) -> bool | None:
        """Return whether the vote is right; of a number that depends on a tolerance."""
        answer = self.answer
        if board.right is None or answer is None:
            return None
        if board.choices:
            return answer == board.right
        return answer <= board.right <= answer + board.width if board.plot else None
