"""Labels of moments above a figure, in rows so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from ccplay.report.figures.style import INK, MUTED, SMALL, text_width_in

ROW_IN = 0.125
"""The height of a row of labels."""
_ROWS = 10
_GAP_IN = 0.08
_SAME_S = 0.1


@dataclass(frozen=True, slots=True)
class Label:
    """A label and its row, counted from the bottom."""

    t: float
    text: str
    row: int
    flipped: bool = False
    """Whether it stands left of its moment."""


def place(moments: Sequence[tuple[float, str]], span_s: float, width_in: float) -> list[Label]:
    """Return moments with their labels and each label's row, counted from the bottom.

    A label stands right of its moment, or left of it where the right edge is near. Where the rows
    are too few, labels are cut, then a moment keeps its first one only, and at last numbers take
    the place of words: the page's table of events has both.
    """
    few = _one_a_moment(moments)
    for some, longest, clear in (
        (moments, 60, True),
        (moments, 46, True),
        (few, 60, True),
        (few, 46, True),
        (few, 34, True),
        (few, 24, True),
        (few, 34, False),
    ):
        labels = [(t, _shorten(text, longest)) for t, text in some]
        if (rows := _rows(labels, span_s, width_in, clear=clear)) is not None:
            return rows
    numbers = [(t, str(number)) for number, (t, _) in enumerate(moments, 1)]
    found = _rows(_one_a_moment(numbers), span_s, width_in, clear=False)
    return found or [Label(t, number, 0) for t, number in numbers]


def _one_a_moment(moments: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    kept: list[tuple[float, str]] = []
    for t, text in moments:
        if not kept or t - kept[-1][0] > _SAME_S:
            kept.append((t, text))
    return kept


def _rows(
    labels: Sequence[tuple[float, str]], span_s: float, width_in: float, *, clear: bool
) -> list[Label] | None:
    """Give each label the lowest free row, None where one finds none.

    ``clear`` keeps labels off the stems of others too, which come down from higher rows.
    """
    placed: list[tuple[float, float, float, int]] = []
    found: list[Label] = []
    # Backwards, so that of one moment the first stands at the top.
    for t, label in reversed(labels):
        at, long = t / span_s * width_in, text_width_in(label) + _GAP_IN
        left = at if at + long <= width_in + 0.13 else at - long
        row = next(
            (
                row
                for row in range(_ROWS)
                if left > -0.1
                and all(
                    _apart((left, left + long, at, row), other, clear=clear) for other in placed
                )
            ),
            None,
        )
        if row is None:
            return None
        placed.append((left, left + long, at, row))
        found.append(Label(t, label, row, flipped=left < at))
    return found


def _apart(
    one: tuple[float, float, float, int], other: tuple[float, float, float, int], *, clear: bool
) -> bool:
    """Say whether two labels (left, right, stem, row) leave each other alone."""
    if one[3] == other[3]:
        return one[0] >= other[1] or one[1] <= other[0]
    if not clear:
        return True
    low, high = sorted((one, other), key=lambda label: label[3])
    return not low[0] + 0.02 < high[2] < low[1] - 0.02


def height_in(placed: Sequence[Label]) -> float:
    """Return how much room the rows need."""
    return ROW_IN * (max((each.row for each in placed), default=-1) + 1)


def draw(axes: Axes, placed: Sequence[Label], above_in: float) -> None:
    """Write the labels above ``axes``, the lowest row ``above_in`` inches higher."""
    height = _height_in(axes)
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
    """Draw a thin line through ``axes`` at each moment."""
    for t in sorted({round(t, 3) for t, _ in moments}):
        axes.axvline(t, color=MUTED, linewidth=0.45, linestyle=(0, (1, 2)), zorder=1.5)


def _height_in(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    return axes.get_position().height * figure.get_size_inches()[1] if figure else 1.0


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
