"""``ccplay export``: the samples of recordings as tidy CSV or Parquet."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ccplay.commands import options
from ccplay.errors import UsageError
from ccplay.model.traffic import TRAFFIC
from ccplay.visible import notify

_EXPORTED = [(kind.plural, kind.exported) for kind in TRAFFIC if kind.exported is not None]
_TABLES = {
    "runs": "every run with all its metrics, from results alone",
    "tcp": "tcp_info of every connection, at every sample",
    "queues": "every observed queue, at every sample",
    **{name: each.about for name, each in _EXPORTED},
    "monitor": "packets received and one-way delay of monitored traffic, at its end",
    "intervals": "bytes of each flow, download and UDP in each second or --interval",
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
_ABOUT = f"""\
RUN is a directory written by `ccplay run --out`, a recording, or `last` for the last session of the
screen (`@2` for the one before, see `ccplay sessions`); several are exported together.
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
"""


_NOT_OURS = ("json", "ods", "tsv", "txt", "xls", "xlsx")
"""Endings of file formats that ccplay does not write; a new directory can't have one either."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument(
        "runs",
        nargs="+",
        type=options.recording,
        metavar="RUN",
        help="run directories or recordings, see below",
    )
    parser.add_argument(
        "--to",
        "--out",
        type=Path,
        metavar="DIR|FILE",
        help="a directory for all tables, or a file (.csv, .parquet) for one (default: stdout)",
    )
    parser.add_argument(
        "--format", choices=("csv", "parquet"), help="default: the ending of FILE, or csv"
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
    parser.set_defaults(run=run)


def _interval(text: str) -> float:
    try:
        seconds = float(text.removesuffix("s").strip())
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"must be from 0.1 to 3600 seconds, not {text!r}")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.commands.runs import gather
    from ccplay.report.data import export
    from ccplay.report.data.run_rows import NAME

    started = time.monotonic()
    kind, to, table = arguments.format, arguments.to, arguments.table
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
