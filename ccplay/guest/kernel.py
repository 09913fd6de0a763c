"""Downloads and unpacks a kernel of the distribution with all its modules."""

from __future__ import annotations

import re
from pathlib import Path

from ccplay.errors import UnsupportedError
from ccplay.files.writing import make_directory
from ccplay.guest.tools import run

_IMAGE = re.compile(
    r"^linux-image-(\d[\d.]*(?:[+~]\w+)?(?:-\d+)?-(?:amd64|generic)) ", re.MULTILINE
)
"""Names of kernel packages, but not of cloud kernels, which lack modules, or of real-time ones."""

_FIRST = (6, 4)
"""First kernel whose struct_ops have links, which remove BPF algorithms with the lab."""


def newest() -> str:
    """Return the release of the newest kernel in the machine's package sources.

    Raises ``UnsupportedError``.
    """
    offered = run(["apt-cache", "search", "--names-only", "^linux-image-[0-9]"], Path("/")).decode()
    release = newest_of(offered)
    if release is None:
        wanted = ".".join(map(str, _FIRST))
        raise UnsupportedError(
            f"the package sources have no kernel {wanted} or newer (try apt-get update)"
        )
    return release


def newest_of(offered: str) -> str | None:
    """Return the newest usable kernel in a listing of apt-cache(8); None if there is none."""
    releases = [each for each in _IMAGE.findall(offered) if _numbers(each)[:2] >= _FIRST]
    return max(releases, key=_numbers, default=None)


def bring(release: str, folder: Path) -> None:
    """Download a kernel and its modules, and a busybox to start it with, into ``folder``."""
    names = f"^linux-modules(-extra)?-{re.escape(release)}$"
    # Ubuntu has the modules in packages of their own.
    modules = run(["apt-cache", "search", "--names-only", names], folder).decode().splitlines()
    for package in (f"linux-image-{release}", "busybox-static", *(m.split()[0] for m in modules)):
        # _apt, apt's default user, may not write to our folder.
        run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package], folder)
    for archive in sorted(folder.glob("*.deb")):
        run(["dpkg-deb", "--extract", archive.name, "."], folder)
        archive.unlink()
    _settle(release, folder)


def _settle(release: str, folder: Path) -> None:
    """Move files to one layout, independent of the distribution's packages."""
    for found in (folder / "usr" / "lib" / "modules", folder / "usr" / "bin" / "busybox"):
        if found.exists():
            kept = folder / found.relative_to(folder / "usr")
            make_directory(kept.parent)
            found.replace(kept)
    (folder / "boot" / f"vmlinuz-{release}").replace(folder / "vmlinuz")
    run(["depmod", "--basedir", str(folder), release], folder)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))
