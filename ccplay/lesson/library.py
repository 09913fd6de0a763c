"""Finds lessons by name or path, and keeps the progress in them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import asdict, replace

from ccplay.analysis.metrics import check_metrics
from ccplay.assets import assets
from ccplay.errors import CcplayError, ScenarioError
from ccplay.files import writing
from ccplay.files.caller import as_caller, state_folder
from ccplay.files.reading import open_regular
from ccplay.lesson.course import Judgement, PageState, RunRecording, TakenLesson
from ccplay.model.quantities import did_you_mean, quote
from ccplay.scenario.library import find as find_scenario
from ccplay.scenario.reading import load
from ccplay.scenario.values import Case, Expectation, Lesson, Scenario
from ccplay.visible import printable_json

# --- finds lessons: shipped ones by their names, others by their paths ----------------------------

ORDER = (
    *("slow-start", "aimd", "bufferbloat", "bufferbloat-lab", "cubic-beside-reno"),
    *("loss-is-not-congestion", "delay-based", "aqm", "ecn-dctcp", "rtt-unfairness"),
    *("train", "your-own-algorithm"),
)
"""Names of the shipped lessons, in the order in which they build on each other."""


class Opened(msgspec.Struct, frozen=True):
    """A lesson with the scenario of its file."""

    scenario: Scenario
    lesson: Lesson

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return self.scenario.name

    @property
    def case(self) -> Case:
        """The lesson's network as a case, with the steps of all pages as its timeline."""
        steps = tuple(step for page in self.lesson.pages for step in page.steps)
        return replace(self.scenario.cases[0], timeline=steps)

    @property
    def played(self) -> Scenario:
        """The scenario with the steps of the lesson, to check what it needs of a kernel."""
        return replace(self.scenario, cases=(self.case,))


def shipped() -> dict[str, Path]:
    """Return the shipped lessons, by name."""
    there = {path.stem: path for path in sorted(assets("scenarios").glob("lessons/*.toml"))}
    order = [*(name for name in ORDER if name in there), *(n for n in there if n not in ORDER)]
    return {name: there[name] for name in order}


def open_lesson(name_or_path: str) -> Opened:
    """Read a shipped lesson by its name, or a lesson from a file.

    Raises ``ScenarioError`` if there is none, and with every mistake in the file.
    """
    known = shipped()
    path = known.get(name_or_path)
    if path is None:
        try:
            path = find_scenario(name_or_path)
        except ScenarioError:
            hint = did_you_mean(name_or_path, known)
            text = f"no lesson {quote(name_or_path)}: neither a file nor one that comes with ccplay"
            raise ScenarioError(f"{text}{hint}") from None
    scenario = load(path)
    if scenario.lesson is None:
        hint = "ccplay new lesson NAME writes an example"
        raise ScenarioError(f"{path.name} has no lesson: add [[lesson.pages]] ({hint})")
    opened = Opened(scenario, scenario.lesson)
    named = tuple(_named(opened.lesson))
    case = replace(opened.case, metrics=(), published=(), expect=named)
    check_metrics(replace(scenario, cases=(case,)))
    return opened


def _named(lesson: Lesson) -> Iterator[Expectation]:
    for number, page in enumerate(lesson.pages):
        for name, measure in page.measures.items():
            if not measure.take:
                place = f"lesson.pages[{number}].measures.{name}"
                for path in {measure.metric, measure.relative_to} - {"", *page.measures}:
                    yield Expectation(metric=path, why="", place=place)


# --- progress in a lesson, saved in the user's state folder ---------------------------------------

_LARGEST = 1 << 20
"""Number of bytes read of a progress file; a larger one is not valid."""


class _Turn(Judgement, frozen=True, kw_only=True, omit_defaults=True):
    """The saved state of one page, with the verdict on it if that is revealed."""

    answer: float | None = None
    revealed: bool = False
    correct: bool | None = None
    recording: str = ""
    began: float = 0.0
    ended: float = 0.0


class _Progress(msgspec.Struct, frozen=True):
    """The content of a progress file."""

    at: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    turns: Annotated[list[_Turn], msgspec.Meta(max_length=1000)]


def path_of(opened: Opened) -> Path:
    """Return the path of a lesson's progress file; a changed lesson has a different one."""
    digest = hashlib.sha256(repr(opened.lesson).encode()).hexdigest()[:12]
    return state_folder() / "lessons" / f"{opened.name[:60].replace('/', '_')}-{digest}.json"


def save_progress(opened: Opened, course: TakenLesson) -> None:
    """Save the progress of a lesson. Raises ``CcplayError``."""
    content = msgspec.json.encode(_Progress(course.at, [_save(each) for each in course.turns]))
    path = path_of(opened)
    with as_caller(), writing.explained(path, CcplayError):
        writing.make_directory(path.parent)
        writing.write(path, content, replace=True)


def load_progress(opened: Opened) -> TakenLesson:
    """Return a lesson with its saved progress, or at its first page."""
    course = TakenLesson(opened.lesson)
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
        with as_caller(), open_regular(path_of(opened)) as file:
            found = msgspec.json.decode(printable_json(file.read(_LARGEST)), type=_Progress)
        if len(found.turns) == len(course.turns) and found.at < len(course.turns):
            course.at = found.at
            course.turns = [_restore(each) for each in found.turns]
    return course


def delete_progress(opened: Opened) -> None:
    """Delete the saved progress of a lesson, if any. Raises ``CcplayError``."""
    path = path_of(opened)
    with as_caller(), writing.explained(path, CcplayError):
        path.unlink(missing_ok=True)


def _save(turn: PageState) -> _Turn:
    if turn.verdict is None:
        return _Turn(answer=turn.answer)
    run = asdict(turn.run) if turn.run is not None else {}
    kept = asdict(turn.verdict) | run
    return _Turn(answer=turn.answer, revealed=True, correct=turn.correct, **kept)


def _restore(kept: _Turn) -> PageState:
    turn = PageState(answer=kept.answer, correct=kept.correct)
    if kept.revealed:
        turn.verdict = Judgement(kept.values, kept.right, kept.usual, kept.problem)
        if kept.recording:
            turn.run = RunRecording(kept.recording, kept.began, kept.ended)
    return turn
