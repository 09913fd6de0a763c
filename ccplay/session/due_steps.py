"""Commands that are due in a timeline, and the lab's answers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from msgspec.structs import replace

from ccplay.model.commands import AnyCommand
from ccplay.model.events import Applied, Failed

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class DueStep:
    """A command and the moment at which it should be carried out."""

    at: float
    """Lab time in seconds, as ``Event.t``."""
    command: AnyCommand
    place: str = ""
    """Where in the scenario file it stands; empty where it stands in none."""
    together: bool = False
    """Whether the lab prepares it, and starts it with all others of its moment."""


def moment_of(step: DueStep) -> float:
    """Return when a step is due, as ``Applied.due`` has it."""
    return round(max(step.at, 0.0), 6)


class Outbox:
    """Commands sent to a lab, which carries them out in their order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()
        self._together: dict[float, deque[DueStep]] = {}
        """By moment what is to start together, which is answered when that has come."""

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent and not carried out or refused yet."""
        preparing = chain.from_iterable(self._together.values())
        return (*(step for step in self._unanswered if step is not None), *preparing)

    def note(self, step: DueStep | None) -> None:
        """Note that a command has been sent; None: no timeline wanted it."""
        if step is not None and step.together:
            self._together.setdefault(moment_of(step), deque()).append(step)
        else:
            self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; where it answers a step, with the moment of that."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers:
            return event
        assert isinstance(event, Applied | Failed)  # noqa: S101 - which mypy does not see
        if event.due is not None:
            if waiting := self._together.get(event.due):
                waiting.popleft()
            return event
        if not self._unanswered:
            return event
        step = self._unanswered.popleft()
        if step is None or not isinstance(event, Applied):
            return event
        return replace(event, due=moment_of(step))
