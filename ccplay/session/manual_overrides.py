"""Manual overrides: a timeline skips steps that would undo the user's settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from ccplay.model.commands import (
    AnyCommand,
    Mark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetPath,
    SetQdisc,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.network import Network
from ccplay.model.traffic import stopped_by
from ccplay.model.wording import describe
from ccplay.session.due_steps import DueStep

_Thing: TypeAlias = tuple[str, str]
"""A setting and its subject: ``("queue", "r1->r2")``, ``("traffic", "1")``."""

_OF_LINKS = tuple(field for field in SetLink.__struct_fields__ if field != "link")


class ByHand:
    """The user's own settings in a session, which the steps of a timeline must not undo.

    Steps that only add something, such as a flow, a ping or a mark, always run.
    """

    def __init__(self) -> None:
        self._asked: list[AnyCommand] = []

    def ask(self, command: AnyCommand) -> None:
        """Record a command of the user."""
        self._asked.append(command)

    def forget(self, command: AnyCommand) -> None:
        """Forget a command that failed or was undone; steps may set the same things again."""
        if command in self._asked:
            self._asked.remove(command)

    def _release(self, command: AnyCommand, network: Network) -> None:
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
            why = "you stopped it" if _needs(step.command) & taken else "your setting stays"
            skipped += [f"skipped, {why}: {describe(each)}" for each in undoing]
        if skipped and all(isinstance(each.command, Mark) for each in kept):
            kept.clear()
        return kept, skipped


def _parted(
    command: AnyCommand, taken: set[_Thing], network: Network
) -> tuple[list[AnyCommand], list[AnyCommand]]:
    """Split a command into a part that leaves ``taken`` settings alone, and one that does not."""
    undone = (_sets(command, network) | _needs(command)) & taken
    if not undone:
        return [command], []
    if not isinstance(command, SetLink):
        return [], [command]
    fields = {field for field, _ in undone}
    rest = replace(command, **dict.fromkeys(fields))
    undoing = replace(command, **dict.fromkeys({*_OF_LINKS} - fields))
    return ([] if rest == SetLink(link=command.link) else [rest]), [undoing]


def _sets(command: AnyCommand, network: Network) -> set[_Thing]:
    """Return the settings that a command makes or ends."""
    from ccplay.scenario.fields.network import directions  # noqa: PLC0415 - paint first

    match command:
        case SetCongestionControl(flow=None, host=host):
            return {("host", host or "")}
        case SetCongestionControl(flow=flow):
            return {("algorithm", flow or "")}
        case SetQdisc() | SetClasses():
            return {("queue", each) for each in directions(network, command.link)}
        case SetLink():
            changed = [field for field in _OF_LINKS if getattr(command, field) is not None]
            return {
                (field, each) for field in changed for each in directions(network, command.link)
            }
        case SetPath():
            return {("path", command.traffic)}
        case TraceFlow() | UntraceFlow():
            return {("trace", command.flow)}
        case StopCapture():
            return {("capture", command.capture)}
    # All other commands stop traffic, or only add something.
    return _needs(command)


def _needs(command: AnyCommand) -> set[_Thing]:
    """Return the traffic that must be running for a command to make sense."""
    if isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow):
        return {("traffic", command.flow)} if command.flow else set()
    if isinstance(command, SetPath):
        return {("traffic", command.traffic)}
    kind = stopped_by(command)
    return set() if kind is None else {("traffic", kind.name_of(command) or "")}
