"""``ccplay lesson``: lessons with questions that the running network answers."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.commands.screen import has_terminal, show
from ccplay.errors import CcplayError, UsageError
from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.lesson.headless import Taken
    from ccplay.lesson.library import Opened

_GRACE_S = 1.5
"""Seconds after which a closed screen kills its lab."""

_ABOUT = """\
A lesson shows pages beside the running network: read, predict, see, ask why. The measurements of
the run decide which answer is right. Write one of your own in a text editor: a scenario with
[[lesson.pages]], see scenarios/README.md.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument(
        "lesson",
        nargs="?",
        metavar="LESSON",
        help="a name from the list, or a file (default: list the lessons)",
    )
    parser.add_argument(
        "--check", action="store_true", help="report the lesson's size, or every mistake in it"
    )
    parser.add_argument(
        "--headless",
        action="store_true",
        help="without a screen: run every page, print the right answers as measured",
    )
    parser.add_argument("--json", action="store_true", help="with --headless: a JSON object")
    parser.add_argument(
        "--restart", action="store_true", help="begin at the first page; answers are forgotten"
    )
    parser.add_argument(
        "--hand-in",
        metavar="NAME",
        help="write one HTML page with your answers under this name, figures and the scenario",
    )
    options.add_lab(parser)
    options.add_screen(parser)
    options.add_share(parser)
    parser.set_defaults(run=run, case=[], record=None)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.lesson.library import open_lesson

    name = arguments.hand_in
    if arguments.lesson is None and name is not None:
        # `--hand-in aqm`: the lesson alone, without a name.
        return _hand_in(open_lesson(name), "")
    if arguments.lesson is None:
        return _list()
    opened = open_lesson(arguments.lesson)
    if arguments.check:
        print(_summary(opened))
        return 0
    if name is not None:
        return _hand_in(opened, name)
    if arguments.headless:
        return _take_headless(opened, arguments)
    if not has_terminal():
        raise UsageError("a lesson needs a terminal; without one: --headless")
    return _take(opened, arguments)


def _take(opened: Opened, arguments: argparse.Namespace) -> int:
    """Open a lesson on the screen, at the page reached before."""
    from ccplay.lesson import progress
    from ccplay.session.archive import SessionRecorder
    from ccplay.session.session import Session
    from ccplay.ui.lesson.desk import Desk

    if arguments.restart:
        progress.forget(opened)
    course = progress.take_up(opened)
    source = options.lab_opener(arguments, grace_s=_GRACE_S)(course.build(opened.case.build))
    title = opened.scenario.title
    recorder = SessionRecorder(opened.scenario.path.stem, title)
    session = Session(source, title=title, sinks=[recorder], script=course, idle=course.idle)
    lost: list[str] = []

    def keep() -> None:
        course.recording = str(session.archived or "")
        try:
            progress.keep(opened, course)
        except CcplayError as error:
            lost[:] = [str(error)]

    desk = Desk(course, session, keep)
    desk.title = title
    front = os.getpid()
    code = show(session, arguments, label=opened.scenario.path.stem, lesson=desk)
    if os.getpid() == front:
        # The session ran in the child process, which has printed this already.
        return code
    for text in lost:
        notify(f"ccplay: your progress is not kept: {text}")
    right, judged = course.score
    again = f"ccplay lesson {arguments.lesson}"
    rest = (
        f"{again} --hand-in NAME writes a page of them" if course.complete else f"{again} continues"
    )
    notify(f"{right} of {judged} answers were right; {rest}")
    return code


def _hand_in(opened: Opened, name: str) -> int:
    """Write the page with the answers into the current folder. Raises ``UsageError``."""
    from pathlib import Path

    from ccplay.commands.report import check_libraries
    from ccplay.files import writing
    from ccplay.lesson import progress
    from ccplay.scenario.file.reading import read

    check_libraries()
    from ccplay.report.data.material import slug
    from ccplay.report.page.hand_in import render

    course = progress.take_up(opened)
    if all(turn.verdict is None for turn in course.turns):
        raise UsageError(f"nothing to hand in yet: take ccplay lesson {opened.name} first")
    name = printable(name.strip())
    page = render(opened, course, name, read(opened.scenario.path))
    stem = f"{slug(opened.name)}-{slug(name)}" if name else slug(opened.name)
    with writing.explained(Path(f"{stem}.html"), UsageError):
        put(writing.write_numbered(Path(), stem, ".html", page))
    return 0


def _list() -> int:
    from ccplay.lesson.library import open_lesson, shipped

    names = [*shipped()]
    width = max(map(len, names), default=0)
    for name in names:
        opened = open_lesson(name)
        print(printable(f"{name:{width}}  {opened.scenario.title}"))
    notify("", "open one: ccplay lesson NAME")
    return 0


def _summary(opened: Opened) -> str:
    lesson = opened.lesson
    text = f"{opened.scenario.title}: {len(lesson.pages)} pages, {lesson.questions} questions, "
    return printable(f"{text}runs {lesson.run_s:g} s")


def _take_headless(opened: Opened, arguments: argparse.Namespace) -> int:
    import asyncio

    from ccplay.lesson import headless

    shows = not arguments.json
    opener = options.lab_opener(arguments)
    outcome = asyncio.run(headless.take(opened, opener, _print if shows else _ignore))
    ok = not outcome.errors and all(each.ok for each in outcome.taken)
    if shows:
        for text in (*outcome.errors, *outcome.health.reasons):
            notify(f"ccplay: {text}")
    else:
        import msgspec

        from ccplay.lesson.words import right_words

        pages = [
            {
                "page": each.number,
                "question": each.page.question.ask if each.page.question else None,
                "right": right_words(each.page, each.verdict),
                "measured": each.verdict.values,
                "ok": each.ok,
            }
            for each in outcome.taken
        ]
        found = {
            "lesson": opened.name,
            "ok": ok,
            "pages": pages,
            "errors": outcome.errors,
            "health": outcome.health,
        }
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    return 0 if ok else 1


def _ignore(_: Taken) -> None:
    """Print nothing: with ``--json`` all pages are printed at the end."""


def _print(taken: Taken) -> None:
    from ccplay.lesson.words import measured_lines, right_words

    page, verdict = taken.page, taken.verdict
    print(printable(f"{taken.number}. {page.title}"))
    if page.question is not None:
        print(printable(f"   {page.question.ask}"))
        print(printable(f"   -> {right_words(page, verdict)}"))
        if not verdict.usual:
            print("   (not what the page explains)")
    for text, value in measured_lines(page, verdict):
        print(printable(f"      {text}: {value}"))
    sys.stdout.flush()
