"""Undo: the user's changes in order, and the commands that undo each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command, StartTraffic
from ccplay.model.commands import (
    Change,
    InForce,
    Inverse,
    Mark,
    SetCongestionControl,
    SetLink,
    StopCapture,
    Thing,
)
from ccplay.model.events import Applied, Failed
from ccplay.model.network import Network
from ccplay.model.quantities import quote
from ccplay.model.values import LINK_FIELDS
from ccplay.session.timeline import DueStep
from ccplay.state.lab_state import LabState
from ccplay.traffic import started_by, stopped_by
from ccplay.traffic.base import Traffic
from ccplay.traffic.routes import nodes_of

# --- finds the commands that undo a command, from the settings in force before it -----------------


def in_force(state: LabState, network: Network) -> InForce:
    """Return the settings in force now."""
    started = (each.command for each in state.applied if isinstance(each.command, StartTraffic))
    marks = (each for each in state.log if each.kind == "mark" and each.name)
    return InForce(
        network=network,
        links={name: changes[-1].setting for name, changes in state.links.items()},
        hosts=dict(state.hosts),
        algorithms={name: each.cc for name, each in state.flows.items()} | _switched(state),
        starts={_name(each): each for each in started},
        marks={each.name: Mark(name=each.name, text=each.text, at=each.t) for each in marks},
        paths={name: _pinned(state.flows.get(name, each)) for name, each in state.traffic.items()},
    )


def _pinned(traffic: Traffic | None) -> list[str]:
    """Return the routers on the path that a command chose for traffic; empty if none did."""
    if traffic is None or not traffic.paths or not traffic.paths[-1].pinned:
        return []
    return list(nodes_of(traffic.paths[-1])[1:-1])


def _switched(state: LabState) -> dict[str, str]:
    """Return the algorithms of flows that were switched after their last sweep."""
    found = {}
    for done in state.applied:
        command = done.command
        if isinstance(command, SetCongestionControl) and command.flow in state.flows:
            changes = state.flows[command.flow].cc_changes
            if not changes or changes[-1][0] < done.t:
                found[command.flow] = command.cc
    return found


def inverse(command: Command, was: InForce) -> Inverse:
    """Return the inverse of a command that took effect."""
    if (kind := started_by(command)) is not None:
        stop = kind.stopping(kind.name_of(command) or "")
        return Inverse((stop,), stop.describe())
    if (kind := stopped_by(command)) is not None:
        name = kind.name_of(command) or ""
        start = was.starts.get(name)
        if start is None:
            return Inverse(refusal=f"it is not known how {name} was started")
        changed: dict[str, Any] = {kind.field: None}
        if kind.connection and name in was.algorithms:
            changed["cc"] = was.algorithms[name]
        text = f"{kind.word} {name} starts again, under the next free name"
        return Inverse((replace(start, **changed),), text)
    if isinstance(command, Change):
        return command.inverse(was)
    return Inverse(refusal="it built the network")


def again(done: Applied, undo: Applied) -> Command:
    """Return the command that redoes ``done`` after ``undo`` has undone it."""
    command = done.command
    if (kind := started_by(command)) is not None:
        # A name stands for one thing per session, so this one needs a new name.
        return replace(command, **{kind.field: None})
    if (kind := stopped_by(command)) is not None:
        return kind.stopping(kind.name_of(undo.command) or "")
    return command.again(done.t) if isinstance(command, Change) else command


def obstacle(command: Command, state: LabState) -> str:
    """Return why a command can have no effect any more; empty if it can."""
    name = _needs(command)
    traffic = state.traffic.get(name)
    if traffic is not None and traffic.ended is not None:
        return f"{traffic.kind} {name} has ended"
    if isinstance(command, StopCapture) and command.capture not in state.captures:
        return f"capture {command.capture} has ended"
    return ""


def _name(command: StartTraffic) -> str:
    kind = started_by(command)
    return (kind.name_of(command) if kind else None) or ""


def _needs(command: Command) -> str:
    """Return the traffic that must be running for a command to make sense; empty if none."""
    if (kind := stopped_by(command)) is not None:
        return kind.name_of(command) or ""
    return command.needs() if isinstance(command, Change) else ""


# --- keeps the user's changes in a session, in order, to undo and redo them -----------------------


class Done(msgspec.Struct, frozen=True):
    """A change by the user that took effect."""

    asked: Command
    """Command as it was sent."""
    done: Applied
    inverse: Inverse


class _Sent(msgspec.Struct):
    """A command that the lab has not answered yet."""

    command: Command
    by_hand: bool
    undoes: Done | None = None
    """Change that is undone once the command has taken effect."""
    was: InForce | None = None


class History:
    """The user's changes that can be undone, and the undone ones that can be redone.

    A lab carries out commands in order and answers each once, so the settings before a command
    are those in the state once the command before it was answered.
    """

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._done: list[Done] = []
        self._undone: list[Command] = []

    @property
    def next(self) -> Done | None:
        """The last change, which is the next to be undone; None if there is none."""
        return self._done[-1] if self._done else None

    def send(
        self,
        command: Command,
        state: LabState,
        *,
        by_hand: bool,
        undoes: Done | None = None,
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
                self._done.append(Done(sent.command, event, inverse(event.command, sent.was)))
            if sent.undoes is not None:
                self._undone.append(again(sent.undoes.done, event))
        self._look(state)

    def start_over(self) -> None:
        """Forget the undone changes, because the user has changed something else."""
        self._undone.clear()

    def undo(self, state: LabState) -> Done:
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
            raise CommandError(f"can't undo {quote(change.done.command.describe())}: {reason}")
        return change

    def redo(self) -> Command:
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
                text = f"{quote(each.command.describe())} is still being carried out"
                raise CommandError(f"can't {what} yet: {text}")

    def _look(self, state: LabState) -> None:
        """Keep the settings in force before the next unanswered command, if it is the user's."""
        if self._sent and self._sent[0].by_hand and state.hello is not None:
            self._sent[0].was = in_force(state, state.hello.network)


