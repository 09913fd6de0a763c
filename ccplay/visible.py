"""Prepares text for a terminal: control characters are replaced, never interpreted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def printable(text: str) -> str:
    """Return ``text`` with control characters replaced by spaces or U+FFFD."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )


def printable_value(value: Any) -> Any:
    """Return a decoded JSON value with control characters replaced in all texts, keys included."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_value(each) for each in value]
    if isinstance(value, dict):
        return {printable(key): printable_value(each) for key, each in value.items()}
    return value


def notify(*lines: str) -> None:
    """Write lines to stderr, for people; a line break within a line becomes a space."""
    for line in lines:
        print(printable(line), file=sys.stderr, flush=True)


def put(path: Path) -> None:
    """Write a path to stdout: exactly for a program, printable for a terminal."""
    if sys.stdout.isatty():
        print(printable(str(path)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode(path) + b"\n")
