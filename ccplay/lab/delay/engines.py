"""What every delay engine does: delay, jitter and loss at the receiving end of a link.

Never at the sending end: an interface whose queue is under study does nothing else, and delay on
a sender's own interface would fool TCP small queues and BBR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from ccplay.lab.network.netns import Namespace
from ccplay.model.values import LinkSetting


class Arrival(msgspec.Struct, frozen=True):
    """Where the packets of a link come in."""

    number: int
    """Of the link, from 1."""
    name: str
    """Of the link."""
    namespace: Namespace
    interface: str


class Impairment(msgspec.Struct, frozen=True):
    """Delay, jitter and loss of a link's direction."""

    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0

    def changed(self, setting: LinkSetting) -> Impairment:
        """Return this impairment with the fields that a setting gives."""
        return Impairment(
            delay_us=self.delay_us if setting.delay_us is None else setting.delay_us,
            jitter_us=self.jitter_us if setting.jitter_us is None else setting.jitter_us,
            loss=self.loss if setting.loss is None else setting.loss,
        )

    def __bool__(self) -> bool:
        """Whether anything happens at all."""
        return bool(self.delay_us or self.jitter_us or self.loss)


class Tell(Protocol):
    """Takes what the log should show: a level as in ``Log``, and a text."""

    def __call__(self, level: str, text: str, *, spoils: bool = False) -> None:
        """Write it; ``spoils`` as in ``Log``."""


class DelayEngine(Protocol):
    """A way to delay packets."""

    name: str
    """As ``LinkChanged.delay_engine`` has it."""

    @property
    def processes(self) -> Iterable[int]:
        """Processes that it runs in."""

    async def prepare(self) -> None:
        """Begin to start processes, so that the first ``set`` need not wait for them."""

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Do ``path`` to the packets of a link from now on, and return what holds.

        Raises ``LabError`` where that can't be.
        """

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the lateness of released packets, microseconds."""

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost on purpose; None where they are not counted.

        Raises ``LabError``.
        """

    async def close(self) -> None:
        """Give processes back; interfaces and rules go with the namespaces."""
