"""Removes from the stream what spectators must not learn: paths, and the user names in them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_PATH = re.compile(r"(?:(?<=[\s\"'(=:,\[])|^)(?:~[^/\s]*)?(?:/[^/\s\"'(),;:\]]+)+/?")
"""Pattern of an absolute path, or one that begins with ``~``, within a sentence."""

_encoder = msgspec.json.Encoder()


def without_paths(text: str) -> str:
    """Return a text with each path reduced to its last component."""
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(line: bytes) -> bytes:
    """Return an event's line with paths removed from all its texts, keys of objects included."""
    if b"/" not in line:
        return line
    value = msgspec.json.decode(line)
    return _encoder.encode(_scrubbed(value)) + b"\n"


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, list):
        return [_scrubbed(each) for each in value]
    if isinstance(value, dict):
        return {without_paths(key): _scrubbed(each) for key, each in value.items()}
    return value
