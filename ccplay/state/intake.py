"""Accepts samples row by row; each series reads its column when it is needed.

A thousand connections have 17,000 series, of which a screen shows a hundred at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from ccplay.model.samples import QdiscSamples, TcpSamples
from ccplay.state.rows import Feed, Rows
from ccplay.state.series import Series

_LONGEST = 256
"""Largest number of sweeps that wait to be read; they are kept twice, in 4 bytes per value."""


class _Sampled(Protocol):
    @property
    def series(self) -> dict[str, Series]: ...

    @property
    def feed(self) -> Feed: ...


Owner = TypeVar("Owner", bound=_Sampled)


class Intake(Generic[Owner]):
    """Samples of connections or queues, sweep by sweep."""

    def __init__(self, names: Sequence[str]) -> None:
        """Keep the fields ``names`` of samples, in the order of an owner's series."""
        self._names = names
        self._members: Sequence[object] = ()
        self.owners: list[Owner | None] = []
        """Owners of the newest sweep's samples, in its order; None if unknown."""
        self._rows = Rows(0, 0, 0)
        self._turn = 0
        """Index of the owner that reads next."""
        self._due = 0
        """Number of reads that are due, in fractions of an owner."""

    def fits(self, tick: int, members: Sequence[object]) -> bool:
        """Return whether a sweep of ``members`` at ``tick`` can be added without ``begin``."""
        rows = self._rows
        if rows.complete or rows.end != tick or rows.end - rows.tick >= _LONGEST:
            return False
        return members == self._members

    def begin(self, tick: int, members: Sequence[object], owners: list[Owner | None]) -> None:
        """Start with the members ``members`` at ``tick``, which belong to ``owners``."""
        self.renew()
        staying = {id(owner) for owner in owners}
        for owner in self.owners:
            if owner is not None and id(owner) not in staying:
                _read(owner)
        self._members, self.owners = members, owners
        self._rows = Rows(tick, len(self._names), len(members))
        for column, owner in enumerate(owners):
            if owner is not None:
                owner.feed.columns.append((self._rows, column))

    def add(self, samples: TcpSamples | QdiscSamples) -> None:
        """Add the values of the next tick."""
        self._rows.append(getattr(samples, name) for name in self._names)
        # Series that are not needed read in turn, each once in ``_LONGEST`` sweeps.
        turns, self._due = divmod(self._due + len(self.owners), _LONGEST)
        for _ in range(turns):
            owner = self.owners[self._turn % len(self.owners)]
            self._turn = (self._turn + 1) % len(self.owners)
            if owner is not None:
                _read(owner)

    def renew(self) -> None:
        """Start over with the next sweep, because a name may have another owner."""
        self._rows.complete = True


def _read(owner: _Sampled) -> None:
    if owner.feed.columns:
        for series in owner.series.values():
            series.read_on()
        owner.feed.drop()
