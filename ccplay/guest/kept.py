"""Where the guest's kernel is kept: in the user's cache, apart from the machine's own."""

from __future__ import annotations

from platformdirs import user_cache_path

FOLDER = user_cache_path("ccplay") / "guest"

KERNEL = FOLDER / "vmlinuz"
MODULES = FOLDER / "lib" / "modules"
RAMDISK = FOLDER / "ramdisk"
ACCELERATOR = FOLDER / "accelerator"
"""Says ``kvm`` or ``tcg``, whichever was seen to boot; written last."""
