"""``ccplay script``: turns a recorded session into a scenario."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ccplay.commands import options
from ccplay.visible import notify


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "recording",
        type=options.recording,
        metavar="FILE",
        help="a recording, made with --record; last: the last session (see ccplay sessions)",
    )
    parser.add_argument(
        "--until",
        type=options.seconds,
        metavar="T",
        help="leave out what happened after T: 90 (seconds), or 1:30",
    )
    parser.add_argument("--title", help="title of the scenario (default: the recording's name)")
    parser.add_argument(
        "--to", "--out", type=Path, metavar="FILE", help="write to FILE instead of stdout"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.errors import UsageError
    from ccplay.files import writing
    from ccplay.scenario.rules.custom_algorithms import rerun
    from ccplay.scenario.writing import write
    from ccplay.session.recorded import read_recording

    recording, to = arguments.recording, arguments.to
    title = arguments.title or recording.stem
    state = read_recording(recording)
    text = write(state, title=title, until=arguments.until)
    if to is None:
        sys.stdout.write(text)
        return 0
    with writing.explained(to, UsageError):
        writing.write(to, text)
    notify(f"to repeat it: {rerun(to, state)}")
    return 0
