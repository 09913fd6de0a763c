"""Commands of a timeline that are due, and the lab's replies."""

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
    """A command and its moment."""

    at: float
    """Lab time in seconds, as ``Event.t``."""
    command: AnyCommand
    place: str = ""
    """Its place in the scenario file; empty if it is in none."""


class Outbox:
    """Commands sent to a lab, which carries them out in order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent, but not yet carried out or refused."""
        return tuple(step for step in self._unanswered if step is not None)

    def note(self, step: DueStep | None) -> None:
        """Record that a command was sent; None: it is from no timeline."""
        self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; one that answers a step gets the step's moment."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers or not self._unanswered:
            return event
        step = self._unanswered.popleft()
        if step is None or not isinstance(event, Applied):
            return event
        return replace(event, due=round(max(step.at, 0.0), 6))
