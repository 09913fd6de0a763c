"""Making the guest ready: a kernel is brought, its ramdisk made, and both are seen to boot."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ccplay.errors import LabError
from ccplay.guest import boot, kernel, tools
from ccplay.guest.kept import ACCELERATOR, FOLDER, MODULES, RAMDISK
from ccplay.guest.ramdisk import ramdisk

_KVM_S, _EMULATED_S = 20.0, 180.0
"""So long a first boot may take; KVM may be there and never come back."""


def fetch(tell: Callable[[str], None]) -> None:
    """Bring what ``boot`` needs, where it is not there; ``tell`` hears of each step.

    Raises ``CcplayError``.
    """
    if boot.lack() is None:
        # It is made of a file of ours, which may be newer.
        RAMDISK.write_bytes(ramdisk(FOLDER / "bin" / "busybox", MODULES / _release()))
        tell(f"Linux {_release()} is ready in {FOLDER}")
        return
    tools.find("qemu-system-x86_64")
    release = kernel.newest()
    tell(f"downloading Linux {release} from the package sources (some 100 MB) and unpacking it")
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as name:
        folder = Path(name)
        kernel.bring(release, folder)
        made = ramdisk(folder / "bin" / "busybox", folder / "lib" / "modules" / release)
        (folder / RAMDISK.name).write_bytes(made)
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(folder, FOLDER)
    tell("booting it")
    ACCELERATOR.write_text(_accelerator(), encoding="ascii")
    tell(f"Linux {release} is ready in {FOLDER}")


def _accelerator() -> str:
    """Return which way of running the processor boots the guest. Raises ``LabError``."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and _boots("kvm", _KVM_S):
        return "kvm"
    if _boots("tcg", _EMULATED_S):
        return "tcg"
    raise LabError(f"Linux {_release()} does not boot under QEMU")


def _boots(accelerator: str, within_s: float) -> bool:
    words = boot.argv([*boot.environment(), "uname", "-r"], accelerator=accelerator)
    pipe = subprocess.PIPE
    # stdin stays open: the guest waits for whoever is at its other end.
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as guest:
        try:
            guest.wait(within_s)
        except subprocess.TimeoutExpired:
            guest.kill()
            return False
        said = guest.stdout.read() if guest.stdout else b""
    return said.decode(errors="replace").strip() == _release()


def _release() -> str:
    return next(MODULES.iterdir()).name
