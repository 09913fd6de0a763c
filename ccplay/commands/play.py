"""``ccplay play``: a scenario live on the screen, or headless without a terminal."""

from __future__ import annotations

import argparse
from pathlib import Path

from ccplay.commands import options
from ccplay.commands.run import run as run_headless
from ccplay.commands.screen import has_terminal, show
from ccplay.errors import UsageError

_GRACE_S = 1.5
"""Seconds until a closed screen kills its lab; screen and lab end within two seconds."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.add_scenario(parser)
    options.add_lab(parser)
    options.add_screen(parser)
    options.add_ghost(parser)
    parser.add_argument(
        "--no-record",
        action="store_true",
        help="do not record this session automatically (see ccplay sessions)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    if not has_terminal():
        if arguments.ghost:
            raise UsageError("--ghost needs a terminal")
        return run_headless(arguments)
    from ccplay.session.archive import SessionRecorder
    from ccplay.session.session import Session
    from ccplay.session.timeline import Script
    from ccplay.session.unsaved import Unsaved
    from ccplay.stream.sinks import Recorder, Sink

    case = options.load_scenario(arguments).case(*arguments.case)
    script = Script(case.timeline)
    build = script.foretold(case.build)
    sinks: list[Sink] = [Recorder(arguments.record, case.title)] if arguments.record else []
    unsaved = None
    if not arguments.no_record:
        sinks.append(SessionRecorder(Path(arguments.scenario).stem, case.title))
    elif not sinks:
        unsaved = Unsaved(case.title)
        sinks.append(unsaved)
    session = Session(
        options.lab_opener(arguments, grace_s=_GRACE_S)(build),
        title=case.title,
        sinks=sinks,
        script=script,
        idle=script.idle,
    )
    return show(session, arguments, unsaved=unsaved)
