"""``ccplay replay``: plays a recording on the screen, or draws it into files."""

from __future__ import annotations

import argparse
from functools import partial

from ccplay.commands import offscreen, options
from ccplay.commands.screen import has_terminal, show
from ccplay.errors import UsageError


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "recording",
        type=options.recording,
        metavar="FILE",
        help="a recording, made with --record; last: the last session (see ccplay sessions)",
    )
    parser.add_argument(
        "--speed",
        type=options.positive,
        default=1.0,
        metavar="N",
        help="play N times as fast (default 1)",
    )
    parser.add_argument(
        "--at",
        type=options.seconds,
        default=0.0,
        metavar="T",
        help="start at T: 90 (seconds), or 1:30",
    )
    offscreen.add_window(parser)
    options.add_screen(parser)
    options.add_ghost(parser)
    options.add_share(parser)
    offscreen.add(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session.glimpse import glimpse
    from ccplay.session.session import Session
    from ccplay.stream import wire
    from ccplay.stream.sources import ReplaySource, check_recording

    check_recording(arguments.recording)
    title = wire.printable(arguments.recording.name)
    if offscreen.wanted(arguments):
        return offscreen.draw(arguments, title)
    if not has_terminal():
        raise UsageError("replay needs a terminal: it reads keys from stdin and draws on stdout")
    source = ReplaySource(arguments.recording)
    early = partial(glimpse, arguments.recording, arguments.at) if arguments.at else None
    session = Session(source, title=title, glimpse=early)
    return show(session, arguments, label=arguments.recording.stem, recording=arguments.recording)
