"""Paths of the guest's files in the user's cache."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path


def folder() -> Path:
    """Return the user's guest folder; if root has none, that of sudo's caller."""
    own, user = user_cache_path("ccplay") / "guest", os.environ.get("SUDO_USER")
    if own.is_dir() or not user:
        return own
    theirs = Path(os.path.expanduser(f"~{user}")) / ".cache" / "ccplay" / "guest"  # noqa: PTH111 - does not raise
    return theirs if theirs.is_dir() else own


FOLDER = folder()

KERNEL = FOLDER / "vmlinuz"
UNPACKED = FOLDER / "vmlinux"
"""Unpacked kernel, which an emulated guest boots; missing if QEMU can't start it unpacked."""

MODULES = FOLDER / "lib" / "modules"
ACCELERATOR = FOLDER / "accelerator"
"""File with the name of the accelerator that booted the guest; written last."""

ACCELERATORS = ("kvm", "tcg")

INIT = Path(__file__).parent / "init"
_MADE_BY = (INIT, *map(INIT.with_name, ("ramdisk.py", "image.py")))
_DIGEST = sha256(b"".join(file.read_bytes() for file in _MADE_BY)).hexdigest()
RAMDISK = FOLDER / f"ramdisk-{_DIGEST[:8]}"
"""Ramdisk, named by the digest of the code that makes it and ``UNPACKED``, which may differ
between versions."""
