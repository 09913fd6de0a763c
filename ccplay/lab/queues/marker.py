"""The threshold marker at the sending end of a link: how it is attached, set and read.

It is attached through a BPF link of traffic control (tcx, include/uapi/linux/bpf.h),
which needs neither classifier nor discipline, and ends with the process that holds it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

from ccplay.bpf.support import Lack, lack
from ccplay.errors import UnsupportedError
from ccplay.lab.network.netns import Namespace

SOURCE = Path(__file__).parent / "marker.bpf.c"

_FIRST_KERNEL = (6, 6)
"""First kernel with BPF links at the egress of an interface."""

_TCX_EGRESS = 47
"""Attach type ``BPF_TCX_EGRESS`` of ``enum bpf_attach_type``."""

_NEVER = (1 << 64) - 1


def lack_of_marking() -> Lack | None:
    """Return the reason why the marker can't work here; None if none is known."""
    return lack(_FIRST_KERNEL)


def require() -> None:
    """Raise ``UnsupportedError`` with reason and remedy if the marker can't work here."""
    if (missing := lack_of_marking()) is not None:
        raise UnsupportedError(f"ECN marking at a threshold: {missing.reason}; {missing.remedy}")


def program() -> bytes:
    """Return the marker's object file; blocks for a second if it is not built yet.

    Raises ``UnsupportedError`` and the errors of building.
    """
    # Imported late: labs without marking do not need it.
    from ccplay.bpf.build import build  # noqa: PLC0415

    image, _ = build(SOURCE)
    return image


class _Variables(ctypes.Structure):
    """The program's variable ``marker``, in memory shared with it."""

    _fields_ = (("marks", ctypes.c_uint64), ("threshold", ctypes.c_uint64))


class Marker:
    """The marker at one interface. It marks nothing until a threshold is set."""

    def __init__(self, image: bytes, namespace: Namespace, interface: int) -> None:
        """Attach ``program()`` to the interface with this index.

        Raises ``LoadError`` if the kernel refuses it.
        """
        # ctypes and libbpf are slow to import, and most labs have no marker.
        from ccplay.bpf import libbpf  # noqa: PLC0415
        from ccplay.bpf.libbpf import Programs  # noqa: PLC0415

        self._programs = Programs(image, "the marker")
        shared = mmap.mmap(self._programs.map(".bss"), mmap.PAGESIZE)
        self._variables = _Variables.from_buffer(shared)
        self.threshold = None
        code = self._programs.descriptors[0]
        # The kernel looks for the interface in the namespace of the calling thread.
        with libbpf.library() as (lib, messages), namespace.entered():
            self._link = lib.bpf_link_create(code, interface, _TCX_EGRESS, None)
        if self._link < 0:
            error = libbpf.refused("the kernel refuses to attach the marker", messages)
            self._programs.close()
            raise error

    @property
    def threshold(self) -> int | None:
        """Backlog of the link in bytes from which on packets are marked; None for never."""
        held = int(self._variables.threshold)
        return None if held == _NEVER else held

    @threshold.setter
    def threshold(self, size: int | None) -> None:
        self._variables.threshold = _NEVER if size is None else size

    @property
    def marks(self) -> int:
        """Number of segments marked so far."""
        return int(self._variables.marks)

    def close(self) -> None:
        """Remove the marker; its counters can still be read."""
        os.close(self._link)
        self._programs.close()
