"""One of the thirteen variants here and in ns-3: runs per minute, simulated seconds, goodput.

ns-3 computes each run on one core as fast as it can; a lab takes the time that it measures, but
little of a core. ns-3 comes from PyPI and is not a dependency: ``NS3_PYTHON`` names a Python that
has it, if this one does not.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from ccplay.scenario.library import find
from ccplay.scenario.reading import load
from ccplay.scenario.values import Case
from tests.bench._figures import table
from tests.bench.experiment import measure

CASE = "alone, cc NewReno"
JOBS = 8
SIMULATED = 10
"""Number of runs of ns-3 on each core."""
LONG_QUEUE = 1000
"""Limit in packets of the queue of a link for which the scenario sets none."""
INSTALL = """\
ns-3 is not installed for {python}. It needs a C++ compiler, 500 MB and two minutes:
  python3 -m venv ~/ns3 && ~/ns3/bin/pip install ns3
  NS3_PYTHON=~/ns3/bin/python python -m tests.bench ns3"""


@dataclass(frozen=True)
class Measured:
    """All runs of the case in ccplay, or in ns-3."""

    goodputs: list[float]
    """Goodput of every run in bits per second."""
    wall_s: float
    start_s: float = 0.0
    """Seconds of ``wall_s`` before the first run could begin."""

    def figures(self, duration_s: float) -> dict[str, float]:
        """Return the values to compare, by name; each run lasts ``duration_s``."""
        count = len(self.goodputs)
        return {
            "runs a minute": 60 * count / self.wall_s,
            "once Python and ns-3 are there": 60 * count / (self.wall_s - self.start_s),
            "simulated s a s": duration_s * count / self.wall_s,
            "goodput Mbit/s": statistics.mean(self.goodputs) / 1e6,
        }


async def run(console: Console) -> None:
    """Measure and print."""
    variants = load(find("variants")).only([CASE])
    case = replace(variants.cases[0], repeats=2 * JOBS)
    here = await measure(replace(variants, cases=(case,)), JOBS)
    ours = Measured([each.flows[0].goodput_bps or 0 for each in here.result.cases], here.seconds)
    python = os.environ.get("NS3_PYTHON", sys.executable)
    theirs = in_ns3(python, case) if has_ns3(python) else None
    heads = ("", f"ccplay --jobs {JOBS}", f"ns-3 on {os.cpu_count()} cores", "ratio")
    sheet = table(f"{CASE}, {case.duration_s:g} s", "", heads)
    sheet.add_row("runs", str(len(ours.goodputs)), str(len(theirs.goodputs)) if theirs else "", "")
    sheet.add_row("made again", str(here.again), "", "")
    others = theirs.figures(case.duration_s) if theirs else {}
    for name, figure in ours.figures(case.duration_s).items():
        beside = (f"{others[name]:.2f}", f"{figure / others[name]:.3f}") if others else ("", "")
        sheet.add_row(name, f"{figure:.2f}", *beside)
    console.print(sheet)
    if theirs is None:
        console.print(INSTALL.format(python=python))


def has_ns3(python: str) -> bool:
    """Return whether a Python has ns-3's bindings, without importing them, which takes 10 s."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ns') is None)"
    return subprocess.run([python, "-P", "-c", look], check=False).returncode == 0


def in_ns3(python: str, case: Case) -> Measured:
    """Simulate a case in ns-3, on all cores at once, and return the results."""
    links = list(case.build.links.values())
    asked = {
        "seconds": case.duration_s,
        "runs": SIMULATED,
        "mtu": links[0].mtu,
        "hops": [
            {
                "rate": link.rate,
                "delay_us": link.delay_us,
                "limit": link.qdisc.options["limit"] if link.qdisc else LONG_QUEUE,
            }
            for link in links
        ],
    }
    argv = [python, "-P", str(Path(__file__).with_name("_in_ns3.py")), json.dumps(asked)]
    begun = time.monotonic()
    processes = [
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(os.cpu_count() or 1)
    ]
    told = [json.loads(each.communicate()[0]) for each in processes]
    wall_s = time.monotonic() - begun
    simulating_s = max(sum(run["wall_s"] for run in runs) for runs in told)
    goodputs = [run["goodput_bps"] for runs in told for run in runs]
    return Measured(goodputs, wall_s, wall_s - simulating_s)
