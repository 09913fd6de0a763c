"""Where the guest's kernel is kept: in the user's cache, apart from the machine's own."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path


def folder() -> Path:
    """Return the user's; where root has none, that of the one who became root by sudo(8)."""
    own, user = user_cache_path("ccplay") / "guest", os.environ.get("SUDO_USER")
    if own.is_dir() or not user:
        return own
    theirs = Path(os.path.expanduser(f"~{user}")) / ".cache" / "ccplay" / "guest"  # noqa: PTH111 - does not raise
    return theirs if theirs.is_dir() else own


FOLDER = folder()

KERNEL = FOLDER / "vmlinuz"
MODULES = FOLDER / "lib" / "modules"
ACCELERATOR = FOLDER / "accelerator"
"""Names one of ``ACCELERATORS``, whichever was seen to boot; written last."""

ACCELERATORS = ("kvm", "tcg")

INIT = Path(__file__).parent / "init"
RAMDISK = FOLDER / f"ramdisk-{sha256(INIT.read_bytes()).hexdigest()[:8]}"
"""By the first process in it, which another version of ccplay may have otherwise."""
