"""The course of a lesson: its pages in turn, what is answered, run and revealed.

It is the timeline of its session: a page's steps run once its question is answered, and they
begin with the network as the file describes it. So pages can be run in any order and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import msgspec

from ccplay.lesson.figures import Span, measured
from ccplay.lesson.judge import Verdict, is_right, judge
from ccplay.lesson.restoring import is_clear, restoring
from ccplay.model.commands import Build, SetClasses
from ccplay.model.traffic import started_by, stopped_by
from ccplay.scenario.lesson.values import Lesson, Page
from ccplay.scenario.step import Step
from ccplay.session.due_steps import DueStep
from ccplay.session.timeline import Script
from ccplay.state.lab_state import LabState

Phase: TypeAlias = Literal["reading", "asking", "clearing", "running", "ready", "revealed"]
"""``reading``: steps wait for the reader; ``asking``: a question waits for an answer; ``ready``:
the run is long enough to reveal what it measured."""

_LEAD_S = 0.5
"""Seconds from an empty network to the first step: traffic is prepared meanwhile."""

_PATIENCE_S = 8.0
"""Most seconds that a network is given to become empty."""

_LONGEST_NAME = 16


@dataclass(frozen=True, slots=True)
class Run:
    """Where the run of a page is recorded."""

    recording: str
    began: float
    ended: float
    """Moments of the recording."""


@dataclass(slots=True)
class Turn:
    """One page as it was taken."""

    answer: float | None = None
    """Number of a choice from 0, a number, or the lower end of a region; None before."""
    span: Span | None = None
    """The run; None before. Its end is when it may be revealed."""
    verdict: Verdict | None = None
    """What was revealed; None before."""
    correct: bool | None = None
    """Whether the answer was right; None without one, or where nothing decided."""
    run: Run | None = None
    """Where it is recorded, once it was revealed; None where it is not."""
    tries: int = field(default=0, repr=False)
    """How often the page's steps have begun."""