# --- manual overrides: a timeline skips steps that would undo the user's settings -----------------


class ByHand:
    """The user's own settings in a session, which the steps of a timeline must not undo.

    Steps that only add something, such as a flow, a ping or a mark, always run.
    """

    def __init__(self) -> None:
        self._asked: list[Command] = []

    def ask(self, command: Command) -> None:
        """Record a command of the user."""
        self._asked.append(command)

    def forget(self, command: Command) -> None:
        """Forget a command that failed or was undone; steps may set the same things again."""
        if command in self._asked:
            self._asked.remove(command)

    def _release(self, command: Command, network: Network) -> None:
        """Forget the user's commands that set any of the things that ``command`` sets."""
        things = _sets(command, network)
        self._asked = [each for each in self._asked if not _sets(each, network) & things]

    def spare(self, due: Iterable[DueStep], network: Network) -> tuple[list[DueStep], list[str]]:
        """Return the steps of a moment that may run, and messages about those that are skipped.

        If a step is skipped and only marks are left, the marks are skipped without a message.
        """
        due = list(due)
        for step in due:
            if step.overrides:
                self._release(step.command, network)
        taken = {thing for command in self._asked for thing in _sets(command, network)}
        kept: list[DueStep] = []
        skipped: list[str] = []
        for step in due:
            if step.overrides:
                kept.append(step)
                continue
            rest, undoing = _parted(step.command, taken, network)
            kept += [replace(step, command=each) for each in rest]
            why = "you stopped it" if _needed(step.command) & taken else "your setting stays"
            skipped += [f"skipped, {why}: {each.describe()}" for each in undoing]
        if skipped and all(isinstance(each.command, Mark) for each in kept):
            kept.clear()
        return kept, skipped


def _parted(
    command: Command, taken: set[Thing], network: Network
) -> tuple[list[Command], list[Command]]:
    """Split a command into a part that leaves ``taken`` settings alone, and one that does not."""
    undone = (_sets(command, network) | _needed(command)) & taken
    if not undone:
        return [command], []
    if not isinstance(command, SetLink):
        return [], [command]
    fields = {field for field, _ in undone}
    rest = replace(command, **dict.fromkeys(fields))
    undoing = replace(command, **dict.fromkeys({*LINK_FIELDS} - fields))
    return ([] if rest == SetLink(link=command.link) else [rest]), [undoing]


def _sets(command: Command, network: Network) -> set[Thing]:
    """Return the settings that a command makes or ends; the traffic that it stops."""
    made = command.sets(network) if isinstance(command, Change) else set()
    return made or _needed(command)


def _needed(command: Command) -> set[Thing]:
    name = _needs(command)
    return {("traffic", name)} if name else set()
