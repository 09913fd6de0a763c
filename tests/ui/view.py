"""Reads the screen as text, and shows another moment."""

from typing import Any

from textual.app import App

from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet


def said(app: App[Any]) -> str:
    """Return the text on the screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def text_of(app: CcplayApp, part: str) -> str:
    """Return the text of a part of the main screen."""
    sheet = app.main.query_one(f"#{part}", Sheet)
    return "\n".join("".join(char for char, _ in row) for row in sheet._cells)


def toasts(app: App[Any]) -> list[str]:
    """Return the texts of the toasts, the oldest first."""
    return [each.message for each in app._notifications]


def seek(app: CcplayApp, t: float) -> str:
    """Show the moment ``t``; return the text of the table of flows."""
    app.main.shown.playhead.jump(t, app.session.state.now)
    app.main.redraw()
    return text_of(app, "flows")
