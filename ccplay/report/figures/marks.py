"""Labels of moments above a figure, in rows so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ccplay.report.figures.style import INK, MUTED, SMALL, text_width_in

ROW_IN = 0.125
"""The height of a row of labels."""
_ROWS = 6
_GAP_IN = 0.08
_LENGTHS = (48, 36, 26)
_SAME_S = 0.1


def place(
    moments: Sequence[tuple[float, str]], span_s: float, width_in: float
) -> list[tuple[float, str, int]]:
    """Return moments with their labels and each label's row, counted from the bottom.

    A label stands right of its moment, or left of it where the right edge is near. Where the rows
    are too few, labels are cut, then a moment keeps one label only, and at last numbers take the
    place of words: the page's table of events has both.
    """
    single = _one_a_moment(moments)
    for some in (moments, single):
        for length in _LENGTHS:
            labels = [(t, _shorten(text, length)) for t, text in some]
            if (rows := _rows(labels, span_s, width_in)) is not None:
                return rows
    numbers = [(t, str(number)) for number, (t, _) in enumerate(moments, 1)]
    return _rows(_one_a_moment(numbers), span_s, width_in) or [(t, n, 0) for t, n in numbers]


def _one_a_moment(moments: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    kept: list[tuple[float, str]] = []
    for t, text in moments:
        if not kept or t - kept[-1][0] > _SAME_S:
            kept.append((t, text))
    return kept


def _rows(
    labels: Sequence[tuple[float, str]], span_s: float, width_in: float
) -> list[tuple[float, str, int]] | None:
    """Give each label the lowest free row; None where one finds none."""
    taken: list[list[tuple[float, float]]] = [[] for _ in range(_ROWS)]
    placed = []
    # Backwards, so that of one moment the first stands at the top.
    for t, label in reversed(labels):
        at, long = t / span_s * width_in, text_width_in(label) + _GAP_IN
        left = at if at + long <= width_in + 0.1 else at - long
        for row, spans in enumerate(taken):
            if left > -0.1 and all(left >= end or left + long <= start for start, end in spans):
                # Labels above have a stem that comes down through this row at their moment.
                spans.append((left, left + long))
                placed.append((t, label, row))
                break
        else:
            return None
    return placed


def height_in(placed: Sequence[tuple[float, str, int]]) -> float:
    """Return how much room the rows need."""
    return ROW_IN * (max((row for _, _, row in placed), default=-1) + 1)


def draw(axes: Axes, placed: Sequence[tuple[float, str, int]], above_in: float) -> None:
    """Write the labels above ``axes``, the lowest row ``above_in`` inches higher."""
    width, height = _size_in(axes)
    span = axes.get_xlim()[1]
    for t, label, row in placed:
        up = 1 + (above_in + row * ROW_IN) / height
        long = text_width_in(label) / width * span
        right = t + long > span * (1 + 0.1 / width)
        axes.plot(
            [t, t],
            [1, up + 0.09 / height],
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            color=MUTED,
            linewidth=0.45,
        )
        axes.annotate(
            label,
            (t, up),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-2 if right else 2, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom",
            fontsize=SMALL,
            color=INK,
            annotation_clip=False,
        )


def rule(axes: Axes, moments: Sequence[tuple[float, str]]) -> None:
    """Draw a thin line through ``axes`` at each moment."""
    for t in sorted({round(t, 3) for t, _ in moments}):
        axes.axvline(t, color=MUTED, linewidth=0.45, linestyle=(0, (1, 2)), zorder=1.5)


def _size_in(axes: Axes) -> tuple[float, float]:
    across, up = axes.get_figure(root=True).get_size_inches()  # type: ignore[union-attr]
    place = axes.get_position()
    return place.width * across, place.height * up


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
