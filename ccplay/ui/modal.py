"""Keys act in the order in which they were typed, however fast they arrive.

Textual passes a key from queue to queue, and a field inserts a letter before the screen has acted
on the Backspace before it. A slow line delivers many keys at once: each waits for the one before.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TypeVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.driver import Driver
from textual.message_pump import MessagePump
from textual.screen import ModalScreen
from textual.widget import Widget

Answer = TypeVar("Answer")

_PATIENCE_S = 2.0
"""Longest time in seconds that a key waits for the effect of the one before it."""

_LOOK_S = 0.001
"""Interval in seconds of checks whether that effect is complete."""

_LEAVING = ("dismiss", "leave")
"""Actions that work before the screen's widgets exist."""


class OrderlyApp(App[Answer]):
    """An app that delivers a key or a paste once everything that the one before caused is done."""

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self._typed: deque[events.Event] = deque()
        self._waits_since = 0.0

    @property
    def keys_wait(self) -> bool:
        """Whether anything that was typed has not been delivered yet."""
        return bool(self._typed)

    async def on_event(self, event: events.Event) -> None:
        """Queue what was typed; handle anything else at once."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            if len(self._typed) == 1:
                self._waits_since = time.monotonic()
                await self._deliver()
        else:
            await super().on_event(event)

    async def _deliver(self) -> None:
        """Deliver the next key as soon as no widget of the screen has anything left to do.

        This runs between two messages of the app, whose own actions are therefore complete.
        """
        if self._is_busy() and time.monotonic() - self._waits_since < _PATIENCE_S:
            # Not with ``set_timer``: Textual drops a short timer if its task is interrupted.
            asyncio.get_running_loop().call_later(_LOOK_S, self.call_next, self._deliver)
            return
        self._waits_since = time.monotonic()
        try:
            await super().on_event(self._typed[0])
        finally:
            self._typed.popleft()
        if self._typed:
            self.call_next(self._deliver)

    def _is_busy(self) -> bool:
        screen = self.screen
        if isinstance(screen, Modal) and self._typed and screen.holds(self._typed[0]):
            return True
        return _has_messages(self) or any(
            _has_messages(each) or not each.is_mounted
            for each in screen.walk_children(Widget, with_self=True)
        )


class Modal(ModalScreen[Answer]):
    """A modal screen that ignores a second dismissal, which would make Textual fail."""

    answered = False
    """Whether the screen has been dismissed."""

    def holds(self, event: events.Event) -> bool:  # noqa: ARG002
        """Return whether a key must wait for work that the screen has begun; false by default."""
        return False

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


def _has_messages(pump: MessagePump) -> bool:
    """Return whether a message waits, in the queue or already taken from it by Textual."""
    return bool(pump.message_queue_size) or pump._pending_message is not None
