"""The course of a lesson: its pages in turn, and how each is answered, run, judged and revealed.

The course is the timeline of its session. A page with steps opens with the network as the file
describes it, changed by the page's own settings at 0 s, so that what is drawn agrees with its text.
Its traffic and its later steps run once its question is answered. So pages can be run in any order
and repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Literal, TypeAlias

import msgspec
from markdown_it import MarkdownIt
from msgspec.structs import replace

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.summary import summarise
from ccplay.model.base import Command
from ccplay.model.commands import Build, restore_hosts, restore_link
from ccplay.model.network import BOTTLENECK
from ccplay.model.series import Series
from ccplay.model.variables import variable
from ccplay.scenario import lesson
from ccplay.scenario.values import Lesson, LessonPage, Measure, PageQuestion, Step, Take
from ccplay.session.steps import DueStep, Script
from ccplay.share.frames import Board
from ccplay.state.lab_state import LabState, mean_capacity
from ccplay.traffic import KINDS, TRAFFIC, started_by, stopped_by

# --- judges answers to a page's question by the measurements of its run ---------------------------


class Judgement(msgspec.Struct, frozen=True):
    """The measurements of a page's run, and the answer that they make right."""

    values: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    """Values of measures in their units, by name; None if not measured."""
    right: float | None = None
    """Index of the right choice, or the measured number; None if the run decides nothing."""
    usual: bool = True
    """Whether this is the outcome that the page explains."""
    problem: str = ""
    """Reason why the run decides nothing; empty if it decides."""


def judge(page: LessonPage, values: Mapping[str, float | None]) -> Judgement:
    """Return the verdict on a page's question according to these values."""
    question = page.question
    if question is None:
        return Judgement(values)
    if question.range is not None:
        value = values.get(question.range.measure)
        if value is None:
            return Judgement(values, problem=_unmeasured(page, [question.range.measure]))
        usual = question.range.usual
        return Judgement(values, value, usual is None or usual.holds(value))
    needed = {bound.measure for choice in question.choices for bound in choice.when}
    if missing := sorted(name for name in needed if values.get(name) is None):
        return Judgement(values, problem=_unmeasured(page, missing))
    right = [
        number
        for number, choice in enumerate(question.choices)
        if all(bound.holds(values.get(bound.measure)) for bound in choice.when)
    ]
    if len(right) != 1:
        how = "several answers are" if right else "no answer is"
        return Judgement(values, problem=f"according to this run's measurements, {how} right")
    some = any(choice.usual for choice in question.choices)
    return Judgement(values, float(right[0]), not some or question.choices[right[0]].usual)


def right_answers(question: PageQuestion, verdict: Judgement) -> tuple[float, float] | None:
    """Return the least and the greatest right answer; None if the run decides nothing.

    The answer to a question for a region is its lower end.
    """
    right, asked = verdict.right, question.range
    if right is None:
        return None
    if asked is None:
        return right, right
    if asked.plot:
        return right - asked.width, right
    tolerance = asked.tolerance * abs(right)
    return right - tolerance, right + tolerance


def is_right(question: PageQuestion, answer: float, verdict: Judgement) -> bool | None:
    """Return whether an answer is right; None if the run decides nothing."""
    answers = right_answers(question, verdict)
    return None if answers is None else answers[0] <= answer <= answers[1]


def _unmeasured(page: LessonPage, names: list[str]) -> str:
    texts = ", ".join(page.measures[name].text for name in names if name in page.measures)
    return f"this run did not measure: {texts}"


# --- evaluates the measures of a page: metrics of the result, and statistics of samples -----------


