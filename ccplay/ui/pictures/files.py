"""The names of picture files, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ccplay.files import writing
from ccplay.ui.pictures.png import png
from ccplay.ui.pictures.shapes import Frame
from ccplay.ui.pictures.svg import svg

_TITLE = "ccplay"

DRAWN: Mapping[str, Callable[[Frame], str | bytes]] = {
    ".svg": lambda frame: svg(frame, _TITLE),
    ".png": png,
}
"""Functions that draw a frame, by the ending of files; one that raises ``UsageError`` is last."""


def stem(t: float) -> str:
    """Return the file name, without its ending, of a picture at the moment ``t`` in seconds."""
    return f"ccplay-{moment(t)}"


def moment(t: float) -> str:
    """Return the moment ``t`` in seconds as it appears in names of pictures: ``01m30.0s``."""
    tenths = round(t * 10)
    return f"{tenths // 600:02d}m{tenths % 600 / 10:04.1f}s"


def write_new(frame: Frame, stem: str, suffix: str, folder: Path) -> Path:
    """Draw ``frame`` into a new file, with a number if the name is taken; return its path.

    Raises ``OSError``, and ``UsageError`` if this machine can't draw that kind of file.
    """
    return writing.write_numbered(folder, stem, suffix, DRAWN[suffix](frame))
