"""Marks, settings and congestion states behind the lines of a panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from msgspec.structs import replace

from ccplay.model.wording import CA_STATES
from ccplay.report.figures import style
from ccplay.report.figures.style import INK, MUTED, SMALL, strokes, text_width_in

# --- congestion states as the shaded background of a flow's panel, and in its legend --------------


def shade(axes: Axes, spans: Sequence[tuple[float, float, int]]) -> set[int]:
    """Shade the background where a connection was not Open; return the states that occurred."""
    seen = {state for _, _, state in spans}
    for each in seen:
        boxes = [
            Path([(left, 0), (left, 1), (right, 1), (right, 0), (left, 0)], closed=True)
            for left, right, state in spans
            if state == each
        ]
        # All boxes are one path, or a page with many runs would be twice as large.
        # Added as an artist, not as a patch, which would change the limits of the axes.
        axes.add_artist(
            PathPatch(
                Path.make_compound_path(*boxes),
                transform=axes.get_xaxis_transform(),
                facecolor=style.STATES[each],
                linewidth=0,
                zorder=0.5,
            )
        )
    return seen


def state_handles(seen: Iterable[int]) -> list[Artist]:
    """Return the entries of the legend for the shaded states."""
    return [
        Patch(
            facecolor=style.STATES[each], edgecolor="#999999", linewidth=0.4, label=CA_STATES[each]
        )
        for each in sorted(seen)
    ]


# --- labels of moments above a figure, arranged in rows so that none covers another ---------------

ROW_IN = 0.125
"""Height of a row of labels in inches."""
_ROWS = 10
_GAP_IN = 0.08
_OVER_IN = 0.12
"""Inches by which a label may extend beyond the axes."""
_LONGEST = 60
_SAME_S = 0.1
_MOST_TURNS = 200
"""Largest number of choices of labels that change sides; more would take seconds."""
_APART = 250
"""Largest number of vertical lines in a figure that remain distinguishable."""


class Label(msgspec.Struct, frozen=True):
    """A label with its row, counted from the bottom."""

    t: float
    text: str
    row: int
    flipped: bool = False
    """Whether the label is to the left of its moment."""


def place(moments: Sequence[tuple[float, str]], span_s: float, width_in: float) -> list[Label]:
    """Return moments with their labels and each label's row, counted from the bottom.

    A label is to the right of its moment, or to the left near the right edge. If there are too few
    rows, labels are cut, then each moment keeps only its first label, and finally numbers replace
    the texts: the page's table of events has both.
    """
    few = _one_a_moment(moments)
    for some, longest, clear in (
        (moments, _LONGEST, True),
        (moments, 46, True),
        (few, _LONGEST, True),
        (few, 46, True),
        (few, 34, True),
        (few, 24, True),
        (few, 34, False),
    ):
        labels = [(t, _shorten(text, longest)) for t, text in some]
        if (rows := _rows(labels, span_s, width_in, clear=clear)) is not None:
            return _lengthened(rows, some, (span_s, width_in), clear=clear)
    numbers = [(t, str(number)) for number, (t, _) in enumerate(moments, 1)]
    found = _rows(_one_a_moment(numbers), span_s, width_in, clear=False)
    return found or [Label(t, number, 0) for t, number in numbers]


def _one_a_moment(moments: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    kept: list[tuple[float, str]] = []
    for t, text in moments:
        if not kept or t - kept[-1][0] > _SAME_S:
            kept.append((t, text))
    return kept


class _Span(msgspec.Struct, frozen=True):
    """A place for a label in inches: from ``left`` to ``right``, with its moment at ``stem``."""

    left: float
    right: float
    stem: float

    def overlaps(self, other: _Span) -> bool:
        return self.left < other.right and other.left < self.right

    def crosses(self, other: _Span) -> bool:
        """Return whether the stem of the other would cross this label, if the other were higher."""
        return self.left + 0.02 < other.stem < self.right - 0.02


def _rows(
    labels: Sequence[tuple[float, str]], span_s: float, width_in: float, *, clear: bool
) -> list[Label] | None:
    """Assign each label a side of its moment and the lowest free row; None if rows are too few.

    ``clear`` also keeps labels off the stems of others: a label across another's stem must be above
    that other label. If this is circular, some labels change sides.
    """
    sides = [_sides(t, text, span_s, width_in) for t, text in labels]
    room_in = _ROWS * (width_in + 2 * _OVER_IN)
    if not all(sides) or sum(each[0].right - each[0].left for each in sides) > room_in:
        return None
    free = [number for number, each in enumerate(sides) if len(each) > 1]
    turns: list[tuple[int, ...]] = [()]
    if clear:
        turns += [(n,) for n in reversed(free)]
        turns += [tuple(free[n:]) for n in range(len(free) - 1)]
        turns += combinations(free, 2)
    for turned in turns[:_MOST_TURNS]:
        spans = [each[1 if n in turned else 0] for n, each in enumerate(sides)]
        if (rows := _stack(spans, clear=clear)) is not None:
            return [
                Label(t, text, row, flipped=span.left < span.stem)
                for (t, text), row, span in zip(labels, rows, spans, strict=True)
            ]
    return None


def _sides(t: float, text: str, span_s: float, width_in: float) -> list[_Span]:
    """Return the possible places of a label: to the right of its moment first, then to the left."""
    right, left = (_span(Label(t, text, 0, each), (span_s, width_in)) for each in (False, True))
    found = [right] if right.right <= width_in + _OVER_IN else []
    return [*found, left] if left.left > -_OVER_IN else found


def _lengthened(
    placed: Sequence[Label],
    moments: Sequence[tuple[float, str]],
    size: tuple[float, float],
    *,
    clear: bool,
) -> list[Label]:
    """Return the labels with as much of their texts as fits in their rows."""
    found = list(placed)
    for n, (_, text) in enumerate(moments):
        others = [(each.row, _span(each, size)) for m, each in enumerate(found) if m != n]
        cuts = range(_LONGEST, len(found[n].text), -1)
        longer = (replace(found[n], text=_shorten(text, longest)) for longest in cuts)
        fitting = (each for each in longer if _fits(each, others, size, clear=clear))
        found[n] = next(fitting, found[n])
    return found


def _fits(
    label: Label, others: Sequence[tuple[int, _Span]], size: tuple[float, float], *, clear: bool
) -> bool:
    span = _span(label, size)
    return -_OVER_IN < span.left < span.right <= size[1] + _OVER_IN and not any(
        (row == label.row and span.overlaps(other))
        or (clear and row >= label.row and span.crosses(other))
        for row, other in others
    )


def _span(label: Label, size: tuple[float, float]) -> _Span:
    span_s, width_in = size
    at, long = label.t / span_s * width_in, text_width_in(label.text) + _GAP_IN
    return _Span(at - long, at, at) if label.flipped else _Span(at, at + long, at)


def _stack(spans: Sequence[_Span], *, clear: bool) -> list[int] | None:
    """Return the row of each label; None if the order is circular or there are too few rows."""
    below = [
        {m for m, other in enumerate(spans) if clear and m != n and span.crosses(other)}
        for n, span in enumerate(spans)
    ]
    rows: dict[int, int] = {}
    while len(rows) < len(spans):
        ready = [n for n in range(len(spans)) if n not in rows and below[n] <= rows.keys()]
        if not ready:
            return None
        # From the last, so that the first label of a moment is at the top.
        number = ready[-1]
        least = max((rows[each] + 1 for each in below[number]), default=0)
        taken = {row for each, row in rows.items() if spans[number].overlaps(spans[each])}
        above = [rows[n] for n in rows if clear and spans[n].crosses(spans[number])]
        row = next(r for r in range(least, _ROWS + len(spans)) if r not in taken)
        if row >= _ROWS or any(row >= each for each in above):
            return None
        rows[number] = row
    return [rows[number] for number in range(len(spans))]


def height_in(placed: Sequence[Label]) -> float:
    """Return the height of the rows in inches."""
    return ROW_IN * (max((each.row for each in placed), default=-1) + 1)


def draw(axes: Axes, placed: Sequence[Label], above_in: float) -> None:
    """Write the labels above ``axes``, the lowest row ``above_in`` inches higher."""
    _, height = style.size_in(axes)
    for label in placed:
        up = 1 + (above_in + label.row * ROW_IN) / height
        axes.plot(
            [label.t, label.t],
            [1, up + 0.09 / height],
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            color=MUTED,
            linewidth=0.45,
        )
        axes.annotate(
            label.text,
            (label.t, up),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-2 if label.flipped else 2, 0),
            textcoords="offset points",
            ha="right" if label.flipped else "left",
            va="bottom",
            fontsize=SMALL,
            color=INK,
            annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
        )


def rule(axes: Axes, moments: Sequence[tuple[float, str]]) -> None:
    """Draw a thin line through ``axes`` at each moment; one line for those that would touch."""
    left, right = axes.get_xlim()
    some: list[float] = []
    for t in sorted(t for t, _ in moments):
        if not some or t - some[-1] > (right - left) / _APART:
            some.append(t)
    strokes(axes, some, (0, 1), color=MUTED, linewidth=0.45, linestyle=(0, (1, 2)), zorder=1.5)


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
