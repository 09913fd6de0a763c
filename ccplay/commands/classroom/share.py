"""``ccplay share``: serves a shared session to browsers, too."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.errors import UsageError
from ccplay.visible import notify

if TYPE_CHECKING:
    from ccplay.share.places import Shared
    from ccplay.web.serving import Served

_ABOUT = """\
Serves a session that someone shares (ccplay --share, also of ccplay replay and ccplay run) to
browsers, until the session ends or Ctrl-C is pressed: plots, network, table and events, live.
Prints a link with a secret in it; nobody can watch without it. Browsers can vote in a lesson, and
change nothing. Of a session that another user shares they can't vote either.

Browsers of this machine alone can connect, unless --web names another address; what is sent is
not encrypted. From elsewhere: ssh -L 8000:127.0.0.1:8000 HOST, with --web 127.0.0.1:8000.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="a name that ccplay watch --list prints (default: the only one)",
    )
    options.add_web(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.share.browsers import read_place
    from ccplay.web.serving import require, serve

    require()
    place = read_place(arguments.web or "")
    session = _session(arguments.session)
    asyncio.run(serve(session.path, place, show, lambda _: None))
    notify("the session has ended")
    return 0


def _session(word: str | None) -> Shared:
    """Return the shared session of this name, or the only one. Raises ``UsageError``."""
    from ccplay.share import places

    if word:
        return places.find(word)
    there = places.shared()
    if not there:
        raise UsageError("nobody shares a session; to share yours: ccplay --share --web")
    if len(there) > 1:
        names = ", ".join(each.name for each in there)
        raise UsageError(f"several sessions are shared, name one of them: {names}")
    return there[0]


def show(served: Served) -> None:
    """Print the link, and on a terminal its QR code."""
    from ccplay.web import code

    print(served.link, flush=True)
    show_code(code.rows(served.link))


def show_code(rows: list[str]) -> None:
    """Print a QR code to stderr if that is a terminal."""
    if sys.stderr.isatty():
        # Black on white, whatever the terminal's colours are: cameras need that.
        lines = [f"\x1b[38;5;16;48;5;231m{row}\x1b[0m" for row in rows]
        print("\n".join(lines), file=sys.stderr, flush=True)
