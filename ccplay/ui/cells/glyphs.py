"""The characters that the screen is drawn with, in Unicode or in plain ASCII.

Each is exactly one cell wide. The Unicode ones are all in DejaVu Sans Mono and most other fonts of
terminals; the ASCII ones are for serial lines, the Linux console, wherever even a box breaks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of characters."""

    name: str
    horizontal: str
    vertical: str
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    tee_right: str
    """A line that goes down with a branch to the right."""
    tee_left: str
    tee_down: str
    tee_up: str
    cross: str
    bottleneck: str
    """The link under study."""
    dotted: str
    """Horizontal, for ssthresh and limits."""
    dashed_vertical: str
    """For marks through the plots."""
    cursor: str
    """Vertical, for the cursor through the plots."""
    arrow_right: str
    arrow_left: str
    queue_steps: tuple[str, ...]
    """How full a cell of the queue bar is; the first is empty, the last full."""
    flow_marks: tuple[str, ...]
    """One a flow, so that colour is not the only cue."""
    ghost_marks: tuple[str, ...]
    """The same in an earlier run: smaller."""
    ghost: str
    """What an earlier run is drawn with where there are no braille dots, and in the legend."""
    answer: str
    """A ping's answer in an earlier run."""
    bars: tuple[str, ...]
    """From the least to the full height of a cell."""
    ribbon: tuple[str, ...]
    """Open, Disorder, CWR, Recovery, Loss."""
    reduced: tuple[str, ...]
    """CWR over four shares of a longer time."""
    timeout: str
    """Loss within a longer time."""
    live: str
    frozen: str
    replay: str
    drop: str
    mark: str
    traced: str
    """After the mark of a flow whose every ACK is told of."""
    chosen: str
    """Before the chosen one of a list."""
    available: str
    missing: str
    ellipsis: str
    separator: str
    plot_cells: Literal["braille", "ascii"]
    border: Literal["round", "ascii"]
    """The border type of Textual's styles."""

    def flow_mark(self, number: int) -> str:
        """Return the mark of the ``number``-th flow, from 0; they repeat after the last."""
        return self.flow_marks[number % len(self.flow_marks)]

    def ghost_mark(self, number: int) -> str:
        """Return the mark of the ``number``-th flow in an earlier run."""
        return self.ghost_marks[number % len(self.ghost_marks)]

    def translate(self, text: str) -> str:
        """Return ``text`` with nothing in it that this set can't show."""
        return text if self.name == "unicode" else text.translate(_TO_ASCII)


UNICODE = Glyphs(
    name="unicode",
    horizontal="─",
    vertical="│",
    top_left="┌",
    top_right="┐",
    bottom_left="└",
    bottom_right="┘",
    tee_right="├",
    tee_left="┤",
    tee_down="┬",
    tee_up="┴",
    cross="┼",
    bottleneck="═",
    dotted="┄",
    dashed_vertical="┊",
    cursor="│",
    arrow_right="▶",
    arrow_left="◀",
    queue_steps=(" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"),
    flow_marks=("●", "■", "▲", "◆", "○", "□", "△", "◇", "★", "☆"),
    ghost_marks=("•", "▪", "▴", "⋄", "◦", "▫", "▵", "◊", "⋆", "∗"),
    ghost="⠂",
    answer="·",
    bars=("▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"),
    ribbon=("▁", "▂", "▄", "▆", "█"),
    reduced=("░", "▒", "▒", "▓"),
    timeout="!",
    live="●",
    frozen="■",
    replay="▶",
    drop="×",
    mark="▾",
    traced="∿",
    chosen="▸",
    available="✓",
    missing="✗",
    ellipsis="…",
    separator="·",
    plot_cells="braille",
    border="round",
)

ASCII = Glyphs(
    name="ascii",
    horizontal="-",
    vertical="|",
    top_left="+",
    top_right="+",
    bottom_left="+",
    bottom_right="+",
    tee_right="+",
    tee_left="+",
    tee_down="+",
    tee_up="+",
    cross="+",
    bottleneck="=",
    dotted=".",
    dashed_vertical=":",
    cursor="|",
    arrow_right=">",
    arrow_left="<",
    queue_steps=(" ", ".", ":", "=", "#"),
    flow_marks=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
    ghost_marks=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
    ghost=",",
    answer="`",
    bars=(".", ":", "=", "#"),
    ribbon=("_", ".", "-", "=", "#"),
    reduced=("c", "c", "C", "C"),
    timeout="!",
    live="*",
    frozen="#",
    replay=">",
    drop="x",
    mark="v",
    traced="~",
    chosen=">",
    available="+",
    missing="-",
    ellipsis="~",
    separator="-",
    plot_cells="ascii",
    border="ascii",
)

_TO_ASCII = str.maketrans(
    {
        "→": "->",
        "←": "<",
        "↔": "<->",
        "↑": "^",
        "↓": "v",
        "…": "...",
        "·": "-",
        "±": "+-",
        "µ": "u",
        "×": "x",
        "–": "-",
        "—": "-",
        "≥": ">=",
        "≤": "<=",
        "⏎": "enter",
        "▲": "^",
        "▼": "v",
        "▾": "v",
        "▸": ">",
        "●": "*",
        "│": "|",
        "─": "-",
    }
)
