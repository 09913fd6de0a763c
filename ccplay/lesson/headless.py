"""A lesson without a screen: each page runs, and its measurements answer the question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from ccplay.analysis.summary import summarise
from ccplay.analysis.trust import HealthResult
from ccplay.errors import CcplayError, LabError
from ccplay.lesson.course import Judgement, TakenLesson
from ccplay.lesson.library import Opened
from ccplay.model.commands import Build
from ccplay.scenario.rules import check_against
from ccplay.scenario.values import LessonPage
from ccplay.session.session import Session
from ccplay.session.steps import DueStep
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import Source


class PageResult(msgspec.Struct, frozen=True):
    """A page after its run."""

    number: int
    """Number of the page, from 1."""
    page: LessonPage
    verdict: Judgement

    @property
    def ok(self) -> bool:
        """Whether the run decided the question, with the outcome that the page explains."""
        return not self.verdict.problem and self.verdict.usual


class Outcome(msgspec.Struct, frozen=True):
    """The result of a whole lesson."""

    taken: tuple[PageResult, ...]
    health: HealthResult
    errors: tuple[str, ...]
    """Messages of errors, such as refused steps and traffic that ended with an error."""


class _PageRunner:
    """Runs page after page without waiting for a reader; see ``session.Timed``."""

    def __init__(self, opened: Opened, report: Callable[[PageResult], None]) -> None:
        self.taken: list[PageResult] = []
        self.refusal: CcplayError | None = None
        self.over = asyncio.Event()
        self._opened = opened
        self._report = report
        self._course = TakenLesson(opened.lesson)

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due; start the next page when one is done."""
        if self.over.is_set():
            return []
        if state.ready_at is None:
            if state.hello is not None and self.refusal is None:
                self._check(state)
            return []
        course = self._course
        phase = course.phase(state.now)
        if phase in ("reading", "asking") and not course.run():
            phase = "ready"
        if phase in ("ready", "revealed"):
            # A page of text alone has nothing to reveal.
            if course.page.question or course.page.measures:
                taken = PageResult(course.at + 1, course.page, course.reveal(state))
                self.taken.append(taken)
                self._report(taken)
            if not course.turn_page(1):
                self.over.set()
        return course.due(state)

    def _check(self, state: LabState) -> None:
        assert state.hello is not None  # noqa: S101 - looked at before
        try:
            check_against(self._opened.played, state.hello.capabilities)
        except CcplayError as refusal:
            self.refusal = refusal
            self.over.set()


async def run_lesson(
    opened: Opened, open_source: Callable[[Build], Source], report: Callable[[PageResult], None]
) -> Outcome:
    """Run every page of a lesson; ``report`` receives each page with a result after its run.

    Raises ``CcplayError`` if the lab did not start, died, or lacks what the lesson needs.
    """
    taker = _PageRunner(opened, report)
    source = open_source(TakenLesson(opened.lesson).build(opened.case.build))
    session = Session(source, title=opened.scenario.title, script=taker)
    running = asyncio.create_task(session.run())
    over = asyncio.create_task(taker.over.wait())
    try:
        await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        await source.close()
        await running
    if taker.refusal is not None:
        raise taker.refusal
    if not taker.over.is_set():
        raise session.failure or LabError("the lab ended before the lesson did")
    result = summarise(session.state, opened.name)
    return Outcome(tuple(taker.taken), result.health, tuple(result.errors))
