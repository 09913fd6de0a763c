"""Imports that a lab's start is spared: modules held out of the way while others are imported."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import cast


@contextmanager
def in_place_of(modules: Mapping[str, ModuleType | None]) -> Generator[None]:
    """Let imports find ``modules``, unless one of the modules has been imported already.

    None makes the import fail, as where the module is not installed.
    """
    if modules.keys() & sys.modules.keys():
        yield
        return
    # The interpreter takes None for "can't be imported", which the type of the table leaves out.
    sys.modules.update(cast("Mapping[str, ModuleType]", modules))
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def stand_ins(names: Iterable[str], **attributes: object) -> dict[str, ModuleType]:
    """Return empty modules under these names; each has the attributes."""
    made = {name: ModuleType(name) for name in names}
    for module in made.values():
        vars(module).update(attributes)
    return made


def bare_package(name: str) -> dict[str, ModuleType]:
    """Return a stand-in for an installed package through which only its submodules are reached.

    For packages that import all that they have in their ``__init__``.
    """
    spec = PathFinder.find_spec(name)
    return {} if spec is None else {name: module_from_spec(spec)}
