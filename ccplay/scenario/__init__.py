"""Scenario files: a network, and what happens on it when, as data that people can read.

``scenarios/README.md`` has the format. ``load(find("bufferbloat"))`` reads one; every mistake in
it is refused, with its place, before anything starts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ccplay.scenario.file.library import find, shipped
    from ccplay.scenario.file.reading import load
    from ccplay.scenario.repeats import repeated
    from ccplay.scenario.rules.captures import captured
    from ccplay.scenario.rules.own_algorithms import admit, driven, rerun
    from ccplay.scenario.rules.support import check_against
    from ccplay.scenario.values import Case, Expectation, Published, Scenario, Step

__all__ = [
    "Case",
    "Expectation",
    "Published",
    "Scenario",
    "Step",
    "admit",
    "captured",
    "check_against",
    "driven",
    "find",
    "load",
    "repeated",
    "rerun",
    "shipped",
]

_HOMES = {
    name: module
    for module, names in {
        "captures": ["captured"],
        "library": ["find", "shipped"],
        "own": ["admit", "driven", "rerun"],
        "reading": ["load"],
        "repeats": ["repeated"],
        "support": ["check_against"],
        "values": ["Case", "Expectation", "Published", "Scenario", "Step"],
    }.items()
    for name in names
}
"""Which module each name is in: a session that only looks up names need not import them all."""


def __getattr__(name: str) -> Any:
    """Import what is asked for. Raises ``AttributeError``."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