class RunSpan(msgspec.Struct, frozen=True):
    """The run of a page, in seconds of the lab's stream."""

    began: float
    ended: float
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The lab's names of traffic by the lesson's, if they differ because a page was repeated."""


def measured(
    state: LabState, measures: Mapping[str, Measure], span: RunSpan
) -> dict[str, float | None]:
    """Return the value of each measure in its unit, by name; None if the run did not measure it."""
    whole: dict[str, float] = {}
    if any(not each.take for each in measures.values()):
        whole = metrics_of(summarise(state, ""))
    raw = {name: _metric(state, each.metric, each, span, whole) for name, each in measures.items()}
    values: dict[str, float | None] = {}
    for name, each in measures.items():
        found, factor = raw[name], lesson.factor(each)
        if each.relative_to:
            other = raw.get(each.relative_to)
            if each.relative_to not in raw:
                other = _metric(state, each.relative_to, each, span, whole)
            found = found / other if found is not None and other else None
        values[name] = None if found is None or factor is None else found * factor
    return values


def _metric(
    state: LabState, path: str, measure: Measure, span: RunSpan, whole: Mapping[str, float]
) -> float | None:
    group, _, rest = path.partition(".")
    member, _, name = rest.rpartition(".")
    member = _member(state, group, member, span)
    if not measure.take:
        return whole.get(f"{group}.{member}.{name}" if member else path)
    start = span.began + measure.from_s
    end = span.ended if measure.to_s is None else min(span.began + measure.to_s, span.ended)
    return _taken(state, (group, member, name), measure.take, (start, end))


def _member(state: LabState, group: str, member: str, span: RunSpan) -> str:
    """Return the lab's name of a member of a group of results."""
    if group != "queues" or state.hello is None:
        return span.names.get(member, member)
    observed = state.hello.network.observed
    return observed[0] if member == BOTTLENECK and observed else member


def _taken(
    state: LabState, path: tuple[str, str, str], take: Take, between: tuple[float, float]
) -> float | None:
    """Return a statistic of a variable's samples between two moments.

    ``path`` is the group of results, its member, and the variable.
    """
    group, member, name = path
    if lesson.SUBJECTS.get(group) == "flow":
        flow = state.flows.get(member)
        if flow is None:
            return None
        if name == lesson.GOODPUT:
            return _scaled(_rate(flow.series["bytes_acked"], between), 8)
        return _sampled({**flow.series, **flow.own}, name, take, between)
    if group != "queues":
        other = state.find_of(lesson.SUBJECTS.get(group, ""), member)
        return None if other is None else _sampled(other.series, name, take, between)
    queue = state.queues.get(member)
    if queue is None:
        return None
    change = state.link_at(member, between[0])
    if name == lesson.UTILISATION:
        could = mean_capacity(state, member, *between)
        return _scaled(_rate(queue.series["bytes"], between), 8 / could) if could else None
    if name == lesson.DELAY:
        # While a link moves, a queue has no delay of its own: it depends on what comes.
        rate = None if change is None or change.setting.is_paced else change.setting.rate
        return _scaled(_of(queue.series["backlog"], take, between), 8e3 / rate) if rate else None
    return _sampled({**queue.series, **queue.own}, name, take, between)


def _sampled(
    series: Mapping[str, Series], name: str, take: Take, between: tuple[float, float]
) -> float | None:
    if name not in series:
        return None
    found = _of(series[name], take, between)
    return None if found is None else variable(name).real(found)


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value * by


def _of(series: Series, take: Take, between: tuple[float, float]) -> float | None:
    began = series.timeline.at_or_after(between[0])
    values = series.values(began, series.timeline.before_or_at(between[1]) + 1)
    if not values:
        return None
    match take:
        case "mean":
            return sum(values) / len(values)
        case "least":
            return min(values)
        case "greatest":
            return max(values)
        case "growth":
            # A counter that begins within the interval has grown from 0 to its first sample.
            return values[-1] - (values[0] if series.first < began else 0.0)
        case _:
            return values[-1]


def _rate(series: Series, between: tuple[float, float]) -> float | None:
    """Return the growth of a counter per second between its first and last sample."""
    return series.rates([between])[0]


# --- commands that restore the network as the lesson's file describes it, for a page that opens ---


def restoring(state: LabState) -> list[Command]:
    """Return the commands that stop all traffic and undo every change of links and hosts."""
    first: dict[str, str] = {}
    for change in state.host_changes:
        first.setdefault(change.host, change.cc)
    return [*_stops(state), *_links(state), *restore_hosts(first, state.hosts)]


def is_clear(state: LabState) -> bool:
    """Return whether no traffic runs and the observed queues are empty."""
    if any(each.ended is None for each in state.traffic.values()):
        return False
    return not any(queue.series["qlen"].last for queue in state.queues.values())


