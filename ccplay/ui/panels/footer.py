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
    ("space", "freeze"),
    ("x", "stop"),
    ("←→", "scrub"),
    ("+-", "zoom"),
    ("u", "UDP"),
    ("g", "ghost"),
    ("m", "mark"),
    ("h", "trace"),
    ("b", "way back"),
    ("t", "theme"),
    ("v", "values"),
)
"""Keys of a live session."""

PAST = (
    ("space", "pause"),
    ("←→", "scrub"),
    ("+-", "zoom"),
    ("[ ]", "speed"),
    ("g", "ghost"),
    ("home/end", "start/end"),
    ("↑↓", "flow"),
    ("b", "way back"),
    ("t", "theme"),
    ("s", "picture"),
    ("^q", "quit"),
    ("v", "values"),
)
"""Keys where there is nothing to command."""


def rows(view: View, width: int) -> list[Row]:
    """Return the footer; the way to all other keys is always there."""
    last = _item(view, "?", "help")
    row: list[Run] = []
    for key, word in LIVE if view.session.live else PAST:
        going = word in ("freeze", "pause") and not view.playhead.running
        item = _item(view, key, "go on" if going else word)
        if length(row) + length(item) + length(last) <= width:
            row += item
    return [[*row, *last]]


def _item(view: View, key: str, word: str) -> list[Run]:
    return [
        (" " + view.glyphs.translate(key), f"bold {view.ink('cursor')}"),
        (f" {word} ", view.ink("muted")),
    ]
