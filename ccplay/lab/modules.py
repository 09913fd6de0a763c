"""What lies on this machine's disk: modules of its kernel, programs."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path


def module_file(name: str) -> str | None:
    """Return the file of module ``name``, such as ``sch_codel``; None where there is none."""
    return _files().get(name)


@cache
def _files() -> dict[str, str]:
    """Read modules.dep(5): files by name, in which modprobe(8) takes ``-`` for ``_``."""
    try:
        index = Path("/lib/modules", os.uname().release, "modules.dep").read_text(encoding="utf-8")
    except OSError:
        return {}
    files = [line.partition(":")[0] for line in index.splitlines()]
    return {Path(file).name.partition(".")[0].replace("-", "_"): file for file in files}


def find_tool(name: str) -> str | None:
    """Return where a program is; system directories count, on the PATH or not."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
