"""The event log in full, with the texts of toasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from ccplay.state.lab_state import Entry
from ccplay.ui.bindings import COPY
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.modal import Modal
from ccplay.ui.panels.log import INKS, WORDS
from ccplay.ui.themes import Look
from ccplay.units import format_clock

_LOOK_S = 0.25
"""Interval in seconds at which the screen checks for new lines."""


class EventsScreen(Modal[None]):
    """The event log with uncut lines, newest last; escape or the key that opened it closes it."""

    DEFAULT_CSS = """
    EventsScreen {
        align: center middle;
        & > #lines {
            width: 100%; height: 100%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
            scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    EventsScreen.ascii > #lines { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        # The id of the key that opened it, so a remapped key closes it too.
        Binding("e", "dismiss", "leave", id="events", show=False),
        Binding("space", "page_down", "scroll", show=False),
        COPY,
    ]

    def __init__(self, entries: Callable[[], Sequence[Entry]], look: Look, glyphs: Glyphs) -> None:
        """Show the lines that ``entries`` returns, oldest first."""
        super().__init__()
        self._entries = entries
        self._look = look
        self._glyphs = glyphs
        self._shown: Sequence[Entry] = ()

    def compose(self) -> ComposeResult:
        """Compose the page."""
        self.set_class(self._glyphs.name == "ascii", "ascii")
        page = VerticalScroll(Static(), id="lines")
        page.border_title = "Events and messages"
        page.border_subtitle = self._glyphs.translate(
            f"↑↓ scroll  {self._glyphs.separator}  ^y copy the tc lines  "
            f"{self._glyphs.separator}  esc leave"
        )
        yield page

    def on_mount(self) -> None:
        """Show the newest lines, and check for more at intervals."""
        self._look_again()
        self.query_one("#lines").scroll_end(animate=False)
        self.set_interval(_LOOK_S, self._look_again)

    def action_page_down(self) -> None:
        """Scroll by a page."""
        self.query_one("#lines").scroll_page_down(animate=False)

    def action_copy(self) -> None:
        """Copy all commands of tc(8) in the list, oldest first."""
        lines = [each.detail for each in self._entries() if each.detail]
        self.copy("\n".join(lines))

    def _look_again(self) -> None:
        entries = self._entries()
        if entries == self._shown:
            return
        page = self.query_one("#lines")
        at_end = page.is_vertical_scroll_end
        self._shown = entries
        self.query_one(Static).update(self._table(entries))
        if at_end:
            page.scroll_end(animate=False)

    def _table(self, entries: Sequence[Entry]) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, style=self._look.colours["muted"])
        table.add_column(no_wrap=True, style=self._look.colours["mark"])
        table.add_column(overflow="fold")
        for each in entries:
            sign = self._glyphs.dashed_vertical if each.is_mark else " "
            text = self._glyphs.translate(WORDS.get(each.kind, "") + each.text)
            line = Text(text, style=self._look.colours[INKS[each.kind]])
            table.add_row(format_clock(each.t), sign, line)
            if each.detail:
                table.add_row("", sign, Text(each.detail, style=self._look.colours["muted"]))
        return table
