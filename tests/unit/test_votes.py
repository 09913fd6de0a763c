"""Votes of spectators reach the ballot of the server, and nothing else does."""

import math
import random
import struct

import pytest

from ccplay.errors import WireError
from ccplay.share import frames, spectator
from ccplay.share.frames import Board, Votes, Wants
from tests.unit.test_share import Hosted, hosted, received

__all__ = ["hosted"]

BOARD = Board(
    title="Queues",
    page=2,
    pages=3,
    heading="How long?",
    lines=("A *queue* fills.", "", "- slowly"),
    question=7,
    ask="Which?",
    choices=("one", "two", "three"),
    open=True,
)


def ask(hosted: Hosted, board: Board) -> None:
    hosted.feed.sendall(frames.encode(board))
    step(hosted)


def step(hosted: Hosted) -> None:
    hosted.step()
    hosted.server._report_votes()


def votes(hosted: Hosted) -> Votes | None:
    found = [frames.decode(line) for line in received(hosted.feed).splitlines()]
    return next((each for each in reversed(found) if isinstance(each, Votes)), None)


def test_a_board_is_read_as_it_was_written_with_its_lines() -> None:
    assert frames.decode(frames.encode(BOARD)) == BOARD


def test_spectators_see_the_page_also_those_who_join_later(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    late = hosted.connect()
    late.send(frames.encode_hello(Wants.NOW))
    step(hosted)
    lines = received(late).splitlines()
    assert BOARD in [frames.decode(line) for line in lines if line.startswith(frames.PREFIX)]
    late.close()


def test_votes_are_counted_and_reported_to_the_presenter(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    some = [hosted.connect() for _ in range(3)]
    for connection in some:
        connection.send(frames.encode_hello(Wants.NOW))
    step(hosted)
    for connection, choice in zip(some, (0, 2, 2), strict=True):
        connection.send(frames.encode_vote(7, choice))
    step(hosted)
    assert votes(hosted) == Votes(question=7, counts=(1, 0, 2), voters=3)
    some[0].send(frames.encode_vote(7, 2))
    step(hosted)
    assert votes(hosted) == Votes(question=7, counts=(0, 0, 3), voters=3)
    hosted.feed.sendall(frames.encode(Board(page=2, pages=3, question=7)))
    step(hosted)
    some[1].send(frames.encode_vote(7, 0))
    step(hosted)
    assert hosted.server.ballot.counts == (0, 0, 3)
    assert hosted.server.spectators
    for connection in some:
        connection.close()


def test_a_vote_for_another_question_or_no_choice_counts_for_nothing(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect()
    one.send(frames.encode_hello(Wants.NOW))
    step(hosted)
    for question, choice in ((6, 1), (7, 3), (7, -1), (7, 0.5), (7, math.nan), (0, 0)):
        one.send(frames.encode_vote(question, choice))
        step(hosted)
    assert hosted.server.ballot.voters == 0
    assert len(hosted.server.spectators) == 1
    one.close()


def test_whoever_sends_anything_but_votes_is_let_go(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    rng = random.Random(3)
    for _ in range(200):
        one = hosted.connect()
        one.send(frames.encode_hello(Wants.NOW))
        step(hosted)
        one.send(rng.randbytes(frames.VOTE_BYTES))
        step(hosted)
        assert not hosted.server.spectators
        one.close()
    assert hosted.server.ballot.voters == 0


def test_one_who_never_stops_voting_is_let_go(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect()
    one.send(frames.encode_hello(Wants.NOW))
    step(hosted)
    for number in range(spectator.MOST_VOTES + 1):
        one.send(frames.encode_vote(7, number % 3))
        step(hosted)
    assert not hosted.server.spectators
    one.close()


@pytest.mark.parametrize(
    "vote", [b"", b"vote", struct.pack("!4sHxxd", b"note", 1, 0.0), b"vote\0\1\0\1" + bytes(8)]
)
def test_only_a_vote_is_a_vote(vote: bytes) -> None:
    with pytest.raises(WireError):
        frames.decode_vote(vote)


def test_a_vote_is_read_as_it_was_written() -> None:
    assert frames.decode_vote(frames.encode_vote(65535, 1e300)) == (65535, 1e300)
