"""The content of a lesson: pages beside a running network, each with what it asks and measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ccplay.scenario.step import Step

Take: TypeAlias = Literal["", "mean", "least", "greatest", "last", "growth"]


class Measure(msgspec.Struct, frozen=True):
    """A number that the run of a page measures."""

    metric: str
    """Path of a metric in the result, or with ``take`` of a variable: ``flows.1.cwnd``."""
    text: str
    """What it is, for people."""
    unit: str = ""
    """Unit in which it is shown and compared: ``ms``, ``Mbit/s``, ``%``."""
    take: Take = ""
    """What is taken of a variable's samples; empty for a metric of the result."""
    from_s: float = 0.0
    """Seconds of the page's run from which on samples count."""
    to_s: float | None = None
    """Seconds until which they do; None is the end of the run."""
    relative_to: str = ""
    """Path of the metric that it is divided by, or another measure's name; empty for none."""


class Bound(msgspec.Struct, frozen=True):
    """A condition on a measure, in the measure's unit."""

    measure: str
    low: float | None = None
    high: float | None = None
    """Inclusive; None if there is none."""

    def holds(self, value: float | None) -> bool:
        """Return whether a measured value is within the bounds; None never is."""
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Choice(msgspec.Struct, frozen=True):
    """One of several answers, right where all of its conditions hold."""

    text: str
    when: tuple[Bound, ...]
    usual: bool = False
    """Whether ``Page.why`` explains this one: what a run usually measures."""


class Range(msgspec.Struct, frozen=True):
    """A question for a number: typed, or marked as a region of a plot."""

    measure: str
    low: float
    high: float
    """Greatest answer that is taken, in the measure's unit; ``low`` is the least."""
    tolerance: float = 0.25
    """Share of the measured value by which a typed number may differ."""
    plot: str = ""
    """The plot on which a region is predicted; empty where a number is typed."""
    width: float = 0.0
    """Height of the region, in the measure's unit."""
    usual: Bound | None = None
    """What a run usually measures, and ``Page.why`` explains."""


class Question(msgspec.Struct, frozen=True):
    """What a page asks before its steps run."""

    ask: str
    choices: tuple[Choice, ...] = ()
    """Two or more; none where a number is asked for."""
    range: Range | None = None


class Look(msgspec.Struct, frozen=True):
    """What a page shows of the network: what it leaves out stays as it is."""

    plots: tuple[str, ...] = ()
    """Names of plots from left to right."""
    flow: str = ""
    """The traffic that is selected."""
    queue: str = ""
    """The direction whose queue is shown: ``r1->r2``."""
    window_s: float | None = None
    """Seconds that the plots show."""


class Page(msgspec.Struct, frozen=True):
    """A page: read, predict, see, ask why."""

    title: str
    text: str
    """Markdown."""
    steps: tuple[Step, ...] = ()
    """What runs once the question is answered; moments count from then."""
    run_s: float = 0.0
    """Seconds from then until the answer can be revealed."""
    look: Look = msgspec.field(default_factory=Look)
    measures: Mapping[str, Measure] = msgspec.field(default_factory=dict)
    question: Question | None = None
    why: str = ""
    """Markdown: what is revealed, and why it is so."""


class Lesson(msgspec.Struct, frozen=True):
    """The lesson of a scenario file."""

    pages: tuple[Page, ...]
    aim: str = ""
    """Aim in one line: what one can explain afterwards."""

    @property
    def run_s(self) -> float:
        """Seconds that the steps of all pages run."""
        return sum(page.run_s for page in self.pages)

    @property
    def questions(self) -> int:
        """How many pages ask something."""
        return sum(page.question is not None for page in self.pages)
