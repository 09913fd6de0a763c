"""A replay as an asciinema file, for a terminal or a web page.

https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ccplay.errors import UsageError
from ccplay.files import writing
from ccplay.ui.pictures.offscreen import Offscreen

_BEGIN = "\x1b[?25l\x1b[2J"
"""Codes that prepare a terminal: hide the cursor and clear the screen."""


async def write_cast(shown: Offscreen, path: Path, start: float, end: float, speed: float) -> None:
    """Write the terminal output from ``start`` to ``end`` at ``speed`` recorded seconds per second.

    Raises ``UsageError`` for moments outside the recording, and if ``path`` exists or can't be
    written.
    """
    shown.check(start)
    shown.check(end)
    if start >= end:
        raise UsageError(f"--to ({end:g} s) must be later than the start ({start:g} s)")
    with writing.explained(path, UsageError), writing.written(path) as file:

        def put(value: Any) -> None:
            file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

        put(_header(shown, (end - start) / speed))
        begin = _BEGIN
        async for t, text in shown.play(start, end):
            put([round(t, 3), "o", begin + text])
            begin = ""


def _header(shown: Offscreen, duration: float) -> dict[str, Any]:
    ink, paper, palette = shown.colours
    frame = shown.frame
    return {
        "version": 2,
        "width": frame.width,
        "height": frame.height,
        "duration": round(duration, 3),
        "title": f"ccplay {shown.title}",
        "env": {"TERM": "xterm-256color"},
        "theme": {"fg": ink, "bg": paper, "palette": ":".join(palette)},
    }