def _stops(state: LabState) -> Iterator[Command]:
    running = [each for each in state.traffic.values() if each.ended is None]
    running.sort(key=lambda each: TRAFFIC.index(KINDS[each.kind]))
    for each in running:
        if each.kind != "subflow":
            yield KINDS[each.kind].stopping(each.name)


def _links(state: LabState) -> Iterator[Command]:
    for link, changes in state.links.items():
        was, now = changes[0].setting, changes[-1].setting
        if was != now:
            yield from restore_link(link, was, now)


# --- A lesson in words: its Markdown, answers and measurements, for terminals and pages -----------


def markdown() -> MarkdownIt:
    """Return the parser of a lesson's Markdown, which may be a stranger's.

    HTML, links and images stay as they are written: they are shown, and nobody can follow them.
    """
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.disable(["link", "image", "autolink", "reference"])


def answer_words(page: LessonPage, answer: float | None) -> str:
    """Return an answer to a page's question in words; empty without one."""
    question = page.question
    if question is None or answer is None:
        return ""
    if question.range is None:
        return question.choices[int(answer)].text
    measure = page.measures[question.range.measure]
    text = lesson.format_value(measure, answer)
    if not question.range.plot:
        return text
    return f"{text} to {lesson.format_value(measure, answer + question.range.width)}"


def right_words(page: LessonPage, verdict: Judgement) -> str:
    """Return the right answer in words, or the reason why there is none."""
    question = page.question
    if question is None:
        return ""
    if verdict.right is None:
        return verdict.problem
    if question.range is None:
        return question.choices[int(verdict.right)].text
    return lesson.format_value(page.measures[question.range.measure], verdict.right)


def measured_lines(page: LessonPage, verdict: Judgement) -> list[tuple[str, str]]:
    """Return the description of each measure, and its value with unit."""
    return [
        (measure.text, lesson.format_value(measure, verdict.values.get(name)))
        for name, measure in page.measures.items()
    ]


def outcome(board: Board) -> list[str]:
    """Return what the run says about a question, the right answer first; empty before the reveal.

    If the run decides nothing, that is the reason.
    """
    if board.phase != "revealed" or not board.ask:
        return []
    if board.right is None:
        return [board.problem or "the measurements do not decide this"]
    if board.choices:
        right = board.choices[int(board.right)]
    else:
        right = lesson.in_unit(board.right, board.unit)
    found = [f"The right answer: {right}"]
    if board.voted_right is not None and (voters := sum(board.counts)):
        found.append(f"Votes: {board.voted_right} of {voters} right")
    if not board.usual:
        found.append("This run's result is unusual; the explanation describes the usual one.")
    return found


def bins(board: Board, votes: int) -> list[str]:
    """Return the range of answers, of regions that of the middle, of each of ``votes`` counts."""
    width = (board.high - board.low) / max(votes, 1)
    edges = [f"{board.low + at * width:.4g}" for at in range(votes + 1)]
    # A vote on the edge counts in the upper range.
    return [f"{low} to {'' if high == edges[-1] else '<'}{high}" for low, high in pairwise(edges)]


# --- the course of a lesson: its pages in turn, and how each is answered, run and revealed --------

Phase: TypeAlias = Literal["reading", "asking", "clearing", "running", "ready", "revealed"]
"""Phase of a page. ``reading``: steps wait for the reader; ``asking``: a question waits for an
answer; ``clearing``: the network is being emptied; ``running``: the steps run; ``ready``: the
result can be revealed; ``revealed``: the result is shown, or there is none."""

_LEAD_S = 0.5
"""Seconds from an empty network to the first step, for preparing traffic."""

_PATIENCE_S = 8.0
"""Longest wait in seconds until the network is empty."""

_LONGEST_NAME = 16


class RunRecording(msgspec.Struct, frozen=True):
    """The recording of a page's run: a file and two moments in seconds of its stream."""

    recording: str
    began: float
    ended: float


class PageState(msgspec.Struct):
    """The state of one page."""

    answer: float | None = None
    """Index of a choice, a number, or the lower end of a region; None without an answer."""
    span: RunSpan | None = None
    """Run of the page; None before it. Its result may be revealed once it has ended."""
    verdict: Judgement | None = None
    """Verdict that was revealed; None before the reveal."""
    correct: bool | None = None
    """Whether the answer was right; None without an answer, or if the run decided nothing."""
    run: RunRecording | None = None
    """Recording of the run; None before the reveal, or if the run was not recorded."""
    tries: int = 0
    """Number of times the page's steps were started."""


