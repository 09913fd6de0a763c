"""Keeps the user's changes in a session, in order, to undo and redo them."""

from __future__ import annotations

from collections import deque

import msgspec

from ccplay.errors import CommandError
from ccplay.model.commands import AnyCommand
from ccplay.model.events import Applied, Failed
from ccplay.model.quoting import quote
from ccplay.model.wording import describe
from ccplay.session.inverse import Before, Inverse, again, before, inverse, obstacle
from ccplay.state.lab_state import LabState


class Change(msgspec.Struct, frozen=True):
    """A change by the user that took effect."""

    asked: AnyCommand
    """Command as it was sent."""
    done: Applied
    inverse: Inverse


class _Sent(msgspec.Struct):
    """A command that the lab has not answered yet."""

    command: AnyCommand
    by_hand: bool
    undoes: Change | None = None
    """Change that is undone once the command has taken effect."""
    was: Before | None = None


class History:
    """The user's changes that can be undone, and the undone ones that can be redone.

    A lab carries out commands in order and answers each once, so the settings before a command
    are those in the state once the command before it was answered.
    """

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._done: list[Change] = []
        self._undone: list[AnyCommand] = []

    @property
    def next(self) -> Change | None:
        """The last change, which is the next to be undone; None if there is none."""
        return self._done[-1] if self._done else None

    def send(
        self,
        command: AnyCommand,
        state: LabState,
        *,
        by_hand: bool,
        undoes: Change | None = None,
    ) -> None:
        """Record that a command was sent; ``undoes`` is the change that it undoes, if any."""
        self._sent.append(_Sent(command, by_hand, undoes))
        if len(self._sent) == 1:
            self._look(state)

    def answer(self, event: object, state: LabState) -> None:
        """Process an event of the lab that was already applied to ``state``."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers or not self._sent:
            return
        sent = self._sent.popleft()
        # An untrusted lab may report another command than the one that was sent.
        if isinstance(event, Applied) and type(event.command) is type(sent.command):
            if sent.was is not None:
                self._done.append(Change(sent.command, event, inverse(event, sent.was)))
            if sent.undoes is not None:
                self._undone.append(again(sent.undoes.done, event))
        self._look(state)

    def start_over(self) -> None:
        """Forget the undone changes, because the user has changed something else."""
        self._undone.clear()

    def undo(self, state: LabState) -> Change:
        """Remove and return the change to undo.

        Raises ``CommandError`` if there is none, or if it can't be undone any more.
        """
        self._wait("undo")
        if not self._done:
            raise CommandError("nothing to undo: you have not changed anything")
        change = self._done.pop()
        obstacles = (obstacle(each, state) for each in change.inverse.commands)
        reason = change.inverse.refusal or next(filter(None, obstacles), "")
        if reason:
            raise CommandError(f"can't undo {quote(describe(change.done.command))}: {reason}")
        return change

    def redo(self) -> AnyCommand:
        """Remove the change that was undone last; return the command that redoes it.

        Raises ``CommandError`` if there is none.
        """
        self._wait("redo")
        if not self._undone:
            raise CommandError("nothing to redo: nothing was undone")
        return self._undone.pop()

    def _wait(self, what: str) -> None:
        """Raise ``CommandError`` if the lab has not yet answered a command of the user."""
        for each in self._sent:
            if each.by_hand or each.undoes is not None:
                text = f"{quote(describe(each.command))} is still being carried out"
                raise CommandError(f"can't {what} yet: {text}")

    def _look(self, state: LabState) -> None:
        """Keep the settings in force before the next unanswered command, if it is the user's."""
        if self._sent and self._sent[0].by_hand and state.hello is not None:
            self._sent[0].was = before(state, state.hello.network)
