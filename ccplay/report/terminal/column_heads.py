"""Tables for a terminal in which columns share heads: each group and unit is written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

GAP = 2
"""Cells between two columns."""
_RULE = "─"


class Column(msgspec.Struct, frozen=True):
    """The column below one head."""

    head: str
    """Words of the head, one per line."""
    cells: list[str]
    group: str = ""
    """Name of the group that the column shares with its neighbours: ``flows.1``; empty for none."""
    unit: str = ""


class _Span(msgspec.Struct, frozen=True):
    """Neighbouring columns that share a head, by their indices."""

    text: str
    first: int
    last: int


def deal(
    labels: Sequence[Column], metrics: Sequence[Column], width: int, indent: int
) -> list[list[Column]]:
    """Split metrics into tables, each of which fits beside the labels into ``width`` cells."""
    room = width - indent - sum(each + GAP for each in _widths(labels))
    tables: list[list[Column]] = [[]]
    for metric in metrics:
        wider = [*tables[-1], metric]
        if tables[-1] and sum(_widths(wider)) + GAP * (len(wider) - 1) > room:
            tables.append([metric])
        else:
            tables[-1] = wider
    return tables


def table(labels: Sequence[Column], metrics: Sequence[Column], faint: Sequence[int]) -> Table:
    """Return a table without empty rows; its first column wraps if space is short.

    ``faint`` are the indices of rows of published metrics, which are drawn dim.
    """
    made = Table(box=None, pad_edge=False, padding=0, header_style="dim")
    first, *others = labels
    made.add_column(Text(first.head), vertical="bottom")
    beside = [_named(each) for each in others]
    widths = _widths(metrics)
    heads = _heads(metrics, widths)
    for head in [each.head for each in beside] + ["\n".join(lines) for lines in heads]:
        made.add_column(Text(head), no_wrap=True, vertical="bottom")
    for row, label in enumerate(first.cells):
        measured = [each.cells[row] for each in metrics]
        if any(measured):
            cells = [" " * GAP + _right(*each) for each in zip(measured, widths, strict=True)]
            texts = (label, *(each.cells[row] for each in beside), *cells)
            made.add_row(*map(Text, texts), style="dim" if row in faint else "")
    return made


def _named(label: Column) -> Column:
    """Return a column of left-aligned labels with its gap, all of one width."""
    [width] = _widths([label])

    def put(text: str) -> str:
        return " " * GAP + set_cell_size(text, width)

    return Column(put(label.head), [put(cell) for cell in label.cells])


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _widths(columns: Sequence[Column]) -> list[int]:
    """Return the widths of columns, wide enough for their own texts and for shared heads."""
    found = [
        max(cell_len(text) for text in (*each.head.split("\n"), *each.cells)) for each in columns
    ]
    for span in _spans(columns, lambda each: (each.group, each.unit)):
        found[span.first] += max(cell_len(columns[span.first].unit) - _room(span, found), 0)
    for span in _spans(columns, lambda each: each.group):
        words = _broken(span.text, _room(span, found))
        found[span.first] += max(max(map(cell_len, words)) - _room(span, found), 0)
    return found


def _spans(columns: Sequence[Column], key: Callable[[Column], object]) -> Iterator[_Span]:
    """Yield spans of neighbouring columns with the same key."""
    first = 0
    for at in range(1, len(columns) + 1):
        if at == len(columns) or key(columns[at]) != key(columns[first]):
            yield _Span(columns[first].group, first, at - 1)
            first = at


def _room(span: _Span, widths: Sequence[int]) -> int:
    return sum(widths[span.first : span.last + 1]) + GAP * (span.last - span.first)


def _broken(name: str, room: int) -> list[str]:
    """Return the lines of a group's name, broken at its dots if it is wider than ``room``."""
    if cell_len(name) <= room:
        return [name]
    *words, last = name.split(".")
    return [*(f"{word}." for word in words), last]


# --- heads --------------------------------------------------------------------------------------


def _heads(columns: Sequence[Column], widths: Sequence[int]) -> list[list[str]]:
    """Return the lines above the columns: groups, own words, units."""
    groups = _groups(columns, widths)
    words = [each.head.split("\n") for each in columns]
    deepest = max(map(len, words), default=0)
    own = [
        [" " * (GAP + width)] * (deepest - len(lines))
        + [" " * GAP + _right(line, width) for line in lines]
        for lines, width in zip(words, widths, strict=True)
    ]
    return [[*g, *o, *u] for g, o, u in zip(groups, own, _units(columns, widths), strict=True)]


def _groups(columns: Sequence[Column], widths: Sequence[int]) -> list[list[str]]:
    """Return lines with each group's name, and a rule over groups of several columns."""
    spans = list(_spans(columns, lambda each: each.group))
    named = [_broken(span.text, _room(span, widths)) for span in spans]
    deepest = max((len(lines) for lines in named if any(lines)), default=0)
    found: list[list[str]] = [[] for _ in columns]
    for span, lines in zip(spans, named, strict=True):
        room = _room(span, widths)
        several = span.last > span.first
        placed = [*lines[:-1], _ruled(lines[-1], room)]
        placed = placed if several else [_right(line, room) for line in lines]
        for line in [*[""] * (deepest - len(lines)), *placed][:deepest]:
            _cut(found, span, widths, line)
    return found


def _units(columns: Sequence[Column], widths: Sequence[int]) -> list[list[str]]:
    """Return a line with each unit once, at the right end of the columns that share it."""
    found: list[list[str]] = [[] for _ in columns]
    if any(each.unit for each in columns):
        for span in _spans(columns, lambda each: (each.group, each.unit)):
            unit, room = columns[span.first].unit, _room(span, widths)
            line = _ruled(unit, room, right=True) if span.last > span.first else unit
            _cut(found, span, widths, _right(line, room))
    return found


def _ruled(text: str, room: int, *, right: bool = False) -> str:
    """Return a text extended to a width with a rule, if there is room for one."""
    rule = _RULE * (room - cell_len(text) - 1)
    if not text or not rule:
        return text
    return f"{rule} {text}" if right else f"{text} {rule}"


def _cut(found: list[list[str]], span: _Span, widths: Sequence[int], line: str) -> None:
    """Append to each column of a span its part of a line, with the gap before it."""
    rest = " " * GAP + line
    for at in range(span.first, span.last + 1):
        size = GAP + widths[at]
        found[at].append(set_cell_size(rest[:size], size))
        rest = rest[size:]
