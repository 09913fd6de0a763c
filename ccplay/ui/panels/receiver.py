"""The receiver's table: bytes delivered by every flow at each second, the newest row last."""

from __future__ import annotations

from ccplay.analysis.results import Checkpoint
from ccplay.analysis.summary import Receiver, Second
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.view import View

_CLOCK = 8
"""Width of the first column in cells."""

_LEAST, _MOST = 5, 26
"""Smallest and largest width of a flow's column in cells; wider rows are hard to follow."""

_RATES = ((23, 12), (18, 6), (0, 0))
"""Smallest widths of a column, and its cells for a rate: with its unit, without it, or none."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the head and the last seconds up to the moment shown, with the race's checkpoint."""
    table = Receiver(view.state, view.t)
    if not table.flows:
        head: list[Run] = [("receiver", f"bold {view.ink('text')}")]
        return [head, [("no flow has reached it yet", view.ink("muted"))]]
    room = width - 1 - _CLOCK
    column = min(max(room // len(table.flows), _LEAST), _MOST)
    names = table.flows[: room // column]
    finish = table.checkpoint()
    # The checkpoint stays visible: at its place, or above the seconds after it.
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
    rate = _rate_cells(column)
    for name in names:
        words = f"{view.flow_glyph(name)} {name}"
        if rate:
            words += f" {view.state.cc_at(view.state.flows[name], view.t)}"
        cell = column - rate
        if len(words) >= cell:
            words = fit(words, cell - 1, view.glyphs.ellipsis)
        row += [(words.rjust(cell), f"bold {view.flow_ink(name)}"), (" " * rate, "")]
    return row


def _second(view: View, names: tuple[str, ...], second: Second, column: int) -> list[Run]:
    row: list[Run] = [(f"{second.elapsed_s} s".rjust(_CLOCK), view.ink("muted"))]
    cells = _rate_cells(column)
    for amount, rate in list(zip(second.bytes, second.rates_bps, strict=True))[: len(names)]:
        text = "" if rate is None else f"{_three(rate / 1e6)}{' Mbit/s' if cells > 6 else 'M'}"
        row.append((_amount(amount, column - cells), view.ink("text")))
        row.append((text.rjust(cells)[:cells], view.ink("muted")))
    return row


def _finish(
    view: View, table: Receiver, names: tuple[str, ...], finish: Checkpoint, column: int
) -> list[Run]:
    ink = f"bold {view.ink('cursor')}"
    clock = f"{finish.elapsed_s:.{2 if finish.elapsed_s < 100 else 1}f} s"
    row: list[Run] = [(clock.rjust(_CLOCK), ink)]
    if _rate_cells(column) != _RATES[0][1]:
        return [*row, (_in_words(finish, len(names) * column), ink)]
    ratio = "" if finish.ratio is None else f"ratio {finish.ratio:.3f}"
    for name in names:
        text = "done" if name == finish.first else ratio if name in table.sizes else ""
        cells = _rate_cells(column)
        row.append((_amount(finish.bytes.get(name), column - cells) + text.rjust(cells), ink))
    return row


def _in_words(finish: Checkpoint, width: int) -> str:
    """Return the checkpoint as text, with the bytes if there is room."""
    text = f" flow {finish.first} done"
    if finish.ratio is None:
        return text
    one, other = list(finish.bytes.values())[:2]
    full = f"{text}  {one:,}/{other:,} = {finish.ratio:.3f}"
    return full if len(full) <= width else f"{text}  ratio {finish.ratio:.3f}"


def _rate_cells(column: int) -> int:
    return next(cells for least, cells in _RATES if column >= least)


def _amount(amount: int | None, cell: int) -> str:
    """Return a number of bytes, as precisely as fits into ``cell`` cells after a blank."""
    if amount is None:
        return "-".rjust(cell)
    power = 3 if amount >= 999_500_000 else 2 if amount >= 999_500 else 1
    value, letter = amount / 1000**power, " kMG"[power]
    digits = (_three(value), f"{value:.1f}", f"{value:.0f}")
    ways = (f"{amount:,}", *(f"{each}{letter}" for each in digits))
    return next((way for way in ways if len(way) < cell), ways[-1]).rjust(cell)


def _three(value: float) -> str:
    """Return a number with three digits or more, zeros too, so that a column does not flicker."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
