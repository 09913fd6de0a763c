"""The appearance of every figure, its font, and its files: sizes in inches, colours, SVG."""

from __future__ import annotations

import atexit
import base64
import io
import math
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
import msgspec
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ft2font import FT2Font

from ccplay.files import writing
from ccplay.files.writing import create, passing_folder
from ccplay.model.series import MISSING

# --- the appearance of every figure ---------------------------------------------------------------

COLUMN_IN = 3.5
"""Width in inches of a column in a paper with two columns."""
PAGE_IN = 7.0
"""Width in inches of the text of a paper's page."""
RIGHT_IN = 0.14
"""Width in inches of the margin at the right of the axes."""
ROW_IN = 0.14
"""Height in inches of a row of a legend."""
_PANEL_GAP_IN = 0.22
SMALL = 6.5
"""Size in points of legends and of labels within a figure."""

WHOLE = "DejaVu Sans"
FAMILY = "DejaVu Sans Latin"
"""Family of the reduced font; text in other letters falls back to the whole one."""

INK = "#1a1a1a"
MUTED = "#5a5a5a"
GRID = "#e3e3e3"
QUEUE = "#3d4f61"
QUEUE_FILL = "#c9d3dc"
DROP = "#b3002d"
ECN = "#7a3e9d"
OTHER = "#4a4a4a"

FLOWS = ("#0072b2", "#d55e00", "#009e73", "#b65a8f", "#56b4e9", "#e69f00", "#7f4f24", "#000000")
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
    "font.family": [FAMILY, WHOLE],
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


def ink(number: int, colours: Sequence[str]) -> Ink:
    """Return one of a series of inks; they repeat after four times the number of colours."""
    dash, marker = DASHES[number % len(DASHES)], MARKERS[number % len(MARKERS)]
    return Ink(colours[number % len(colours)], dash, marker)


class Inks:
    """Inks of flows, downloads and UDP by name; each is the same in all figures of a report."""

    def __init__(self, names: Iterable[str]) -> None:
        self._inks = {name: ink(i, FLOWS) for i, name in enumerate(dict.fromkeys(names))}

    def __getitem__(self, name: str) -> Ink:
        return self._inks.get(name, Ink(MUTED, "-", "o"))


def case_inks(names: Iterable[str]) -> dict[str, Ink]:
    """Return an ink for each case."""
    return {name: ink(i, CASES) for i, name in enumerate(names)}


@contextmanager
def look() -> Iterator[None]:
    """Return a context in which figures are drawn alike on every machine."""
    with mpl.rc_context(), warnings.catch_warnings():
        # A name may have letters that the font lacks; a browser finds them in other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


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


def size_in(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in inches."""
    figure, place = axes.get_figure(root=True), axes.get_position()
    across, up = figure.get_size_inches() if figure is not None else (1.0, 1.0)
    return place.width * across, place.height * up


def frame(
    titles: Sequence[str],
    handles: Sequence[Any],
    width: float,
    *,
    left: float,
    height: float,
    below: float,
    sideways: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a legend on top, and the axes of its panels side by side, in rows.

    Each panel is ``height`` inches high, with ``below`` inches for labels under it. Panels share
    the axis of values: the vertical one, or the horizontal one of ``sideways`` bars.
    """
    room = width - left - RIGHT_IN
    columns = legend_columns([str(each.get_label()) for each in handles], room)
    across = panels_across(len(titles), sideways=sideways)
    down = math.ceil(len(titles) / across)
    head = 0.08 + ROW_IN * math.ceil(len(handles) / columns)
    over = 0.18 if any(titles) else 0.0
    total = head + down * (over + height + below) + (down - 1) * 0.12
    figure = Figure(figsize=(width, total))
    each = (room - (across - 1) * _PANEL_GAP_IN) / across
    panels: list[Axes] = []
    for number, title in enumerate(titles):
        row, column = divmod(number, across)
        bottom = total - head - (row + 1) * (over + height) - row * (0.12 + below)
        axes = box(figure, left + column * (each + _PANEL_GAP_IN), bottom, each, height)
        if over:
            axes.set_title(title, fontsize=7.5, fontweight="bold", loc="left", pad=3)
        if panels:
            (axes.sharex if sideways else axes.sharey)(panels[0])
        if column:
            axes.tick_params(labelleft=False)
        panels.append(axes)
    if handles:
        at = (left / width, 1 - 0.03 / total)
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=at, ncols=columns)
    return figure, panels


def panels_across(panels: int, *, sideways: bool = False) -> int:
    """Return the number of panels per row: at most three; four panels form a square.

    Four panels of ``sideways`` bars share one row.
    """
    if panels == 4:
        return 4 if sideways else 2
    return min(panels, 3)


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


# --- the figures' font, reduced to Latin letters so that every file can contain it ----------------
# The font is matplotlib's own, DejaVu Sans (its licence allows this), so that figures look the same
# everywhere; text in other letters falls back to the whole font.

WEIGHTS = ("normal", "bold")
_LETTERS = "".join(map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x180)))) + "–—…→←↑↓±×−µΔ≤≥≈·•“”‘’„"
_FAMILY_NAMES = (1, 4, 16)
"""IDs of records in the font's ``name`` table: family, full name, typographic family."""


