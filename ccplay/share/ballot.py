"""The ballot of a shared lesson: one vote a voter, which can be changed until the reveal."""

from __future__ import annotations

import math
from typing import TypeGuard

MOST_VOTERS = 2000
"""Voters on one question; later ones are not counted."""

MOST_CHOICES = 9
"""Choices of a question: they are selected by the number keys."""

BINS = 8
"""Counts into which votes for a number are put, of equal width."""

_LONGEST_NAME = 100
"""Characters of a voter's name and of a question's."""


def answers(choice: object, choices: int, bounds: tuple[float, float]) -> TypeGuard[int | float]:
    """Return whether this answers a question with ``choices``, or for a number in ``bounds``."""
    if isinstance(choice, bool) or not isinstance(choice, int | float):
        return False
    if choices:
        return 0 <= choice < choices and choice == int(choice)
    # NaN is within no bounds.
    return bounds[0] <= choice <= bounds[1]


class Ballot:
    """The votes on the question that is open. Whatever a voter sends can only change a vote."""

    def __init__(self) -> None:
        self.question = ""
        """The question that is open; empty if none is."""
        self._choices = 0
        self._bounds: tuple[float, float] = (0.0, 0.0)
        self._votes: dict[str, float] = {}

    def ask(
        self, question: str, *, choices: int = 0, bounds: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """Ask a question with ``choices`` choices, or for a number within ``bounds``.

        The votes on an earlier question are gone; the same question again keeps its votes.
        Raises ``ValueError`` for a question that nobody could answer.
        """
        low, high = bounds
        if not (
            2 <= choices <= MOST_CHOICES or (choices == 0 and -math.inf < low < high < math.inf)
        ):
            raise ValueError("a question needs 2 to 9 choices, or two bounds")
        if question != self.question:
            self._votes = {}
        self.question, self._choices, self._bounds = question, choices, (low, high)

    def close(self) -> None:
        """Take no more votes: the answer is revealed. The counts stay."""
        self.question = ""

    def cast(self, voter: str, question: str, choice: object) -> bool:
        """Count a vote in place of the voter's earlier one; return whether it counts.

        ``choice`` is the number of a choice, from 0, or a number within the bounds. Anything else,
        and a vote on a question that is not open, is ignored.
        """
        if not question or question != self.question:
            return False
        if not voter or max(len(voter), len(question)) > _LONGEST_NAME:
            return False
        if not answers(choice, self._choices, self._bounds):
            return False
        if voter not in self._votes and len(self._votes) >= MOST_VOTERS:
            return False
        self._votes[voter] = float(choice)
        return True

    def vote_of(self, voter: str) -> float | None:
        """Return a voter's choice; None without one."""
        return self._votes.get(voter)

    @property
    def voters(self) -> int:
        """How many have voted."""
        return len(self._votes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The votes for each choice, or for each eighth of the way between the bounds."""
        low, high = self._bounds
        counts = [0] * (self._choices or BINS)
        for vote in self._votes.values():
            at = vote if self._choices else (vote - low) / (high - low) * BINS
            counts[min(int(at), len(counts) - 1)] += 1
        return tuple(counts)
