"""The user's changes in a session, in order, to undo and redo."""

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
    """The command as it was sent."""
    done: Applied
    inverse: Inverse


class _Sent(msgspec.Struct):
    """A command that the lab has not answered yet."""

    command: AnyCommand
    by_hand: bool
    undoes: Change | None = None
    """What is taken back once this has taken effect."""
    was: Before | None = None


class History:
    """The changes by hand that can be undone, and those that can be done again.

    A lab carries commands out in their order and answers each once. What was in force before one
    is what the state has when the one before it was answered.
    """

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._done: list[Change] = []
        self._undone: list[AnyCommand] = []

    @property
    def next(self) -> Change | None:
        """The last change, the next to be undone; None where there is none."""
        return self._done[-1] if self._done else None

    def send(
        self,
        command: AnyCommand,
        state: LabState,
        *,
        by_hand: bool,
        undoes: Change | None = None,
    ) -> None:
        """Note that a command is sent. ``undoes``, see ``_Sent``."""
        self._sent.append(_Sent(command, by_hand, undoes))
        if len(self._sent) == 1:
            self._look(state)

    def answer(self, event: object, state: LabState) -> None:
        """Take in an event of the lab that ``state`` knows already."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers or not self._sent:
            return
        sent = self._sent.popleft()
        # The lab may be a stranger's: what it says it did need not be what it was asked for.
        if isinstance(event, Applied) and type(event.command) is type(sent.command):
            if sent.was is not None:
                self._done.append(Change(sent.command, event, inverse(event, sent.was)))
            if sent.undoes is not None:
                self._undone.append(again(sent.undoes.done, event))
        self._look(state)

    def begin_anew(self) -> None:
        """Forget what was undone: something else was done since."""
        self._undone.clear()

    def undo(self, state: LabState) -> Change:
        """Return the change to undo, and forget it.

        Raises ``CommandError`` where there is none, or where it can't be undone any more.
        """
        self._wait("undone")
        if not self._done:
            raise CommandError("nothing to undo: you have not changed anything")
        change = self._done.pop()
        obstacles = (obstacle(each, state) for each in change.inverse.commands)
        reason = change.inverse.refusal or next(filter(None, obstacles), "")
        if reason:
            raise CommandError(f"can't undo {quote(describe(change.done.command))}: {reason}")
        return change

    def redo(self) -> AnyCommand:
        """Return the command that does again what was undone last, and forget that.

        Raises ``CommandError`` where there is none.
        """
        self._wait("done again")
        if not self._undone:
            raise CommandError("nothing to redo: nothing was undone")
        return self._undone.pop()

    def _wait(self, what: str) -> None:
        """Raise ``CommandError`` where the lab has yet to answer something done by hand."""
        for each in self._sent:
            if each.by_hand or each.undoes is not None:
                text = f"{quote(describe(each.command))} is still being carried out"
                raise CommandError(f"nothing is {what} yet: {text}")

    def _look(self, state: LabState) -> None:
        """Keep what is in force as the lab turns to the next command."""
        if self._sent and self._sent[0].by_hand and state.hello is not None:
            self._sent[0].was = before(state, state.hello.network)
