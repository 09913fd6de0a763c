"""Commands for a class: take a lesson, watch a shared session, serve it to browsers."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from ccplay.cli import options, screen
from ccplay.cli.options import put_json
from ccplay.cli.screen import has_terminal, show, watching
from ccplay.errors import CcplayError, UsageError
from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.lesson.headless import PageResult
    from ccplay.lesson.library import Opened
    from ccplay.share.sockets import Shared


# --- ``ccplay lesson``: lessons with questions that the running network answers -------------------

_ABOUT = """\
A lesson shows pages beside the running network: read, predict, see, ask why. The measurements of
the run decide which answer is right. Write one of your own in a text editor: a scenario with
[[lesson.pages]]. ccplay new lesson NAME writes a template.
"""


def add_lesson(parser: argparse.ArgumentParser) -> None:
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
        help="run every page without a screen, and print the right answers as measured",
    )
    parser.add_argument("--json", action="store_true", help="with --headless: a JSON object")
    parser.add_argument(
        "--restart",
        action="store_true",
        help="begin again at the first page, and forget earlier answers",
    )
    parser.add_argument(
        "--hand-in",
        metavar="NAME",
        help="write a page to hand in under this name: your answers, the figures, the scenario",
    )
    options.add_lab(parser)
    options.add_screen(parser)
    options.add_share(parser)
    parser.set_defaults(run=run_lesson, case=[], record=None)


def run_lesson(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.lesson.library import open_lesson

    name = arguments.hand_in
    if arguments.lesson is None and name is not None:
        # `--hand-in aqm`: the lesson alone, without a name.
        return _hand_in(open_lesson(name), "")
    if arguments.lesson is None:
        return list_lessons(arguments)
    opened = open_lesson(arguments.lesson)
    if arguments.check:
        print(summary(opened))
        return 0
    if name is not None:
        return _hand_in(opened, name)
    if arguments.headless:
        return _run_headless(opened, arguments)
    if not has_terminal():
        raise UsageError("a lesson needs a terminal; without one, add --headless")
    return _open_lesson(opened, arguments)


def _open_lesson(opened: Opened, arguments: argparse.Namespace) -> int:
    """Open a lesson on the screen, at the page reached before."""
    from ccplay.lesson import library
    from ccplay.session.archive import SessionRecorder
    from ccplay.session.session import Session
    from ccplay.ui.lesson_roles import Leader

    if arguments.restart:
        library.delete_progress(opened)
    course = library.load_progress(opened)
    source = options.lab_opener(arguments, grace_s=screen.GRACE_S)(course.build(opened.case.build))
    title = opened.scenario.title
    recorder = SessionRecorder(opened.scenario.path.stem, title)
    session = Session(source, title=title, sinks=[recorder], script=course, idle=course.idle)
    lost: list[str] = []

    def keep() -> None:
        course.recording = str(session.archived or "")
        try:
            library.save_progress(opened, course)
        except CcplayError as error:
            lost[:] = [str(error)]

    leader = Leader(course, session, keep)
    leader.title = title
    front = os.getpid()
    code = show(session, arguments, label=opened.scenario.path.stem, lesson=leader)
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

    from ccplay.cli.results import check_libraries
    from ccplay.files import writing
    from ccplay.lesson import library
    from ccplay.scenario.reading import read

    check_libraries()
    from ccplay.report.data.material import slug
    from ccplay.report.page.hand_in import render

    course = library.load_progress(opened)
    if all(turn.verdict is None for turn in course.turns):
        raise UsageError(f"there is nothing to hand in yet: first take ccplay lesson {opened.name}")
    name = printable(name.strip())
    page = render(opened, course, name, read(opened.scenario.path))
    stem = f"{slug(opened.name)}-{slug(name)}" if name else slug(opened.name)
    with writing.explained(Path(f"{stem}.html"), UsageError):
        put(writing.write_numbered(Path(), stem, ".html", page))
    return 0


def list_lessons(arguments: argparse.Namespace) -> int:
    """List the lessons that come with ccplay, and return the exit code."""
    from ccplay.lesson.library import open_lesson, shipped

    titles = {name: open_lesson(name).scenario.title for name in shipped()}
    if arguments.json:
        put_json([{"name": name, "title": title} for name, title in titles.items()])
        return 0
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        print(printable(f"{name:{width}}  {title}"))
    notify("", "open one: ccplay lesson NAME")
    return 0


def summary(opened: Opened) -> str:
    """Return the size of a lesson in words."""
    lesson = opened.lesson
    text = f"{opened.scenario.title}: {len(lesson.pages)} pages, {lesson.questions} questions, "
    return printable(f"{text}runs {lesson.run_s:g} s")


def _run_headless(opened: Opened, arguments: argparse.Namespace) -> int:
    from ccplay.lesson import headless

    shows = not arguments.json
    opener = options.lab_opener(arguments)
    outcome = asyncio.run(headless.run_lesson(opened, opener, _print if shows else lambda _: None))
    ok = not outcome.errors and all(each.ok for each in outcome.taken)
    if shows:
        for text in (*outcome.errors, *outcome.health.reasons):
            notify(f"ccplay: {text}")
    else:
        from ccplay.lesson.course import right_words

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
        found = {"lesson": opened.name, "ok": ok, "pages": pages}
        put_json({**found, "errors": outcome.errors, "health": outcome.health})
    return 0 if ok else 1


def _print(taken: PageResult) -> None:
    from ccplay.lesson.course import measured_lines, right_words

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


# --- ``ccplay watch``, ``ccplay share``: a session that someone shares ----------------------------

_WATCH_ABOUT = """\
Someone shares a session with `ccplay --share`; `ccplay replay` and `ccplay run` have that option
too. You see what the presenter sees until you touch a key; F follows the presenter again. Votes in
a lesson are counted. Nothing else that a spectator does reaches the presenter or the lab.