@lru_cache(maxsize=1)
def write_fonts() -> Path:
    """Return a folder with the reduced font in each weight; removed when this process exits."""
    held = ExitStack()
    folder = held.enter_context(passing_folder(Path(tempfile.gettempdir()), "ccplay-font-"))
    atexit.register(held.close)
    for weight in WEIGHTS:
        font = TTFont(findfont(FontProperties(family=WHOLE, weight=weight)), recalcTimestamp=False)
        options = subset.Options(hinting=False, layout_features=["kern"], notdef_outline=True)
        options.drop_tables += ["FFTM", "GSUB", "GDEF"]
        subsetter = subset.Subsetter(options)
        subsetter.populate(text=_LETTERS)
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID in _FAMILY_NAMES:
                font["name"].setName(
                    FAMILY, record.nameID, record.platformID, record.platEncID, record.langID
                )
        with create(folder / f"{weight}.ttf") as file:
            font.save(file)
    return folder


def use_fonts(folder: Path) -> None:
    """Draw the figures of this process with the fonts that ``write_fonts`` wrote."""
    if FAMILY not in {each.name for each in fontManager.ttflist}:
        for weight in WEIGHTS:
            fontManager.addfont(folder / f"{weight}.ttf")
        _font.cache_clear()


@lru_cache(maxsize=1)
def font_face(folder: Path) -> str:
    """Return the CSS that adds the font to a page: WOFF in data URIs."""
    return "".join(
        f"@font-face{{font-family:'{FAMILY}';font-weight:{weight};"
        f"src:url(data:font/woff;base64,{_woff(folder / f'{weight}.ttf')})}}"
        for weight in WEIGHTS
    )


def _woff(path: Path) -> str:
    font = TTFont(path, recalcTimestamp=False)
    font.flavor = "woff"
    buffer = io.BytesIO()
    font.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()


@lru_cache(maxsize=4096)
def text_width_in(text: str, points: float = SMALL, weight: str = "normal") -> float:
    """Return the width in inches of a text that is printed ``points`` large."""
    font = _font(weight)
    # Measured at 100 points, because widths are whole pixels, too coarse at small sizes.
    font.set_size(100, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64 / 72 * points / 100 + 0.02


@lru_cache(maxsize=4)
def _font(weight: str) -> FT2Font:
    return get_font(findfont(FontProperties(family=WHOLE, weight=weight)))


# --- figures as files, reproducible byte by byte --------------------------------------------------

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200

_NOISE = re.compile(r"^.*?(?=<svg )|\s*<metadata>.*?</metadata>|<!--.*?-->|\s+(?=<)", re.DOTALL)
_GROUP_ID = re.compile(r'(?<=<g) id="[^"]*"')
_TAG = re.compile(r"<[^>]*>")
_DIGITS = re.compile(r"(\d+\.\d\d)\d+")


def svg_text(figure: Figure, prefix: str) -> str:
    """Return a figure as SVG for a page, with coordinates to a hundredth of a point.

    ``prefix`` differs between the figures of a page, and so do the ids that they refer to.
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": prefix}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = _NOISE.sub("", buffer.getvalue())
    # Only within tags, because digits in labels are measured values.
    return _TAG.sub(lambda tag: _DIGITS.sub(r"\1", _GROUP_ID.sub("", tag[0])), text) + "\n"


class Saved(msgspec.Struct, frozen=True):
    """A figure that was written."""

    svg: str
    """Text of the SVG without its font, for a page that contains the font."""
    files: list[str]
    """Names of the files."""
    width_in: float


def save(figure: Figure, stem: Path, formats: Sequence[str], font_face: str = "") -> Saved:
    """Write a figure in each format. Raises ``OSError``.

    ``font_face`` is CSS with the font, which an SVG file contains to look the same everywhere.
    """
    text = svg_text(figure, stem.name)
    names = [f"{stem.name}.{kind}" for kind in formats]
    for name, kind in zip(names, formats, strict=True):
        with writing.create(stem.with_name(name)) as file:
            if kind == "svg":
                style = f"<style>{font_face}</style>" if font_face else ""
                file.write(text.replace("<defs>", f"{style}<defs>", 1).encode())
            elif kind == "pdf":
                undated = {"CreationDate": None, "Producer": None}
                figure.savefig(file, format="pdf", metadata=undated)
            else:
                figure.savefig(file, format=kind, dpi=PNG_DPI, metadata={"Software": None})
    return Saved(text, names, figure.get_size_inches()[0])


class Overview(msgspec.Struct, frozen=True):
    """A figure of all runs together, which a worker process draws."""

    name: str
    """Name of the figure's files."""
    title: str
    caption: str
    figure: Callable[[], Figure]
    """Function that draws the figure, in another process."""
    lead: bool = False
    """Whether this is the main figure."""


def draw_overview(overview: Overview, folder: Path, fonts: Path) -> Saved:
    """Draw a figure of all runs into files. Raises ``OSError``."""
    use_fonts(fonts)
    with look():
        return save(overview.figure(), folder / overview.name, FORMATS, font_face(fonts))
