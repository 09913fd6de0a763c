"""The votes of browsers: read, checked against the open question, and passed on."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Protocol

import msgspec

from ccplay.share.ballot import answers
from ccplay.share.frames import Board
from ccplay.web.seats import Seats

LONGEST = 64
"""Largest size of a vote's body in bytes."""


class Watched(Protocol):
    """The part of a ``WatchSource`` that concerns votes."""

    board: Board | None

    def vote_for(self, seat: int, question: int, choice: float) -> bool:
        """Send a browser's vote; return whether the vote was sent."""


class Vote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vote exactly as a browser sends it."""

    question: Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)]
    choice: float
    """Index of the chosen answer from 0, or the number entered."""


_decoder = msgspec.json.Decoder(Vote)


class Ballot:
    """The votes of browsers, checked and passed on; only those with the stream may vote."""

    def __init__(self, source: Watched) -> None:
        self.seats = Seats()
        self.source = source
        """Receiver of the votes."""

    def cast(self, name: str, body: bytes) -> HTTPStatus:
        """Check a browser's vote and pass it on; return the status of the response."""
        if (seat := self.seats.voting(name)) is None:
            return HTTPStatus.FORBIDDEN
        if not self.seats.takes(seat):
            return HTTPStatus.TOO_MANY_REQUESTS
        try:
            vote = _decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeError):
            return HTTPStatus.BAD_REQUEST
        board = self.source.board
        if board is None or not board.open or board.question != vote.question:
            return HTTPStatus.CONFLICT
        if not answers(vote.choice, len(board.choices), (board.low, board.high)):
            return HTTPStatus.BAD_REQUEST
        passed_on = self.source.vote_for(seat.number, vote.question, vote.choice)
        return HTTPStatus.NO_CONTENT if passed_on else HTTPStatus.SERVICE_UNAVAILABLE
