"""A modal screen that is left once, however fast the keys come."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")

_LEAVING = ("dismiss", "leave")
"""The actions that need no widgets."""


class Modal(ModalScreen[Answer]):
    """A modal screen whose first dismissal counts; Textual fails at a second one."""

    answered = False
    """Whether it has been dismissed: keys that were pressed meanwhile may still arrive."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Let keys do nothing once it is left, and only leave it before its widgets are there."""
        return not self.answered and (self.is_mounted or action in _LEAVING)

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Leave with ``result``, unless that has been done."""
        if self.answered:
            return AwaitComplete()
        self.answered = True
        return super().dismiss(result)
