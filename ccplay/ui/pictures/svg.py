"""A frame as SVG: text as text, everything else as paths, so that it looks the same everywhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from ccplay.ui.pictures.shapes import (
    HEIGHT,
    WIDTH,
    Area,
    Dot,
    Face,
    Frame,
    Line,
    Shape,
    Span,
    is_drawn,
    shapes_of,
)
from ccplay.visible import printable

FONT_SIZE = WIDTH / 0.602
"""Font size in units at which characters of DejaVu Sans Mono are as wide as a cell."""

BASELINE = 15.2
"""Distance of the baseline from the top of a cell in units."""

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" '
    'width="{0:g}" height="{1:g}">'
)

_FAMILIES = "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace"


def svg(frame: Frame, title: str) -> str:
    """Return ``frame`` as an SVG document titled ``title``."""
    width, height = frame.width * WIDTH, frame.height * HEIGHT
    spans = [(y, span) for y, row in enumerate(frame.rows) for span in row]
    return "\n".join(
        (
            _HEAD.format(width, height),
            f"<title>{escape(printable(title))}</title>",
            f'<rect width="100%" height="100%" fill="{frame.paper}"/>',
            *_papers(spans, frame.paper),
            *_paths(spans),
            f'<g font-family="{_FAMILIES}" font-size="{FONT_SIZE:.2f}" xml:space="preserve">',
            *_texts(spans),
            "</g>",
            "</svg>\n",
        )
    )


def _papers(spans: Iterable[tuple[int, Span]], paper: str) -> Iterator[str]:
    """Yield a path for each background colour that differs from the screen's."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for y, span in spans:
        if span.face.paper != paper:
            wide = len(span.cells) * WIDTH
            at = f"M{span.x * WIDTH:g} {y * HEIGHT:g}"
            paths[span.face.paper].append(f"{at}h{wide:g}v{HEIGHT:g}h{-wide:g}z")
    for colour, parts in paths.items():
        yield f'<path shape-rendering="crispEdges" fill="{colour}" d="{"".join(parts)}"/>'


def _paths(spans: Iterable[tuple[int, Span]]) -> Iterator[str]:
    """Yield a path for each kind and colour of shapes."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for y, span in spans:
        for x, char in enumerate(span.cells, span.x):
            for shape in shapes_of(char):
                paths[_brush(shape, span.face.ink)].append(_path(shape, x * WIDTH, y * HEIGHT))
    for brush, parts in paths.items():
        yield f'<path {brush} d="{"".join(parts)}"/>'


def _brush(shape: Shape, ink: str) -> str:
    match shape:
        case Dot():
            # A minimal line with round ends needs a tenth of the text of a circle.
            return f'stroke="{ink}" stroke-width="{2 * shape.radius:g}" stroke-linecap="round"'
        case Line():
            return f'stroke="{ink}" stroke-width="{shape.width:g}" fill="none"'
        case Area():
            faint = f' fill-opacity="{shape.opacity:g}"' if shape.opacity < 1 else ""
            return f'fill="{ink}"{faint}'


def _path(shape: Shape, x: float, y: float) -> str:
    match shape:
        case Dot():
            return f"M{x + shape.centre[0]:g} {y + shape.centre[1]:g}h.01"
        case Line():
            return _through(shape.points, x, y)
        case Area():
            return _through(shape.corners, x, y) + "z"


def _through(points: Iterable[tuple[float, float]], x: float, y: float) -> str:
    return "M" + "L".join(f"{round(x + a, 2):g} {round(y + b, 2):g}" for a, b in points)


def _texts(spans: Iterable[tuple[int, Span]]) -> Iterator[str]:
    """Yield the texts that a font draws, each stretched to the width of its cells."""
    for y, span in spans:
        for x, text, cells in _words(span):
            place = f'x="{x * WIDTH:g}" y="{y * HEIGHT + BASELINE:g}"'
            size = f'textLength="{cells * WIDTH:g}" lengthAdjust="spacingAndGlyphs"'
            yield f"<text {place} {size}{_traits(span.face)}>{escape(text)}</text>"


def _words(span: Span) -> Iterator[tuple[int, str, int]]:
    """Yield column, text and number of cells of each part of a span that a font draws."""
    x, lined = span.x, span.face.underline or span.face.strike
    for drawn, group in groupby(span.cells, key=is_drawn):
        cells = list(group)
        text = printable("".join(cells))
        if not drawn and lined:
            yield x, text, len(cells)
        elif not drawn and text.strip():
            before, after = (len(text) - len(each) for each in (text.lstrip(), text.rstrip()))
            yield x + before, text.strip(), len(cells) - before - after
        x += len(cells)


def _traits(face: Face) -> str:
    lines = " ".join(
        name for name, on in (("underline", face.underline), ("line-through", face.strike)) if on
    )
    return (
        f' fill="{face.ink}"'
        + (' font-weight="bold"' if face.bold else "")
        + (' font-style="italic"' if face.italic else "")
        + (f' text-decoration="{lines}"' if lines else "")
    )
