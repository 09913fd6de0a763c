"""The ballot: one vote a voter, changed until the reveal, and nothing else."""

import math

import pytest

from ccplay.share import relay
from ccplay.share.relay import Ballot


def test_each_voter_has_one_vote_which_can_be_changed() -> None:
    votes = Ballot()
    votes.ask(3, choices=4)
    assert votes.cast("ann", 3, 1)
    assert votes.cast("bob", 3, 1)
    assert votes.cast("ann", 3, 2)
    assert votes.counts == (0, 1, 1, 0)
    assert votes.voters == 2


def test_no_vote_counts_after_the_reveal() -> None:
    votes = Ballot()
    votes.ask(3, choices=2)
    votes.cast("ann", 3, 1)
    votes.close()
    assert not votes.cast("ann", 3, 0)
    assert not votes.cast("bob", 0, 0)
    assert votes.counts == (0, 1)


def test_a_new_question_begins_without_votes_and_the_same_one_keeps_them() -> None:
    votes = Ballot()
    votes.ask(3, choices=2)
    votes.cast("ann", 3, 1)
    votes.ask(3, choices=2)
    assert votes.counts == (0, 1)
    votes.ask(4, choices=2)
    assert votes.counts == (0, 0)
    assert not votes.cast("ann", 3, 1)


@pytest.mark.parametrize("choice", [-1, 4, 1.5, math.nan, math.inf, "1", None, True, [1], {}, b"1"])
def test_what_is_no_choice_is_ignored(choice: object) -> None:
    votes = Ballot()
    votes.ask(3, choices=4)
    assert not votes.cast("ann", 3, choice)
    assert votes.voters == 0


@pytest.mark.parametrize("voter", ["", "a" * 101])
def test_voters_need_names_of_some_length(voter: str) -> None:
    votes = Ballot()
    votes.ask(3, choices=4)
    assert not votes.cast(voter, 3, 0)


def test_numbers_are_counted_in_eighths_of_their_bounds() -> None:
    votes = Ballot()
    votes.ask(5, bounds=(0.0, 80.0))
    for voter, number in enumerate((0, 9.9, 10, 79, 80)):
        assert votes.cast(str(voter), 5, number)
    assert not votes.cast("x", 5, 80.1)
    assert not votes.cast("x", 5, math.nan)
    assert votes.counts == (2, 1, 0, 0, 0, 0, 0, 2)


def test_the_vote_for_a_region_counts_where_its_middle_is() -> None:
    votes = Ballot()
    votes.ask(5, bounds=(0.0, 80.0), width=20.0)
    for voter, low in enumerate((0, 30, 60)):
        assert votes.cast(str(voter), 5, low)
    assert votes.counts == (0, 1, 0, 0, 1, 0, 0, 1)


def test_a_question_that_is_opened_again_keeps_its_votes() -> None:
    """A run that is left is void: the class has voted already."""
    votes = Ballot()
    votes.ask(3, choices=2)
    votes.cast("ann", 3, 1)
    votes.close()
    votes.ask(3, choices=2)
    assert votes.counts == (0, 1)
    assert votes.cast("bob", 3, 0)


def test_right_votes_are_counted_exactly_whatever_the_intervals() -> None:
    votes = Ballot()
    votes.ask(5, bounds=(0.0, 100.0))
    for voter, number in enumerate((14.9, 15, 20, 25, 25.1)):
        votes.cast(str(voter), 5, number)
    assert votes.within(15, 25) == 3


def test_voters_are_bounded_but_can_still_change_their_votes() -> None:
    votes = Ballot()
    votes.ask(3, choices=2)
    for voter in range(relay.MOST_VOTERS + 5):
        votes.cast(str(voter), 3, 0)
    assert votes.voters == relay.MOST_VOTERS
    assert votes.cast("7", 3, 1)
    assert votes.counts == (relay.MOST_VOTERS - 1, 1)


@pytest.mark.parametrize(
    ("choices", "bounds"),
    [(1, (0, 0)), (10, (0, 0)), (0, (1, 1)), (0, (2, 1)), (0, (0, math.inf)), (0, (math.nan, 1))],
)
def test_a_question_that_nobody_could_answer_is_refused(
    choices: int, bounds: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match="2 to 9 choices"):
        Ballot().ask(1, choices=choices, bounds=bounds)
