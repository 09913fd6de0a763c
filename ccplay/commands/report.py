"""``ccplay report``: figures, tables and a page of what was run."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.errors import UsageError
from ccplay.visible import put, tell

if TYPE_CHECKING:
    from ccplay.report.data.material import Material

FOLDER = "report"
"""Where in a run directory its report is."""

_ABOUT = """\
RUN is a directory that `ccplay run --out` wrote, or one or several recordings. The report
is a directory: index.html (a page that needs nothing else), figures/ (SVG, PDF, PNG) and tables/
(Markdown, CSV, JSON). The page has the run of each case that is closest to the median. With up to
8 cases that one comes in every format, and panel by panel too; all others are one SVG each.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="see below")
    parser.add_argument(
        "--out",
        "--to",
        type=Path,
        metavar="DIR",
        help="where the report goes (default: report in the run's directory; for a recording "
        "FILE-report beside it)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="draw every run in every format, and panel by panel",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    out = arguments.out or _default_out(arguments.runs[0])
    put(make(arguments.runs, out, every=arguments.all))
    return 0


def check_libraries() -> None:
    """Raise ``UsageError`` where what draws a report is not installed."""
    try:
        import ccplay.report.page.writing  # noqa: F401 - to see whether it can be
    except ModuleNotFoundError as error:
        raise UsageError(f"a report needs {error.name}: pip install 'ccplay[report]'") from None


def make(runs: list[Path], out: Path, *, every: bool = False) -> Path:
    """Write the report of ``runs`` into ``out``, telling of it on stderr; return its page."""
    check_libraries()
    from ccplay.commands.runs import gather
    from ccplay.report.page.writing import write

    started = time.monotonic()
    material = gather(runs)
    page = write(material, out, _tell, every=every)
    if sys.stderr.isatty():
        print(end="\r\033[K", file=sys.stderr)
    _say(material, time.monotonic() - started)
    return page


def _default_out(first: Path) -> Path:
    if first.is_dir():
        return first / FOLDER
    return first.with_name(f"{first.stem}-report")


def _tell(done: int, total: int, what: str) -> None:
    """Say on stderr how far it is: one line that changes, where that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{done} of {total} {what}", end="", file=sys.stderr, flush=True)


def _say(material: Material, seconds: float) -> None:
    cases, runs = len(material.result.statistics), len(material.runs)
    words = f"{runs} run{'s' if runs > 1 else ''} of {cases} case{'s' if cases > 1 else ''}"
    tell(f"{words} in {seconds:.1f} s")
