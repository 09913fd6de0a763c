"""Manual overrides: a timeline skips steps that would undo the user's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from ccplay.model.commands import (
    AnyCommand,
    Mark,
    SetClasses,
    SetCongestionControl,
    SetLink,
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
"""Something that can be set, and of what: ``("queue", "r1->r2")``, ``("traffic", "1")``."""

_OF_LINKS = tuple(field for field in SetLink.__struct_fields__ if field != "link")


class ByHand:
    """What was asked for by hand in a session, and what that leaves of a timeline.

    What only adds, such as a flow, a ping or a mark, is in nobody's way.
    """

    def __init__(self) -> None:
        self._asked: list[AnyCommand] = []

    def ask(self, command: AnyCommand) -> None:
        """Take note of a command by hand."""
        self._asked.append(command)

    def forget(self, command: AnyCommand) -> None:
        """Forget a command that failed or was undone: what it set is free again."""
        if command in self._asked:
            self._asked.remove(command)

    def spare(self, due: Iterable[DueStep], network: Network) -> tuple[list[DueStep], list[str]]:
        """Return which steps of a moment may run, and what to log about the others.

        Remarks go with the steps that they stand beside.
        """
        taken = {thing for command in self._asked for thing in _sets(command, network)}
        kept: list[DueStep] = []
        said: list[str] = []
        for step in due:
            rest, undoing = _parted(step.command, taken, network)
            kept += [dataclasses.replace(step, command=each) for each in rest]
            why = "you stopped it" if _needs(step.command) & taken else "yours stays"
            said += [f"skipped, {why}: {describe(each)}" for each in undoing]
        if said and all(isinstance(each.command, Mark) for each in kept):
            kept.clear()
        return kept, said


def _parted(
    command: AnyCommand, taken: set[_Thing], network: Network
) -> tuple[list[AnyCommand], list[AnyCommand]]:
    """Return what of a step undoes nothing that is taken, and what does."""
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
    """Return what a command sets, or ends."""
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
        case TraceFlow() | UntraceFlow():
            return {("trace", command.flow)}
        case StopCapture():
            return {("capture", command.capture)}
    # Of the others some stop what must run for them, and some only add.
    return _needs(command)


def _needs(command: AnyCommand) -> set[_Thing]:
    """Return the traffic that must run for a step."""
    if isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow):
        return {("traffic", command.flow)} if command.flow else set()
    kind = stopped_by(command)
    return set() if kind is None else {("traffic", kind.name_of(command) or "")}