class Course:
    """A lesson as one person or a class takes it."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.recording = ""
        """Where the session is recorded; empty where it is not."""
        self.at = 0
        """Number of the page, from 0."""
        self.turns = [Turn() for _ in lesson.pages]
        self._script: Script | None = None
        self._clearing = False
        self._asked_at: float | None = None
        self._again: dict[str, str] = {}

    @property
    def page(self) -> Page:
        """The page that is open."""
        return self.lesson.pages[self.at]

    @property
    def turn(self) -> Turn:
        """How far that page is."""
        return self.turns[self.at]

    def phase(self, now: float) -> Phase:
        """Return what the page waits for at a moment of the lab."""
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

    @staticmethod
    def _reveals(page: Page) -> bool:
        return bool(page.question or page.measures or page.why)

    @property
    def score(self) -> tuple[int, int]:
        """How many answers were right, and how many questions were revealed."""
        judged = [each.correct for each in self.turns if each.correct is not None]
        return sum(judged), len(judged)

    # --- what a person does -----------------------------------------------------------------

    def answer(self, value: float) -> bool:
        """Take an answer; return whether it counts: after the run has begun none does."""
        if self.page.question is None or self.turn.span or self.turn.verdict or self._clearing:
            return False
        self.turn.answer = value
        return True

    def run(self) -> bool:
        """Let the page's steps run; return whether there are any that have not."""
        if not self.page.steps or self.turn.span is not None or self._clearing:
            return False
        self._script, self._clearing, self._asked_at = None, True, None
        return True

    def reveal(self, state: LabState) -> Verdict:
        """Judge the page by what was measured until now."""
        turn, page = self.turn, self.page
        span = turn.span or Span(state.ready_at or 0.0, state.now, dict(self._again))
        values = measured(state, page.measures, replace(span, ended=min(span.ended, state.now)))
        turn.verdict = judge(page, values)
        if turn.span is not None and self.recording:
            turn.run = Run(self.recording, span.began, span.ended)
        if page.question is not None and turn.answer is not None:
            turn.correct = is_right(page.question, turn.answer, turn.verdict)
        return turn.verdict

    def advance(self, state: LabState) -> None:
        """Do what comes next: run, reveal, or open the next page."""
        match self.phase(state.now):
            case "reading":
                self.run()
            case "asking" if self.page.steps:
                # Whoever only wants to look need not answer.
                self.run()
            case "asking" | "ready":
                self.reveal(state)
            case "revealed":
                self.turn_page(1)
            case "clearing" | "running":
                pass

    def turn_page(self, by: int) -> bool:
        """Open another page; return whether there is one. What runs keeps running."""
        at = self.at + by
        if not 0 <= at < len(self.turns):
            return False
        self._leave()
        self.at = at
        return True

    def again(self) -> None:
        """Take the page once more: its answer and what it measured are gone."""
        self._leave()
        self.turns[self.at] = Turn(tries=self.turn.tries)

    def _leave(self) -> None:
        """Let nothing of this page's steps happen any more; a run that is not over is void."""
        unrevealed = self.turn.verdict is None
        if unrevealed and (self._clearing or self.turn.span is not None):
            self.turn.span = None
        self._script, self._clearing = None, False

    # --- the timeline of its session --------------------------------------------------------

    def build(self, build: Build) -> Build:
        """Return the network to build: traffic by hand must not take a name of the lesson."""
        names = [name for page in self.lesson.pages for name in _names(page)]
        return msgspec.structs.replace(build, reserved=names)

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due; see ``session.Timed``."""
        if self._clearing:
            return self._clear(state)
        due = self._script.due(state) if self._script is not None else []
        # A page's run is what its text describes, whatever was tried by hand before.
        return [replace(step, overrides=True) for step in due]

    def idle(self, state: LabState) -> bool:
        """Return whether no step can be due within the next second."""
        return not self._clearing and (self._script is None or self._script.idle(state))

    def _clear(self, state: LabState) -> list[DueStep]:
        """Set the network back, and begin the run once it is empty."""
        if state.ready_at is None:
            return []
        if self._asked_at is None:
            self._asked_at = state.now
            if commands := restoring(state):
                return [DueStep(state.now, each, overrides=True) for each in commands]
        if not is_clear(state) and state.now < self._asked_at + _PATIENCE_S:
            return []
        self._begin(state)
        return []

    def _begin(self, state: LabState) -> None:
        turn, page = self.turn, self.page
        began = state.now + _LEAD_S
        turn.tries += 1
        taken = {*state.traffic}
        names = {name: _free(name, taken) for name in _names(page)}
        self._again.update({name: now for name, now in names.items() if name != now})
        turn.span = Span(began, began + page.run_s, dict(self._again))
        since = began - (state.ready_at or 0.0)
        self._script = Script([_moved(step, since, names) for step in page.steps])
        self._clearing = False


def _names(page: Page) -> list[str]:
    """Return the names of all traffic that a page starts."""
    started = ((started_by(step.command), step.command) for step in page.steps)
    names = [kind.name_of(command) for kind, command in started if kind is not None]
    return [name for name in names if name is not None]


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no traffic of the lab has had."""
    number, free = 1, name
    while free in taken:
        number += 1
        suffix = f"-{number}"
        free = name[: _LONGEST_NAME - len(suffix)] + suffix
    return free


def _moved(step: Step, since: float, names: dict[str, str]) -> Step:
    """Return a step at a moment of the session, about traffic as the lab names it."""
    command = step.command
    for kind in (started_by(command), stopped_by(command)):
        if kind is not None and (name := kind.name_of(command)) in names:
            command = msgspec.structs.replace(command, **{kind.field: names[name]})
    for key in ("flow", "traffic"):
        name = getattr(command, key, None)
        if isinstance(name, str) and name in names:
            command = msgspec.structs.replace(command, **{key: names[name]})
    if isinstance(command, SetClasses):
        command = msgspec.structs.replace(
            command,
            classes=[
                msgspec.structs.replace(each, traffic=[names.get(n, n) for n in each.traffic])
                for each in command.classes
            ],
        )
    if step.after is not None:
        return replace(step, command=command, after=names.get(step.after, step.after))
    return replace(step, command=command, at_s=step.at_s + since)
