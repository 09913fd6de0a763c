"""Matches the commands of a timeline that were sent with the lab's replies."""

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
    """A command of a timeline and the moment at which it is due."""

    at: float
    """Lab time in seconds at which the step is due, as ``Event.t``."""
    command: AnyCommand
    place: str = ""
    """Place of the step in the scenario file; empty if it is in none."""
    together: bool = False
    """Whether the lab prepares the command and starts it together with others of its moment."""
    overrides: bool = False
    """Whether the step runs even if it undoes a setting of the user."""


def moment_of(step: DueStep) -> float:
    """Return the moment of a step in seconds, rounded as in ``Applied.due``."""
    return round(max(step.at, 0.0), 6)


def answers_apart(event: object) -> bool:
    """Whether an event answers a start that was prepared, so it is out of the commands' order."""
    return isinstance(event, Applied | Failed) and event.due is not None


class Outbox:
    """Commands sent to a lab, which carries them out in order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()
        self._together: dict[float, deque[DueStep]] = {}
        """Steps that start together, by their moment; the lab answers them only at that moment,
        out of order."""

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent, but are not yet carried out or refused."""
        preparing = chain.from_iterable(self._together.values())
        return (*(step for step in self._unanswered if step is not None), *preparing)

    def note(self, step: DueStep | None) -> None:
        """Record that a step was sent; None stands for a command from no timeline."""
        if step is not None and step.together:
            self._together.setdefault(moment_of(step), deque()).append(step)
        else:
            self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; if it answers a step, with the step's moment in ``due``."""
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
