"""Registering an object file under a kernel name that nothing else of the host has."""

from __future__ import annotations

import os

from ccplay.bpf.libbpf import LoadError, Registered, name_taken
from ccplay.bpf.shown import names_in

_PLACEHOLDER = b"ccplay.cc.name."
"""What ``NAME`` of ccplay_cc.h puts where the kernel's name is to stand."""


def register(image: bytes, name: str) -> tuple[str, Registered]:
    """Register an object whose algorithm people call ``name``; return the kernel's name too.

    Raises ``LoadError``.
    """
    if image.count(_PLACEHOLDER) != 1:
        raise LoadError("it must have exactly one CONGESTION_CONTROL, with .name = NAME", "")
    while True:
        kernel_name = f"cc{os.urandom(2).hex()}_{name.replace('-', '_')[:8]}"
        named = image.replace(_PLACEHOLDER, kernel_name.encode().ljust(len(_PLACEHOLDER), b"\0"))
        try:
            return kernel_name, Registered(named)
        except LoadError as error:
            if not name_taken(error):
                raise


def try_out(image: bytes, name: str) -> None:
    """Have the kernel check all of an object, and take it back. Raises ``LoadError``."""
    names_in(image)
    _, registered = register(image, name)
    registered.close()
