"""Installs the guest: downloads a kernel, builds its ramdisk, and boots it once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ccplay.errors import CcplayError, LabError, UnsupportedError
from ccplay.files import writing
from ccplay.guest import boot, image, kernel, tools
from ccplay.guest.contents import flaw, seal
from ccplay.guest.kept import ACCELERATOR, FOLDER, KERNEL, MODULES, RAMDISK, UNPACKED
from ccplay.guest.ramdisk import ramdisk
from ccplay.units import format_size

_KVM_S, _EMULATED_S = 20.0, 180.0
"""Seconds that a first boot may take, with KVM and emulated; a broken KVM may never return."""

_ROOM = 500_000_000
"""Free bytes needed: Debian's kernel takes 185 MB, its packages 100 MB; others may be larger."""

_REMEDY = "free some space, or set XDG_CACHE_HOME to another directory"


def fetch(report: Callable[[str], None], packages: Sequence[str] = ()) -> None:
    """Install the missing parts of the guest; ``report`` receives a line about each step.

    ``packages`` are .deb files of a kernel, which then replaces the installed one.
    Raises ``CcplayError``.
    """
    tools.find("qemu-system-x86_64")
    try:
        wrong = flaw(FOLDER)
        if packages or wrong is not None:
            if FOLDER.exists():
                report(f"replacing the guest in {FOLDER}: {wrong or 'another kernel is wanted'}")
            _install(report, packages)
        elif not RAMDISK.exists():
            _prepare(report, FOLDER)
            seal(FOLDER)
        if not boot.seen_to_work():
            report("booting it once")
            writing.write(ACCELERATOR, _accelerator(), replace=True)
    except OSError as error:
        raise CcplayError(
            f"can't write the guest to {FOLDER}: {error.strerror} ({_REMEDY})"
        ) from None
    report(f"Linux {_release()} is ready in {FOLDER}")


def _install(report: Callable[[str], None], packages: Sequence[str]) -> None:
    files = [_package(each) for each in packages]
    release = "" if files else kernel.newest()
    writing.make_directory(FOLDER.parent)
    if shutil.disk_usage(FOLDER.parent).free < _ROOM:
        room = format_size(_ROOM)
        raise CcplayError(f"the guest needs {room} of free space in {FOLDER.parent} ({_REMEDY})")
    if files:
        report(f"unpacking {', '.join(file.name for file in files)}")
    else:
        report(
            f"downloading Linux {release} from the package sources (some 100 MB) and unpacking it"
        )
    with writing.passing_folder(FOLDER.parent, ".fetch-") as made:
        folder = made / "guest"
        writing.make_directory(folder)
        kernel.install(kernel.packages_of(release) if release else (), files, folder)
        _prepare(report, folder)
        seal(folder)
        writing.give_all(folder)
        os.sync()
        writing.replace_directory(folder, FOLDER, made / "earlier")


def _package(name: str) -> Path:
    """Return the absolute path of a package. Raises ``CcplayError`` if it is not a file."""
    path = Path(name).absolute()
    if not path.is_file():
        raise CcplayError(f"{name} is not a file: name the .deb files of a kernel")
    return path


def _prepare(report: Callable[[str], None], folder: Path) -> None:
    """Make the unpacked kernel and the ramdisk, which depend on the version of ccplay."""
    unpacked = folder / UNPACKED.name
    unpacked.unlink(missing_ok=True)
    try:
        if (made := image.unpacked((folder / KERNEL.name).read_bytes())) is not None:
            writing.write(unpacked, made)
    except UnsupportedError as error:
        report(f"the kernel stays packed, which makes an emulated guest boot slower: {error}")
    modules = folder / MODULES.relative_to(FOLDER)
    made = ramdisk(folder / "bin" / "busybox", next(modules.iterdir()))
    for old in folder.glob("ramdisk*"):
        old.unlink()
    writing.write(folder / RAMDISK.name, made)


def _accelerator() -> str:
    """Return the accelerator that boots the guest. Raises ``LabError``."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and _boots("kvm", _KVM_S):
        return "kvm"
    if _boots("tcg", _EMULATED_S):
        return "tcg"
    raise LabError(f"Linux {_release()} does not boot under QEMU")


def _boots(accelerator: str, within_s: float) -> bool:
    words = boot.argv([*boot.environment(), "uname", "-r"], accelerator=accelerator)
    pipe = subprocess.PIPE
    # stdin stays open, because the guest ends when it closes.
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as guest:
        try:
            guest.wait(within_s)
        except subprocess.TimeoutExpired:
            guest.kill()
            return False
        output = guest.stdout.read() if guest.stdout else b""
    return output.decode(errors="replace").strip() == _release()


def _release() -> str:
    return next(MODULES.iterdir()).name
