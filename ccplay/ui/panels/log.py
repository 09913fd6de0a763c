"""The event log: commands, events and errors, the newest line last."""

from __future__ import annotations

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
    """Return the title, then the last lines up to the moment shown."""
    title: list[Run] = [("events", f"bold {view.ink('text')}")]
    entries = view.entries(height - 1)
    return [title, *(_line(view, each, width) for each in entries)]


def _line(view: View, entry: Entry, width: int) -> list[Run]:
    sign = view.glyphs.dashed_vertical if entry.is_mark else " "
    text = view.glyphs.translate(WORDS.get(entry.kind, "") + " ".join(entry.text.split()))
    bold = "bold " if entry.kind == "error" else ""
    return [
        (format_clock(entry.t), view.ink("muted")),
        (f" {sign} ", view.ink("mark")),
        (fit(text, width - 9, view.glyphs.ellipsis), bold + view.ink(INKS[entry.kind])),
    ]
