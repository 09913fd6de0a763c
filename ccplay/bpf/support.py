"""Whether this machine supports BPF congestion controls, and the user's files with them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ccplay.assets import SUFFIX, find_tool
from ccplay.errors import UsageError
from ccplay.files.reading import by_name, missing
from ccplay.model.algorithms import CATALOGUE
from ccplay.model.values import Feature

# --- whether this machine supports congestion controls as BPF programs, and the remedy if not -----

TOOLS = ("clang", "bpftool")
"""Programs that building needs, each in Debian's package of the same name."""

BTF = Path("/sys/kernel/btf/vmlinux")
"""File with the types of the running kernel."""

_FIRST_KERNEL = (6, 4)
"""First kernel whose struct_ops have links, which remove an algorithm when its process ends."""


class Lack(NamedTuple):
    """A missing requirement."""

    reason: str
    remedy: str


def feature(
    name: str, summary: str, missing: tuple[str, str] | None, *, required: bool = False
) -> Feature:
    """Return a feature that is available unless a requirement is missing: reason and remedy.

    Without a reason it is available, whatever the remedy.
    """
    reason, remedy = missing if missing and missing[0] else ("", "")
    return Feature(name, not reason, summary, reason, remedy, required)


def lack(kernel: tuple[int, int] = _FIRST_KERNEL) -> Lack | None:
    """Return the first missing requirement of BPF programs; None if they should work.

    ``kernel`` is the oldest version that supports them and removes them with the lab.
    """
    if not is_root():
        # Congestion controls belong to the host, so a user namespace's root may not add any.
        return Lack("BPF programs need root of the host", "start the lab as root")
    release = os.uname().release
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < kernel:
        wanted = ".".join(map(str, kernel))
        return Lack(
            f"Linux {release} is too old for BPF programs of ccplay", f"Linux {wanted} or newer"
        )
    if not BTF.exists():
        return Lack(
            "this kernel has no type information (BTF)", "a kernel with CONFIG_DEBUG_INFO_BTF"
        )
    if missing := [each for each in TOOLS if find_tool(each) is None]:
        verb = "is" if len(missing) == 1 else "are"
        return Lack(
            f"{' and '.join(missing)} {verb} not installed", f"apt install {' '.join(TOOLS)}"
        )
    return None


def is_root() -> bool:
    """Return whether we are root of the host, and not only of a user namespace."""
    mapping = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return os.geteuid() == 0 and mapping[:2] == ["0", "0"] and int(mapping[2]) == 0xFFFFFFFF


# --- the user's algorithms: files that only the command line names, never a scenario --------------

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,14}")


def custom_algorithms(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by the name of their algorithm: ``mine`` for ``mine.bpf.c``.

    Raises ``UsageError`` for names that are invalid or taken.
    """
    rule = f"an algorithm is named after its file, NAME{SUFFIX}.c"
    return by_name(paths, lambda path: named(path.name), check_name, rule)


def named(file: str) -> str:
    """Return the name of the algorithm in a file."""
    return file.removesuffix(".c").removesuffix(SUFFIX)


def no_file(path: Path) -> str:
    """Return the message for a missing file, with a suggestion."""
    return missing(path, f"{SUFFIX}.c")


def check_name(name: str) -> None:
    """Raise ``UsageError`` if a user's algorithm can't have this name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 15 characters of a-z, 0-9, '_' and '-'"
        )
    if name in CATALOGUE:
        raise UsageError(f"Linux already has a congestion control {name!r}: choose another name")
