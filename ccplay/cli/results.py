"""Commands about finished runs: report, export, compare, script."""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from ccplay.cli import options
from ccplay.errors import UsageError
from ccplay.traffic import TRAFFIC
from ccplay.visible import notify, put

# --- ``ccplay report``: writes a page with figures and tables about finished runs -----------------

_LIBRARIES = ("matplotlib", "fontTools", "jinja2", "PIL")
FOLDER = "report"
"""Name of the report's directory within a run directory."""

_ABOUT = """\
RUN is a directory written by `ccplay run --out`, a recording, or `last` for the last session of the
screen (`@2` for the one before, see `ccplay list sessions`); several are reported together.
The report is a directory with index.html (a self-contained page), figures/ (SVG, PDF, PNG) and
tables/ (Markdown, CSV, JSON). For each case the page shows the run closest to the median. With up
to 8 cases that run is drawn in every format, and also panel by panel; every other run is one SVG.
Of more than 300 runs only the one closest to the median of each case is drawn, of at most 30 cases;
--all draws every run. Tables of more than 2000 rows are CSV and JSON only.
"""


def _add_runs(parser: argparse.ArgumentParser, about: str) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = about
    parser.add_argument(
        "runs",
        nargs="+",
        type=options.recording,
        metavar="RUN",
        help="run directories or recordings, see below",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_runs(parser, _ABOUT)
    parser.add_argument(
        "--out",
        "--to",
        type=Path,
        metavar="DIR",
        help="directory of the report (default: report/ in the run directory, FILE-report beside "
        "a recording, of a session in the current folder)",
    )
    parser.add_argument(
        "--all", action="store_true", help="draw every run in every format, also panel by panel"
    )
    parser.add_argument(
        "--plot",
        action="append",
        default=[],
        metavar="NAME",
        help="draw this plot too, such as pacing-rate or unacked; may be repeated",
    )
    parser.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    out = arguments.out or _default_out(arguments.runs[0])
    put(make(arguments.runs, out, every=arguments.all, plots=tuple(arguments.plot)))
    return 0


def check_libraries() -> None:
    """Raise ``UsageError`` if a library for reports is not installed."""
    # Found, not imported: that takes a second, and a recording may be unreadable.
    for name in _LIBRARIES:
        if find_spec(name) is None:
            raise UsageError(f"a report needs {name}: pip install 'ccplay[report]'")


def make(runs: list[Path], out: Path, *, every: bool = False, plots: tuple[str, ...] = ()) -> Path:
    """Write the report of ``runs`` into ``out``, with progress on stderr; return its page.

    ``plots`` are drawn in addition to the default ones. Raises ``UsageError`` for an unknown plot.
    """
    check_libraries()
    from ccplay.plots.table import reported

    reported(plots)
    from ccplay.cli.runs import gather

    started = time.monotonic()
    material = gather(runs)
    from ccplay.report.page.report_directory import write

    page = write(material, out, _show_progress, every=every, plots=plots)
    if sys.stderr.isatty():
        print(end="\r\033[K", file=sys.stderr)
    cases, done = len(material.result.statistics), len(material.runs)
    words = f"{done} run{'s' if done > 1 else ''} of {cases} case{'s' if cases > 1 else ''}"
    notify(f"report on {words}, written in {time.monotonic() - started:.1f} s")
    return page


def _default_out(first: Path) -> Path:
    from ccplay.session import archive

    if first.is_dir():
        return first / FOLDER
    # A report in the folder of automatic recordings would not be found.
    place = Path() if first in archive.sessions() else first.parent
    return place / f"{first.stem}-report"


def _show_progress(done: int, total: int, what: str) -> None:
    """Show progress on one line of stderr, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{done} of {total} {what}", end="", file=sys.stderr, flush=True)


# --- ``ccplay export``: the samples of recordings as tidy CSV or Parquet --------------------------

_EXPORTED = [(kind.plural, kind.exported) for kind in TRAFFIC if kind.exported is not None]
_TABLES = {
    "runs": "every run with all its metrics, from results alone",
    "tcp": "tcp_info of every connection, at every sample",
    "queues": "every observed queue, at every sample",
    **{name: each.about for name, each in _EXPORTED},
    "monitor": "packets received and one-way delay of monitored traffic, at its end",
    "intervals": "bytes that each traffic moved in each second or --interval",
    "interfaces": "packets and drops of every interface, at the end",
    "sojourn-times": "packets by the time they waited in a discipline in software, each second",
    "trace": "cwnd, ssthresh and srtt of traced flows, at every ACK",
    "ca-states": "changes of the congestion state of traced flows",
    "events": "commands and events in words",
    "variables": (
        "variables of algorithms, such as BBR's gains, and what monitors saw each second"
    ),
    "queue-variables": "variables of disciplines, such as the state of codel",
    "health": "timing of the lab, each second",
}
_EXPORT_ABOUT = f"""\
RUN is a directory written by `ccplay run --out`, a recording, or `last` for the last session of the
screen (`@2` for the one before, see `ccplay list sessions`); several are exported together.
Every row but those of `runs` is a sample: run, case, repeat, the parameters of the matrix, t_s
(seconds since the network was ready, as in the figures), then the columns of the table, whose names
end in units.

{"".join(f"  {name:<16}{about}{chr(10)}" for name, about in _TABLES.items())}
  ccplay export results/ --to data/                     every table as data/TABLE.csv
  ccplay export results/ --to data/ --format parquet    the same as Parquet
  ccplay export results/ --to tcp.parquet               one table; --table names another
  ccplay export results/ --table intervals --interval 0.5     bytes of each half second
  ccplay export results/ --to runs.csv --table runs     metrics of thousands of runs, in seconds
  ccplay export run.ccplay | head                       one table as CSV to stdout

A recorded session as a scenario, which repeats what was done in it:

  ccplay export last --to mine.toml
  ccplay export last --format scenario --until 1:30 > mine.toml
"""

_NOT_OURS = ("json", "ods", "tsv", "txt", "xls", "xlsx")
"""Endings of file formats that ccplay does not write; a new directory can't have one either."""


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_runs(parser, _EXPORT_ABOUT)
    parser.add_argument(
        "--to",
        "--out",
        type=Path,
        metavar="DIR|FILE",
        help="a directory for all tables, or a file (.csv, .parquet) for one (default: stdout); "
        "FILE.toml is a scenario",
    )
    parser.add_argument(
        "--format",
        choices=("csv", "parquet", "scenario"),
        help="default: the ending of FILE, or csv",
    )
    parser.add_argument(
        "--table",
        choices=tuple(_TABLES),
        help="write only this table (default: all into a directory; tcp into a file or to stdout)",
    )
    parser.add_argument(
        "--interval",
        type=_interval,
        metavar="SECONDS",
        help="length of an interval in the table intervals, in seconds, 0.1 to 3600 (default: 1)",
    )
    _add_scenario(parser)
    parser.set_defaults(run=run_export)


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    """Add the options for a recording that becomes a scenario."""
    parser.add_argument(
        "--until",
        type=options.seconds,
        metavar="T",
        help="scenario: leave out what happened after T: 90 (seconds), or 1:30",
    )
    parser.add_argument("--title", help="scenario: its title (default: the recording's name)")


def _interval(text: str) -> float:
    try:
        seconds = float(text.removesuffix("s").strip())
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"must be from 0.1 to 3600 seconds, not {text!r}")
    return seconds


