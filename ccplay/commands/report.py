"""``ccplay report``: writes a page with figures and tables about finished runs."""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.errors import UsageError
from ccplay.visible import notify, put

if TYPE_CHECKING:
    from ccplay.report.data.material import Material

_LIBRARIES = ("matplotlib", "fontTools", "jinja2", "PIL")
FOLDER = "report"
"""Name of the report's directory within a run directory."""

_ABOUT = """\
RUN is a directory written by `ccplay run --out`, a recording, or `last` for the last session of the
screen (`@2` for the one before, see `ccplay sessions`); several are reported together.
The report is a directory with index.html (a self-contained page), figures/ (SVG, PDF, PNG) and
tables/ (Markdown, CSV, JSON). The page shows, of each case, the run closest to the median. With up
to 8 cases that run is drawn in every format, and also panel by panel; every other run is one SVG.
Of more than 300 runs only the one closest to the median of each case is drawn, of at most 30 cases;
--all draws every run. Tables of more than 2000 rows are CSV and JSON only.
"""


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
        "--out",
        "--to",
        type=Path,
        metavar="DIR",
        help="directory of the report (default: report/ in the run directory, FILE-report beside "
        "a recording, of a session in the current folder)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="draw every run in every format, also panel by panel",
    )
    parser.add_argument(
        "--plot",
        action="append",
        default=[],
        metavar="NAME",
        help="draw this plot too, such as pacing-rate, unacked, udp-loss; may be repeated",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
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
    from ccplay.commands.runs import gather

    started = time.monotonic()
    material = gather(runs)
    from ccplay.report.page.writing import write

    page = write(material, out, _show_progress, every=every, plots=plots)
    if sys.stderr.isatty():
        print(end="\r\033[K", file=sys.stderr)
    _notify_end(material, time.monotonic() - started)
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


def _notify_end(material: Material, seconds: float) -> None:
    cases, runs = len(material.result.statistics), len(material.runs)
    words = f"{runs} run{'s' if runs > 1 else ''} of {cases} case{'s' if cases > 1 else ''}"
    notify(f"report on {words}, written in {seconds:.1f} s")
