"""The content of a valid scenario file, its steps and its lesson, with what each key means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.quantities import (
    FLAG,
    NUMBER,
    SECONDS,
    WHOLE,
    Field,
    MisfitError,
    did_you_mean,
    quote,
)
from ccplay.model.settings import DAY_S
from ccplay.model.texts import LINE, METRIC, NAME, PROSE, choice
from ccplay.stream.wire import AnyBuild, AnyCommand
from ccplay.traffic import TRAFFIC, CaseIdentity
from ccplay.traffic.flow import StartFlow
from ccplay.visible import printable

# --- A step of a timeline -------------------------------------------------------------------------


class Step(msgspec.Struct, frozen=True):
    """A command and its moment."""

    at_s: float
    """Seconds after the network is ready, or after the end of the traffic ``after``."""
    command: AnyCommand
    """The command; traffic that it starts always has a name."""
    after: str | None = None
    """Name of the traffic whose end the step awaits."""
    place: str = ""
    """Place of the step in the file: ``timeline[2]``."""
    number: int = 0
    """Index among the steps of the file; a repeat may start flows in another order."""


# --- the content of a lesson: pages beside a running network, with their questions and measures ---

FACTORS: dict[str, dict[str, float]] = {
    "": {"": 1.0, "segments": 1.0, "packets": 1.0},
    "ms": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "s": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "kbit/s": {"bps": 1e-3},
    "Mbit/s": {"bps": 1e-6},
    "%": {"": 100.0, "share": 100.0},
    "times": {"": 1.0},
    "segments": {"": 1.0, "segments": 1.0},
    "packets": {"": 1.0, "packets": 1.0},
    "kB": {"bytes": 1e-3, "": 1e-3},
    "MB": {"bytes": 1e-6, "": 1e-6},
}
"""Factors from the units that a metric may have, by the unit of the measure."""

PLOTS = (
    *("cwnd", "unacked", "queue"),
    *(plot.name for kind in TRAFFIC for plot in kind.plots),
    *("rtt", "throughput", "pacing-rate", "acked"),
)
"""Plots that a page may show."""

LONGEST_TEXT = 4000
"""Largest length in characters of a page's text or explanation: spectators receive it in one
line."""


def _markdown(value: Any) -> str:
    text = str(PROSE.read(value))
    if len(text) > LONGEST_TEXT:
        raise MisfitError(f"more than {LONGEST_TEXT:,} characters")
    return text


_MARKDOWN = replace(PROSE, read=_markdown)

Take: TypeAlias = Literal["", "mean", "least", "greatest", "last", "growth"]


class Measure(msgspec.Struct, frozen=True):
    """A number that the run of a page measures."""

    metric: Annotated[
        str, Field(METRIC, "Path of a metric in the result; with take, of a variable")
    ]
    text: Annotated[str, Field(LINE, "What it is")]
    unit: Annotated[
        str, Field(choice("unit", FACTORS), "Unit in which it is shown and compared")
    ] = ""
    take: Annotated[
        Take,
        Field(
            choice("take", get_args(Take)[1:]),
            "Statistic of a variable's samples during the page's run: flows.1.cwnd, "
            "queues.bottleneck.qlen, flows.1.goodput_bps",
        ),
    ] = ""
    from_s: Annotated[
        float, Field(SECONDS, "Count samples from this second of the run on", 0, 600, key="from")
    ] = 0.0
    to_s: Annotated[
        float | None, Field(SECONDS, "Count samples until this second of the run", 0, 600, key="to")
    ] = None
    relative_to: Annotated[
        str,
        Field(
            METRIC, "The metric that it is divided by, or the name of another measure of the page"
        ),
    ] = ""


class Bound(msgspec.Struct, frozen=True):
    """A condition on a measure, in the measure's unit."""

    measure: Annotated[str, Field(NAME, "Name of the measure")]
    low: Annotated[
        float | None, Field(NUMBER, "Lowest value, in the measure's unit", key="at_least")
    ] = None
    high: Annotated[
        float | None, Field(NUMBER, "Highest value, in the measure's unit", key="at_most")
    ] = None

    def holds(self, value: float | None) -> bool:
        """Return whether a measured value is within the bounds, which None never is."""
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class AnswerChoice(msgspec.Struct, frozen=True):
    """One of several answers, which is right if all of its conditions hold."""

    text: Annotated[str, Field(LINE, "The answer")]
    when: tuple[Bound, ...]
    usual: Annotated[bool, Field(FLAG, "Whether this is the usual outcome, which why explains")] = (
        False
    )


