"""Commands that are due in a timeline, and the lab's answers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
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


class Outbox:
    """Commands sent to a lab, which carries them out in their order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent and not carried out or refused yet."""
        return tuple(step for step in self._unanswered if step is not None)

    def note(self, step: DueStep | None) -> None:
        """Note that a command has been sent; None: no timeline wanted it."""
        self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; where it answers a step, with the moment of that."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers or not self._unanswered:
            return event
        step = self._unanswered.popleft()
        if step is None or not isinstance(event, Applied):
            return event
        return replace(event, due=round(max(step.at, 0.0), 6))
