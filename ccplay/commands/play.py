"""``ccplay play``: plays a scenario live on the screen, or headless without a terminal."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.commands.screen import collect_no_garbage, has_terminal, show
from ccplay.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.session.session import Session
    from ccplay.state.lab_state import LabState
    from ccplay.stream.sources import Source

_GRACE_S = 1.5
"""Seconds after which a closed screen kills its lab; screen and lab end within two seconds."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.add_scenario(parser)
    options.add_lab(parser)
    options.add_screen(parser)
    options.add_ghost(parser)
    options.add_share(parser)
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
        from ccplay.commands.run import run as run_headless

        return run_headless(arguments)
    collect_no_garbage()
    scenario = options.load_scenario(arguments)
    options.choose_kernel(arguments, scenario)
    opener = options.lab_opener(arguments, grace_s=_GRACE_S)
    session = _opened(scenario, arguments, opener, arguments.record)
    return show(
        session,
        arguments,
        label=scenario.path.stem,
        again=lambda other: _opened(other, arguments, opener, None),
    )


def _opened(
    scenario: Scenario,
    arguments: argparse.Namespace,
    opener: Callable[[Build], Source],
    record: Path | None,
) -> Session:
    """Return a new session, recorded in memory if no file records it."""
    from ccplay.session.archive import SessionRecorder
    from ccplay.session.session import Session
    from ccplay.session.timeline import Script
    from ccplay.session.unsaved import Unsaved
    from ccplay.stream.sinks import Recorder, Sink

    case = scenario.case(*([] if scenario.text else arguments.case))
    script = Script(case.timeline)
    sinks: list[Sink] = [Recorder(record, case.title)] if record else []
    if not arguments.no_record:
        sinks.append(SessionRecorder(scenario.path.stem, case.title))
    elif not sinks:
        sinks.append(Unsaved(case.title))
    source = opener(script.prepare(case.build))
    return Session(
        source,
        title=case.title,
        sinks=sinks,
        script=script,
        idle=script.idle,
        advice=partial(_advice, scenario),
    )


def _advice(scenario: Scenario, state: LabState) -> str:
    """Return the line that offers a guest for what the kernel lacks; empty if none helps."""
    from ccplay.scenario.rules.support import guest_offer

    return guest_offer(scenario, state.hello.capabilities) if state.hello else ""
