"""What the selected flow is doing at the moment shown, and why, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.modal import Modal


class ExplainScreen(Modal[None]):
    """A box over the lower part of the screen; escape or the key that opened it closes it."""

    DEFAULT_CSS = """
    ExplainScreen {
        align: center bottom; background: $background 0%;
        & > #sentences {
            width: 100%; height: auto; max-height: 60%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
            scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    ExplainScreen.ascii > #sentences { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        # The id of the key that opened it, so a remapped key closes it too.
        Binding("i", "dismiss", "leave", id="explain", show=False),
    ]

    def __init__(self, title: str, sentences: Sequence[str], glyphs: Glyphs) -> None:
        """Show each of ``sentences`` on a line of its own."""
        super().__init__()
        self._heading = title
        self._sentences = sentences
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Compose the box."""
        self.set_class(self._glyphs.name == "ascii", "ascii")
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column()
        for each in self._sentences:
            table.add_row(self._glyphs.separator, Text(self._glyphs.translate(each)))
        box = VerticalScroll(Static(table), id="sentences")
        # Not markup: the names of a recording are in it.
        box.border_title = Content(self._glyphs.translate(self._heading))
        box.border_subtitle = self._glyphs.translate("↑↓ scroll  esc leave")
        yield box
