"""The rule for text from files, programs and other machines: nothing in it controls a terminal.

It holds where text is read: TOML with a control character is refused, in JSON they are replaced.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import unicodedata
from pathlib import Path


def printable(text: str) -> str:
    """Return ``text`` with control characters replaced by spaces or U+FFFD."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
        for each in text
    )


def printable_lines(text: str) -> str:
    """Return ``text`` with control characters replaced, but for line breaks and tabs."""
    if not control_in(text):
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _controls(each) else each for each in text)


def control_in(text: str) -> str:
    r"""Return the first control character in ``text`` but line breaks and tabs: ``\u001b``, or "".

    Characters that reorder text, break lines or are invisible count as such; joiners and soft
    hyphens, which belong to some writing systems, do not.
    """
    if text.isprintable():
        return ""
    return next((f"\\u{ord(each):04x}" for each in text if _controls(each)), "")


def _controls(character: str) -> bool:
    return (
        character not in "\n\t\u00ad\u200c\u200d"
        and not character.isprintable()
        and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def printable_json(content: bytes) -> bytes:
    """Return JSON with control characters replaced in all texts, without decoding its values.

    Raises ``UnicodeDecodeError`` for bytes that are not UTF-8.
    """
    if b"\\" in content:
        content = _ESCAPE.sub(_printable_escape, content)
    # Of other ASCII characters that control, JSON allows none in a text.
    if content.isascii() and b"\x7f" not in content:
        return content
    pieces = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
    # A piece at a time: one emoji makes all characters of a text take four bytes.
    texts = codecs.iterdecode(pieces, "utf-8")
    return b"".join(
        text.encode() if text.isprintable() else text.translate(_table(text)).encode()
        for text in texts
    )


_PIECE = 1 << 16
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
    if text.isprintable() or "\ud800" <= text <= "\udfff":
        # Half of a surrogate pair is no text: the decoder refuses it.
        return escape
    return printable(text).encode()


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
