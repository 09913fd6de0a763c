"""The link for browsers, with its QR code."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from ccplay.share.browsers import Browsers
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.modal import Modal

_LOOK_S = 0.2
"""Interval in seconds at which reports of the server for browsers are read."""

_PAPER = Style(color="#000000", bgcolor="#ffffff")
"""Style of the QR code: dark on light in every theme, as cameras need it."""


class BrowserLink(Modal[None]):
    """A box with the link; escape or the key that opened it closes it."""

    DEFAULT_CSS = """
    BrowserLink {
        align: center middle; background: $background 0%;
        & > #link {
            width: 84; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
        }
        & Static { height: auto; }
    }
    BrowserLink.ascii > #link { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        # The id of the key that opened it, so a remapped key closes it too.
        Binding("ctrl+b", "dismiss", "leave", id="browsers", show=False),
    ]

    def __init__(self, browsers: Browsers, glyphs: Glyphs) -> None:
        """Show the link as soon as ``browsers`` reports it."""
        super().__init__()
        self._browsers = browsers
        self._glyphs = glyphs
        self._shown = ""
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        """Compose the box."""
        self.set_class(self._glyphs.name == "ascii", "ascii")
        box = VerticalScroll(self._text, id="link")
        box.border_title = "Watch in a browser"
        box.border_subtitle = "esc leave"
        yield box

    def on_mount(self) -> None:
        """Start reading reports."""
        self.set_interval(_LOOK_S, self._look)
        self._look()

    def _look(self) -> None:
        browsers = self._browsers
        browsers.listen()
        state = f"{browsers.link}{browsers.count}{browsers.failed}"
        if state == self._shown and self._shown:
            return
        self._shown = state
        self._text.update(self._words())

    def _words(self) -> Text:
        browsers = self._browsers
        if browsers.failed:
            return Text(f"No page: {browsers.failed}")
        if not browsers.link:
            return Text("starting the server for browsers …")
        found = Text(f"{browsers.link}\n\n", style="bold")
        # ASCII has no half blocks.
        if self._glyphs.name != "ascii":
            for row in browsers.code:
                found.append(row, _PAPER)
                found.append("\n")
        watching = f"{browsers.count} {'browser' if browsers.count == 1 else 'browsers'} now"
        found.append(f"\nAnyone with this link can watch and vote, but change nothing. {watching}.")
        return found
