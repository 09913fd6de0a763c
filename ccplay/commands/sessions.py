"""``ccplay sessions``: lists or deletes the last sessions, which are recorded automatically."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.visible import notify, printable

if TYPE_CHECKING:
    from ccplay.session.recordings import Found

_ABOUT = """\
The last 20 sessions are kept, 500 MB in all, up to 200 MB each. `ccplay --no-record` keeps none.
Wherever a command takes a recording, `last` or `@1` is the session that began last, even while it
runs on another screen, `@2` the one before:

  ccplay replay last          play it again
  ccplay --ghost last         draw it under a new session
  ccplay report last          write a page with figures and tables
  ccplay script @2            turn it into a scenario
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="print a JSON array")
    what.add_argument(
        "--delete",
        nargs="+",
        type=_number,
        metavar="N",
        help="delete the sessions @N",
    )
    what.add_argument("--clear", action="store_true", help="delete all sessions")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session import archive

    if arguments.delete:
        return _delete([archive.named(f"@{number}") for number in arguments.delete])
    there = archive.sessions()
    if arguments.clear:
        return _delete(there)
    from ccplay.session.recordings import scan

    found = [scan(path, archive.folder()) for path in there]
    if arguments.json:
        import msgspec

        rows = [_member(number, each) for number, each in enumerate(found, 1)]
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
        return 0
    if not found:
        notify(f"no session is recorded in {archive.folder()}")
        return 0
    for line in _aligned([_HEADS, *(_row(n, each) for n, each in enumerate(found, 1))]):
        print(line)
    return 0


def _number(text: str) -> int:
    if not (text.removeprefix("@").isdecimal() and 1 <= int(text.removeprefix("@")) <= 9999):
        raise argparse.ArgumentTypeError(f"{text} is not the number of a session")
    return int(text.removeprefix("@"))


def _delete(paths: list[Path]) -> int:
    from ccplay.errors import RecordingError
    from ccplay.session import archive

    if not paths:
        return 0
    try:
        left = archive.delete(paths)
    except OSError as error:
        raise RecordingError(f"can't delete in {archive.folder()}: {error.strerror}") from None
    for path in paths:
        if path in left:
            notify(f"{path.name} is still being recorded, or belongs to another user: it stays")
        else:
            notify(f"deleted {path.name}")
    return 1 if left else 0


_HEADS = ("", "started", "scenario", "length", "size", "flows", "congestion control")
_RIGHT = ("", "length", "size", "flows")


def _row(number: int, found: Found) -> tuple[str, ...]:
    from ccplay.session.archive import is_running, label_of
    from ccplay.units import format_clock, format_size

    length = "" if found.seconds is None else format_clock(found.seconds)
    about = found.problem or ", ".join(found.algorithms)
    if is_running(found.path):
        about = ", ".join(filter(None, (about, "still running")))
    return (
        f"@{number}",
        f"{found.began:%Y-%m-%d %H:%M}",
        label_of(found.path),
        length,
        format_size(found.size),
        str(found.flows),
        about,
    )


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        printable(
            "  ".join(
                f"{cell:>{width}}" if head in _RIGHT else f"{cell:{width}}"
                for cell, width, head in zip(row, widths, _HEADS, strict=True)
            ).rstrip()
        )
        for row in rows
    ]


def _member(number: int, found: Found) -> dict[str, object]:
    from ccplay.session.archive import is_running, label_of

    return {
        "number": number,
        "path": str(found.path),
        "started": found.began.isoformat(timespec="seconds"),
        "scenario": label_of(found.path),
        "seconds": found.seconds,
        "bytes": found.size,
        "flows": found.flows,
        "congestion_controls": list(found.algorithms),
        "running": is_running(found.path),
        "problem": found.problem,
    }
