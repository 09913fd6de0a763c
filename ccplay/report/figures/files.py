"""Figures as files, reproducible byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from matplotlib.figure import Figure

from ccplay.files import writing
from ccplay.report.figures.svg import svg

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200


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
    text = svg(figure, stem.name)
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
