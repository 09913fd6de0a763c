"""The event log: commands, events and errors, the newest line last."""

from __future__ import annotations

from textwrap import wrap

from ccplay.state.lab_state import Entry
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.view import View
from ccplay.units import format_clock

INKS = {
    "applied": "text",
    "mark": "mark",
    "traffic": "muted",
    "file": "text",
    "info": "muted",
    "warning": "warn",
    "error": "bad",
}
"""Name of the ink of an entry's text, by the kind of entry."""

WORDS = {"error": "failed: ", "warning": "warning: "}
"""First words of an entry's line, by the kind of entry."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the title, then the last lines up to the moment shown; errors are not cut.

    If an error is longer than the panel, its first lines are shown, which have the place.
    """
    title: list[Run] = [("events", f"bold {view.ink('text')}")]
    lines: list[Row] = []
    for entry in reversed(view.entries(height - 1)):
        room = height - 1 - len(lines)
        lines = [*_lines(view, entry, width, room), *lines]
        if len(lines) >= height - 1:
            break
    return [title, *lines]


def height(view: View, width: int) -> int:
    """Return the lines in which the title and the newest entry fit, if it is an error."""
    newest = view.entries(1)
    return 1 + len(_lines(view, newest[0], width, 0)) if newest else 1


def _lines(view: View, entry: Entry, width: int, most: int) -> list[Row]:
    """Return an entry as one line, an error as up to ``most``; 0 means any number."""
    sign = view.glyphs.dashed_vertical if entry.is_mark else " "
    text = view.glyphs.translate(WORDS.get(entry.kind, "") + " ".join(entry.text.split()))
    bold = "bold " if entry.kind == "error" else ""
    room = max(width - 9, 1)
    whole = wrap(text, room) if entry.kind in WORDS else [text]
    if len(whole) > most > 0:
        whole = [*whole[: most - 1], " ".join(whole[most - 1 :])]
    heads = [format_clock(entry.t), *[" " * 5] * (len(whole) - 1)]
    return [
        [
            (head, view.ink("muted")),
            (f" {sign} ", view.ink("mark")),
            (fit(each, room, view.glyphs.ellipsis), bold + view.ink(INKS[entry.kind])),
        ]
        for head, each in zip(heads, whole, strict=True)
    ]
