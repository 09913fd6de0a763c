"""Evaluates a congestion control by RFC 9743's criteria, or a queue discipline by RFC 7928's."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.cli import cluster, options, results, screen
from ccplay.cli.run import try_algorithms, try_disciplines
from ccplay.errors import UsageError
from ccplay.visible import notify

if TYPE_CHECKING:
    from collections.abc import Container

    from ccplay.evaluation.criteria import Evaluation, Subject
    from ccplay.evaluation.evaluating import Wanted

_ABOUT = """\
  ccplay evaluate mine.bpf.c                  verdicts, CUBIC, Reno and BBR beside them, a page
  ccplay evaluate mine.bpf.c --quick          ten minutes on two cores: one run a point, and CUBIC
  ccplay evaluate bbr --only harm,silence     some criteria; --list names all
  ccplay evaluate --references                published experiments: ours over theirs
  ccplay evaluate mine.bpf.c --baseline DIR   also what became better or worse since an earlier one

Each criterion is a scenario with a table [evaluation] in scenarios/evaluation/, which ccplay run
evaluation/NAME runs alone. RFC 9743 gives no thresholds: the bounds are ours. DIR has a run
directory for each criterion, evaluation.json and index.html. The same command resumes.
Evaluations of several algorithms with the same DIR share their runs; verdicts and page are those of
the last. The exit code is 1 if a criterion with MUST failed. A figure that rests on a run that
can't be trusted gives no verdict.
"""
_AGAINST = {"algorithm": "cubic,reno,bbr", "discipline": "pfifo,codel,fq_codel"}
_QUICKLY = {"algorithm": "cubic", "discipline": "pfifo"}
_SOURCE = ".bpf.c"


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument(
        "target",
        nargs="?",
        metavar="ALGORITHM",
        help="the congestion control under test: a name, or a file NAME.bpf.c of your own",
    )
    parser.add_argument(
        "--discipline",
        metavar="NAME|FILE",
        help="evaluate a queue discipline instead: a name, or a file NAME.py of your own",
    )
    parser.add_argument(
        "--against",
        type=_names,
        metavar="A,B",
        help=f"measure these too, for comparison and as competitors (default "
        f"{_AGAINST['algorithm']}; with --quick {_QUICKLY['algorithm']})",
    )
    parser.add_argument(
        "--only", type=_names, default=(), metavar="A,B", help="these criteria only"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer points, shorter runs, each made once"
    )
    parser.add_argument(
        "--references",
        action="store_true",
        help="run published experiments instead, and write a report that draws ours over theirs",
    )
    parser.add_argument("--list", action="store_true", help="list the criteria")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="directory of runs, verdicts and page (default evaluation-NAME, with --quick "
        "evaluation-NAME-quick; the same command resumes)",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR", help="compare with the evaluation in this directory"
    )
    parser.add_argument(
        "--jobs",
        type=options.count,
        metavar="N",
        help="run N labs in parallel (default 1; with --quick one for each core, at most 2)",
    )
    options.add_repeats(
        parser, "repeat until the half width of the first measure's interval is at most this share"
    )
    cluster.add_where(parser)
    options.add_place(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--lines",
        action="store_true",
        help="print a line for each criterion; without it a terminal shows a table that fills, "
        "whose rows Enter replays",
    )
    parser.set_defaults(run=run_evaluate, kernel="host", algorithm=[])


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from rich.console import Console

    from ccplay.evaluation import evaluating

    kind = "algorithm" if arguments.discipline is None else "discipline"
    if arguments.list:
        evaluating.list_criteria(kind, Console())
        return 0
    results.check_libraries()
    if arguments.references:
        return _run_references(arguments)
    wanted = _wanted(arguments, kind)
    workers = cluster.of_run(arguments) if arguments.cluster else None
    opener = cluster.no_lab if workers else options.lab_opener(arguments)

    def finish(found: Evaluation) -> None:
        evaluating.write_result(found, wanted.out)

    if arguments.lines or arguments.json or not screen.has_terminal():
        making = evaluating.evaluate(wanted, opener, workers, finish)
    else:
        making = evaluating.evaluate_on_screen(
            wanted, opener, workers, finish, ascii=not screen.can_draw(sys.stdout)
        )
    evaluation, code = asyncio.run(making)
    if not evaluation.criteria:
        return code
    if arguments.json:
        options.put_json(evaluation)
    else:
        evaluating.show_evaluation(evaluation, Console())
    sys.stdout.flush()
    from ccplay.evaluation.evaluation_page import write_page

    notify(str(write_page(evaluation, wanted.out)))
    return code


def _run_references(arguments: argparse.Namespace) -> int:
    """Run the published experiments, and write their report."""
    from ccplay.experiment import runner
    from ccplay.experiment.plan import RunOptions
    from ccplay.scenario.library import find
    from ccplay.scenario.reading import load

    if arguments.target or arguments.discipline:
        raise UsageError("--references runs published experiments as they are: name no algorithm")
    out = arguments.out or Path("references")
    arguments.discipline = []
    wanted = RunOptions(
        out=out,
        jobs=arguments.jobs or 1,
        repeats=arguments.repeats,
        until_ci=arguments.until_ci,
        as_json=arguments.json,
        command=shlex.join(["ccplay", *sys.argv[1:]]),
    )
    workers = cluster.of_run(arguments) if arguments.cluster else None
    opener = cluster.no_lab if workers else options.lab_opener(arguments)
    code = asyncio.run(runner.run_scenario(load(find("references")), opener, wanted, workers))
    if code < runner.KILLED:
        notify(str(results.make([out], out / results.FOLDER)))
    return code


def _wanted(arguments: argparse.Namespace, kind: str) -> Wanted:
    """Return what this command line wants. Raises ``CcplayError``."""
    from ccplay.evaluation.evaluating import Wanted, read_evaluation
    from ccplay.experiment.plan import RunOptions
    from ccplay.scenario.rules import admit
    from ccplay.session.launch import options_of

    given = arguments.target if arguments.discipline is None else arguments.discipline
    if given is None or (arguments.target and arguments.discipline):
        raise UsageError("name either an algorithm, or a discipline with --discipline")
    default = (_QUICKLY if arguments.quick else _AGAINST)[kind]
    against = arguments.against or _names(default)
    files = [
        Path(each) for each in dict.fromkeys((given, *against)) if each.endswith((_SOURCE, ".py"))
    ]
    arguments.algorithm = [each for each in files if each.name.endswith(_SOURCE)]
    arguments.discipline = [each for each in files if each.suffix == ".py"]
    own, own_queues = options.own_algorithms(arguments), options.own_disciplines(arguments)
    admit(own)
    if not arguments.cluster:
        try_algorithms(arguments)
        try_disciplines(arguments)
    subject, *others = (_subject(each, kind) for each in (given, *against))
    for each in (subject, *others):
        _check_name(each.name, kind, {**own, **own_queues})
    if arguments.jobs is None:
        arguments.jobs = min(2, os.cpu_count() or 1) if arguments.quick else 1
    return Wanted(
        subject=subject,
        against=tuple({each.name: each for each in others}.values()),
        only=arguments.only,
        quick=arguments.quick,
        out=arguments.out or Path(f"evaluation-{subject.name}{'-quick' * arguments.quick}"),
        baseline=None if arguments.baseline is None else read_evaluation(arguments.baseline),
        own=own,
        own_queues=own_queues,
        options=RunOptions(
            jobs=arguments.jobs, repeats=arguments.repeats, until_ci=arguments.until_ci
        ),
        repeat=shlex.join(options_of(files)),
    )


def _subject(given: str, kind: str) -> Subject:
    """Return the subject that a word of the command line names."""
    from ccplay.evaluation.criteria import subject_of

    name = Path(given).name.removesuffix(_SOURCE).removesuffix(".py") if "." in given else given
    if given.endswith(".bpf"):
        # The names of the algorithms that come with ccplay end so.
        name = given
    return subject_of(name, kind)


def _check_name(name: str, kind: str, own: Container[str]) -> None:
    """Raise ``UsageError`` for the name of no algorithm, or of no discipline."""
    from ccplay.model.disciplines import kinds
    from ccplay.model.quantities import did_you_mean, quote
    from ccplay.model.texts import CONGESTION_CONTROLS

    word, known, suffix = (
        ("congestion control", CONGESTION_CONTROLS, _SOURCE)
        if kind == "algorithm"
        else ("queue discipline", tuple(kinds()), ".py")
    )
    if name not in known and name not in own:
        meant = did_you_mean(name, known)
        remedy = "" if meant.endswith("?") else f"; name your own by its file: {name}{suffix}"
        raise UsageError(f"unknown {word} {quote(name)}{meant}{remedy}")
