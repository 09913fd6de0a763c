"""Figures as files: the same bytes every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ccplay.report.figures.svg import svg

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200


@dataclass(frozen=True, slots=True)
class Saved:
    """A figure that was written."""

    svg: str
    """For a page that brings the font."""
    files: list[str]
    """Their names."""
    width_in: float


def save(figure: Figure, stem: Path, formats: Sequence[str], font_face: str = "") -> Saved:
    """Write a figure in each format. Raises ``OSError``.

    ``font_face`` is CSS that an SVG shall carry: its font, so that it is the same everywhere.
    """
    text = svg(figure, stem.name)
    paths = []
    for kind in formats:
        path = stem.with_name(f"{stem.name}.{kind}")
        if kind == "svg":
            style = f"<style>{font_face}</style>" if font_face else ""
            path.write_text(text.replace("<defs>", f"{style}<defs>", 1), encoding="utf-8")
        elif kind == "pdf":
            figure.savefig(path, format="pdf", metadata={"CreationDate": None, "Producer": None})
        else:
            figure.savefig(path, format=kind, dpi=PNG_DPI, metadata={"Software": None})
        paths.append(path)
    return Saved(text, [path.name for path in paths], figure.get_size_inches()[0])
