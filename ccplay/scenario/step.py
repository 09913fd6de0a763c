"""A step of a timeline."""

from __future__ import annotations

import msgspec

from ccplay.model.commands import AnyCommand


class Step(msgspec.Struct, frozen=True):
    """A command and its moment."""

    at_s: float
    """Seconds after the network is ready, or after the end of the traffic ``after``."""
    command: AnyCommand
    """The command; traffic that it starts always has a name."""
    after: str | None = None
    """Name of the traffic whose end the step awaits."""
    place: str = ""
    """Place of the step in the file: ``timeline[2]``."""
    number: int = 0
    """Index among the steps of the file; a repeat may start flows in another order."""
