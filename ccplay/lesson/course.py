"""The course of a lesson: its pages in turn, and how each is answered, run and revealed.

The course is the timeline of its session. A page with steps opens with the network as the file
describes it, changed by the page's own settings at 0 s, so that what is drawn agrees with its text.
Its traffic and its later steps run once its question is answered. So pages can be run in any order
and repeated.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.lesson.judge import Verdict, is_right, judge
from ccplay.lesson.measuring import Span, measured
from ccplay.lesson.restoring import is_clear, is_setting, restoring
from ccplay.model.commands import AnyCommand, Build, SetClasses
from ccplay.model.traffic import started_by, stopped_by
from ccplay.scenario.lesson.values import Lesson, Page
from ccplay.scenario.step import Step
from ccplay.session.due_steps import DueStep
from ccplay.session.timeline import Script
from ccplay.state.lab_state import LabState

Phase: TypeAlias = Literal["reading", "asking", "clearing", "running", "ready", "revealed"]
"""Phase of a page. ``reading``: steps wait for the reader; ``asking``: a question waits for an
answer; ``clearing``: the network is being emptied; ``running``: the steps run; ``ready``: the
result can be revealed; ``revealed``: the result is shown, or there is none."""

_LEAD_S = 0.5
"""Seconds from an empty network to the first step, for preparing traffic."""

_PATIENCE_S = 8.0
"""Longest wait in seconds until the network is empty."""

_LONGEST_NAME = 16


class Run(msgspec.Struct, frozen=True):
    """The recording of a page's run: a file and two moments in seconds of its stream."""

    recording: str
    began: float
    ended: float


class Turn(msgspec.Struct):
    """The state of one page."""

    answer: float | None = None
    """Index of a choice, a number, or the lower end of a region; None without an answer."""
    span: Span | None = None
    """Run of the page; None before it. Its result may be revealed once it has ended."""
    verdict: Verdict | None = None
    """Verdict that was revealed; None before the reveal."""
    correct: bool | None = None
    """Whether the answer was right; None without an answer, or if the run decided nothing."""
    run: Run | None = None
    """Recording of the run; None before the reveal, or if the run was not recorded."""
    tries: int = 0
    """Number of times the page's steps were started."""


class Course:
    """A lesson taken by a person or a class."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.recording = ""
        """Path of the session's recording; empty without one."""
        self.at = 0
        """Index of the open page."""
        self.turns = [Turn() for _ in lesson.pages]
        self._again: dict[str, str] = {}
        self._open_page()

    def _open_page(self) -> None:
        self._script: Script | None = None
        self._clearing = False
        self._asked_at: float | None = None
        self._prepared: tuple[int, list[AnyCommand]] | None = None
        """Number of commands that had taken effect when the page's network was requested, and the
        commands that request it; None before that."""
        self._names: dict[str, str] = {}
        """The lab's names of the page's traffic, by the names in the lesson."""

    @property
    def page(self) -> Page:
        """The open page."""
        return self.lesson.pages[self.at]

    @property
    def turn(self) -> Turn:
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
    def _reveals(page: Page) -> bool:
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

    def reveal(self, state: LabState) -> Verdict:
        """Judge the page by the measurements so far, and return the verdict."""
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

    def again(self) -> None:
        """Reset the page; its answer and verdict are lost."""
        self._leave()
        self.turns[self.at] = Turn(tries=self.turn.tries)
        self._open_page()

    def _leave(self) -> None:
        """Discard a run that is not revealed."""
        if self.turn.verdict is None:
            self.turn.span = None

    # --- the timeline of its session --------------------------------------------------------

    def build(self, build: Build) -> Build:
        """Return ``build`` with the names of the lesson's traffic reserved."""
        names = [name for page in self.lesson.pages for name in _names(page)]
        return msgspec.structs.replace(build, reserved=names)

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
            is_setting(each.command) and each.command not in mine for each in state.applied[since:]
        )

    def _begin(self, state: LabState) -> None:
        turn, page, names = self.turn, self.page, self._names
        began = state.now + _LEAD_S
        turn.tries += 1
        self._again.update({name: now for name, now in names.items() if name != now})
        turn.span = Span(began, began + page.run_s, dict(self._again))
        since = began - (state.ready_at or 0.0)
        later = [each for each in page.steps if not _at_once(each)]
        self._script = Script([_moved(step, since, names) for step in later])
        self._clearing = False


def _at_once(step: Step) -> bool:
    """Return whether a step takes effect as the page opens: settings at 0 s do, traffic does not.

    Traffic would give the answer away.
    """
    return step.at_s == 0 and step.after is None and is_setting(step.command)


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
    """Return a step ``since`` seconds later, with the lab's names of traffic."""
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
