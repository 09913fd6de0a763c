"""Downloads and unpacks a kernel with all its modules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ccplay.errors import CcplayError, UnsupportedError
from ccplay.files.writing import make_directory
from ccplay.guest.tools import run

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