From another machine: ssh -t HOST ccplay watch. For a class, share with a group
(--share-group NAME) and give an account of that group this line in sshd_config. It can then watch,
and do nothing else:

  ForceCommand ccplay watch --restricted

With --web the session is served to browsers in place of this screen, until it ends or you press
Ctrl-C. This prints a secret link; nobody can watch without it. Only browsers on this machine can
connect, unless --web names another address, and what is sent is not encrypted. From elsewhere:
ssh -L 8000:127.0.0.1:8000 HOST, with --web 127.0.0.1:8000 on HOST. Browsers can vote in your own
lessons, and change nothing; in the session of another user they can't vote either.
"""


def add_share(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command: as ``watch --web``."""
    _add_shared(parser)
    parser.set_defaults(run=run_share)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _WATCH_ABOUT
    parser.add_argument(
        "session",
        nargs="?",
        metavar="SESSION",
        help="a name that ccplay watch --list prints (default: the only one, or a choice)",
    )
    options.add_web(parser)


def run_share(arguments: argparse.Namespace) -> int:
    """Serve a shared session to browsers, and return the exit code."""
    from ccplay.share.presenter import read_place
    from ccplay.share.web.gateway import require_libraries, serve

    require_libraries()
    place = read_place(arguments.web or "")
    session = _session(arguments.session)
    asyncio.run(serve(session.path, place, print_links, lambda _: None))
    notify("the session has ended")
    return 0


def _session(word: str | None) -> Shared:
    """Return the shared session of this name, or the only one. Raises ``UsageError``."""
    from ccplay.share import sockets

    if word:
        return sockets.find(word)
    there = sockets.list_shared()
    if not there:
        raise UsageError("nobody shares a session; to share yours: ccplay --share --web")
    if len(there) > 1:
        names = ", ".join(each.name for each in there)
        raise UsageError(f"several sessions are shared; name one of them: {names}")
    return there[0]


def print_links(link: str) -> None:
    """Print the link, and on a terminal its QR code."""
    from ccplay.share.web.gateway import draw_code

    print(link, flush=True)
    show_code(draw_code(link))


def show_code(rows: list[str]) -> None:
    """Print a QR code to stderr if that is a terminal."""
    if sys.stderr.isatty():
        # Black on white, whatever the terminal's colours are: cameras need that.
        lines = [f"\x1b[38;5;16;48;5;231m{row}\x1b[0m" for row in rows]
        print("\n".join(lines), file=sys.stderr, flush=True)


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_shared(parser)
    parser.add_argument("--list", action="store_true", help="list the shared sessions")
    parser.add_argument(
        "--from-now",
        action="store_true",
        help="begin at the newest moment; otherwise you can scroll back to the start",
    )
    parser.add_argument(
        "--restricted",
        action="store_true",
        help="read and write no files (pictures, recordings, preferences), and refuse to suspend",
    )
    screen.add_window(parser)
    options.add_screen(parser)
    parser.set_defaults(run=run_watch)


def run_watch(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.share import sockets

    if arguments.web is not None and not arguments.list:
        if arguments.restricted:
            raise UsageError("a restricted account can't serve browsers")
        return run_share(arguments)
    if arguments.list:
        return _list_shared(sockets.list_shared())
    if not has_terminal():
        raise UsageError("watch needs a terminal; over ssh: ssh -t HOST ccplay watch")
    word = arguments.session
    if word is None and arguments.restricted:
        # A restricted account can't name a session in any other way.
        word = os.environ.get("SSH_ORIGINAL_COMMAND", "").strip()
        if "/" in word:
            raise UsageError("a restricted account can watch sessions by name only")
    chosen = sockets.find(word) if word else _choose(sockets.list_shared())
    if chosen is None:
        return 0
    from ccplay.share.frames import Wants
    from ccplay.share.sockets import WatchSource

    wants = Wants.NOW if arguments.from_now else Wants.WHOLE
    source = WatchSource.join(chosen.path, wants)
    return show(watching(source), arguments, watched=source)


def _list_shared(there: list[Shared]) -> int:
    if not there:
        notify("nobody shares a session; to share yours: ccplay --share")
        return 0
    print("\n".join(_lines(there)))
    return 0


def _choose(there: list[Shared]) -> Shared | None:
    """Return the only session, or the one that the user picks from a list; None if they pick none.

    Raises ``UsageError`` if there is no session.
    """
    if not there:
        raise UsageError("nobody shares a session; to share yours: ccplay --share")
    if len(there) == 1:
        return there[0]
    print("Several sessions are shared:")
    for number, line in enumerate(_lines(there), 1):
        print(f"{number:>3}  {line}")
    while True:
        try:
            answer = input("Number (enter: none): ").strip()
        except EOFError:
            return None
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= len(there):
            return there[int(answer) - 1]
        print(f"a number from 1 to {len(there)}", file=sys.stderr)


def _lines(there: list[Shared]) -> list[str]:
    from ccplay.units import format_clock

    rows = [
        (
            each.name,
            "replay" if each.greeting.recorded else format_clock(each.greeting.now),
            f"{each.greeting.watching} watching",
            each.greeting.title,
        )
        for each in there
    ]
    return options.aligned(rows, "<<<<")
