"""The receiver's table: bytes of every flow at each second, the newest row last."""

from __future__ import annotations

from ccplay.receiver import Finish, Receiver
from ccplay.receiver import Row as Second
from ccplay.ui.sheet import Row, Run, fit
from ccplay.ui.view import View
from ccplay.units import format_rate, format_size

_CLOCK = 8
"""Cells of the first column."""

_RATE = 12
"""Cells of a rate: ``12.3 Mbit/s`` and a gap."""

_LEAST, _RATED, _MOST = 5, 23, 26
"""Cells of a flow's column: narrower than the least nothing can be read, a rated one has the rate
too, and wider than the most it is hard to follow a line."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the head and the last seconds up to the moment shown, the checkpoint among them."""
    table = Receiver(view.state, view.t)
    if not table.flows:
        head: list[Run] = [("receiver", f"bold {view.ink('text')}")]
        return [head, [("no flow has reached it yet", view.ink("muted"))]]
    column = min(max((width - _CLOCK) // len(table.flows), _LEAST), _MOST)
    names = table.flows[: (width - _CLOCK) // column]
    finish = table.finish()
    # The checkpoint stays in sight: at its place, or above the seconds that followed it.
    seconds = table.rows(most=height - 1 - (finish is not None))
    lines = [(float(each.elapsed_s), _second(view, names, each, column)) for each in seconds]
    if finish is not None:
        lines.append((finish.elapsed_s, _finish(view, table, names, finish, column)))
        lines.sort(key=lambda line: line[0])
    return [_head(view, table, names, column), *(line for _, line in lines)]


def _head(view: View, table: Receiver, names: tuple[str, ...], column: int) -> list[Run]:
    hidden = len(names) < len(table.flows)
    title = f"{len(names)} of {len(table.flows)}" if hidden else "receiver"
    row: list[Run] = [(fit(title, _CLOCK), f"bold {view.ink('text')}")]
    for name in names:
        words = f"{view.flow_mark(name)} {name}"
        if column > 2 * _LEAST:
            words += f" {view.state.cc_at(view.state.flows[name], view.t)}"
        cell = column - _RATE if column >= _RATED else column
        row.append((_right(words, cell, view), f"bold {view.flow_ink(name)}"))
        row.append((" " * (column - cell), ""))
    return row


def _second(view: View, names: tuple[str, ...], second: Second, column: int) -> list[Run]:
    row: list[Run] = [(f"{second.elapsed_s} s".rjust(_CLOCK), view.ink("muted"))]
    for amount, rate in zip(
        second.bytes[: len(names)], second.rates_bps[: len(names)], strict=True
    ):
        said = "" if rate is None else format_rate(rate)
        row += _cells(amount, said, column, view.ink("text"), view.ink("muted"))
    return row


def _finish(
    view: View, table: Receiver, names: tuple[str, ...], finish: Finish, column: int
) -> list[Run]:
    ink = f"bold {view.ink('cursor')}"
    ratio = "" if finish.ratio is None else f"ratio {finish.ratio:.3f}"
    clock = f"{finish.elapsed_s:.{2 if finish.elapsed_s < 100 else 1}f} s"
    row: list[Run] = [(clock.rjust(_CLOCK), ink)]
    if column < _RATED:
        return [*row, (f"  flow {finish.first} is done  {ratio}", ink)]
    for name, amount in zip(names, finish.bytes, strict=False):
        said = "done" if name == finish.first else ratio if name in table.sizes else ""
        row += _cells(amount, said, column, ink, ink)
    return row


def _cells(amount: int | None, rate: str, column: int, ink: str, rate_ink: str) -> list[Run]:
    if column < _RATED:
        return [(_amount(amount, column), ink)]
    return [(_amount(amount, column - _RATE), ink), (rate.rjust(_RATE), rate_ink)]


def _amount(amount: int | None, cell: int) -> str:
    """Write a number of bytes as exactly as a cell has room for, a gap before it."""
    if amount is None:
        return "-".rjust(cell)
    size = format_size(amount)
    number, _, unit = size.partition(" ")
    letter = unit.removesuffix("B")
    short = f"{float(number):.1f}" if "." in number else number
    ways = (f"{amount:,}", size, number + letter, short + letter, f"{float(number):.0f}{letter}")
    return next((way for way in ways if len(way) < cell), ways[-1]).rjust(cell)


def _right(text: str, cell: int, view: View) -> str:
    if len(text) >= cell:
        text = fit(text, cell - 1, view.glyphs.ellipsis)
    return text.rjust(cell)
