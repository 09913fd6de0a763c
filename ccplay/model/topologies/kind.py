"""The description of a topology: its name, its parameters and its generator."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology
from ccplay.model.quantities import WHOLE, Field


def parameter(name: str, low: int, high: int, default: int, meaning: str) -> Field:
    """Return a numeric parameter of a topology, named by the plural of what it counts, or ``k``."""
    return Field(WHOLE, meaning, low, high, default, key=name, name=name)


def value(parameter: Field, topology: Topology) -> int:
    """Return the value of a parameter in ``topology``. Raises ``CommandError`` if out of bounds."""
    number = topology.parameter(parameter.name, parameter.default)
    try:
        parameter.check(number)
    except ValueError as error:
        raise CommandError(f"topology {topology.kind}: {parameter.name}: {error}") from None
    return number


def counted(parameter: Field, count: int) -> str:
    """Return a parameter as text: ``1 pair``, ``2 pairs``; for a name of one letter: ``k = 4``."""
    if len(parameter.name) == 1:
        return f"{parameter.name} = {count}"
    noun = parameter.name
    if count == 1:
        noun = noun.removesuffix("ves") + "f" if noun.endswith("aves") else noun.removesuffix("s")
    return f"{count} {noun}"


def is_implied(parameter: Field, count: int) -> bool:
    """Return whether a parameter is 1, as by default; descriptions leave it out."""
    return count == 1 and parameter.default == 1


class TopologyKind(msgspec.Struct, frozen=True):
    """A topology: its name, its parameters and its generator."""

    name: str
    summary: str
    """Drawing of the network in one line: ``h1 - r - h2``."""
    parameters: tuple[Field, ...]
    generate: Callable[..., Network]
    """Generator, called with the ``Topology`` and the values of ``parameters`` in their order."""
