"""The characters of the screen, in Unicode or plain ASCII.

Each is exactly one cell wide. The Unicode ones are all in DejaVu Sans Mono and most other terminal
fonts; the ASCII ones are for serial lines and the Linux console, where even box lines may fail.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Glyphs(msgspec.Struct, frozen=True):
    """One set of characters."""

    name: str
    horizontal: str
    vertical: str
    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    tee_right: str
    """Vertical line with a branch to the right."""
    tee_left: str
    tee_down: str
    tee_up: str
    cross: str
    bottleneck: str
    """Horizontal line, for the link under study."""
    dotted: str
    """Dotted horizontal line, for ssthresh and limits."""
    dashed_vertical: str
    """Dashed vertical line, for marks through the plots."""
    cursor: str
    """Vertical line, for the cursor through the plots."""
    arrow_right: str
    arrow_left: str
    queue_steps: tuple[str, ...]
    """Cells of the queue bar, from empty to full."""
    flow_glyphs: tuple[str, ...]
    """Glyphs of flows, which distinguish flows without colours."""
    ghost_glyphs: tuple[str, ...]
    """Glyphs of flows in an earlier run, smaller than those of this run's flows if possible."""
    ghost: str
    """Glyph of an earlier run in the legend, and in plots that can't have braille dots."""
    answer: str
    """Glyph of a ping's reply in an earlier run."""
    bars: tuple[str, ...]
    """Bars of increasing height, the last as high as a cell."""
    ribbon: tuple[str, ...]
    """Glyphs of the states Open, Disorder, CWR, Recovery and Loss in the ribbon."""
    reduced: tuple[str, ...]
    """Glyphs for four increasing shares of time outside Open, most of it in CWR."""
    timeout: str
    """Glyph for time partly spent in Loss."""
    live: str
    frozen: str
    replay: str
    drop: str
    mark: str
    traced: str
    """Glyph of a traced flow, after the flow's own glyph."""
    chosen: str
    """Glyph at the selected line of a list."""
    available: str
    missing: str
    shade: str
    """Glyph that fills a marked region."""
    ellipsis: str
    separator: str
    plot_cells: Literal["braille", "ascii"]
    border: Literal["round", "ascii"]
    """Border type, named as in Textual's styles."""

    def flow_glyph(self, number: int) -> str:
        """Return the glyph of the flow with index ``number``, from 0; glyphs repeat."""
        return self.flow_glyphs[number % len(self.flow_glyphs)]

    def ghost_glyph(self, number: int) -> str:
        """Return the glyph of a flow in an earlier run, by its index from 0; glyphs repeat."""
        return self.ghost_glyphs[number % len(self.ghost_glyphs)]

    def translate(self, text: str) -> str:
        """Return ``text`` with characters that this set lacks replaced."""
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
    flow_glyphs=("●", "■", "▲", "◆", "○", "□", "△", "◇", "★", "☆"),
    ghost_glyphs=("•", "▪", "▴", "⋄", "◦", "▫", "▵", "◊", "⋆", "∗"),
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
    shade="░",
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
    flow_glyphs=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
    ghost_glyphs=("o", "x", "+", "*", "@", "%", "&", "$", "w", "m"),
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
    shade=":",
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
        "⌫": "bksp",
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
