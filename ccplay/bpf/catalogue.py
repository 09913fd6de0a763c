"""The available BPF congestion controls, each with the summary from its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ccplay.assets import algorithms
from ccplay.bpf.loaded import library
from ccplay.bpf.support import Lack, lack, program
from ccplay.model.values import Feature

_HEADER = re.compile(r"/\*(.*?)\*/", re.DOTALL)


def offers() -> Iterator[Feature]:
    """Yield every algorithm of ccplay and of the user, available or not."""
    missing = lack()
    for name, path in (algorithms() | library.custom).items():
        yield program(name, summary(path), missing or _LACKS.get(name, lambda: None)())


def _lack_of_mptcp() -> Lack | None:
    if Path("/proc/sys/net/mptcp").exists():
        return None
    return Lack("it couples subflows of MPTCP, which this kernel lacks", "one with CONFIG_MPTCP")


_LACKS: dict[str, Callable[[], Lack | None]] = {"lia.bpf": _lack_of_mptcp}
"""Checks of what a single algorithm needs beyond the requirements of all, by its name."""


def summary(path: Path) -> str:
    """Return the first sentence of a source's first comment, on one line."""
    if not path.is_file():
        return "can't be read: not a regular file"
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(4096)
    except OSError as error:
        return f"can't be read: {error.strerror}"
    comment = _HEADER.search(text)
    lines = [line.strip(" \t*") for line in comment[1].splitlines()] if comment else []
    plain = "\n".join(line for line in lines if not line.startswith("SPDX-"))
    paragraph = " ".join(plain.strip().partition("\n\n")[0].split())
    return paragraph.removesuffix(".") or "no description"
