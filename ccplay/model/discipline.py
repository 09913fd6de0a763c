"""A queue discipline described: its name, its effect, and its parameters as fields."""

from __future__ import annotations

import msgspec

from ccplay.model.base import Option
from ccplay.model.fields import Field
from ccplay.model.quantities import COUNT, PACKETS, QUEUE_SIZE, SWITCH, TIME_US, Quantity
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import choice


class Discipline(msgspec.Struct, frozen=True):
    """A queue discipline."""

    kind: str
    summary: str
    """Its effect on packets, in one line."""
    parameters: tuple[Field, ...]
    software: bool = True
    """Whether ccplay has one of its own, in ``lab/disciplines``."""
    in_kernel: bool = True
    """Whether ccplay can ask a kernel for it."""
    open: bool = False
    """Whether its parameters are known only where its file is, and any is accepted here."""

    @property
    def names(self) -> list[str]:
        """Names of its parameters."""
        return [each.name for each in self.parameters]

    def parameter(self, name: str) -> Field:
        """Return a parameter by name. Raises ``ValueError`` for an unknown one."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ValueError(
            f"{self.kind} has no parameter {quote(name)}{did_you_mean(name, self.names)}"
        )


def parameter(
    name: str,
    quantity: Quantity,
    meaning: str,
    default: Option | None = None,
    *,
    low: int = 0,
    high: int = 2**31 - 1,
    required: bool = False,
    unset: str = "computed",
) -> Field:
    """Return a parameter; ``default`` is None if the kernel computes it.

    The kernel refuses a request without a ``required`` one.
    """
    bounded = quantity.type is int
    return Field(
        *(quantity, meaning, low if bounded else None, high if bounded else None),
        *(default, required),
        key=name,
        unset=unset,
        name=name,
    )


def codel(limit: int, *, ecn: bool) -> tuple[Field, ...]:
    """Return the parameters of CoDel; their defaults differ beside others."""
    return (
        parameter("limit", PACKETS, "most packets that wait", limit, low=1),
        parameter("target", TIME_US, "acceptable standing delay", 5_000, low=1),
        parameter("interval", TIME_US, "and for how long: about the worst RTT", 100_000, low=1),
        parameter("ecn", SWITCH, "mark ECN packets instead of dropping", ecn),
        parameter(
            "ce_threshold", TIME_US, "mark packets that waited longer", None, low=1, unset="off"
        ),
    )


def pie(limit: int) -> tuple[Field, ...]:
    """Return the parameters of PIE."""
    return (
        parameter("limit", PACKETS, "most packets that wait", limit, low=1),
        parameter("target", TIME_US, "acceptable standing delay", 15_000, low=1),
        parameter("alpha", COUNT, "weight of the delay's distance", 2, high=32),
        parameter("beta", COUNT, "weight of the delay's change", 20, high=32),
        parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
    )


def fair() -> tuple[Field, ...]:
    """Return the parameters of a queue for each flow with a limit of memory."""
    return (
        parameter("flows", COUNT, "how many queues", 1024, low=1, high=65_536),
        parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
        parameter("memory_limit", QUEUE_SIZE, "most memory that packets take", 33_554_432),
    )


def classes(by: str) -> tuple[Field, ...]:
    """Return the parameters of classes: which packets are whose, and what is in each."""
    ways = ("tos", "dscp", "flow", "source", "destination")
    inner = ("pfifo", "codel", "pie", "fq_codel", "fq_pie", "fq", "sfq")
    return (
        parameter("by", choice("by", ways), "what of a packet chooses its class", by),
        parameter("inner", choice("inner", inner), "the discipline in each class", "pfifo"),
    )