class TakenLesson:
    """A lesson taken by a person or a class."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.recording = ""
        """Path of the session's recording; empty without one."""
        self.at = 0
        """Index of the open page."""
        self.turns = [PageState() for _ in lesson.pages]
        self._again: dict[str, str] = {}
        self._open_page()

    def _open_page(self) -> None:
        self._script: Script | None = None
        self._clearing = False
        self._asked_at: float | None = None
        self._prepared: tuple[int, list[Command]] | None = None
        """Number of commands that had taken effect when the page's network was requested, and the
        commands that request it; None before that."""
        self._names: dict[str, str] = {}
        """The lab's names of the page's traffic, by the names in the lesson."""

    @property
    def page(self) -> LessonPage:
        """The open page."""
        return self.lesson.pages[self.at]

    @property
    def turn(self) -> PageState:
        """State of the open page."""
        return self.turns[self.at]

    def phase(self, now: float) -> Phase:
        """Return the phase of the open page at a moment of the lab's clock."""
        turn, page = self.turn, self.page
        if turn.verdict is not None or not (page.steps or self._reveals(page)):
            return "revealed"
        if self._clearing:
            return "clearing"
        if turn.span is not None:
            return "running" if now < turn.span.ended else "ready"
        if page.question is not None and turn.answer is None:
            return "asking"
        return "reading" if page.steps else "ready"

    @property
    def answerable(self) -> bool:
        """Whether the open page's question takes answers: it does until the run starts."""
        turn = self.turn
        over = turn.span is not None or turn.verdict is not None or self._clearing
        return self.page.question is not None and not over

    @staticmethod
    def _reveals(page: LessonPage) -> bool:
        return bool(page.question or page.measures or page.why)

    @property
    def score(self) -> tuple[int, int]:
        """Number of right answers, and of questions answered and revealed."""
        judged = [each.correct for each in self.turns if each.correct is not None]
        return sum(judged), len(judged)

    @property
    def complete(self) -> bool:
        """Whether all pages with a question, measures or an explanation are revealed."""
        return all(
            turn.verdict is not None
            for turn, page in zip(self.turns, self.lesson.pages, strict=True)
            if self._reveals(page)
        )

    # --- actions of a person -----------------------------------------------------------------

    def answer(self, value: float) -> bool:
        """Set the answer of a page that has not run yet; return whether it was set."""
        if self.answerable:
            self.turn.answer = value
            return True
        return False

    def run(self) -> bool:
        """Start the page's steps once the network is empty; return whether they will start.

        They do not if the page has none, or if they were started before.
        """
        if not self.page.steps or self.turn.span is not None or self._clearing:
            return False
        self._script, self._clearing, self._asked_at = None, True, None
        return True

    def reveal(self, state: LabState) -> Judgement:
        """Judge the page by the measurements so far, and return the verdict."""
        turn, page = self.turn, self.page
        span = turn.span or RunSpan(state.ready_at or 0.0, state.now, dict(self._again))
        values = measured(state, page.measures, replace(span, ended=min(span.ended, state.now)))
        turn.verdict = judge(page, values)
        if turn.span is not None and self.recording:
            turn.run = RunRecording(self.recording, span.began, span.ended)
        if page.question is not None and turn.answer is not None:
            turn.correct = is_right(page.question, turn.answer, turn.verdict)
        return turn.verdict

    def advance(self, state: LabState) -> None:
        """Run, reveal, or open the next page, whichever is next."""
        match self.phase(state.now):
            case "reading":
                self.run()
            case "asking" if self.page.steps:
                # A reader may skip the question.
                self.run()
            case "asking" | "ready":
                self.reveal(state)
            case "revealed":
                self.turn_page(1)
            case "clearing" | "running":
                pass

    def turn_page(self, by: int) -> bool:
        """Open the page ``by`` pages further; return whether it exists.

        Traffic keeps running beside a page without steps.
        """
        at = self.at + by
        if not 0 <= at < len(self.turns):
            return False
        self._leave()
        self.at = at
        self._open_page()
        return True

    def restart_page(self) -> None:
        """Reset the page; its answer and verdict are lost."""
        self._leave()
        self.turns[self.at] = PageState(tries=self.turn.tries)
        self._open_page()

    def _leave(self) -> None:
        """Discard a run that is not revealed."""
        if self.turn.verdict is None:
            self.turn.span = None

    # --- the timeline of its session --------------------------------------------------------

    def build(self, build: Build) -> Build:
        """Return ``build`` with the names of the lesson's traffic reserved."""
        names = [name for page in self.lesson.pages for name in _names(page)]
        return replace(build, reserved=names)

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due; see ``session.Timed``."""
        due: list[DueStep] = []
        if state.ready_at is None or not self.page.steps:
            return due
        if self._prepared is None:
            due = self._prepare(state)
        elif self._clearing:
            due = self._clear(state)
        elif self._script is not None:
            due = self._script.due(state)
        # A page's run must match its text, whatever was set by hand before.
        return [replace(step, overrides=True) for step in due]

    def idle(self, state: LabState) -> bool:
        """Return whether no step can be due within the next second."""
        if self.page.steps and (self._prepared is None or self._clearing):
            return False
        return self._script is None or self._script.idle(state)

    def _prepare(self, state: LabState) -> list[DueStep]:
        """Return the steps that give the network the page's settings and stop all traffic."""
        taken = {*state.traffic}
        self._names = {name: _free(name, taken) for name in _names(self.page)}
        steps = [_moved(each, 0.0, self._names) for each in self.page.steps if _at_once(each)]
        due = [DueStep(state.now, each) for each in restoring(state)]
        due += [DueStep(state.now, each.command, each.place) for each in steps]
        self._prepared = len(state.applied), [each.command for each in due]
        return due

    def _clear(self, state: LabState) -> list[DueStep]:
        """Stop what was started by hand, and start the run once the network is empty."""
        if self._asked_at is None:
            self._asked_at = state.now
            if self._is_changed(state):
                return self._prepare(state)
        if not is_clear(state) and state.now < self._asked_at + _PATIENCE_S:
            return []
        self._begin(state)
        return []

    def _is_changed(self, state: LabState) -> bool:
        """Return whether traffic or settings are no longer those with which the page opened."""
        if self._prepared is None:
            return True
        since, mine = self._prepared
        stopped = {kind.name_of(each) for each in mine if (kind := stopped_by(each)) is not None}
        return any(
            each.ended is None and each.kind != "subflow" and name not in stopped
            for name, each in state.traffic.items()
        ) or any(
            each.command.is_setting() and each.command not in mine for each in state.applied[since:]
        )

    def _begin(self, state: LabState) -> None:
        turn, page, names = self.turn, self.page, self._names
        began = state.now + _LEAD_S
        turn.tries += 1
        self._again.update({name: now for name, now in names.items() if name != now})
        turn.span = RunSpan(began, began + page.run_s, dict(self._again))
        since = began - (state.ready_at or 0.0)
        later = [each for each in page.steps if not _at_once(each)]
        self._script = Script([_moved(step, since, names) for step in later])
        self._clearing = False


def _at_once(step: Step) -> bool:
    """Return whether a step takes effect as the page opens: settings at 0 s do, traffic does not.

    Traffic would give the answer away.
    """
    return step.at_s == 0 and step.after is None and step.command.is_setting()


def _names(page: LessonPage) -> list[str]:
    """Return the names of all traffic that a page starts."""
    started = ((started_by(step.command), step.command) for step in page.steps)
    names = [kind.name_of(command) for kind, command in started if kind is not None]
    return [name for name in names if name is not None]


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no traffic of the lab has had."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: _LONGEST_NAME - len(str(number)) - 1]}-{number}"
    return free


def _moved(step: Step, since: float, names: dict[str, str]) -> Step:
    """Return a step ``since`` seconds later, with the lab's names of traffic."""
    command = step.command.rename_traffic(names)
    if step.after is not None:
        return replace(step, command=command, after=names.get(step.after, step.after))
    return replace(step, command=command, at_s=step.at_s + since)
