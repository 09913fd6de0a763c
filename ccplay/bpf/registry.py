"""Registers an object file under a kernel name that is unique on the host."""

from __future__ import annotations

import os

from ccplay.bpf.libbpf import LoadError, Registered, name_taken
from ccplay.bpf.shown import names_in

_PLACEHOLDER = b"ccplay.cc.name."
"""Placeholder for an algorithm's name in the kernel, which ``NAME`` of ccplay_cc.h expands to."""


def register(image: bytes, name: str) -> tuple[str, Registered]:
    """Register the algorithm ``name`` of an object; return its name in the kernel, too.

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
    """Let the kernel check a whole object, then unregister it. Raises ``LoadError``."""
    names_in(image)
    _, registered = register(image, name)
    registered.close()
