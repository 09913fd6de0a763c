"""The dialogs that set a mark on the time axis, and that change, move or remove one."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import AnyCommand, ChangeMark, Mark, RemoveMark
from ccplay.state.lab_state import Entry, LabState
from ccplay.ui.dialogs.base import Dialog, Question
from ccplay.ui.dialogs.fields import Field
from ccplay.ui.dialogs.menu import Item, Menu
from ccplay.units import format_clock

_KEEP, _MOVE, _REMOVE = "keep", "move", "remove"


class MarkDialog(Dialog):
    """Asks for the text of a mark, which is drawn through all plots at one moment."""

    HEADING = "Mark this moment"
    VERB = "mark"
    HINT = ""

    def __init__(self, state: LabState, selected_flow: str | None, at: float | None = None) -> None:
        """Ask for the text of a mark at the moment ``at``; None stands for now."""
        super().__init__(state, selected_flow)
        if at is not None:
            self.HEADING = f"Mark the moment shown, {format_clock(at)}"
        self._at = at
        self.text = Field("remark", "", str.strip, self.glyphs, optional="what happens here")
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the field for the text."""
        return (self.text,)

    def command(self) -> Mark | None:
        """Return the mark; None if its text is empty."""
        return Mark(text=self.text.value, at=self._at) if self.text.value else None


class ChangeMarkDialog(Question[AnyCommand | Entry]):
    """Asks what to do with a mark; the answer is the mark itself if it should be moved."""

    AUTO_FOCUS = "Menu"
    VERB = "apply"

    def __init__(self, mark: Entry) -> None:
        """Offer to keep the mark, perhaps with another text."""
        super().__init__()
        self.HEADING = f"Mark at {format_clock(mark.t)}"
        self._mark = mark
        items = [
            Item(_KEEP, "keep it here", "with the text below"),
            Item(_MOVE, "move it", "←→ to another moment, then m or enter"),
            Item(_REMOVE, "remove it"),
        ]
        self.menu = Menu(items, self.glyphs)
        self.text = Field("remark", mark.text, _remark, self.glyphs)
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the choice, then the text."""
        return (self.menu, Static(classes="gap"), self.text)

    def command(self) -> AnyCommand | Entry | None:
        """Return the change, or the mark to move; None if nothing changes."""
        text = self.text.value or self._mark.text
        if self.menu.item.key == _REMOVE:
            return RemoveMark(name=self._mark.name)
        if self.menu.item.key == _MOVE:
            return replace(self._mark, text=text)
        return ChangeMark(name=self._mark.name, text=text) if self.text.changed else None


def _remark(text: str) -> str:
    if not text.strip():
        raise ValueError("a mark needs a text; to delete it, choose: remove it")
    return text.strip()
