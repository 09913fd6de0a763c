"""Finds files on this machine: those shipped with ccplay, programs, and kernel modules."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path


def assets(kind: str) -> Path:
    """Return the folder ``scenarios`` or ``themes``: inside an installed package, or beside it."""
    package = Path(__file__).parent
    inside = package / kind
    return inside if inside.is_dir() else package.parent / kind


ALGORITHMS = Path(__file__).parent / "bpf" / "programs"
"""Folder with the sources of ccplay's congestion controls, which are BPF programs."""

SUFFIX = ".bpf"
"""Suffix of the names of ccplay's algorithms: ``vegas.bpf`` beside Linux's ``vegas``."""


@cache
def algorithms() -> dict[str, Path]:
    """Return the sources of the congestion controls that come with ccplay, by name."""
    files = sorted(ALGORITHMS.glob(f"*{SUFFIX}.c"))
    return {file.name.removesuffix(".c"): file for file in files if file.stem != "template.bpf"}


@cache
def kernel_modules() -> set[str]:
    """Return the names of all modules in modules.dep(5): ``sch_codel``, as modprobe(8) has them."""
    try:
        index = Path("/lib/modules", os.uname().release, "modules.dep").read_text(encoding="utf-8")
    except OSError:
        return set()
    files = [line.partition(":")[0] for line in index.splitlines()]
    # Without Path, which would take an emulated guest half a second for 4,000 files.
    return {file.rpartition("/")[2].partition(".")[0].replace("-", "_") for file in files}


def module_remedy(module: str, option: str) -> str:
    """Return how to get a part of the kernel: load its module, or use a kernel with an option."""
    if module in kernel_modules():
        return f"as root: modprobe {module}"
    return f"a kernel with CONFIG_{option} has it"


def find_tool(name: str) -> str | None:
    """Return the path of a program on the PATH or in /usr/sbin or /sbin; None if there is none."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
