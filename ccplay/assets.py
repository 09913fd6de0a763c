"""Paths on this machine: files shipped with ccplay, programs, modules of the kernel."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path


def assets(kind: str) -> Path:
    """Return the folder of ``scenarios`` or ``themes``: in the wheel, or beside the package."""
    package = Path(__file__).parent
    inside = package / kind
    return inside if inside.is_dir() else package.parent / kind


ALGORITHMS = Path(__file__).parent / "bpf" / "programs"
"""The folder of congestion controls as BPF programs."""

SUFFIX = ".bpf"
"""Suffix of the names of ccplay's algorithms: ``vegas.bpf`` beside Linux's ``vegas``."""


@cache
def algorithms() -> dict[str, Path]:
    """Return the sources of the congestion controls that come with ccplay, by name."""
    files = sorted(ALGORITHMS.glob(f"*{SUFFIX}.c"))
    return {file.name.removesuffix(".c"): file for file in files if file.stem != "template.bpf"}


def module_file(name: str) -> str | None:
    """Return the file of module ``name``, such as ``sch_codel``; None if there is none."""
    return _files().get(name)


@cache
def _files() -> dict[str, str]:
    """Read modules.dep(5): files by name, in which modprobe(8) takes ``-`` for ``_``."""
    try:
        index = Path("/lib/modules", os.uname().release, "modules.dep").read_text(encoding="utf-8")
    except OSError:
        return {}
    files = [line.partition(":")[0] for line in index.splitlines()]
    # Not by Path: there are 4,000, and an emulated guest would need half a second for them.
    return {file.rpartition("/")[2].partition(".")[0].replace("-", "_"): file for file in files}


def find_tool(name: str) -> str | None:
    """Return where a program is; system directories count, on the PATH or not."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