class Range(msgspec.Struct, frozen=True):
    """A question for a number, typed or marked as a region of a plot."""

    measure: Annotated[str, Field(NAME, "Name of the measure that is predicted")]
    low: Annotated[float, Field(NUMBER, "Lowest answer, in the measure's unit")]
    high: Annotated[float, Field(NUMBER, "Highest answer, in the measure's unit")]
    tolerance: Annotated[
        float,
        Field(
            NUMBER,
            "Share of the measured value by which the answer may differ, 0.25 by default",
            *(0, 1),
        ),
    ] = 0.25
    plot: Annotated[str, Field(choice("plot", PLOTS), "The plot on which it is predicted")] = ""
    """Plot on which a region is predicted; empty if a number is typed."""
    width: Annotated[float, Field(NUMBER, "Height of the region, in the measure's unit")] = 0.0
    usual: Bound | None = None
    """Usual outcome, which ``LessonPage.why`` explains."""


class PageQuestion(msgspec.Struct, frozen=True):
    """The question that a page asks before its steps run."""

    ask: Annotated[str, Field(LINE, "The question")]
    choices: tuple[AnswerChoice, ...] = ()
    """Answers to choose from, two or more; none if the question asks for a number."""
    range: Range | None = None


class PageLook(msgspec.Struct, frozen=True):
    """The view that a page asks for; settings that it leaves out stay as they are."""

    plots: tuple[str, ...] = ()
    """Names of plots from left to right."""
    flow: Annotated[str, Field(NAME, "The traffic that is selected")] = ""
    queue: Annotated[str, Field(LINE, 'The direction whose queue is shown: "r1->r2"')] = ""
    window_s: Annotated[
        float | None, Field(SECONDS, "Seconds that the plots show", 1, DAY_S, key="window")
    ] = None


class LessonPage(msgspec.Struct, frozen=True):
    """A page: read, predict, see, ask why."""

    title: Annotated[str, Field(LINE, "Title of the page")]
    text: Annotated[str, Field(_MARKDOWN, "Text to read before the run, in Markdown")]
    steps: tuple[Step, ...] = ()
    """Steps; settings at 0 s take effect as the page opens, all others once the question is
    answered, and moments count from then."""
    run_s: Annotated[
        float,
        Field(
            SECONDS, "Seconds that the steps run before the answer is revealed", 0, 600, key="run"
        ),
    ] = 0.0
    look: PageLook = msgspec.field(default_factory=PageLook)
    measures: Mapping[str, Measure] = msgspec.field(default_factory=dict)
    question: PageQuestion | None = None
    why: Annotated[str, Field(_MARKDOWN, "Explanation, revealed with the result, in Markdown")] = ""


class Lesson(msgspec.Struct, frozen=True):
    """The lesson of a scenario file."""

    pages: tuple[LessonPage, ...]
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


# --- the content of a valid scenario file ---------------------------------------------------------


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """The required value of a metric, and the reason."""

    metric: Annotated[str, Field(METRIC, "Path in the result")]
    """Path of the metric in the result: ``checkpoint.ratio``, ``flows.1.goodput_bps``, ``jain``."""
    why: Annotated[str, Field(LINE, "Reason for the bound, which is ours")]
    low: Annotated[float | None, Field(NUMBER, "Least value that holds", key="at_least")] = None
    high: Annotated[float | None, Field(NUMBER, "Greatest value that holds", key="at_most")] = None
    """Upper bound, inclusive; None if there is none."""
    text: Annotated[str, Field(LINE, "Name of the measure for people")] = ""
    """Name for people; of an expectation its bounds: ``0.7 ± 20 %``, ``at least 0.9``."""


class Expectation(Requirement, frozen=True, kw_only=True):
    """A check of every run."""

    place: str = ""
    """Place of the expectation in the file."""


class Published(msgspec.Struct, frozen=True):
    """Values measured by others, shown beside ours, but never checked."""

    metric: str = msgspec.field(name="figure")
    """Metric in ours, under its key of 0.1."""
    values: tuple[float, ...]
    """Values of the metric, one or several."""
    note: str = ""
    """Reason why our value may differ."""
    source: str = ""
    """Source of the values as given in the scenario; in results only."""
    curve: bool = False
    """Whether they are those of a curve over the matrix at this point of it."""


class CriterionMeasure(Requirement, frozen=True, kw_only=True):
    """A metric of a criterion with its bounds, which are ours: RFCs give none."""

    minus: Annotated[
        str,
        Field(
            LINE,
            "Subtract the value of this algorithm at the same point, or with beside that of the "
            "one beside it",
        ),
    ] = ""
    over: Annotated[str, Field(LINE, "Divide by the value of this algorithm at the same point")] = (
        ""
    )
    at: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Values of axes at which it is measured; empty for every point of the matrix."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an RFC asks of an algorithm or a discipline."""

    rfc: Annotated[str, Field(LINE, "Number of the RFC that asks for it")]
    section: Annotated[str, Field(LINE, "Its section")]
    level: Annotated[str, Field(choice("level", ("MUST", "SHOULD")), "Its word")]
    question: Annotated[str, Field(LINE, "The question in one line")]


