"""Progress in a lesson, saved in the user's state folder."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Annotated

import msgspec

from ccplay.errors import CcplayError
from ccplay.files import writing
from ccplay.files.caller import as_caller, state_folder
from ccplay.files.reading import open_regular
from ccplay.lesson.course import Course, Run, Turn
from ccplay.lesson.judge import Verdict
from ccplay.lesson.library import Opened
from ccplay.visible import printable_json

_LARGEST = 1 << 20
"""Number of bytes read of a progress file; a larger one is not valid."""


class _Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The saved state of one page."""

    answer: float | None = None
    revealed: bool = False
    right: float | None = None
    usual: bool = True
    problem: str = ""
    values: dict[str, float | None] = {}
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


def keep(opened: Opened, course: Course) -> None:
    """Save the progress of a lesson. Raises ``CcplayError``."""
    content = msgspec.json.encode(_Progress(course.at, [_kept(each) for each in course.turns]))
    path = path_of(opened)
    with as_caller(), writing.explained(path, CcplayError):
        writing.make_directory(path.parent)
        writing.write(path, content, replace=True)


def take_up(opened: Opened) -> Course:
    """Return a lesson with its saved progress, or at its first page."""
    course = Course(opened.lesson)
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
        with as_caller(), open_regular(path_of(opened)) as file:
            found = msgspec.json.decode(printable_json(file.read(_LARGEST)), type=_Progress)
        if len(found.turns) == len(course.turns) and found.at < len(course.turns):
            course.at = found.at
            course.turns = [_turn(each) for each in found.turns]
    return course


def forget(opened: Opened) -> None:
    """Delete the saved progress of a lesson, if any. Raises ``CcplayError``."""
    path = path_of(opened)
    with as_caller(), writing.explained(path, CcplayError):
        path.unlink(missing_ok=True)


def _kept(turn: Turn) -> _Turn:
    verdict, run = turn.verdict, turn.run
    if verdict is None:
        return _Turn(answer=turn.answer)
    return _Turn(
        answer=turn.answer,
        revealed=True,
        right=verdict.right,
        usual=verdict.usual,
        problem=verdict.problem,
        values=dict(verdict.values),
        correct=turn.correct,
        recording=run.recording if run is not None else "",
        began=run.began if run is not None else 0.0,
        ended=run.ended if run is not None else 0.0,
    )


def _turn(kept: _Turn) -> Turn:
    turn = Turn(answer=kept.answer, correct=kept.correct)
    if kept.revealed:
        turn.verdict = Verdict(kept.values, kept.right, kept.usual, kept.problem)
        if kept.recording:
            turn.run = Run(kept.recording, kept.began, kept.ended)
    return turn
