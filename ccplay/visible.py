"""Prepares text for a terminal: control characters are replaced, never interpreted."""

from __future__ import annotations

import codecs
import json
import os
import re
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


def printable_json(content: bytes) -> bytes:
    """Return JSON with control characters replaced in all texts, without decoding its values.

    Raises ``UnicodeDecodeError`` for bytes that are not UTF-8.
    """
    if b"\\" in content:
        content = _ESCAPE.sub(_printable_escape, content)
    if content.isascii() and not _CONTROL.search(content):
        return content
    pieces = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
    # A piece at a time: one emoji makes all characters of a text take four bytes.
    texts = codecs.iterdecode(pieces, "utf-8")
    return b"".join(
        text.encode() if text.isprintable() else text.translate(_table(text)).encode()
        for text in texts
    )


_PIECE = 1 << 16
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Pattern of a control character but for those between JSON's values, which no text may have."""
_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rb"\\(?:" + _PAIR + rb"|u[0-9a-fA-F]{4}|.)", re.DOTALL)
"""Pattern of an escape in JSON: a surrogate pair is one."""


def _printable_escape(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    if escape[1:2] in b'"\\/':
        return escape
    try:
        text = json.loads(b'"' + escape + b'"')
    except ValueError:
        # Not valid JSON: whoever decodes it reports the place.
        return escape
    return escape if text.isprintable() else printable(text).encode()


def _table(text: str) -> dict[int, str]:
    return {ord(each): printable(each) for each in set(text) if not each.isprintable()}


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
