"""The race's 18 runs (3 delays, 6 repeats) in parallel against one after another.

Transfers are shorter than in the race, to save time. Both ways run the same seeds and starts, so
their metrics may differ by no more than repeats do.
"""

import asyncio
import io
import time
from dataclasses import dataclass

from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.experiment.runner import Experiment
from ccplay.model.commands import Build
from ccplay.report.data.naming import unit
from ccplay.report.terminal.progress_display import ProgressDisplay
from ccplay.scenario.library import find
from ccplay.scenario.reading import load
from ccplay.scenario.values import Scenario
from ccplay.session import launch
from ccplay.stream.sources import LabSource, Source
from tests.bench._figures import table

JOBS = 6
SIZE = "2 MB"
METRICS = ("checkpoint.ratio", "checkpoint.elapsed_s", "flows.1.goodput_bps", "flows.2.goodput_bps")


@dataclass(frozen=True)
class Round:
    """All runs of the matrix, made once."""

    seconds: float
    result: Result

    @property
    def again(self) -> int:
        return len(self.result.discarded)

    @property
    def busy(self) -> float:
        """The mean fraction of all cores in use during runs."""
        shares = [run.health.host_cpu or 0 for run in self.result.cases]
        return sum(shares) / len(shares)


async def run(console: Console) -> None:
    """Measure and print."""
    race = load(find("race"), [f'timeline.{flow}.bytes="{SIZE}"' for flow in (0, 1)])
    runs = sum(case.repeats for case in race.cases)
    alone = await measure(race, 1)
    beside = await measure(race, JOBS)
    heads = ("", "one after the other", f"{JOBS} at a time", "ratio", "aim")
    sheet = table(f"{runs} runs of the race, {SIZE} a flow", "", heads)
    ratio = f"{alone.seconds / beside.seconds:.2f}"
    sheet.add_row("wall s", f"{alone.seconds:.1f}", f"{beside.seconds:.1f}", ratio, "3 on 2 cores")
    sheet.add_row("runs made again", str(alone.again), str(beside.again), "", "")
    sheet.add_row("host CPU %", f"{alone.busy:.0%}", f"{beside.busy:.0%}", "", "")
    console.print(sheet)
    sheet = table("their metrics: mean ± 95 %", "as one after the other", (*heads[:3], "apart"))
    for one, other in zip(alone.result.statistics, beside.result.statistics, strict=True):
        for metric in METRICS:
            first, second = one.metrics[metric], other.metrics[metric]
            fit = unit(metric, (first.mean,))
            sure = max(first.half_width or 0, second.half_width or 0)
            sheet.add_row(
                f"{one.name}: {metric}" + (f" {fit.name}" if metric.endswith("_bps") else ""),
                fit.write_statistic(first),
                fit.write_statistic(second),
                "within ±" if abs(first.mean - second.mean) <= sure else "beyond ±",
            )
    console.print(sheet)


async def measure(race: Scenario, jobs: int) -> Round:
    """Run a scenario with up to ``jobs`` labs in parallel."""
    argv = launch.lab_argv()

    def start(build: Build) -> Source:
        return LabSource(argv, build)

    display = ProgressDisplay(Console(file=io.StringIO()), len(race.cases), story=False)
    begun = time.monotonic()
    result = await Experiment(race, start, asyncio.Event(), display, jobs=jobs).measure()
    seconds = time.monotonic() - begun
    assert not any(run.errors for run in result.cases), [run.errors for run in result.cases]
    return Round(seconds, result)
