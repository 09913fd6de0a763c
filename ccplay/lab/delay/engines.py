"""The interface of delay engines: delay, jitter and loss at the receiving end of a link.

Never at the sending end: an interface with a queue under study does nothing else, and delay on
a sender's own interface would mislead TCP small queues and BBR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from ccplay.lab.network.netns import Namespace
from ccplay.model.values import LinkSetting


class Arrival(msgspec.Struct, frozen=True):
    """The receiving end of a link."""

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
        """Return this impairment with the fields of a setting."""
        return Impairment(
            delay_us=self.delay_us if setting.delay_us is None else setting.delay_us,
            jitter_us=self.jitter_us if setting.jitter_us is None else setting.jitter_us,
            loss=self.loss if setting.loss is None else setting.loss,
        )

    def __bool__(self) -> bool:
        """Whether it has any effect."""
        return bool(self.delay_us or self.jitter_us or self.loss)


class DelayEngine(Protocol):
    """A way to delay packets."""

    name: str
    """Name, as in ``LinkChanged.delay_engine``."""

    @property
    def processes(self) -> Iterable[int]:
        """Its processes."""

    async def prepare(self) -> None:
        """Begin starting processes, so that the first ``set`` does not wait for them."""

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Apply ``path`` to the packets of a link from now on, and return the result.

        Raises ``LabError`` if that fails.
        """

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the lateness of released packets, microseconds."""

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost on purpose; None if they are not counted.

        Raises ``LabError``.
        """

    async def close(self) -> None:
        """End the processes; interfaces and rules end with the namespaces."""