def run_export(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.cli.runs import gather
    from ccplay.report.data import export
    from ccplay.report.data.export import NAME

    started = time.monotonic()
    kind, to, table = arguments.format, arguments.to, arguments.table
    if kind == "scenario" or (to is not None and to.suffix == ".toml" and not to.is_dir()):
        return _export_scenario(arguments)
    if arguments.until is not None or arguments.title is not None:
        raise UsageError("--until and --title need a scenario as output: --to FILE.toml")
    if arguments.interval is not None and table is None:
        table = "intervals"
    interval_s = arguments.interval or 1.0
    if to is None:
        if kind == "parquet":
            raise UsageError(
                "Parquet can't be written to stdout: name a file or directory with --to"
            )
        material = gather(arguments.runs, outline=table != NAME)
        export.print_table(material, table or "tcp", interval_s)
        return 0
    ending = to.suffix.lstrip(".").lower()
    if ending in _NOT_OURS and not to.is_dir():
        raise UsageError(f"{to}: tables go into .csv or .parquet files, or into a directory")
    one = ending in export.FORMATS and not to.is_dir()
    tables = [table] if table else ["tcp"] if one else list(_TABLES)
    material = gather(arguments.runs, outline=NAME not in tables)
    if one:
        if kind not in (None, ending):
            raise UsageError(f"{to} does not end in .{kind}")
        written = {to: export.export_one(material, to, ending, tables[0], interval_s)}
    else:
        written = export.export(material, to, kind or "csv", tables, interval_s)
    for path, rows in written.items():
        notify(f"{path}: {rows:,} rows")
    notify(f"{time.monotonic() - started:.1f} s")
    return 0


# --- ``ccplay compare``: draws two recordings on the same axes, or compares metrics in tables -----


def add_compare(parser: argparse.ArgumentParser) -> None:
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
    options.add_speed(parser)
    options.add_screen(parser)
    parser.set_defaults(run=run_compare)


def run_compare(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    paths: tuple[Path, Path] = (arguments.a, arguments.b)
    recordings = not any(path.is_dir() for path in paths)
    wanted = arguments.table or arguments.all or arguments.json
    if recordings and not wanted and sys.stdin.isatty() and sys.stdout.isatty():
        from ccplay.cli.screen import replay
        from ccplay.stream.sources import check_recording

        check_recording(arguments.a)
        # The second recording is drawn under the first.
        arguments.ghost = arguments.b
        return replay(arguments.a, arguments)
    from ccplay.cli.runs import gather
    from ccplay.report.comparison import compare, show_comparison
    from ccplay.stream import wire

    one, other = (gather([path], outline=True) for path in paths)
    names = wire.printable(str(paths[0])), wire.printable(str(paths[1]))
    comparison = compare(one.result, other.result, names, (one.made_of, other.made_of))
    if arguments.json:
        options.put_json(comparison)
        return 0
    from rich.console import Console

    # Two recordings with all metrics fit on a page; a matrix of cases does not.
    every = arguments.all or recordings
    show_comparison(comparison, Console(), every=every, counters=arguments.all)
    return 0


# --- ``ccplay script``: turns a recorded session into a scenario ----------------------------------


def add_script(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.add_recording(parser)
    _add_scenario(parser)
    parser.add_argument(
        "--to", "--out", type=Path, metavar="FILE", help="write to FILE instead of stdout"
    )
    parser.set_defaults(run=run_script)


def _export_scenario(arguments: argparse.Namespace) -> int:
    """Write the only recording named as a scenario. Raises ``UsageError`` for something else."""
    (arguments.recording, *more) = arguments.runs
    if more or arguments.recording.is_dir():
        raise UsageError("a scenario is made from one recording: name one only")
    if arguments.format not in (None, "scenario"):
        raise UsageError(f"{arguments.to} does not end in .{arguments.format}")
    if arguments.table is not None or arguments.interval is not None:
        raise UsageError("--table and --interval can't be combined with a scenario as output")
    return run_script(arguments)


def run_script(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.files import writing
    from ccplay.scenario.rules import rerun
    from ccplay.scenario.writing import write
    from ccplay.session.archive import read_recording

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
