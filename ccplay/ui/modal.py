"""A modal screen that is left once, however fast the keys come."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")

_LEAVING = ("dismiss", "leave")
"""Actions that need no widgets."""


class Modal(ModalScreen[Answer]):
    """A modal screen that ignores further dismissals, at which Textual would fail."""

    answered = False
    """Whether it has been dismissed; keys pressed meanwhile may still arrive."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Ignore keys once it is left; before its widgets exist, only leaving works."""
        return not self.answered and (self.is_mounted or action in _LEAVING)

    def copy(self, text: str) -> None:
        """Put commands of tc(8) into the terminal's clipboard (OSC 52), and report it."""
        if not text:
            self.app.notify("No tc line to copy.", severity="warning")
            return
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.app.notify("Copied the tc line." if lines == 1 else f"Copied {lines} tc lines.")

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Leave with ``result``, unless it was left already."""
        if self.answered:
            return AwaitComplete()
        self.answered = True
        return super().dismiss(result)
