"""Programs of the host that build and boot a guest."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ccplay.assets import find_tool
from ccplay.errors import CcplayError, UnsupportedError

_PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "depmod": "kmod",
    "xz": "xz-utils",
}
"""Package of a program in Debian and Ubuntu, if it has another name, by the program's name."""

UNPACKERS = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dc"], ".gz": ["gzip", "-dc"]}
"""Command lines that unpack a file or stdin to stdout, by the suffix of the packed file."""


def find(name: str) -> str:
    """Return the path of a program. Raises ``UnsupportedError`` with its package if missing."""
    path = find_tool(name)
    if path is None:
        package = _PACKAGES.get(name, name)
        raise UnsupportedError(f"{name} is not installed (apt install {package})")
    return path


def run(argv: Sequence[str], folder: Path, text: bytes = b"") -> bytes:
    """Run a program in ``folder`` and return what it prints. Raises ``CcplayError``."""
    words = [find(argv[0]), *argv[1:]]
    done = subprocess.run(words, cwd=folder, input=text, capture_output=True, check=False)
    if done.returncode != 0:
        messages = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise CcplayError(f"{argv[0]} failed: {messages[-1]}")
    return done.stdout
