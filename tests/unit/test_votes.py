"""Only votes of spectators reach the server's ballot."""

import math
import os
import random
import socket
import struct
from typing import cast

import pytest
from msgspec.structs import replace

from ccplay.errors import WireError
from ccplay.share import frames, relay, sockets
from ccplay.share.frames import Board, BrowserCount, Greeting, Vote, Votes, Wants
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
    hosted.step()


def votes(hosted: Hosted) -> Votes | None:
    found = [frames.decode(line) for line in received(hosted.feed).splitlines()]
    return next((each for each in reversed(found) if isinstance(each, Votes)), None)


def test_a_board_is_read_as_it_was_written_with_its_lines() -> None:
    assert frames.decode(frames.encode(BOARD)) == BOARD


def test_spectators_see_the_page_also_those_who_join_later(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    late = hosted.connect(Wants.NOW)
    lines = received(late).splitlines()
    assert BOARD in [frames.decode(line) for line in lines if line.startswith(frames.PREFIX)]


def test_votes_are_counted_and_reported_to_the_presenter(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    some = [hosted.connect(Wants.NOW) for _ in range(3)]
    for connection, choice in zip(some, (0, 2, 2), strict=True):
        connection.send(frames.encode_vote(7, choice))
    hosted.step()
    assert votes(hosted) == Votes(question=7, counts=(1, 0, 2), voters=3)
    some[0].send(frames.encode_vote(7, 2))
    hosted.step()
    assert votes(hosted) == Votes(question=7, counts=(0, 0, 3), voters=3)
    ask(hosted, Board(page=2, pages=3, question=7))
    some[1].send(frames.encode_vote(7, 0))
    hosted.step()
    assert hosted.server.ballot.counts == (0, 0, 3)
    assert hosted.server.spectators


def test_the_class_learns_how_many_were_right(hosted: Hosted) -> None:
    number = Board(page=2, pages=3, question=8, ask="?", low=0.0, high=100.0, open=True)
    ask(hosted, number)
    some = [hosted.connect(Wants.NOW) for _ in range(3)]
    for connection, guess in zip(some, (12.4, 20, 24), strict=True):
        connection.send(frames.encode_vote(8, guess))
    hosted.step()
    running = replace(number, open=False, phase="running")
    ask(hosted, running)
    counted = votes(hosted)
    assert counted is not None
    assert (counted.voters, counted.right) == (3, None)
    some[0].send(frames.encode_vote(8, 20))
    ask(hosted, replace(running, phase="revealed", answers=(15.0, 25.0)))
    counted = votes(hosted)
    assert counted is not None
    assert (counted.counts[0], counted.right) == (1, 2)


def test_a_vote_for_another_question_or_no_choice_counts_for_nothing(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect(Wants.NOW)
    for question, choice in ((6, 1), (7, 3), (7, -1), (7, 0.5), (7, math.nan), (0, 0)):
        one.send(frames.encode_vote(question, choice))
        hosted.step()
    assert hosted.server.ballot.voters == 0
    assert len(hosted.server.spectators) == 1


def test_whoever_sends_anything_but_votes_is_dropped(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    rng = random.Random(3)
    for _ in range(200):
        one = hosted.connect(Wants.NOW)
        one.send(rng.randbytes(frames.REQUEST_BYTES))
        hosted.step()
        assert not hosted.server.spectators
        one.close()
    assert hosted.server.ballot.voters == 0


def test_one_who_never_stops_voting_is_dropped(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect(Wants.NOW)
    for number in range(relay.MOST_VOTES + 1):
        one.send(frames.encode_vote(7, number % 3))
        hosted.step()
    assert not hosted.server.spectators


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"vote",
        struct.pack("!4sHxxd", b"note", 1, 0.0),
        struct.pack("!4sHHd", b"vote", 1, frames.MOST_SLOTS + 1, 0.0),
        struct.pack("!4sH10x", b"seen", frames.MOST_SLOTS + 1),
        b"seen\0\1" + bytes(9) + b"\1",
    ],
)
def test_only_a_vote_is_a_vote(request_bytes: bytes) -> None:
    with pytest.raises(WireError):
        frames.decode_request(request_bytes)


def test_a_vote_is_read_as_it_was_written() -> None:
    assert frames.decode_request(frames.encode_vote(65535, 1e300)) == Vote(65535, 1e300)
    assert frames.decode_request(frames.encode_vote(7, 2, 1000)) == Vote(7, 2.0, slot=1000)
    assert frames.decode_request(frames.encode_browsers(3)) == BrowserCount(3)
    assert frames.decode_request(frames.encode_browsers(10**6)) == BrowserCount(frames.MOST_SLOTS)


def greeting(connection: socket.socket) -> Greeting:
    first = frames.decode(received(connection).splitlines()[0])
    assert isinstance(first, Greeting)
    return first


def test_each_browser_of_the_presenters_has_a_vote_and_is_counted(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect(Wants.BROWSERS)
    assert greeting(one).seats == frames.MOST_SLOTS
    assert hosted.server._counted == 0
    one.send(frames.encode_browsers(3))
    for slot, choice in ((1, 0), (2, 2), (3, 2), (1, 1)):
        one.send(frames.encode_vote(7, choice, slot))
    hosted.step()
    assert votes(hosted) == Votes(question=7, counts=(0, 1, 2), voters=3)
    assert hosted.server._counted == 3
    one.send(frames.encode_browsers(2))
    hosted.step()
    assert hosted.server._counted == 2
    assert hosted.server.ballot.voters == 3
    one.close()
    hosted.step()
    assert hosted.server._counted == 0


@pytest.mark.parametrize("wants", [Wants.WHOLE, Wants.NOW])
@pytest.mark.parametrize("asked", [frames.encode_vote(7, 1, 1), frames.encode_browsers(9)])
def test_a_spectator_who_votes_for_others_is_dropped(
    hosted: Hosted, wants: Wants, asked: bytes
) -> None:
    ask(hosted, BOARD)
    one = hosted.connect(wants)
    assert greeting(one).seats == 0
    one.send(asked)
    hosted.step()
    assert not hosted.server.spectators
    assert hosted.server.ballot.voters == 0


@pytest.mark.parametrize("asked", [frames.encode_vote(7, 1, 1), frames.encode_browsers(9)])
def test_another_user_has_one_vote_whatever_is_asked_for(
    hosted: Hosted, asked: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "is_from_presenter", lambda _: False)
    ask(hosted, BOARD)
    one = hosted.connect(Wants.BROWSERS)
    assert greeting(one).seats == 0
    assert hosted.server._counted == 1
    one.send(frames.encode_vote(7, 2))
    hosted.step()
    assert hosted.server.ballot.voters == 1
    one.send(asked)
    hosted.step()
    assert not hosted.server.spectators
    assert hosted.server.ballot.voters == 1


@pytest.mark.parametrize(("user", "trusted"), [(0, True), (1000, True), (1001, False)])
def test_the_kernel_knows_whose_connection_it_is(
    user: int, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Peer:
        def getsockopt(self, *_: int) -> bytes:
            return struct.pack("3i", 1, user, 1)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert sockets.is_from_presenter(cast("socket.socket", Peer())) is trusted


def test_a_browser_that_never_stops_voting_is_ignored_and_the_others_stay(hosted: Hosted) -> None:
    ask(hosted, BOARD)
    one = hosted.connect(Wants.BROWSERS)
    for number in range(relay.MOST_VOTES + 2):
        one.send(frames.encode_vote(7, number % 2, 1))
        hosted.step()
    assert hosted.server.ballot.counts == (0, 1, 0)
    one.send(frames.encode_vote(7, 2, 2))
    hosted.step()
    assert hosted.server.ballot.counts == (0, 1, 1)
