"""A screen that writes what changed without waiting for Textual's messages."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget


class Painter(Screen[None]):
    """A screen of sheets that writes what changed as soon as it has filled them.

    By Textual's messages each sheet would be written later, and at twice the cost.
    """

    def changed(self, sheet: Widget) -> None:
        """Remember a sheet that is to be written."""
        # For one that has no place yet, Textual would arrange all and not know what had moved.
        if sheet in self._compositor.visible_widgets:
            self._dirty_widgets.add(sheet)

    def paint(self) -> None:
        """Write what changed; where the layout did too, all is written anew in a moment."""
        if self._dirty_widgets and not self._layout_required:
            self._on_timer_update()
