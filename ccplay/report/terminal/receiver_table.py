"""The receiver's table for runs without a screen, as lines of text, each printed when it is due."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.receiver_table import Receiver, Second
from ccplay.state.lab_state import LabState
from ccplay.units import format_rate

_CLOCK, _BYTES, _RATE = 9, 16, 13
"""Widths of the columns in cells."""

_OFTEN_S = 0.1


class ReceiverLines:
    """The lines of a receiver's table, each yielded once.

    ``fresh`` is called after every event and at the end of a run.
    """

    def __init__(self) -> None:
        self._flows: tuple[str, ...] = ()
        self._printed = 0
        self._finished = False
        self._looked = 0.0

    def fresh(self, state: LabState, *, at_once: bool = False) -> Iterator[str]:
        """Yield the lines that are due; ``at_once`` checks even shortly after the last check."""
        # Lines are due about once a second, but events arrive by the hundred.
        if state.now - self._looked < _OFTEN_S and not at_once:
            return
        self._looked = state.now
        table = Receiver(state, state.now)
        lines = list(self._due(table))
        if lines and table.flows != self._flows:
            self._flows = table.flows
            yield _head(table, state)
        yield from lines

    def _due(self, table: Receiver) -> Iterator[str]:
        finish = None if self._finished else table.checkpoint()
        # The line of the checkpoint comes before that of a second that ended later.
        for row in table.rows(after=self._printed):
            if finish is not None and finish.elapsed_s <= row.elapsed_s:
                yield self._checkpoint(finish, table)
                finish = None
            self._printed = row.elapsed_s
            yield _second(row)
        if finish is not None:
            yield self._checkpoint(finish, table)

    def _checkpoint(self, finish: Checkpoint, table: Receiver) -> str:
        self._finished = True
        return _checkpoint(finish, table)


def _head(table: Receiver, state: LabState) -> str:
    names = (f"flow {name} {state.flows[name].cc}" for name in table.flows)
    return "receiver".rjust(_CLOCK) + "".join(
        name.rjust(_BYTES).ljust(_BYTES + _RATE) for name in names
    )


def _second(row: Second) -> str:
    cells = "".join(
        _cell(amount, "" if rate is None else format_rate(rate))
        for amount, rate in zip(row.bytes, row.rates_bps, strict=True)
    )
    return f"{row.elapsed_s} s".rjust(_CLOCK) + cells


def _checkpoint(finish: Checkpoint, table: Receiver) -> str:
    cells = "".join(
        _cell(finish.bytes.get(name), "done" if name == finish.first else "")
        for name in table.flows
    )
    ratio = "" if finish.ratio is None else f", ratio {finish.ratio:.3f}"
    return f"{finish.elapsed_s:.2f} s".rjust(_CLOCK) + cells + f"   checkpoint{ratio}"


def _cell(amount: int | None, rate: str) -> str:
    return ("-" if amount is None else f"{amount:,}").rjust(_BYTES) + rate.rjust(_RATE)
