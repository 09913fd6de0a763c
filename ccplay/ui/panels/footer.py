"""The last line: as many keys as fit, the most needed first."""

from __future__ import annotations

from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.view import View

LIVE = (
    ("f", "flow"),
    ("w", "wget"),
    ("p", "ping"),
    ("u", "UDP"),
    ("c", "congestion"),
    ("q", "queue"),
    ("l", "link"),
    ("space", "freeze"),
    ("x", "stop"),
    ("←→", "scrub"),
    ("+-", "zoom"),
    ("g", "ghost"),
    ("m", "mark"),
    ("z", "undo"),
    ("h", "trace"),
    ("n", "short flows"),
    ("b", "way back"),
    ("t", "theme"),
    ("v", "values"),
    ("o", "alone"),
    ("G", "groups"),
    ("/", "filter"),
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
    ("o", "alone"),
    ("G", "groups"),
    ("/", "filter"),
)
"""Keys of a recording."""

_NARROW = 100
"""Width below which keys of a live session are closer, so that all keys for traffic fit."""

_SHORT = {"congestion": "cc"}
"""Short names there, as at the head of the table."""


def rows(view: View, width: int) -> list[Row]:
    """Return the footer; the key for help is always in it."""
    close = view.session.live and width < _NARROW
    last = _item(view, "?", "help", close=close)
    row: list[Run] = []
    for key, word in LIVE if view.session.live else PAST:
        going = word in ("freeze", "pause") and not view.playhead.running
        item = _item(view, key, "resume" if going else word, close=close)
        if length(row) + length(item) + length(last) <= width:
            row += item
    return [[*row, *last]]


def _item(view: View, key: str, word: str, *, close: bool) -> list[Run]:
    said = f" {_SHORT.get(word, word)}" if close else f" {word} "
    return [
        (" " + view.glyphs.translate(key), f"bold {view.ink('cursor')}"),
        (said, view.ink("muted")),
    ]
