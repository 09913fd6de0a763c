"""The figures' font, reduced to Latin letters so that every file can contain it.

The font is matplotlib's own, DejaVu Sans (its licence allows this), so that figures look the same
everywhere; text in other letters falls back to the whole font.
"""

from __future__ import annotations

import atexit
import base64
import io
import tempfile
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ft2font import FT2Font

from ccplay.files.writing import create, passing_folder

WHOLE = "DejaVu Sans"
FAMILY = "DejaVu Sans Latin"
WEIGHTS = ("normal", "bold")
_LETTERS = "".join(map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x180)))) + "–—…→←↑↓±×−µΔ≤≥≈·•“”‘’„"
_FAMILY_NAMES = (1, 4, 16)
"""IDs of records in the font's ``name`` table: family, full name, typographic family."""


@lru_cache(maxsize=1)
def cut() -> Path:
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


def use(folder: Path) -> None:
    """Draw the figures of this process with the fonts that ``cut`` wrote."""
    if FAMILY not in {each.name for each in fontManager.ttflist}:
        for weight in WEIGHTS:
            fontManager.addfont(folder / f"{weight}.ttf")
        _font.cache_clear()


@lru_cache(maxsize=1)
def face(folder: Path) -> str:
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
def text_width_in(text: str, points: float, weight: str = "normal") -> float:
    """Return the width in inches of a text that is printed ``points`` large."""
    font = _font(weight)
    # Measured at 100 points, because widths are whole pixels, too coarse at small sizes.
    font.set_size(100, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64 / 72 * points / 100 + 0.02


@lru_cache(maxsize=4)
def _font(weight: str) -> FT2Font:
    return get_font(findfont(FontProperties(family=WHOLE, weight=weight)))
