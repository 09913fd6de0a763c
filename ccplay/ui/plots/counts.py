"""The growth of counters in each column, as bars on lines above the plot's values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ccplay.ui.cells.sheet import Run
from ccplay.ui.plots.picture import Picture


class Bars:
    """The bars of a plot, cached by column, so that a live frame computes one column."""

    def __init__(self) -> None:
        self._grown: list[dict[int, float]] = []
        self.lines: list[int] = []
        """Indices of the picture's counters that have a line, from the top: those that grew."""

    def clear(self) -> None:
        """Discard all columns."""
        self._grown.clear()
        self.lines.clear()

    def count(self, picture: Picture, columns: Sequence[int], slot: float) -> bool:
        """Count the growth in ``columns`` of ``slot`` seconds; return whether a line was added."""
        before = len(self.lines)
        while len(self._grown) < len(picture.counts):
            self._grown.append({})
        for trace, grown in zip(picture.counts, self._grown, strict=True):
            for x in columns:
                start = picture.left + slot * x
                if start <= picture.until:
                    grown[x] = trace.growth(start, min(start + slot, picture.until))
        self.lines = [at for at, grown in enumerate(self._grown) if any(grown.values())]
        return len(self.lines) != before

    def greatest(self, line: int) -> float:
        """Return the largest growth within a column of the counter on a line."""
        return max(self._grown[self.lines[line]].values())

    def label(self, picture: Picture, line: int, width: int) -> Run:
        """Return the growth that a full bar stands for, with the counter's sign."""
        pen = picture.counts[self.lines[line]].pen
        # Without the sign, the number would look like a label of the axis below.
        return f"{pen.glyph}{_brief(self.greatest(line))}".rjust(width), pen.ink

    def cell(self, picture: Picture, line: int, x: int) -> Run | None:
        """Return the bar of a column; None if the counter did not grow."""
        at = self.lines[line]
        if not (grown := self._grown[at].get(x)):
            return None
        bars = picture.glyphs.bars
        height = math.ceil(grown / self.greatest(line) * len(bars) - 1e-9)
        return bars[max(height, 1) - 1], f"bold {picture.counts[at].pen.ink}"


def _brief(count: float) -> str:
    """Return a count in at most three characters: ``87``, ``4k``, ``.3M``."""
    if count < 1e3:
        return f"{count:.0f}"
    if count < 99.5e3:
        return f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.1f}M".removeprefix("0") if count < 950e3 else f"{count / 1e6:.0f}M"
