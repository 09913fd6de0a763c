"""The content of a lesson: pages beside a running network, with their questions and measures."""

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
    """Description of the measure for people."""
    unit: str = ""
    """Unit in which the measure is shown and compared: ``ms``, ``Mbit/s``, ``%``."""
    take: Take = ""
    """Statistic of a variable's samples; empty for a metric of the result."""
    from_s: float = 0.0
    """Seconds of the page's run from which on samples count."""
    to_s: float | None = None
    """Seconds of the page's run until which samples count; None for the end of the run."""
    relative_to: str = ""
    """Path of a metric, or name of another measure, to divide by; empty for none."""


class Bound(msgspec.Struct, frozen=True):
    """A condition on a measure, in the measure's unit."""

    measure: str
    low: float | None = None
    high: float | None = None
    """Upper bound, inclusive; None if there is none."""

    def holds(self, value: float | None) -> bool:
        """Return whether a measured value is within the bounds, which None never is."""
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Choice(msgspec.Struct, frozen=True):
    """One of several answers, which is right if all of its conditions hold."""

    text: str
    when: tuple[Bound, ...]
    usual: bool = False
    """Whether ``Page.why`` explains this choice, the usual outcome."""


class Range(msgspec.Struct, frozen=True):
    """A question for a number, typed or marked as a region of a plot."""

    measure: str
    low: float
    high: float
    """Highest accepted answer in the measure's unit; ``low`` is the lowest."""
    tolerance: float = 0.25
    """Share of the measured value by which a typed number may differ."""
    plot: str = ""
    """Plot on which a region is predicted; empty if a number is typed."""
    width: float = 0.0
    """Height of the region in the measure's unit."""
    usual: Bound | None = None
    """Usual outcome, which ``Page.why`` explains."""


class Question(msgspec.Struct, frozen=True):
    """The question that a page asks before its steps run."""

    ask: str
    choices: tuple[Choice, ...] = ()
    """Answers to choose from, two or more; none if the question asks for a number."""
    range: Range | None = None


class Look(msgspec.Struct, frozen=True):
    """The view that a page asks for; settings that it leaves out stay as they are."""

    plots: tuple[str, ...] = ()
    """Names of plots from left to right."""
    flow: str = ""
    """Name of the traffic that is selected."""
    queue: str = ""
    """Direction whose queue is shown: ``r1->r2``."""
    window_s: float | None = None
    """Seconds that the plots show."""


class Page(msgspec.Struct, frozen=True):
    """A page: read, predict, see, ask why."""

    title: str
    text: str
    """Text of the page in Markdown."""
    steps: tuple[Step, ...] = ()
    """Steps; settings at 0 s take effect as the page opens, all others once the question is
    answered, and moments count from then."""
    run_s: float = 0.0
    """Seconds from the answer until the result can be revealed."""
    look: Look = msgspec.field(default_factory=Look)
    measures: Mapping[str, Measure] = msgspec.field(default_factory=dict)
    question: Question | None = None
    why: str = ""
    """Explanation in Markdown, shown with the result."""


class Lesson(msgspec.Struct, frozen=True):
    """The lesson of a scenario file."""

    pages: tuple[Page, ...]
    aim: str = ""
    """Aim in one line: what the reader can explain afterwards."""

    @property
    def run_s(self) -> float:
        """Seconds that the steps of all pages run."""
        return sum(page.run_s for page in self.pages)

    @property
    def questions(self) -> int:
        """Number of pages with a question."""
        return sum(page.question is not None for page in self.pages)
