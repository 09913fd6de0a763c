"""The ballot of a shared lesson: one vote per voter, which can be changed until the run starts."""

from __future__ import annotations

import math
from typing import TypeGuard

MOST_VOTERS = 2000
"""Greatest number of voters on one question; later voters are not counted."""

MOST_CHOICES = 9
"""Greatest number of choices of a question, which are selected with the number keys."""

BINS = 8
"""Number of intervals of equal width in which votes for a number are counted."""

_LONGEST_NAME = 100
"""Greatest number of characters of a voter's name, and of a question's."""


def answers(choice: object, choices: int, bounds: tuple[float, float]) -> TypeGuard[int | float]:
    """Return whether ``choice`` is one of ``choices``, or if that is 0, a number in ``bounds``."""
    if isinstance(choice, bool) or not isinstance(choice, int | float):
        return False
    if choices:
        return 0 <= choice < choices and choice == int(choice)
    # NaN is not within any bounds.
    return bounds[0] <= choice <= bounds[1]


class Ballot:
    """The votes on the open question. All that a voter can do is change its own vote."""

    def __init__(self) -> None:
        self.question = ""
        """Name of the newest question; empty before the first."""
        self.open = False
        """Whether votes on the question count now."""
        self._choices = 0
        self._bounds: tuple[float, float] = (0.0, 0.0)
        self._width = 0.0
        self._votes: dict[str, float] = {}

    def ask(
        self,
        question: str,
        *,
        choices: int = 0,
        bounds: tuple[float, float] = (0.0, 0.0),
        width: float = 0.0,
    ) -> None:
        """Open a question with ``choices`` choices, or for a number within ``bounds``.

        With a ``width`` the number is the lower end of a region. Deletes the votes on an earlier
        question; the same question keeps its votes, also after ``close``. Raises ``ValueError``
        for a question that can't be answered.
        """
        low, high = bounds
        if not (
            2 <= choices <= MOST_CHOICES or (choices == 0 and -math.inf < low < high < math.inf)
        ):
            raise ValueError("a question needs 2 to 9 choices, or two bounds")
        if question != self.question:
            self._votes = {}
        self.question, self.open = question, True
        self._choices, self._bounds, self._width = choices, (low, high), width

    def close(self) -> None:
        """Accept no more votes, as the run that answers the question starts; the counts stay."""
        self.open = False

    def cast(self, voter: str, question: str, choice: object) -> bool:
        """Count a vote in place of the voter's earlier one; return False if it is ignored.

        ``choice`` is the number of a choice, from 0, or a number within the bounds. Anything else,
        and a vote on a question that is not open, is ignored.
        """
        if not self.open or not question or question != self.question:
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
        """The number of voters so far."""
        return len(self._votes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of votes for each choice, or in each eighth of the range of numbers.

        The vote for a region counts where its middle is.
        """
        low, high = self._bounds
        counts = [0] * (self._choices or BINS)
        for vote in self._votes.values():
            at = vote if self._choices else (vote + self._width / 2 - low) / (high - low) * BINS
            counts[min(int(at), len(counts) - 1)] += 1
        return tuple(counts)

    def within(self, low: float, high: float) -> int:
        """Return the number of votes from ``low`` to ``high``, both included."""
        return sum(low <= vote <= high for vote in self._votes.values())
