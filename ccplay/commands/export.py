"""``ccplay export``: the samples of recordings as tidy CSV or Parquet."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ccplay.errors import UsageError
from ccplay.visible import tell

_ABOUT = """\
RUN is a directory that `ccplay run --out` wrote, or one or several recordings. Every table has one
row a sample: run, case, repeat, the parameters of the matrix, t_s (seconds since the network stood,
as in the figures), then the table's own columns, whose names end in their units.

  tcp        tcp_info of every connection at every sweep
  queues     every sampled queue at every sweep
  pings      every answer; rtt_us is empty for one that did not come
  downloads  bytes that had arrived
  udp        what each cross traffic sent and received, at its end
  monitor    what of a monitored flow arrived and how long it took, at its end
  interfaces what every interface carried and dropped, at the end
  trace      of traced flows what the kernel held when each ACK came
  ca-states  of traced flows the moment of each change of congestion state
  events     what was done and what happened, in words
  variables  what algorithms say of themselves: BBR's bandwidth and gains; and what monitors see
             while it runs: one-way delay, of cross traffic rate and loss too, each second
  health     how well the lab kept time, each second

  ccplay export results/ --to data/                     every table as data/TABLE.csv
  ccplay export results/ --to data/ --format parquet    the same as Parquet
  ccplay export results/ --to tcp.parquet               one table; --table names another
  ccplay export run.ccplay | head                       one table as CSV to stdout
"""


_NOT_OURS = ("json", "ods", "tsv", "txt", "xls", "xlsx")
"""Endings of tables that nobody means a directory by."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="see below")
    parser.add_argument(
        "--to",
        "--out",
        type=Path,
        metavar="DIR|FILE",
        help="a directory for all tables, or a file (.csv, .parquet) for one; default: stdout",
    )
    parser.add_argument(
        "--format", choices=("csv", "parquet"), help="default csv, or what FILE ends with"
    )
    parser.add_argument(
        "--table",
        choices=(
            *("tcp", "variables", "trace", "ca-states", "queues", "pings", "downloads", "udp"),
            *("monitor", "interfaces", "events", "health"),
        ),
        help="only this one (default: all into a directory, tcp into a file or to stdout)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.commands.runs import gather
    from ccplay.report.data import export
    from ccplay.report.data.sample_tables import TABLES

    started = time.monotonic()
    kind, to, table = arguments.format, arguments.to, arguments.table
    if to is None:
        if kind == "parquet":
            raise UsageError("Parquet goes into files: name them with --to")
        export.print_table(gather(arguments.runs), table or "tcp")
        return 0
    ending = to.suffix.lstrip(".").lower()
    if ending in _NOT_OURS and not to.is_dir():
        raise UsageError(f"{to}: tables go into .csv or .parquet files, or into a directory")
    material = gather(arguments.runs)
    if ending in export.FORMATS and not to.is_dir():
        if kind not in (None, ending):
            raise UsageError(f"{to} does not end in .{kind}")
        written = {to: export.export_one(material, to, ending, table or "tcp")}
    else:
        tables = [table] if table else TABLES
        written = export.export(material, to, kind or "csv", tables)
    for path, rows in written.items():
        tell(f"{path}: {rows:,} rows")
    tell(f"{time.monotonic() - started:.1f} s")
    return 0
