"""A browser has one vote on the question that is open, and nothing else that it sends counts."""

import itertools
import random
from dataclasses import dataclass, field
from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from ccplay.share.frames import Board
from ccplay.share.sockets import WatchSource
from ccplay.share.web.pages import VOTES_AT_ONCE, BrowserVotes, VotingSlots

ANN, BOB, CAT = "a" * 32, "b" * 32, "c" * 32

CHOICES = Board(page=1, pages=2, question=7, ask="Which?", choices=("one", "two"), open=True)
NUMBER = Board(page=1, pages=2, question=8, ask="How long?", low=0.5, high=10.0, open=True)


@dataclass
class Source:
    """What passes votes on."""

    board: Board | None = CHOICES
    passes: bool = True
    votes: list[tuple[int, int, float]] = field(default_factory=list)

    def vote_for(self, slot: int, question: int, choice: float) -> bool:
        self.votes.append((slot, question, choice))
        return self.passes


def votes_to(source: Source) -> BrowserVotes:
    return BrowserVotes(cast("WatchSource", source))


def body(question: int = 7, choice: float = 1) -> bytes:
    return msgspec.json.encode({"question": question, "choice": choice})


def test_a_vote_is_passed_on_with_the_browsers_seat() -> None:
    source = Source()
    ballot = votes_to(source)
    for name in (ANN, BOB):
        assert ballot.slots.occupy(name)
    assert ballot.cast(BOB, body()) == 204
    assert ballot.cast(ANN, body(choice=0)) == 204
    source.board = NUMBER
    assert ballot.cast(BOB, body(8, 0.5)) == 204
    assert source.votes == [(2, 7, 1.0), (1, 7, 0.0), (2, 8, 0.5)]


@pytest.mark.parametrize("name", ["", "x", ANN.upper(), ANN[1:], BOB])
def test_only_who_receives_the_stream_votes(name: str) -> None:
    source = Source()
    ballot = votes_to(source)
    ballot.slots.occupy(ANN)
    ballot.slots.occupy(name)
    if name == BOB:
        ballot.slots.release(name)
    assert ballot.cast(name, body()) == 403
    assert not source.votes


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"7",
        b"[7, 1]",
        b'{"question":7}',
        b'{"question":7,"choice":1,"seat":2}',
        b'{"question":7,"choice":"1"}',
        b'{"question":7,"choice":true}',
        b'{"question":7,"choice":null}',
        b'{"question":7,"choice":1e999}',
        b'{"question":7,"choice":NaN}',
        b'{"question":-7,"choice":1}',
        b'{"question":65543,"choice":1}',
        b'{"question":7.5,"choice":1}',
        b'{"question":7,"choice":0.5}',
        b'{"question":7,"choice":2}',
        b'{"question":7,"choice":-1}',
        b'{"question":7,"choice":1\xff}',
    ],
)
def test_what_is_no_answer_is_refused(hostile: bytes) -> None:
    source = Source()
    ballot = votes_to(source)
    ballot.slots.occupy(ANN)
    assert ballot.cast(ANN, hostile) == 400
    assert not source.votes


def test_no_hostile_body_is_passed_on_or_fails() -> None:
    made, source = random.Random(5), Source()
    ballot = votes_to(source)
    ballot.slots = VotingSlots(clock=itertools.count(0, 100).__next__)
    ballot.slots.occupy(ANN)
    good = body()
    for _ in range(5000):
        mutated = bytearray(good)
        for _ in range(made.randrange(1, 4)):
            mutated[made.randrange(len(mutated))] = made.randrange(256)
        ballot.cast(ANN, bytes(mutated))
        ballot.cast(ANN, made.randbytes(made.randrange(64)))
    assert {vote[:2] for vote in source.votes} <= {(1, 7)}
    assert {vote[2] for vote in source.votes} <= {0.0, 1.0}


@pytest.mark.parametrize(
    "board", [None, Board(), replace(CHOICES, open=False), replace(CHOICES, question=9)]
)
def test_a_closed_vote_takes_none(board: Board | None) -> None:
    source = Source(board)
    ballot = votes_to(source)
    ballot.slots.occupy(ANN)
    assert ballot.cast(ANN, body()) == 409
    assert not source.votes


def test_a_vote_that_is_not_on_its_way_is_reported() -> None:
    ballot = votes_to(Source(passes=False))
    ballot.slots.occupy(ANN)
    assert ballot.cast(ANN, body()) == 503


def test_nobody_votes_without_end() -> None:
    now = 100.0
    source = Source()
    ballot = votes_to(source)
    ballot.slots = VotingSlots(clock=lambda: now)
    ballot.slots.occupy(ANN)
    ballot.slots.occupy(BOB)
    found = [ballot.cast(ANN, body()) for _ in range(VOTES_AT_ONCE + 3)]
    assert found == [204] * VOTES_AT_ONCE + [429] * 3
    assert ballot.cast(BOB, body()) == 204
    now += 1.5
    assert [ballot.cast(ANN, body()) for _ in range(2)] == [204, 429]


def test_a_browser_that_comes_again_has_its_seat() -> None:
    slots = VotingSlots()
    first = slots.occupy(ANN)
    slots.occupy(BOB)
    slots.release(ANN)
    assert slots.find(ANN) is None
    assert slots.occupy(ANN) is first
    # The same tab, duplicated.
    assert slots.occupy(ANN) is first
    slots.release(ANN)
    assert slots.find(ANN) is first


def test_there_are_never_more_votes_than_slots() -> None:
    slots = VotingSlots(most=2)
    slots.occupy(ANN)
    bob = slots.occupy(BOB)
    assert bob is not None
    number = bob.number
    assert slots.occupy(CAT) is None
    slots.release(BOB)
    cat = slots.occupy(CAT)
    assert cat is not None
    assert cat.number == number
    assert slots.find(BOB) is None
    assert slots.occupy(BOB) is None
