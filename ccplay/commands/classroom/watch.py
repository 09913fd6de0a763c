"""``ccplay watch``: follows a session that someone shares, on the spectator's own screen."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ccplay.commands import offscreen, options
from ccplay.commands.screen import has_terminal, show, watching
from ccplay.errors import UsageError
from ccplay.visible import notify, printable

if TYPE_CHECKING:
    from ccplay.share.places import Shared

_ABOUT = """\
Someone shares a session with `ccplay --share`, also of `ccplay replay` and `ccplay run`. Whoever
watches sees what the presenter sees until they touch a key; F follows again. Votes in a
lesson are counted; nothing else that a spectator does reaches the presenter or the lab.

From another machine: ssh -t HOST ccplay watch. For a class, share with a group
(--share-group NAME) and give an account of that group this line in sshd_config, so that it can
watch and do nothing else:

  ForceCommand ccplay watch --restricted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="a name that --list prints (default: the only one, or a choice)",
    )
    parser.add_argument("--list", action="store_true", help="list the shared sessions")
    parser.add_argument(
        "--from-now",
        action="store_true",
        help="skip the past; otherwise you can scroll back to the start",
    )
    parser.add_argument(
        "--restricted",
        action="store_true",
        help="read and write no files: no pictures, recordings, preferences, no suspending",
    )
    offscreen.add_window(parser)
    options.add_screen(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.share import places

    if arguments.list:
        return _list(places.shared())
    if not has_terminal():
        raise UsageError("watch needs a terminal; over ssh: ssh -t HOST ccplay watch")
    word = arguments.session
    if word is None and arguments.restricted:
        # A restricted account can't name a session in any other way.
        word = os.environ.get("SSH_ORIGINAL_COMMAND", "").strip()
        if "/" in word:
            raise UsageError("a restricted account can watch sessions by name only")
    chosen = places.find(word) if word else _choose(places.shared())
    if chosen is None:
        return 0
    from ccplay.share.frames import Wants
    from ccplay.share.watching import WatchSource

    wants = Wants.NOW if arguments.from_now else Wants.WHOLE
    source = WatchSource.join(chosen.path, wants)
    return show(watching(source), arguments, watched=source)


def _list(there: list[Shared]) -> int:
    if not there:
        notify("nobody shares a session; to share yours: ccplay --share")
        return 0
    for line in _lines(there):
        print(line)
    return 0


def _choose(there: list[Shared]) -> Shared | None:
    """Return the only session, or the one that the user picks from a list; None if they pick none.

    Raises ``UsageError`` if there is no session.
    """
    if not there:
        raise UsageError("nobody shares a session; to share yours: ccplay --share")
    if len(there) == 1:
        return there[0]
    print("Several sessions are shared:")
    for number, line in enumerate(_lines(there), 1):
        print(f"{number:>3}  {line}")
    while True:
        try:
            answer = input("Number (enter: none): ").strip()
        except EOFError:
            return None
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= len(there):
            return there[int(answer) - 1]
        print(f"a number from 1 to {len(there)}", file=sys.stderr)


def _lines(there: list[Shared]) -> list[str]:
    from ccplay.units import format_clock

    rows = [
        (
            each.name,
            "replay" if each.greeting.recorded else format_clock(each.greeting.now),
            f"{each.greeting.watching} watching",
            each.greeting.title,
        )
        for each in there
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        printable(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        for row in rows
    ]
