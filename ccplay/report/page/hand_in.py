"""The page that a student hands in: answers to a lesson, measured values, and figures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from ccplay import __version__
from ccplay.errors import RecordingError
from ccplay.lesson.course import (
    PageState,
    RunRecording,
    TakenLesson,
    answer_words,
    markdown,
    measured_lines,
    right_words,
)
from ccplay.lesson.library import Opened
from ccplay.report.data.scene import Scene, scene
from ccplay.report.figures import style
from ccplay.report.figures.run_figures import stacked
from ccplay.report.figures.style import Inks, look, svg_text
from ccplay.report.page.page import environment, style_sheet
from ccplay.scenario.values import LessonPage
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.traffic.base import Traffic


class _Figure(msgspec.Struct, frozen=True):
    """The figure of the run of a lesson's page."""

    svg: str = ""
    note: str = ""
    """Reason why there is no figure."""


def render(opened: Opened, course: TakenLesson, name: str, text: str) -> str:
    """Return the page as HTML; ``name`` is the student's, ``text`` the scenario file."""
    fonts = style.write_fonts()
    style.use_fonts(fonts)
    right, judged = course.score
    return (
        environment()
        .get_template("hand_in.html.j2")
        .render(
            title=opened.scenario.title,
            aim=opened.lesson.aim,
            name=name,
            date=f"{dt.datetime.now().astimezone():%Y-%m-%d %H:%M}",
            version=__version__,
            right=right,
            judged=judged,
            questions=opened.lesson.questions,
            css=style_sheet(),
            font_face=Markup(style.font_face(fonts)),  # noqa: S704 - ours
            pages=[*_pages(opened, course)],
            text=text,
        )
    )


def _pages(opened: Opened, course: TakenLesson) -> Iterator[Mapping[str, object]]:
    for number, (page, turn) in enumerate(zip(opened.lesson.pages, course.turns, strict=True), 1):
        verdict = turn.verdict
        yield {
            "number": number,
            "title": page.title,
            "text": _html(page.text),
            "ask": page.question.ask if page.question else "",
            "choices": [each.text for each in page.question.choices] if page.question else [],
            "answer": answer_words(page, turn.answer),
            "revealed": verdict is not None,
            "right": right_words(page, verdict) if verdict is not None else "",
            "correct": turn.correct,
            "usual": verdict is None or verdict.usual,
            "measured": measured_lines(page, verdict) if verdict is not None else [],
            "why": _html(page.why) if verdict is not None else "",
            "figure": _figure(number, page, turn),
        }


def _html(text: str) -> Markup:
    return Markup(markdown().render(text))  # noqa: S704 - raw HTML is escaped


def _figure(number: int, page: LessonPage, turn: PageState) -> _Figure:
    if not page.steps or turn.verdict is None:
        return _Figure()
    if turn.run is None:
        return _Figure(note="This run was not recorded, so it is not drawn.")
    state = _read(turn.run)
    if state is None:
        return _Figure(note="The recording of this run no longer exists, so it is not drawn.")
    shown = _part(state, turn.run)
    names = tuple(streams[0].name for streams in shown.flows)
    with look():
        figure = stacked(shown, Inks(names))
        return _Figure(Markup(svg_text(figure, f"page{number}")))  # noqa: S704 - drawn by us


def _read(where: RunRecording) -> LabState | None:
    try:
        return read_recording(Path(where.recording))
    except (RecordingError, OSError):
        return None


def _part(state: LabState, where: RunRecording) -> Scene:
    """Return the part of the recording in which the page ran, with its start at 0.

    Removes all other traffic from ``state``.
    """
    for name, each in [*state.traffic.items()]:
        if not _ran(each, where):
            del state.traffic[name]
    whole = scene(state)
    flows = [streams for streams in whole.flows if any(_ran(each, where) for each in streams)]
    shift = where.began - whole.start
    span_s = where.ended - where.began
    marks = [(t - shift, text) for t, text in whole.marks if shift <= t <= shift + span_s]
    return replace(whole, start=where.began, span_s=span_s, flows=flows, marks=marks)


def _ran(each: Traffic, where: RunRecording) -> bool:
    over = each.ended is not None and each.ended < where.began
    return not over and each.started <= where.ended
