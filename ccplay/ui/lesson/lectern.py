"""The interface between the screen and a lesson, and the side of spectators, who vote."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from ccplay.scenario.lesson.values import Look
from ccplay.share.frames import Board, Votes

Asks: TypeAlias = Literal["", "choices", "number", "region"]
"""Kind of answer that can be given now; empty for none."""

_STEPS = 25
"""Number of key presses that move a region from the lowest value to the highest."""


class Leading(Protocol):
    """The actions that lead a lesson, and the data that they need; implemented by ``Desk``."""

    votes: Votes | None

    @property
    def at(self) -> int:
        """Index of the open page."""

    @property
    def look(self) -> Look:
        """View of the network that the page asks for."""

    @property
    def revealed_until(self) -> float | None:
        """End of the page's run, in seconds of the stream; None before the reveal."""

    def named(self, name: str) -> str:
        """Return the lab's name for the traffic that the page calls ``name``."""

    def advance(self) -> None:
        """Start the run, reveal the result, or open the next page, whichever is next."""

    def back(self) -> None:
        """Open the previous page."""

    def again(self) -> None:
        """Repeat the page."""


class Lectern(Protocol):
    """A lesson as the screen uses it, whether the user leads it or votes."""

    draft: float
    """Lower end on the value axis of the region that the user moves before answering."""

    @property
    def board(self) -> Board | None:
        """The open page; None if there is none."""

    @property
    def answer(self) -> float | None:
        """The answer given on this page; None if there is none."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer that may be shown now."""

    @property
    def voters(self) -> int:
        """Number of votes that may be shown now."""

    @property
    def leads(self) -> bool:
        """Whether keys turn pages on this screen."""

    @property
    def leading(self) -> Leading | None:
        """Actions of the keys that turn pages; None on a spectator's screen."""

    def give(self, value: float) -> bool:
        """Set the answer; return whether it counts."""


def asks(lectern: Lectern) -> Asks:
    """Return the kind of answer that the open page accepts now."""
    board = lectern.board
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


def region(lectern: Lectern) -> tuple[str, float, float] | None:
    """Return the plot of the region to draw, and the region's ends on the axis; None if none."""
    board = lectern.board
    if board is None or not board.plot:
        return None
    low = lectern.draft if asks(lectern) else lectern.answer
    return None if low is None else (board.plot, low, low + board.width)


class Watched(Protocol):
    """The part of a ``WatchSource`` that concerns lessons."""

    board: Board | None

    def vote(self, question: int, choice: float) -> None:
        """Send a vote on the question of a lesson."""


class Seat:
    """A spectator's side of a lesson, which shows the presenter's page and votes."""

    leads = False
    leading = None

    def __init__(self, source: Watched) -> None:
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
