"""What spectators must not learn: paths of the host, and with them names of users."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_PATH = re.compile(r"(?:(?<=[\s\"'(=:,\[])|^)(?:~[^/\s]*)?(?:/[^/\s\"'(),;:\]]+)+/?")
"""An absolute path, or one from a home directory, as a word of a sentence."""

_encoder = msgspec.json.Encoder()


def without_paths(text: str) -> str:
    """Return a text with each path reduced to its last name."""
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(line: bytes) -> bytes:
    """Return the line of an event without paths in any of its texts, keys of objects included."""
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