class Criterion(Asked, frozen=True, kw_only=True):
    """What a scenario shows of an algorithm or a discipline, and how its verdict is reached."""

    sentence: Annotated[
        str, Field(PROSE, "The sentence of the RFC, or the title of its section, word by word")
    ]
    subject: Annotated[
        str,
        Field(
            choice("subject", ("algorithm", "discipline")),
            "What is judged, and the axis of the matrix that has it",
        ),
    ]
    measures: tuple[CriterionMeasure, ...]
    """Measures; the first one is the figure of the criterion."""
    beside: Annotated[str, Field(LINE, "Axis of the algorithms that it competes with")] = ""
    remark: Annotated[str, Field(PROSE, "What else to know about it")] = ""
    quick: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Settings of a quick evaluation by path, as with ``--set``."""


MOST_REPEATS = 1000


class Case(CaseIdentity, frozen=True, kw_only=True):
    """One case: a network and a timeline. Every run has a lab of its own."""

    title: str
    """Title of the scenario, with the case's name if there are several."""
    about: Annotated[str, Field(PROSE, "Description for people")] = ""
    build: AnyBuild
    timeline: tuple[Step, ...]
    """Steps in the order of the file, which also holds for those at one moment."""
    duration_s: Annotated[
        float, Field(SECONDS, "Longest duration of a run", 1e-6, DAY_S, key="duration")
    ] = float(DAY_S)
    until: Annotated[
        str,
        Field(
            choice("end", ("duration", "all", "first")),
            '"all": end once all steps are done and all limited traffic has ended; '
            '"first": once the first flow of a fixed size is done',
        ),
    ] = "duration"
    repeats: Annotated[int, Field(WHOLE, "How often every case is run", 1, MOST_REPEATS)] = 1
    jitter_s: Annotated[
        float,
        Field(
            SECONDS,
            "Each repeat delays the start of each flow by a random time up to this",
            *(0, DAY_S),
            key="jitter",
        ),
    ] = 0.0
    balanced: Annotated[
        bool,
        Field(FLAG, "Flows that start together take turns at being first, from repeat to repeat"),
    ] = False
    metrics: tuple[str, ...] = ()
    """Metrics to report first; see ``Expectation.metric``."""
    expect: tuple[Expectation, ...] = ()
    published: tuple[Published, ...] = ()
    published_in: Annotated[str, Field(LINE, "Source of the published values: reports cite it")] = (
        ""
    )

    @property
    def sizes(self) -> dict[str, int]:
        """Flows of a fixed size with their bytes, in the order of the file."""
        steps = sorted(self.timeline, key=lambda step: step.number)
        commands = [step.command for step in steps]
        return {
            each.flow: each.bytes
            for each in commands
            if isinstance(each, StartFlow) and each.flow is not None and each.bytes is not None
        }


class Scenario(msgspec.Struct, frozen=True):
    """A scenario file."""

    path: Path
    title: str
    about: str
    cases: tuple[Case, ...]
    settings: tuple[str, ...] = ()
    """Settings from the command line, each ``PATH=VALUE``."""
    text: str = ""
    """Text of the scenario, if it is not from a file."""
    lesson: Lesson | None = None
    """Lesson contained in the file."""
    criterion: Criterion | None = None
    """Criterion that the file evaluates."""
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Text of the files beside the scenario that it names."""

    @property
    def name(self) -> str:
        """Name of the file without its ending, printable."""
        return printable(self.path.stem)

    def only(self, names: Sequence[str]) -> Scenario:
        """Return the scenario with the named cases, in its own order; no names mean all.

        A name is the whole name of a case, or any part of it, which selects all cases that contain
        it. Raises ``UsageError`` for a name that matches no case.
        """
        wanted: set[str] = set()
        for name in names:
            found = _named(name, [case.name for case in self.cases])
            if not found:
                parts = dict.fromkeys(part for case in self.cases for part in case.name.split(", "))
                raise UsageError(
                    f"{self.name} has no case {quote(name)}{did_you_mean(name, parts)}"
                )
            wanted.update(found)
        chosen = tuple(case for case in self.cases if case.name in wanted)
        return replace(self, cases=chosen) if names else self

    def case(self, *names: str) -> Case:
        """Return the one named case, or the first. Raises ``UsageError``."""
        if len(names) > 1:
            raise UsageError(
                f"a screen shows one case, not {len(names)}: name one, or use ccplay run"
            )
        return self.only(names).cases[0]


def _named(name: str, cases: Sequence[str]) -> list[str]:
    """Return the cases whose names contain a text.

    The best match wins: the whole name, then a part between commas, then whole words in any case,
    and last any other part that does not split a number.
    """
    if not (part := re.escape(name.strip())):
        return []
    words = rf"(?<![^\s,]){part}(?![^\s,])"
    anything = rf"(?<!\d){part}(?!\d)"
    patterns = [rf"\A{re.escape(name)}\Z", rf"(?:\A|, ){re.escape(name)}(?:, |\Z)"]
    patterns += [rf"(?i){words}", rf"(?i){anything}"]
    matches = ([case for case in cases if re.search(each, case)] for each in patterns)
    return next(filter(None, matches), [])
