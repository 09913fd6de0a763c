"""Paths into a scenario file as typed by people: ``links."r->h2".delay``, ``timeline.0.cc``."""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeAlias

from ccplay.model.quoting import MisfitError, quote
from ccplay.scenario.bounded import DEEPEST

KeyPath: TypeAlias = tuple[str, ...]
"""Keys from the outermost table inwards; members of lists are numbers."""

NOWHERE: KeyPath = ()

# Looser than TOML, whose bare keys have no arrows, to save quoting in a shell.
_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s.\[\]"'=]+)\s*""")
_NEXT = re.compile(r"\.|(?=\[)")
_INDEX = re.compile(r"\[\s*([0-9]+)\s*\]\s*")


def read_path(value: Any) -> KeyPath:
    """Read a path; ``timeline[0]`` is the same as ``timeline.0``. Raises ``MisfitError``."""
    if isinstance(value, str):
        path, end = _scan(value)
        if path and end == len(value) and len(path) <= DEEPEST:
            return path
    raise MisfitError(f'{quote(value)} is not a path such as "links.bottleneck.queue.limit"')


def split_setting(text: str) -> tuple[str, KeyPath, str]:
    """Split ``PATH=VALUE`` into the path as typed, the path, and the value's text.

    Raises ``MisfitError``.
    """
    path, end = _scan(text)
    if not path or len(path) > DEEPEST or text[end : end + 1] != "=":
        example = 'such as links.bottleneck.rate="5 Mbit/s"'
        raise MisfitError(f"{quote(text)} is not PATH=VALUE, {example}")
    return text[:end].strip(), path, text[end + 1 :].strip()


def _scan(text: str) -> tuple[KeyPath, int]:
    """Return the path at the beginning of a text, and its end."""
    parts: list[str] = []
    end = 0
    while True:
        if match := _INDEX.match(text, end) if parts else None:
            parts.append(match[1])
        elif match := _PART.match(text, end):
            parts.append(_unquoted(match[1]))
        else:
            return (), end
        end = match.end()
        if (dot := _NEXT.match(text, end)) is None:
            return tuple(parts), end
        end = dot.end()


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"part = {part}")["part"])
    except tomllib.TOMLDecodeError:
        raise MisfitError(f"{quote(part)} is not a quoted string of TOML") from None
