"""Commands of a timeline that are due, and the lab's replies."""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ccplay.model.commands import AnyCommand
from ccplay.model.events import Applied, Failed

Answer = TypeVar("Answer")


class DueStep(msgspec.Struct, frozen=True):
    """A command and its moment."""

    at: float
    """Lab time in seconds, as ``Event.t``."""
    command: AnyCommand
    place: str = ""
    """Place in the scenario file; empty if it is in none."""
    together: bool = False
    """Whether the lab prepares it, and starts it with all others of its moment."""
    overrides: bool = False
    """Whether it is carried out even where it undoes a setting of the user."""


def moment_of(step: DueStep) -> float:
    """Return when a step is due, as ``Applied.due`` has it."""
    return round(max(step.at, 0.0), 6)


def answers_apart(event: object) -> bool:
    """Whether an event of the lab answers what starts together, out of the order of commands."""
    return isinstance(event, Applied | Failed) and event.due is not None


class Outbox:
    """Commands sent to a lab, which carries them out in order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()
        self._together: dict[float, deque[DueStep]] = {}
        """Steps that start together at one moment, by that moment; they are answered when it has
        come."""

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent, but not yet carried out or refused."""
        preparing = chain.from_iterable(self._together.values())
        return (*(step for step in self._unanswered if step is not None), *preparing)

    def note(self, step: DueStep | None) -> None:
        """Record that a command was sent; None: it is from no timeline."""
        if step is not None and step.together:
            self._together.setdefault(moment_of(step), deque()).append(step)
        else:
            self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; one that answers a step gets the step's moment."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers:
            return event
        if isinstance(event, Applied | Failed) and event.due is not None:
            if waiting := self._together.get(event.due):
                waiting.popleft()
            return event
        if not self._unanswered:
            return event
        step = self._unanswered.popleft()
        if step is None or not isinstance(event, Applied):
            return event
        return replace(event, due=moment_of(step))
