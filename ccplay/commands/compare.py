"""``ccplay compare``: two recordings over each other, or two experiments figure by figure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.errors import UsageError

if TYPE_CHECKING:
    from ccplay.report.comparison import Comparison
    from ccplay.report.results import CaseResult


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    for name in ("a", "b"):
        parser.add_argument(
            name,
            type=Path,
            metavar=name.upper(),
            help="a recording, or a directory that run --out made",
        )
    parser.add_argument(
        "--table", action="store_true", help="print the figures also where there is a terminal"
    )
    parser.add_argument("--all", action="store_true", help="print every figure")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--speed", type=options.positive, default=1.0, help="times as fast (default 1)"
    )
    options.add_screen(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    paths: tuple[Path, Path] = (arguments.a, arguments.b)
    experiments = [path.is_dir() for path in paths]
    if any(experiments) and not all(experiments):
        raise UsageError(
            "compare takes two recordings or two directories of runs: "
            f"{paths[experiments.index(True)]} is a directory, "
            f"{paths[experiments.index(False)]} is not"
        )
    said = arguments.table or arguments.all or arguments.json
    if not all(experiments) and not said and sys.stdin.isatty() and sys.stdout.isatty():
        return _show(paths, arguments)
    comparison = _of_experiments(paths) if all(experiments) else _of_recordings(paths)
    if arguments.json:
        from ccplay import wire

        sys.stdout.write(wire.encode_value(comparison).decode() + "\n")
    else:
        from rich.console import Console

        from ccplay.report.comparison_table import show

        show(comparison, Console(), every=arguments.all)
    return 0


def _show(paths: tuple[Path, Path], arguments: argparse.Namespace) -> int:
    """Replay the first recording with the second under it."""
    from ccplay import wire
    from ccplay.commands.screen import show
    from ccplay.session import Session
    from ccplay.source import ReplaySource, check_recording

    check_recording(paths[0])
    arguments.ghost = paths[1]
    title = wire.printable(paths[0].name)
    return show(Session(ReplaySource(paths[0]), title=title), arguments)


def _of_recordings(paths: tuple[Path, Path]) -> Comparison:
    from ccplay.report.comparison import Comparison, compare_runs

    names = _names(paths)
    one, other = (_measured(path, name) for path, name in zip(paths, names, strict=True))
    return Comparison(a=names[0], b=names[1], cases=[compare_runs(one, other)])


def _measured(path: Path, name: str) -> CaseResult:
    from ccplay.report.summary import summarise
    from ccplay.source import read_recording

    return summarise(read_recording(path), name)


def _of_experiments(paths: tuple[Path, Path]) -> Comparison:
    from ccplay.experiment.store import read_run_directory
    from ccplay.report.comparison import compare_results

    one, other = (read_run_directory(path) for path in paths)
    return compare_results(one, other, _names(paths))


def _names(paths: tuple[Path, Path]) -> tuple[str, str]:
    from ccplay import wire

    return wire.printable(str(paths[0])), wire.printable(str(paths[1]))
