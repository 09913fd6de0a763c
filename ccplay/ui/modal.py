"""A modal screen that is dismissed only once, however fast keys arrive."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")

_LEAVING = ("dismiss", "leave")
"""Actions that work before the screen's widgets exist."""


class Modal(ModalScreen[Answer]):
    """A modal screen that ignores a second dismissal, which would make Textual fail."""

    answered = False
    """Whether the screen has been dismissed; keys may still arrive afterwards."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Ignore keys after dismissal; until the widgets exist, accept only keys that leave."""
        return not self.answered and (self.is_mounted or action in _LEAVING)

    def copy(self, text: str) -> None:
        """Copy commands of tc(8) to the terminal's clipboard (OSC 52), and confirm in a toast."""
        if not text:
            self.app.notify("No tc line to copy.", severity="warning")
            return
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.app.notify("Copied the tc line." if lines == 1 else f"Copied {lines} tc lines.")

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Dismiss the screen with ``result``, unless that has already been done."""
        if self.answered:
            return AwaitComplete()
        self.answered = True
        return super().dismiss(result)
