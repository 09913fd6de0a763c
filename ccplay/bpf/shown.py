"""The variables that an algorithm declares with ``SHOWN``, read from their BPF map."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable

from ccplay.bpf.libbpf import LoadError, Registered

_NAMES = re.compile(rb"ccplay\.shown:([^\0]*)\0")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUES = struct.Struct("=8Q")
_MOST = 1 << 53
"""Greatest value of a shown variable; greater ones were negative and are omitted."""


def names_in(image: bytes) -> list[str]:
    """Return the variables that an object file declares; empty if none.

    Raises ``LoadError`` for an invalid or repeated name, or more than eight names.
    """
    if (found := _NAMES.search(image)) is None:
        return []
    names = found[1].decode(errors="replace").split()
    wrong = [each for each in names if _NAME.fullmatch(each) is None]
    if wrong or len(names) > 8 or len(set(names)) < len(names):
        raise LoadError(
            "SHOWN takes up to eight different names of small letters, digits and _"
            + (f", not {wrong[0]!r}" if wrong else ""),
            "",
        )
    return names


class Shown:
    """The variables that an algorithm shows of each of its connections."""

    def __init__(self, names: list[str], registered: Registered) -> None:
        self._names = names
        self._map: int = registered.map(b"shown")
        self._look_up: Callable[..., int] = registered.look_up
        self._key = ctypes.c_uint64()
        self._values = ctypes.create_string_buffer(_VALUES.size)

    def read(self, cookie: int) -> dict[str, int]:
        """Return the values of a connection by name; empty if none has been set yet."""
        self._key.value = cookie
        if self._look_up(self._map, ctypes.byref(self._key), self._values) != 0:
            return {}
        values = _VALUES.unpack(self._values)
        return {
            name: value for name, value in zip(self._names, values, strict=False) if value <= _MOST
        }
