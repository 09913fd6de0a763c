"""A list of choices, each with a line of explanation; digits and letters jump to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ccplay.guest.boot import offer
from ccplay.model.values import Feature
from ccplay.ui.cells.glyphs import Glyphs


class Item(msgspec.Struct, frozen=True):
    """One line of a menu."""

    key: str
    """Value of the choice; empty for the default."""
    label: str
    summary: str = ""
    missing: str = ""
    """Reason why the item is unavailable, with the remedy; empty if it is available."""


_HEAD = 8
"""Columns of a line for pointer, number, sign and gaps, without label and summary."""


def feature_items(features: Iterable[Feature], kernel: str = "") -> list[Item]:
    """Return items for available features, then for missing ones with reason and remedy.

    The remedy is a guest if its kernel has what ``kernel``, the lab's, lacks.
    """
    items = []
    for each in sorted(features, key=lambda feature: not feature.available):
        reason = each.reason or "not on this machine"
        lacks = not each.available and "this kernel" in reason
        remedy = (offer(kernel, "it", "--kernel guest") if lacks else "") or each.remedy
        missing = "" if each.available else f"{reason}; {remedy}" if remedy else reason
        items.append(Item(each.name, each.name, each.summary, missing))
    return items


class Menu(OptionList):
    """A list from which one line is chosen; unavailable lines can be read, but not chosen."""

    DEFAULT_CSS = """
    Menu {
        height: auto; max-height: 8; border: none; padding: 0; background: $surface;
        text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1;
        &:focus { border: none; background-tint: $foreground 0%; }
        & > .option-list--option { padding: 0; }
    }
    """

    class Chosen(Message):
        """Posted when the highlight has moved to another line."""

        def __init__(self, menu: Menu, item: Item) -> None:
            super().__init__()
            self.menu = menu
            self.item = item

    def __init__(
        self,
        items: Sequence[Item],
        glyphs: Glyphs,
        *,
        current: str | None = None,
        pointed: str | None = None,
    ) -> None:
        """Show ``items``: ``current`` is ticked, ``pointed`` is highlighted.

        If ``pointed`` is None, the current item is highlighted.
        """
        self.items = list(items)
        self.glyphs = glyphs
        self.current = current
        self._pointed = self._row(pointed or current or "")
        super().__init__(*(Option(self._line(row)) for row in range(len(self.items))))

    @property
    def item(self) -> Item:
        """The highlighted item."""
        return self.items[self._pointed if self.highlighted is None else self.highlighted]

    def is_cut(self, item: Item) -> bool:
        """Return whether the line is too narrow for the item's whole summary."""
        width = self.scrollable_content_region.width
        return 0 < width < _HEAD + self._label_width + len(item.summary)

    @property
    def _label_width(self) -> int:
        return max(len(each.label) for each in self.items)

    def on_mount(self) -> None:
        """Highlight the current item."""
        self.highlighted = self._pointed

    def set_items(self, items: Sequence[Item], current: str | None, pointed: str) -> None:
        """Show other items: ``current`` is ticked, ``pointed`` is highlighted."""
        self.items, self.current = list(items), current
        self._pointed = self._row(pointed)
        self.set_options(Option(self._line(row)) for row in range(len(self.items)))
        self.highlighted = self._pointed

    def tick(self, key: str | None) -> None:
        """Tick another item as the current one, and highlight it."""
        self.set_items(self.items, key, key or "")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Move the pointer, which shows the highlight without colours."""
        event.stop()
        before, self._pointed = self._pointed, event.option_index
        for row in {before, self._pointed}:
            self.replace_option_prompt_at_index(row, self._line(row))
        self.post_message(self.Chosen(self, self.item))

    def on_key(self, event: events.Key) -> None:
        """Jump to the item with a typed number, or the next with an initial, available ones first.

        Up and down are handled here too, because a binding would act on whichever control has the
        focus by then.
        """
        if event.key in ("up", "down"):
            event.stop()
            event.prevent_default()
            (self.action_cursor_up if event.key == "up" else self.action_cursor_down)()
        if event.character is None or not event.character.isalnum():
            return
        row = self._row_of(event.character.lower())
        if row is not None:
            self.highlighted = row
            event.stop()

    def _row_of(self, character: str) -> int | None:
        if character.isdigit():
            row = int(character) - 1
            return row if 0 <= row < len(self.items) else None
        count = len(self.items)
        rows = ((self._pointed + step) % count for step in range(1, count + 1))
        found = [row for row in rows if self.items[row].label.lower().startswith(character)]
        return min(found, key=lambda row: bool(self.items[row].missing), default=None)

    def _row(self, key: str) -> int:
        keys = [item.key for item in self.items]
        return keys.index(key) if key in keys else 0

    def _line(self, row: int) -> Content:
        item, glyphs = self.items[row], self.glyphs
        pointed = row == self._pointed
        pointer = glyphs.chosen if pointed else " "
        number = str(row + 1) if row < 9 else " "
        sign = glyphs.missing if item.missing else " "
        if item.key == self.current:
            sign = glyphs.live
        text = item.missing or item.summary
        head = f"{pointer} {number} {sign} {item.label:<{self._label_width}}  "
        line = Content.assemble(head, (glyphs.translate(text), "" if pointed else "$text-muted"))
        return line.stylize("$text-muted") if item.missing and not pointed else line
