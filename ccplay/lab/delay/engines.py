"""The interface of delay engines: delay, jitter and loss at the receiving end of a link.

Engines never act at the sending end: an interface with a queue under study must do nothing else,
and delay on a sender's own interface would mislead TCP small queues and BBR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from ccplay.errors import CommandError
from ccplay.lab.netns import Namespace
from ccplay.model.algorithms import UNIFORM
from ccplay.model.values import LinkSetting


class Arrival(msgspec.Struct, frozen=True):
    """The receiving end of a link."""

    number: int
    """Number of the link, from 1."""
    name: str
    """Name of the link."""
    namespace: Namespace
    interface: str


class Impairment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Delay, jitter, loss and other faults of a link, in the units of ``LinkSetting``."""

    delay_us: int = 0
    jitter_us: int = 0
    distribution: str = UNIFORM
    loss: float = 0.0
    gemodel: tuple[float, ...] = ()
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0

    def changed(self, setting: LinkSetting) -> Impairment:
        """Return a copy of this impairment, updated with the fields that ``setting`` has."""
        asked = {name: getattr(setting, name) for name in self.__struct_fields__}
        changes = {name: value for name, value in asked.items() if value is not None}
        if "gemodel" in changes:
            changes["gemodel"] = tuple(changes["gemodel"])
        return msgspec.structs.replace(self, **changes)

    def setting_fields(self) -> dict[str, Any]:
        """Return the fields for a ``LinkSetting``; models that are off are None."""
        fields = {name: getattr(self, name) or None for name in _MODELS}
        if self.gemodel:
            fields["gemodel"] = list(self.gemodel)
        plain = {"delay_us": self.delay_us, "jitter_us": self.jitter_us, "loss": self.loss}
        distribution = None if self.distribution == UNIFORM else self.distribution
        return {**plain, **fields, "distribution": distribution}

    @property
    def loses(self) -> bool:
        """Whether packets may be lost, which includes those with a flipped bit in their header."""
        return bool(self.loss or self.gemodel or self.corrupt)

    def __bool__(self) -> bool:
        """Return whether the impairment has any effect."""
        return any(getattr(self, name) for name in ("delay_us", "jitter_us", "loss", *_MODELS))


_MODELS = ("gemodel", "reorder", "duplicate", "corrupt")


def check_path(link: str, path: Impairment, *, single: bool) -> None:
    """Raise ``CommandError`` for an impairment that no engine supports.

    ``single`` is whether offloads are off, so that each packet is one frame.
    """
    problem = ""
    if path.loss and path.gemodel:
        problem = "loss and gemodel are two models of loss: set one to none"
    if path.reorder and not path.delay_us:
        problem = "reorder needs a delay, which the packets sent ahead skip"
    if (path.duplicate or path.corrupt) and not single:
        problem = "duplicate and corrupt need single packets: choose a rate up to 200 Mbit/s"
    if problem:
        raise CommandError(f"link {link}: {problem}")


class DelayEngine(Protocol):
    """A way to delay, lose and change packets."""

    name: str
    """Name of the engine, as in ``LinkChanged.delay_engine``."""

    @property
    def processes(self) -> Iterable[int]:
        """Process IDs of the engine's own processes."""

    async def prepare(self) -> None:
        """Start the engine's processes, so that the first ``set`` need not wait for them."""

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Apply ``path`` to the packets of a link from now on; return the impairment in force.

        Raises ``LabError`` if the engine fails.
        """

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of released packets' lateness, in us, or None.

        None means that it is not measured, or that no packet was released recently.
        """

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost on purpose; None if they are not counted.

        Raises ``LabError``.
        """

    async def close(self) -> None:
        """End the engine's processes; interfaces and rules end with the namespaces."""
