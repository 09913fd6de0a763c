"""10,000 runs: time and peak memory of report, compare and export, each in its own process.

The runs are one real run with random variations. Memory is the sum over all processes of a command,
with shared pages counted once. CPU time is a sum, too; other load does not lengthen it.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.bench import _thousands
from tests.bench._figures import table

RUNS = 10_000
SAMPLED = 100
_LOOK_S = 0.25


def run(console: Console) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        many = str(_thousands.make(folder / "many", RUNS))
        some = str(_thousands.make(folder / "some", SAMPLED))
        heads = ("", "s", "CPU s", "MB", "aim")
        sheet = table(f"{RUNS:,} runs of {_thousands.CASES} cases", "", heads)
        for name, words in (
            ("compare", ("compare", many, many, "--table")),
            ("export, metrics of every run", _export(many, folder, "runs")),
            ("report", ("report", many, "--out", str(folder / "report"))),
        ):
            sheet.add_row(name, *_measured(words), "60 s, 500 MB")
        cells = _measured(_export(some, folder, "tcp"))
        sheet.add_row(f"export, samples of {SAMPLED} runs", *cells, "")
        console.print(sheet)


def _export(runs: str, folder: Path, name: str) -> tuple[str, ...]:
    return ("export", runs, "--table", name, "--to", str(folder / f"{name}.parquet"))


def _measured(words: tuple[str, ...]) -> tuple[str, str, str]:
    """Run a command of ccplay; return its seconds, its CPU seconds and its peak memory in MB."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "ccplay", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    peak = 0
    busy: dict[Path, int] = {}
    while process.poll() is None:
        found = {each: _used(each, process.pid) for each in Path("/proc").glob("[0-9]*")}
        busy |= {each: ticks for each, (ticks, _) in found.items() if ticks}
        peak = max(peak, sum(kilobytes for _, kilobytes in found.values()))
        time.sleep(_LOOK_S)
    if process.returncode:
        raise RuntimeError(f"ccplay {words[0]} ended with {process.returncode}")
    cpu = sum(busy.values()) / os.sysconf("SC_CLK_TCK")
    return f"{time.monotonic() - begun:.1f}", f"{cpu:.1f}", f"{peak / 1000:.0f}"


def _used(process: Path, session: int) -> tuple[int, int]:
    """Return a process's CPU ticks and its PSS in kB; both are 0 outside of the session."""
    with contextlib.suppress(OSError):
        words = (process / "stat").read_text().rpartition(")")[2].split()
        if int(words[3]) == session:
            lines = (process / "smaps_rollup").read_text().splitlines()
            kilobytes = next(int(each.split()[1]) for each in lines if each.startswith("Pss:"))
            return int(words[11]) + int(words[12]), kilobytes
    return 0, 0
