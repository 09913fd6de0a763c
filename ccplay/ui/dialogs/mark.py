"""The dialog that puts a remark on the time axis."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.model.commands import Mark
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.fields import Field


class MarkDialog(Dialog):
    """Ask for a line of text; it is drawn through all three plots, now."""

    HEADING = "Mark this moment"
    VERB = "mark"
    HINT = ""

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Ask for the text."""
        super().__init__(state, selected_flow)
        self.text = Field("remark", "", str.strip, self.glyphs, optional="what happens here")
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """One line."""
        return (self.text,)

    def command(self) -> Mark | None:
        """Return the mark, None for an empty one."""
        return Mark(text=self.text.value) if self.text.value else None
