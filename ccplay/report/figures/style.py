"""The appearance of every figure: sizes in inches for a paper's column or page, colours, inks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import matplotlib as mpl
import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccplay.model.series import MISSING
from ccplay.report.figures import svg

# --- the appearance of every figure ---------------------------------------------------------------
# The appearance of every figure: sizes in inches for a paper's column or page, colours, inks.

COLUMN_IN = 3.5
"""Width in inches of a column in a paper with two columns."""
PAGE_IN = 7.0
"""Width in inches of the text of a paper's page."""
SMALL = 6.5
"""Size in points of legends and of labels within a figure."""

INK = "#1a1a1a"
MUTED = "#5a5a5a"
GRID = "#e3e3e3"
QUEUE = "#3d4f61"
QUEUE_FILL = "#c9d3dc"
DROP = "#b3002d"
ECN = "#7a3e9d"
PING = "#4a4a4a"

FLOWS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b65a8f",
    "#56b4e9",
    "#e69f00",
    "#7f4f24",
    "#000000",
)
"""Colours of flows, after M. Okabe, K. Ito: Color Universal Design, 2008; for white paper, yellow
is replaced by brown, and purple is darker."""
CASES = (
    "#332288",
    "#cc6677",
    "#117733",
    "#aa4499",
    "#44aa99",
    "#882255",
    "#999933",
    "#88ccee",
    "#b08d2b",
    "#6699cc",
    "#661100",
    "#777777",
    "#1a1a1a",
)
"""Colours of cases, after P. Tol: Colour Schemes, 2021, "muted", with darker sand for white paper
and four more colours; none is a colour of flows."""
STATES = ("#ffffff", "#fff3b8", "#d3e4f5", "#f8cb98", "#dd8f8f")
"""Colours behind Open, Disorder, CWR, Recovery and Loss, each darker than the previous one."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.2)), (0, (3, 1, 1, 1)), (0, (1.2, 0.9)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

_HANDLE_IN = 0.36
"""Width in inches of a legend's entry without its label."""

_RC: dict[Any, Any] = {
    "font.family": [svg.FAMILY, svg.WHOLE],
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 8,
    "figure.labelsize": 7.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": True,
    "legend.framealpha": 1.0,
    "legend.facecolor": "white",
    "legend.edgecolor": "white",
    "legend.fancybox": False,
    "legend.handlelength": 1.9,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.1,
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.15,
    "axes.linewidth": 0.6,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.2,
    "path.simplify_threshold": 0.15,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "ccplay",
    "text.parse_math": False,
}


class Ink(msgspec.Struct, frozen=True):
    """The appearance of a line or bar in all figures, which identifies it even without colours."""

    colour: str
    dash: Any
    marker: str


class Inks:
    """Inks of flows, downloads and UDP by name; each is the same in all figures of a report."""

    def __init__(self, names: Iterable[str], colours: Sequence[str] = FLOWS) -> None:
        self._inks = {
            name: Ink(
                colours[i % len(colours)],
                DASHES[i % len(DASHES)],
                MARKERS[i % len(MARKERS)],
            )
            for i, name in enumerate(dict.fromkeys(names))
        }

    def __getitem__(self, name: str) -> Ink:
        return self._inks.get(name, Ink(MUTED, "-", "o"))


def case_inks(names: Iterable[str]) -> dict[str, Ink]:
    """Return an ink for each case; inks repeat after four times the number of colours."""
    return {
        name: Ink(CASES[i % len(CASES)], DASHES[i % len(DASHES)], MARKERS[i % len(MARKERS)])
        for i, name in enumerate(names)
    }


@contextmanager
def look() -> Iterator[None]:
    """Return a context in which figures are drawn alike on every machine."""
    with mpl.rc_context(), warnings.catch_warnings():
        # A name may have letters that the font lacks; a browser finds them in other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def text_width_in(text: str, points: float = SMALL, weight: str = "normal") -> float:
    """Return the width in inches of a text that is printed ``points`` large."""
    return svg.text_width_in(text, points, weight)


def legend_columns(labels: Sequence[str], room_in: float) -> int:
    """Return the number of columns with which a legend fits into a width: one row if possible."""
    widths = [text_width_in(label) + _HANDLE_IN for label in labels]
    for rows in range(1, len(widths) + 1):
        columns = -(-len(widths) // rows)
        # Matplotlib fills column by column; the first ones may have an entry more than the others.
        sizes = [len(widths) // columns + (n < len(widths) % columns) for n in range(columns)]
        ends = list(accumulate(sizes))
        if sum(max(widths[e - s : e]) for s, e in zip(sizes, ends, strict=True)) <= room_in:
            return columns
    return 1


def box(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def move(axes: Axes, left: float, bottom: float, width: float, height: float) -> None:
    """Move axes to a place in inches."""
    figure = axes.get_figure(root=True)
    if figure is not None:
        across, up = figure.get_size_inches()
        axes.set_position((left / across, bottom / up, width / across, height / up))


# --- draws many strokes as one line with gaps; as separate paths they would be most of a page -----


def grid(axes: Axes) -> None:
    """Draw the grid of ``axes``, the limits of which must be set."""
    axes.grid(visible=False)
    style_of: dict[str, Any] = {
        "color": mpl.rcParams["grid.color"],
        "linewidth": mpl.rcParams["grid.linewidth"],
        "zorder": 0.6,
    }
    strokes(axes, _within(axes.get_xticks(), axes.get_xlim()), (0, 1), **style_of)
    strokes(axes, _within(axes.get_yticks(), axes.get_ylim()), (0, 1), level=True, **style_of)


def strokes(
    axes: Axes,
    places: Sequence[float],
    span: tuple[float, float],
    *,
    level: bool = False,
    **style_of: Any,
) -> None:
    """Draw a vertical stroke at each place, between two shares of the height of ``axes``.

    ``level`` strokes are horizontal.
    """
    along = [each for place in places for each in (place, place, MISSING)]
    across = [*span, MISSING] * len(places)
    axes.plot(
        *((across, along) if level else (along, across)),
        transform=axes.get_yaxis_transform() if level else axes.get_xaxis_transform(),
        scalex=False,
        scaley=False,
        solid_capstyle="butt",
        **style_of,
    )


def _within(ticks: Iterable[float], ends: tuple[float, float]) -> list[float]:
    return [each for each in ticks if ends[0] <= each <= ends[1]]
