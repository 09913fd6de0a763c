"""Runs a scenario: live on the screen, or without one."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.cli import cluster, options, results
from ccplay.cli.options import wants_share
from ccplay.cli.screen import GRACE_S, collect_no_garbage, has_terminal, show
from ccplay.errors import CcplayError, UsageError
from ccplay.visible import notify

if TYPE_CHECKING:
    from collections.abc import Callable

    from ccplay.experiment.plan import RunOptions
    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.session.session import Session
    from ccplay.share.presenter import Sharing
    from ccplay.stream.sinks import Sink
    from ccplay.stream.sources import Source


# --- ``ccplay run``: runs a scenario without a screen ---------------------------------------------


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.epilog = (
        "ccplay evaluate ALGORITHM runs the scenarios that judge a congestion control by the "
        "criteria of RFC 9743."
    )
    options.add_scenario(parser)
    options.add_lab(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="keep every run in DIR; the same command resumes an interrupted experiment",
    )
    parser.add_argument(
        "--jobs",
        type=options.count,
        metavar="N",
        help="run N labs in parallel (default 1; on a cluster at most N on each worker)",
    )
    cluster.add_where(parser)
    cluster.add_away(parser)
    options.add_repeats(
        parser,
        "repeat until the half width of the 95%% confidence interval is at most this share of "
        "the mean, such as 5%%",
    )
    parser.add_argument(
        "--metric",
        metavar="PATH",
        help="the metric that --until-ci watches (default: the scenario's first)",
    )
    # The name of --metric in 0.1.
    parser.add_argument("--figure", dest="metric", help=argparse.SUPPRESS)
    parser.add_argument(
        "--max-repeats",
        type=options.count,
        metavar="N",
        help="stop --until-ci after N repeats (default 100)",
    )
    parser.add_argument(
        "--receiver",
        action="store_true",
        help="print each second what every flow has delivered, and the checkpoint of a race",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="afterwards write DIR/report/, as ccplay report DIR does",
    )
    options.add_share(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run_run)


def run_run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.experiment import runner

    loaded, wanted = options.load_scenario(arguments), _run_options(arguments)
    options.choose_kernel(arguments, loaded)
    wants_report = getattr(arguments, "report", False)
    if wants_report:
        # A missing library must be reported before an hour of runs.
        results.check_libraries()
    cluster.check_away(arguments)
    workers = cluster.of_run(arguments) if getattr(arguments, "cluster", None) else None
    if workers is None:
        try_algorithms(arguments)
        try_disciplines(arguments)
        opener = options.lab_opener(arguments)
    else:
        cluster.check(loaded)
        opener = cluster.no_lab
    code = asyncio.run(runner.run_scenario(loaded, opener, wanted, workers))
    if wants_report and wanted.out is not None and code < runner.KILLED:
        notify(str(results.make([wanted.out], wanted.out / results.FOLDER)))
    return code


def _sharer(arguments: argparse.Namespace) -> Callable[[str, str], Sink]:
    """Return a function that shares a run, given the name and the title of its case."""
    from ccplay.share.presenter import Sharing

    scenario = Path(arguments.scenario).stem

    def share(case: str, title: str) -> Sink:
        label = scenario if case in ("", scenario) else f"{scenario}-{case}"
        sharing = Sharing(label, title, group=arguments.share_group)
        notify(f"others can watch: ccplay watch {sharing.name}")
        return sharing if arguments.web is None else _in_browsers(sharing, arguments.web)

    return share


def _in_browsers(sharing: Sharing, place: str) -> Sink:
    """Serve a shared run to browsers too. Raises ``CcplayError``."""
    from ccplay.cli.classroom import show_code
    from ccplay.share.presenter import InBrowsers

    shown = InBrowsers(sharing, place)
    try:
        link = shown.browsers.wait()
    except CcplayError:
        shown.close()
        raise
    notify(f"browsers can watch: {link}")
    show_code(shown.browsers.code)
    return shown


def try_algorithms(arguments: argparse.Namespace) -> None:
    """Build and load the user's algorithms once, since a mistake would spoil every run.

    The first flow then need not wait for the build. Raises ``CcplayError`` with the mistake.
    """
    if not arguments.algorithm or arguments.guest or arguments.host is not None:
        return
    from ccplay.bpf.build import BuildError, build, summed_up
    from ccplay.bpf.libbpf import LoadError, try_out
    from ccplay.bpf.support import custom_algorithms, lack

    if lack() is not None:
        return
    for name, path in custom_algorithms(arguments.algorithm).items():
        try:
            image, _ = build(path)
            try_out(image, name)
        except (BuildError, LoadError) as error:
            raise CcplayError(summed_up(path, error)) from None


def try_disciplines(arguments: argparse.Namespace) -> None:
    """Run the user's disciplines once over a generated trace, since a mistake would spoil all runs.

    Raises ``CcplayError`` with the first mistake.
    """
    if not arguments.discipline or arguments.host is not None:
        return
    from ccplay.lab.custom import trial
    from ccplay.lab.custom.loading import custom_disciplines, read_source

    for name, path in custom_disciplines(arguments.discipline).items():
        for mistake in trial.try_in_process(name, read_source(path)).mistakes:
            raise mistake


def _run_options(arguments: argparse.Namespace) -> RunOptions:
    """Return the run options of this command line. Raises ``UsageError``."""
    from ccplay.experiment.plan import MOST_REPEATS, RunOptions

    given = {name: getattr(arguments, name, None) for name in ("until_ci", "metric", "max_repeats")}
    if given["until_ci"] is None and (given["metric"] or given["max_repeats"]):
        raise UsageError("--metric and --max-repeats go with --until-ci, such as --until-ci 5%")
    out = getattr(arguments, "out", None)
    if out is None and getattr(arguments, "report", False):
        raise UsageError("--report needs a run directory: name one with --out DIR")
    if out is not None and arguments.record is not None:
        raise UsageError(f"--record is not needed: --out keeps every recording in {out}/runs/")
    return RunOptions(
        cases=arguments.case,
        jobs=getattr(arguments, "jobs", None) or 1,
        repeats=getattr(arguments, "repeats", None),
        until_ci=given["until_ci"],
        metric=given["metric"],
        most=given["max_repeats"] or MOST_REPEATS,
        hz=arguments.hz,
        out=out,
        record=arguments.record,
        as_json=getattr(arguments, "json", False),
        receiver=getattr(arguments, "receiver", False),
        share=_sharer(arguments) if wants_share(arguments) else None,
        command=shlex.join(["ccplay", *sys.argv[1:]]),
        away=getattr(arguments, "away", ""),
    )


# --- ``ccplay play``: plays a scenario live on the screen, or headless without a terminal ---------


def add_play(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.add_scenario(parser)
    options.add_lab(parser)
    options.add_screen(parser)
    options.add_ghost(parser)
    options.add_share(parser)
    parser.add_argument(
        "--no-record",
        action="store_true",
        help="do not record this session automatically (see ccplay list sessions)",
    )
    parser.set_defaults(run=run_play)


def run_play(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    if not has_terminal():
        if arguments.ghost:
            raise UsageError("--ghost needs a terminal")

        return run_run(arguments)
    collect_no_garbage()
    scenario = options.load_scenario(arguments)
    options.choose_kernel(arguments, scenario)
    opener = options.lab_opener(arguments, grace_s=GRACE_S)
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
    from ccplay.scenario.rules import guest_offer
    from ccplay.session.archive import SessionRecorder, Unsaved
    from ccplay.session.session import Session
    from ccplay.session.steps import Script
    from ccplay.stream.sinks import Recorder

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
        advice=partial(guest_offer, scenario),
    )
