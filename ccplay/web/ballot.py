"""The votes of browsers: read, judged by the question that is open, and passed on to be counted."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Protocol

import msgspec

from ccplay.share.ballot import answers
from ccplay.share.frames import Board
from ccplay.web.seats import Seats

LONGEST = 64
"""Bytes of a vote's body."""


class Watched(Protocol):
    """The part of a ``WatchSource`` that is about votes."""

    board: Board | None

    def vote_for(self, seat: int, question: int, choice: float) -> bool:
        """Vote for one of the browsers."""


class Vote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a browser sends: all of it."""

    question: Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)]
    choice: float
    """The number of a choice from 0, or a number."""


_decoder = msgspec.json.Decoder(Vote)


class Ballot:
    """Takes the votes of browsers that receive the stream."""

    def __init__(self, source: Watched) -> None:
        self.seats = Seats()
        self._source = source

    def cast(self, name: str, body: bytes) -> HTTPStatus:
        """Pass a browser's vote on; return how it went."""
        if (seat := self.seats.voting(name)) is None:
            return HTTPStatus.FORBIDDEN
        if not self.seats.takes(seat):
            return HTTPStatus.TOO_MANY_REQUESTS
        try:
            vote = _decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeError):
            return HTTPStatus.BAD_REQUEST
        board = self._source.board
        if board is None or not board.open or board.question != vote.question:
            return HTTPStatus.CONFLICT
        if not answers(vote.choice, len(board.choices), (board.low, board.high)):
            return HTTPStatus.BAD_REQUEST
        passed_on = self._source.vote_for(seat.number, vote.question, vote.choice)
        return HTTPStatus.NO_CONTENT if passed_on else HTTPStatus.SERVICE_UNAVAILABLE
