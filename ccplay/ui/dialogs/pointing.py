"""The dialog with which a presenter points at a moment."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.share.frames import LONGEST_POINT, Pointer
from ccplay.ui.dialogs.base import Question
from ccplay.ui.dialogs.fields import Field
from ccplay.units import format_clock


class PointDialog(Question[Pointer]):
    """Asks for a few words to show on the screens of all spectators."""

    VERB = "point"

    def __init__(self, t: float) -> None:
        """Point at the moment ``t``."""
        super().__init__()
        self.HEADING = f"Point at {format_clock(t)} on all screens"
        self._t = t
        self.text = Field("text", "", _short, self.glyphs, optional="what to look at")
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the field for the words."""
        return (self.text,)

    def command(self) -> Pointer:
        """Return the pointer, with or without words."""
        return Pointer(t=self._t, text=self.text.value or "")


def _short(text: str) -> str:
    if len(text.strip()) > LONGEST_POINT:
        raise ValueError(f"at most {LONGEST_POINT} characters")
    return text.strip()
