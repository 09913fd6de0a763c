"""The last line: as many keys as fit, the most useful first."""

from __future__ import annotations

from ccplay.ui.cells.sheet import Row, Run, length
from ccplay.ui.view import View

LIVE = (
    ("flow", "flow"),
    ("download", "wget"),
    ("ping", "ping"),
    ("udp", "UDP"),
    ("congestion", "congestion"),
    ("queue", "queue"),
    ("link", "link"),
    ("freeze", "freeze"),
    ("stop", "stop"),
    ("undo", "undo"),
    ("back forward", "scrub"),
    ("zoom-in zoom-out", "zoom"),
    ("ghost", "ghost"),
    ("mark", "mark"),
    ("events", "events"),
    ("trace", "trace"),
    ("short-flows", "short flows"),
    ("way-back", "way back"),
    ("theme", "theme"),
    ("variable", "values"),
    ("alone", "alone"),
    ("groups", "groups"),
    ("filter", "filter"),
    ("explain", "explain"),
)
"""Ids of the keys shown in a live session, each entry with its word, the most useful first."""

PAST = (
    ("freeze", "pause"),
    ("back forward", "scrub"),
    ("zoom-in zoom-out", "zoom"),
    ("slower faster", "speed"),
    ("ghost", "ghost"),
    ("start end", "start/end"),
    ("previous-flow next-flow", "flow"),
    ("way-back", "way back"),
    ("theme", "theme"),
    ("picture", "picture"),
    ("events", "events"),
    ("quit", "quit"),
    ("variable", "values"),
    ("alone", "alone"),
    ("groups", "groups"),
    ("filter", "filter"),
    ("explain", "explain"),
)
"""Ids of the keys shown in a recording, each entry with its word, the most useful first."""

WATCHED = (
    ("follow", "follow"),
    ("explain", "explain"),
    ("freeze", "pause"),
    ("back forward", "scrub"),
    ("zoom-in zoom-out", "zoom"),
    ("previous-flow next-flow", "flow"),
    ("events", "events"),
    ("theme", "theme"),
    ("end", "newest"),
    ("way-back", "way back"),
    ("variable", "values"),
    ("alone", "alone"),
    ("groups", "groups"),
    ("filter", "filter"),
    ("quit", "quit"),
)
"""Ids of the keys shown to a spectator, each entry with its word, the most useful first."""

_NARROW = 100
"""Width in columns below which the keys of a live session are closer together, so that all keys
for traffic fit."""

_SHORT = {"congestion": "cc"}
"""Shorter words for keys on a narrow screen, the same as in the head of the table of traffic."""


def rows(view: View, width: int) -> list[Row]:
    """Return the footer, which always contains the key for help."""
    close = view.session.live and width < _NARROW
    last = _item(view, "help", "help", close=close)
    row: list[Run] = []
    for names, word in _offered(view):
        going = word in ("freeze", "pause") and not view.playhead.running
        item = _item(view, names, "resume" if going else word, close=close)
        if length(row) + length(item) + length(last) <= width:
            row += item
    return [[*row, *last]]


def _offered(view: View) -> tuple[tuple[str, str], ...]:
    if view.watching:
        return WATCHED
    return LIVE if view.session.live else PAST


def _item(view: View, names: str, word: str, *, close: bool) -> list[Run]:
    text = f" {_SHORT.get(word, word)}" if close else f" {word} "
    return [
        (f" {_keys(view, names)}", f"bold {view.ink('cursor')}"),
        (text, view.ink("muted")),
    ]


def _keys(view: View, names: str) -> str:
    keys = [view.keys.shown(name) for name in names.split()]
    between = "/" if max(map(len, keys)) > 1 else " " if keys[0] == "[" else ""
    return view.glyphs.translate(between.join(keys))
