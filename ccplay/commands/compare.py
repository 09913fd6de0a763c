"""``ccplay compare``: draws two recordings on the same axes, or compares metrics in tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ccplay.commands import options


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    for name in ("a", "b"):
        parser.add_argument(
            name,
            type=options.recording,
            metavar=name.upper(),
            help="a recording, a run directory (ccplay run --out), or last: the last session",
        )
    parser.add_argument(
        "--table", action="store_true", help="print tables even where there is a terminal"
    )
    parser.add_argument("--all", action="store_true", help="print every metric")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--speed",
        type=options.positive,
        default=1.0,
        metavar="N",
        help="play N times as fast (default 1)",
    )
    options.add_screen(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    paths: tuple[Path, Path] = (arguments.a, arguments.b)
    recordings = not any(path.is_dir() for path in paths)
    wanted = arguments.table or arguments.all or arguments.json
    if recordings and not wanted and sys.stdin.isatty() and sys.stdout.isatty():
        return _show(paths, arguments)
    from ccplay.commands.runs import gather
    from ccplay.report.data.comparison import compare
    from ccplay.stream import wire

    one, other = (gather([path], outline=True) for path in paths)
    names = wire.printable(str(paths[0])), wire.printable(str(paths[1]))
    comparison = compare(one.result, other.result, names, (one.made_of, other.made_of))
    if arguments.json:
        sys.stdout.write(wire.encode_value(comparison).decode() + "\n")
        return 0
    from rich.console import Console

    from ccplay.report.terminal.comparison_table import show

    # Two recordings with all metrics fit on a page; a matrix of cases does not.
    every = arguments.all or recordings
    show(comparison, Console(), every=every, counters=arguments.all)
    return 0


def _show(paths: tuple[Path, Path], arguments: argparse.Namespace) -> int:
    """Replay the first recording with the second under it."""
    from ccplay.commands.screen import show
    from ccplay.session.session import Session
    from ccplay.stream import wire
    from ccplay.stream.sources import ReplaySource, check_recording

    check_recording(paths[0])
    arguments.ghost = paths[1]
    title = wire.printable(paths[0].name)
    session = Session(ReplaySource(paths[0]), title=title)
    return show(session, arguments, label=paths[0].stem, recording=paths[0])
