"""A link as a QR code for a terminal: a line of half blocks shows two rows of modules."""

from __future__ import annotations

import segno

_QUIET = 2
"""Width in modules of the light border around the code."""

_BLOCKS = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}


def rows(link: str) -> list[str]:
    """Return the lines of the code, to be printed dark on light in any terminal."""
    matrix = segno.make(link, error="l", micro=False).matrix_iter(border=_QUIET)
    modules = [[int(module) & 1 for module in row] for row in matrix]
    if len(modules) % 2:
        modules.append([0] * len(modules[0]))
    return [
        "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(modules[::2], modules[1::2], strict=True)
    ]
