"""Actions that undo and redo the user's changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ccplay.errors import CommandError
from ccplay.ui.actions.base import Actions
from ccplay.units import format_clock


class UndoActions(Actions):
    """The actions that undo and redo."""

    def action_undo(self) -> None:
        """Undo the user's last change."""
        self._report(self.session.undo)

    def action_redo(self) -> None:
        """Redo the last undone change."""
        self._report(self.session.redo)

    def undo_offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entry for undo, if there is a change: text, meaning, and function."""
        key = self.appearance.keymap.shown("undo")
        if self.session.undoable:
            yield f"undo: {self.session.undoable}", f"your last change ({key})", self.action_undo

    def _report(self, step: Callable[[], str]) -> None:
        """Undo or redo a change, and report its effect or why it is impossible."""
        at = format_clock(self.session.state.now)
        translate = self.appearance.glyphs.translate
        try:
            text = step()
        except CommandError as error:
            self.app.notify(translate(str(error)), severity="warning", markup=False)
            return
        self.sent = ""
        if not self.playhead.running:
            self.sent = f"sent to the live lab at {at} (end goes there): {text}"
        self.app.notify(translate(text), markup=False)
        self.redraw()
