"""The description of a queue discipline: its name, its effect, and its parameters as fields."""

from __future__ import annotations

import msgspec

from ccplay.model.base import Option
from ccplay.model.fields import Field
from ccplay.model.quantities import Quantity
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import choice

KERNEL, SOFTWARE = "kernel", "software"
"""Implementations of a discipline, which may differ in parameters: the kernel's, and ccplay's in
software."""


class Parameter(Field, frozen=True):
    """A parameter of a discipline: a field, and its spelling for ``tc``."""

    only: str = ""
    """Implementation that has the parameter, ``KERNEL`` or ``SOFTWARE``; empty if both have it."""
    tc: str = ""
    """Words for tc(8) with ``{}`` for the value; if empty, the name and the value.

    For a switch, the word for on and the word for off, separated by ``|``."""


class Discipline(msgspec.Struct, frozen=True):
    """A queue discipline."""

    kind: str
    summary: str
    """Effect on packets, in one line."""
    parameters: tuple[Parameter, ...]
    software: bool = True
    """Whether ccplay has the discipline in software, in ``lab/disciplines``."""
    in_kernel: bool = True
    """Whether ccplay can request the discipline from a kernel."""
    open: bool = False
    """Whether the model accepts any parameter, as only the discipline's file defines them."""

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [each.name for each in self.parameters]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name. Raises ``ValueError`` for an unknown one."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ValueError(
            f"{self.kind} has no parameter {quote(name)}{did_you_mean(name, self.names)}"
        )

    def of(self, who: str) -> tuple[Parameter, ...]:
        """Return the parameters of one implementation, ``KERNEL`` or ``SOFTWARE``."""
        return tuple(each for each in self.parameters if each.only in ("", who))


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
    only: str = "",
    tc: str = "",
) -> Parameter:
    """Return a parameter; ``default`` is None if the kernel computes it.

    The kernel refuses a request without a ``required`` parameter.
    """
    bounded = quantity.type is int
    return Parameter(
        *(quantity, meaning, low if bounded else None, high if bounded else None),
        *(default, required),
        key=name,
        unset=unset,
        name=name,
        only=only,
        tc=tc,
    )


def classes(by: str) -> tuple[Parameter, ...]:
    """Return the parameters of a discipline with classes; ``by`` is how packets select one."""
    ways = ("tos", "dscp", "flow", "source", "destination")
    inner = ("pfifo", "codel", "pie", "fq_codel", "fq_pie", "fq", "sfq")
    return (
        parameter(
            "by", choice("by", ways), "part of a packet that selects its class", by, only=SOFTWARE
        ),
        parameter(
            "inner", choice("inner", inner), "the discipline in each class", "pfifo", only=SOFTWARE
        ),
    )
