"""Import stubs: empty modules in place of those that would slow down the start of a lab."""

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
    """Make imports find ``modules`` in place of the installed ones, inside ``with``.

    None makes the import fail, as if the module were not installed. Nothing is replaced if any of
    the modules is already imported.
    """
    if modules.keys() & sys.modules.keys():
        yield
        return
    # None means "can't be imported" to the interpreter, but the type of sys.modules omits it.
    sys.modules.update(cast("Mapping[str, ModuleType]", modules))
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def stand_ins(names: Iterable[str], **attributes: object) -> dict[str, ModuleType]:
    """Return empty modules with these names and attributes."""
    made = {name: ModuleType(name) for name in names}
    for module in made.values():
        vars(module).update(attributes)
    return made


def bare_package(name: str) -> dict[str, ModuleType]:
    """Return an installed package by name, not yet executed; empty if it is not installed.

    It gives access to its submodules only, and is for packages whose ``__init__`` imports all.
    """
    spec = PathFinder.find_spec(name)
    return {} if spec is None else {name: module_from_spec(spec)}


def distutils() -> dict[str, ModuleType]:
    """Return stubs of distutils, which Python 3.12 lacks and setuptools makes slow.

    Mininet needs one class of it, to compare versions of Open vSwitch, which no lab uses.
    """
    version = ModuleType("distutils.version")
    version.StrictVersion = str  # type: ignore[attr-defined]
    return {"distutils": ModuleType("distutils"), "distutils.version": version}
