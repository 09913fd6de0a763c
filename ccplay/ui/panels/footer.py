"""The last line: the keys, as many as fit, the most needed first."""

from __future__ import annotations

from ccplay.ui.sheet import Row, Run, length
from ccplay.ui.view import View

LIVE = (
    ("f", "flow"),
    ("w", "wget"),
    ("p", "ping"),
    ("c", "congestion"),
    ("q", "queue"),
    ("l", "link"),
    ("x", "stop"),
    ("space", "freeze"),
    ("←→", "scrub"),
    ("+-", "zoom"),
    ("?", "help"),
    ("m", "mark"),
    ("b", "way back"),
    ("t", "theme"),
)
"""Keys of a live session."""

PAST = (
    ("space", "pause"),
    ("←→", "scrub"),
    ("+-", "zoom"),
    ("[ ]", "speed"),
    ("home/end", "start/end"),
    ("↑↓", "flow"),
    ("?", "help"),
    ("b", "way back"),
    ("t", "theme"),
    ("s", "picture"),
    ("^q", "quit"),
)
"""Keys where there is nothing to command."""


def rows(view: View, width: int) -> list[Row]:
    """Return the footer."""
    row: list[Run] = []
    for key, word in LIVE if view.session.live else PAST:
        if word in ("freeze", "pause") and not view.playhead.running:
            word = "go on"  # noqa: PLW2901
        item: list[Run] = [
            (" " + view.glyphs.translate(key), f"bold {view.ink('cursor')}"),
            (f" {word} ", view.ink("muted")),
        ]
        if length(row) + length(item) > width:
            continue
        row += item
    return [row]
