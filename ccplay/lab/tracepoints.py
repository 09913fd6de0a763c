"""The kernel's tracepoints for TCP: where tracefs is, and what their records look like.

tracefs: Documentation/trace/ftrace.rst; the tracepoints: include/trace/events/tcp.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ccplay.errors import UnsupportedError

PROBE, STATE_SET = "tcp_probe", "tcp_cong_state_set"

Unpack: TypeAlias = Callable[[bytes, int], tuple[int, ...]]
"""Reads fields of a record that begins at an offset."""

_PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_OWN_PLACE = Path("/run/tracing")
"""Where we mount it ourselves: on the lab's private /run."""

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_ID = re.compile(r"^ID: (\d+)$", re.MULTILINE)
_FIELD = re.compile(r"^\tfield:[^;]*?(\w+);\toffset:(\d+);\tsize:(\d+);", re.MULTILINE)

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Tracepoint:
    """A tracepoint as its ``format`` file says it."""

    name: str
    id: int
    fields: Mapping[str, tuple[int, int]]
    """Offset in a record and size, in bytes, by name; arrays are left out."""

    def unpacker(self, names: tuple[str, ...], before: str = "") -> Unpack:
        """Return what reads these fields of a record, after those of ``before``, in their order.

        Raises ``UnsupportedError`` where this kernel's records lack one of them.
        """
        if missing := set(names) - set(self.fields):
            said = ", ".join(sorted(missing))
            raise UnsupportedError(f"this kernel's {self.name} does not tell {said}")
        places = [self.fields[name] for name in names]
        if places != sorted(places):
            raise UnsupportedError(f"this kernel's {self.name} is in another order than is known")
        code, at = f"={before}", 0
        for offset, size in places:
            code += f"{offset - at}x{_CODES[size]}"
            at = offset + size
        return struct.Struct(code).unpack_from


def parse(name: str, text: str) -> Tracepoint:
    """Read a ``format`` file. Raises ``UnsupportedError`` where it is none."""
    number = _ID.search(text)
    if number is None:
        raise UnsupportedError(f"tracepoint {name}: its format is not understood")
    fields = {
        field: (int(offset), int(size))
        for field, offset, size in _FIELD.findall(text)
        if int(size) in _CODES
    }
    return Tracepoint(name, int(number[1]), fields)


def read(name: str) -> Tracepoint:
    """Read what this kernel says of a TCP tracepoint.

    Mounts tracefs in our own mount namespace where it is nowhere. Raises ``UnsupportedError``.
    """
    path = _tracefs() / "events/tcp" / name / "format"
    try:
        return parse(name, path.read_text(encoding="ascii"))
    except FileNotFoundError:
        raise UnsupportedError("this kernel does not have that tracepoint") from None
    except OSError as error:
        raise UnsupportedError(f"{path}: {error.strerror}") from None


def _tracefs() -> Path:
    for place in (*_PLACES, _OWN_PLACE):
        # Who may not look inside has no use for it.
        if os.access(place / "events", os.R_OK | os.X_OK):
            return place
    _OWN_PLACE.mkdir(exist_ok=True)
    if _libc.mount(b"tracefs", bytes(_OWN_PLACE), b"tracefs", 0, None) != 0:
        number = ctypes.get_errno()
        if number == errno.ENODEV:
            raise UnsupportedError("this kernel has no tracefs")
        raise UnsupportedError(f"tracefs can't be mounted: {os.strerror(number)}")
    return _OWN_PLACE
