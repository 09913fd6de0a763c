"""Rows of the table for traffic that is not a single connection."""

from __future__ import annotations

from ccplay.state.traffic import Listed, Traffic
from ccplay.ui.cells.sheet import Run, first_fitting, fit
from ccplay.ui.panels.columns import Columns
from ccplay.ui.selection import selection
from ccplay.ui.view import View


def row(view: View, each: Traffic, cells: Columns) -> list[Run]:
    """Return the row of traffic that is not a single connection."""
    glyphs = view.glyphs
    chosen = selection(view) is each
    over = each.ended is not None and each.ended <= view.t
    lines = each.lines(view.t) if isinstance(each, Listed) else ("",)
    shown = first_fitting(cells.rest, *(glyphs.translate(line) for line in lines))
    ink = view.ink("ping" if each.kind == "ping" else "text")
    bold, words = "bold " if chosen else "", view.ink("muted" if over else "text")
    return [
        (glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (f"{glyphs.separator} {cells.named(each.name, glyphs.ellipsis)}", bold + ink),
        (fit(shown, cells.rest, glyphs.ellipsis), bold + words),
    ]
