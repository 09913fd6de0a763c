"""The counts of a soak, the memory of its programs, and the tables at its end."""

import contextlib
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import psutil
from rich.console import Console
from rich.table import Table

from tests.lab.test_leaks import victims
from tests.soak.terminal import Terminal

_SETTLED = 0.3
"""Fraction of a session after which a program has loaded all that it needs."""

_SLOPE_S = 60.0
"""Shortest span in seconds of samples that allows an estimate of growth per hour."""


@dataclass(frozen=True)
class Sample:
    """A program at one moment: seconds since the session's start, resident bytes, open files."""

    t: float
    rss: int
    files: int


@dataclass
class Memory:
    """Samples of the screen and the lab of one session over time."""

    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def look(self, terminal: Terminal, t: float) -> None:
        """Add a sample of the screen and one of the lab."""
        self._take("screen", terminal.screen(), t)
        labs = victims(terminal.marker, "lab")
        # The lab is the first process; others are its short-lived forks.
        self._take("lab", min(labs, key=lambda each: each.pid, default=None), t)

    def _take(self, name: str, process: psutil.Process | None, t: float) -> None:
        with contextlib.suppress(psutil.Error, OSError):
            if process is not None:
                rss, files = process.memory_info().rss, process.num_fds()
                self.samples[name].append(Sample(t, rss, files))

    @property
    def seconds(self) -> float:
        """The moment of the last sample, in seconds."""
        return max((each[-1].t for each in self.samples.values()), default=0.0)


@dataclass
class Failure:
    """A failure of a session, with what is needed to reproduce it."""

    session: int
    what: str
    how: str
    screen: str


@dataclass
class Tally:
    """All counts and failures of a soak."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    ends_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds that programs took to end, by the way in which they were ended."""
    longest: Memory = field(default_factory=Memory)
    failures: list[Failure] = field(default_factory=list)

    def keep(self, memory: Memory) -> None:
        """Keep these samples if they are of the longest session so far."""
        if memory.seconds > self.longest.seconds:
            self.longest = memory

    def show(self, console: Console) -> None:
        """Print all tables, failures last."""
        console.print(self._counted(), self._ended(), self._remembered())
        for each in self.failures:
            console.rule(f"session {each.session}: {each.what}", style="red")
            console.print(each.how, soft_wrap=True)
            console.print(
                f"again: python -m tests.soak --seed {self.seed} --session {each.session}"
            )
            console.print(each.screen, markup=False, soft_wrap=True, style="dim")

    def _counted(self) -> Table:
        table = Table("what", "count", title=f"soak, seed {self.seed}")
        for name, count in sorted(self.counts.items()):
            table.add_row(name, f"{count:,}")
        table.add_row("failures", str(len(self.failures)))
        table.columns[1].justify = "right"
        return table

    def _ended(self) -> Table:
        table = Table("ended by", "sessions", "median s", "slowest s", title="until it is gone")
        for name, took in sorted(self.ends_s.items()):
            median = f"{statistics.median(took):.2f}"
            table.add_row(name, str(len(took)), median, f"{max(took):.2f}")
        return table

    def _remembered(self) -> Table:
        title = f"the longest session, {self.longest.seconds / 60:.1f} min"
        heads = ("program", "RSS start", "settled", "end", "growth per hour", "files", "at the end")
        table = Table(*heads, title=title)
        for name, samples in self.longest.samples.items():
            settled = [each for each in samples if each.t >= _SETTLED * self.longest.seconds]
            table.add_row(
                name,
                _mb(samples[0].rss),
                _mb(settled[0].rss),
                _mb(samples[-1].rss),
                _growth(settled),
                f"{samples[0].files}, at most {max(each.files for each in samples)}",
                str(samples[-1].files),
            )
        return table


def _growth(samples: list[Sample]) -> str:
    if len(samples) < 3 or samples[-1].t - samples[0].t < _SLOPE_S:
        return "too short"
    slope = statistics.linear_regression(
        [each.t for each in samples], [each.rss for each in samples]
    ).slope
    return _mb(slope * 3600)


def _mb(value: float) -> str:
    return f"{value / 1e6:.1f} MB"
