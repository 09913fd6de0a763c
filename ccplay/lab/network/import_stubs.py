"""Imports that a lab's start is spared: modules held out of the way while others are imported."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType


@contextmanager
def in_place_of(stand_ins: Mapping[str, ModuleType]) -> Generator[None]:
    """Let imports find ``stand_ins``, unless one of the modules has been imported already."""
    if stand_ins.keys() & sys.modules.keys():
        yield
        return
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


def bare_package(name: str) -> dict[str, ModuleType]:
    """Return a stand-in for an installed package through which only its submodules are reached.

    For packages that import all that they have in their ``__init__``.
    """
    spec = PathFinder.find_spec(name)
    return {} if spec is None else {name: module_from_spec(spec)}
