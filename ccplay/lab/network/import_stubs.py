"""Import stubs: empty modules in place of those that would slow the start of a lab."""

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
    """Let imports find ``modules`` in place of the installed ones, unless already imported.

    None makes the import fail, as if the module were not installed.
    """
    if modules.keys() & sys.modules.keys():
        yield
        return
    # None means "can't be imported" to the interpreter, but the type of the table omits it.
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
    """Return a stub of an installed package that only gives access to its submodules.

    It is meant for packages whose ``__init__`` imports everything.
    """
    spec = PathFinder.find_spec(name)
    return {} if spec is None else {name: module_from_spec(spec)}


def distutils() -> dict[str, ModuleType]:
    """Replace distutils, which Python 3.12 lacks and setuptools makes slow.

    Mininet uses one class of it, to compare versions of Open vSwitch, which no lab has.
    """
    version = ModuleType("distutils.version")
    version.StrictVersion = str  # type: ignore[attr-defined]
    return {"distutils": ModuleType("distutils"), "distutils.version": version}
