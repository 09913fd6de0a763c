"""Installs the guest: downloads a kernel, unpacks it, and boots it once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from ccplay.errors import CcplayError, LabError, UnsupportedError
from ccplay.files import writing
from ccplay.files.writing import make_directory
from ccplay.guest import boot, image
from ccplay.guest.boot import (
    ACCELERATOR,
    FOLDER,
    KERNEL,
    MODULES,
    RAMDISK,
    UNPACKED,
    flaw,
    run,
    seal,
)
from ccplay.guest.ramdisk import ramdisk
from ccplay.units import format_size

# --- downloads and unpacks a kernel with all its modules ------------------------------------------

_IMAGE = re.compile(
    r"^linux-image-(\d[\d.]*(?:[+~]\w+)?(?:-\d+)?-(?:amd64|generic)) ", re.MULTILINE
)
"""Pattern of kernel packages, except cloud kernels, which lack modules, and real-time kernels."""

_FIRST = (6, 4)
"""First kernel whose struct_ops have links, which remove BPF algorithms with the lab."""


def newest() -> str:
    """Return the release of the newest kernel in the machine's package sources.

    Raises ``UnsupportedError``.
    """
    offered = run(["apt-cache", "search", "--names-only", "^linux-image-[0-9]"], Path("/")).decode()
    release = newest_of(offered)
    if release is None:
        raise UnsupportedError(
            f"the package sources have no kernel {_named(_FIRST)} or newer (try apt-get update)"
        )
    return release


def newest_of(offered: str) -> str | None:
    """Return the newest usable kernel in a listing of apt-cache(8); None if there is none."""
    releases = [each for each in _IMAGE.findall(offered) if _numbers(each)[:2] >= _FIRST]
    return max(releases, key=_numbers, default=None)


def packages_of(release: str) -> list[str]:
    """Return the names of the packages that contain a kernel and its modules.

    For Debian's newest kernels, such as 7.3, linux-image itself is empty. Raises ``CcplayError``.
    """
    names = f"^linux-(image|binary|modules|modules-extra)-{re.escape(release)}$"
    listing = run(["apt-cache", "search", "--names-only", names], Path("/")).decode()
    return [line.split()[0] for line in listing.splitlines()]


def install(packages: Sequence[str], files: Sequence[Path], folder: Path) -> None:
    """Unpack a kernel, its modules, and the busybox for its ramdisk, into ``folder``.

    ``packages`` are the names of packages to download, ``files`` are packages that are here.
    Raises ``CcplayError``.
    """
    for name in ("busybox-static", *packages):
        # _apt, apt's default user, may not write to this folder.
        run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name], folder)
    downloads = sorted(folder.glob("*.deb"))
    for archive in (*downloads, *files):
        run(["dpkg-deb", "--extract", str(archive), "."], folder)
    for archive in downloads:
        archive.unlink()
    _settle(folder)


def _settle(folder: Path) -> None:
    """Move files to one layout, independent of the distribution; list the modules' dependencies.

    Raises ``CcplayError`` unless there is one kernel with its modules, and it is new enough.
    """
    for found in (folder / "usr" / "lib" / "modules", folder / "usr" / "bin" / "busybox"):
        if found.exists():
            kept = folder / found.relative_to(folder / "usr")
            make_directory(kept.parent)
            found.replace(kept)
    # Debian's newest kernels are in the folder of their modules.
    images = {each.parent.name: each for each in folder.glob("lib/modules/*/vmlinuz")}
    images |= {each.name.removeprefix("vmlinuz-"): each for each in folder.glob("boot/vmlinuz-*")}
    modules = [each.name for each in folder.glob("lib/modules/*") if (each / "kernel").is_dir()]
    if len(modules) != 1 or modules != [*images]:
        held = [*(f"Linux {each}" for each in images), *(f"modules of {each}" for each in modules)]
        raise CcplayError(
            "the packages must hold one kernel and its modules, but hold "
            + (", ".join(held) or "neither")
        )
    if _numbers(modules[0])[:2] < _FIRST:
        raise CcplayError(f"Linux {modules[0]} is too old: ccplay needs {_named(_FIRST)} or newer")
    images[modules[0]].replace(folder / "vmlinuz")
    run(["depmod", "--basedir", str(folder), modules[0]], folder)


def _named(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))


# --- installs the guest: downloads a kernel, builds its ramdisk, and boots it once ----------------

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
    boot.find("qemu-system-x86_64")
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
    release = "" if files else newest()
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
        install(packages_of(release) if release else (), files, folder)
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
