"""The process that serves browsers for a presenter; its arguments are ``SOCKET ADDRESS:PORT``.

It prints lines of JSON: the link once, then the number of browsers, or the reason for a failure.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from ccplay.errors import CcplayError
from ccplay.share.browsers import News, encode, read_place
from ccplay.web.serving import Served, require, serve


def main(words: list[str]) -> int:
    """Serve until the session ends; return the exit code."""
    # The presenter and its lab have priority.
    os.nice(5)
    try:
        require()
        asyncio.run(serve(Path(words[0]), read_place(words[1]), _ready, _Counter().count))
    except CcplayError as error:
        _write(News(failed=str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _ready(served: Served) -> None:
    from ccplay.web import code  # noqa: PLC0415 - segno may be missing

    _write(News(link=served.link, code=code.rows(served.link)))


class _Counter:
    """Writes the number of browsers when it changes."""

    def __init__(self) -> None:
        self._written = 0

    def count(self, browsers: int) -> None:
        if browsers != self._written:
            self._written = browsers
            _write(News(browsers=browsers))


def _write(news: News) -> None:
    try:
        sys.stdout.buffer.write(encode(news))
        sys.stdout.buffer.flush()
    except OSError:
        # The presenter has ended.
        sys.exit(1)
