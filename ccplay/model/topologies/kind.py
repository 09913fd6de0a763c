"""What describes a topology: its name, its parameters and its generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ccplay.errors import CommandError
from ccplay.model.network import Network, Topology


@dataclass(frozen=True, slots=True)
class Parameter:
    """A whole number that a topology takes, such as how many pairs a dumbbell has."""

    name: str
    """What it counts, in the plural: ``pairs``."""
    low: int
    high: int
    default: int
    meaning: str
    """One line that stands alone."""

    def value(self, topology: Topology) -> int:
        """Return this parameter of ``topology``. Raises ``CommandError`` where out of bounds."""
        number = topology.parameter(self.name, self.default)
        if not self.low <= number <= self.high:
            bounds = f"{self.low} to {self.high}"
            raise CommandError(f"a {topology.kind} has {bounds} {self.name}, not {number}")
        return number

    def noun(self, count: int) -> str:
        """Return what it counts as a noun: ``pair`` of 1, ``pairs`` of 2."""
        return self.name.removesuffix("s") if count == 1 else self.name


@dataclass(frozen=True, slots=True)
class TopologyKind:
    """A topology: what people call it, what it takes, and what makes it."""

    name: str
    summary: str
    """One line, as a drawing in words: ``h1 - r - h2``."""
    parameters: tuple[Parameter, ...]
    generate: Callable[..., Network]
    """Takes the ``Topology``, then the values of ``parameters`` in their order."""
