"""Opens the screen, on a terminal or without one; ``ccplay replay``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import sys
import termios
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ccplay.cli import options
from ccplay.errors import CcplayError, UsageError
from ccplay.units import format_clock
from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.scenario.values import Scenario
    from ccplay.session.session import Session
    from ccplay.share.sockets import WatchSource
    from ccplay.ui.audience import Audience
    from ccplay.ui.lesson_roles import Role
    from ccplay.ui.offscreen import Offscreen


# --- puts a front process between shell and screen, which can stop while the session continues ----

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

_PR_SET_PDEATHSIG = 1
"""Number of the prctl(2) option for the signal that a process gets when its parent ends."""


def behind_front(program: Callable[[], int]) -> int:
    """Run ``program`` in a child process; return its exit code, in both processes.

    A shell takes back the terminal once its child is stopped. Timeline and recording must not stop,
    so the shell's child is not the process that plays and records.
    """
    _await_foreground()
    sys.stdout.flush()
    sys.stderr.flush()
    front = os.getpid()
    behind = os.fork()
    if behind == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        return program() if os.getppid() == front else 128 + signal.SIGTERM

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(behind, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    _, status = os.waitpid(behind, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _await_foreground() -> None:
    """Stop until the shell's ``fg`` if started with ``&``: tcsetattr(3) causes SIGTTOU then."""
    with contextlib.suppress(termios.error):
        termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0))


# --- ``ccplay replay --picture`` and ``--cast``: draw a recording into files, without a terminal --

_LEAST, _MOST = (80, 24), (500, 200)
"""Columns and rows of the smallest screen that shows everything, and of the largest accepted."""

_WINDOWS = (0.1, 21600.0)
"""Seconds of the shortest and of the longest time span that the plots can show."""


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the option for the time span of the plots."""
    parser.add_argument(
        "--window",
        type=window,
        default=30.0,
        metavar="SECONDS",
        help="seconds that the plots show, such as 10s (default 30)",
    )


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options for pictures and casts."""
    files = parser.add_argument_group("files, drawn without a terminal")
    files.add_argument(
        "--picture",
        type=options.seconds,
        action="append",
        default=[],
        metavar="T",
        help="draw the screen at T as SVG and PNG; may be repeated",
    )
    files.add_argument(
        "--out",
        type=_picture_file,
        metavar="FILE",
        help="name of the picture, ending in .svg or .png; of several, each name has its moment "
        "(default: ccplay-MOMENT.svg and .png)",
    )
    files.add_argument(
        "--cast",
        type=Path,
        metavar="FILE",
        help="write the replay in asciinema's format (asciicast v2), from --from to --to",
    )
    files.add_argument(
        "--from",
        dest="at",
        type=options.seconds,
        default=argparse.SUPPRESS,
        metavar="T",
        help="with --cast: begin at T, as --at",
    )
    files.add_argument(
        "--to",
        type=options.seconds,
        metavar="T",
        help="with --cast: end at T (default: at the recording's end)",
    )
    files.add_argument(
        "--size",
        type=_size,
        default=(120, 40),
        metavar="COLUMNSxROWS",
        help="size of the screen in these files (default 120x40)",
    )


def window(text: str) -> float:
    """Return the seconds of a time span such as ``10`` or ``10s``. Raises ``ArgumentTypeError``."""
    from ccplay.units import parse_time_us

    try:
        value = float(text) if text.replace(".", "", 1).isdecimal() else parse_time_us(text) / 1e6
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not _WINDOWS[0] <= value <= _WINDOWS[1]:
        raise argparse.ArgumentTypeError(f"must be from 0.1 s to 6 h, not {text}")
    return value


def wanted(arguments: argparse.Namespace) -> bool:
    """Whether a command line asks for files. Raises ``UsageError`` if an option lacks another."""
    if arguments.out is not None and not arguments.picture:
        raise UsageError("--out names a picture: name its moment too, such as --picture 30")
    if arguments.to is not None and arguments.cast is None:
        raise UsageError("--to ends a cast: name its file too, such as --cast race.cast")
    return bool(arguments.picture or arguments.cast)


def draw(arguments: argparse.Namespace, title: str) -> int:
    """Write the files, print their names and return the exit code.

    Raises ``RecordingError`` and ``UsageError``.
    """
    from ccplay.stream.sources import check_recording

    if arguments.ghost is not None:
        check_recording(arguments.ghost)
    return asyncio.run(_draw(arguments, title))


async def _draw(arguments: argparse.Namespace, title: str) -> int:
    from ccplay.ui.offscreen import PictureOptions, offscreen, write_cast

    setting = PictureOptions(
        size=arguments.size,
        look=arguments.theme,
        ascii=arguments.ascii,
        window=arguments.window,
        speed=arguments.speed,
        ghost=arguments.ghost,
    )
    async with offscreen(arguments.recording, title, setting) as shown:
        for t in arguments.picture:
            shown.check(t)
        for t in arguments.picture:
            await shown.show(t)
            _picture(shown, t, arguments.out, several=len(arguments.picture) > 1)
        if arguments.cast is not None:
            end = shown.end if arguments.to is None else arguments.to
            await write_cast(shown, arguments.cast, arguments.at, end, arguments.speed)
            put(arguments.cast)
    return 0


def _picture(shown: Offscreen, t: float, out: Path | None, *, several: bool) -> None:
    from ccplay.files import writing
    from ccplay.ui.pictures import DRAWN, moment, stem, write_new

    frame = shown.frame
    if out is None:
        for suffix in DRAWN:
            with writing.explained(Path(f"{stem(t)}{suffix}"), UsageError):
                put(write_new(frame, stem(t), suffix, Path()))
        return
    path = out.with_name(f"{out.stem}-{moment(t)}{out.suffix}") if several else out
    drawn = DRAWN[out.suffix](frame)
    with writing.explained(path, UsageError):
        writing.write(path, drawn)
    put(path)


def _picture_file(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"{text} ends neither in .svg nor in .png")
    return path


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.lower().partition("x")
    if not (columns.isdecimal() and rows.isdecimal() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 120x40")
    size = int(columns), int(rows)
    if not all(a <= b <= c for a, b, c in zip(_LEAST, size, _MOST, strict=True)):
        bounds = "from {}x{} to {}x{}".format(*_LEAST, *_MOST)
        raise argparse.ArgumentTypeError(f"must be {bounds} cells, not {text}")
    return size


# --- shows a session on the screen, for the commands that do --------------------------------------

GRACE_S = 1.5
"""Seconds after which a closed screen kills its lab; screen and lab end within two seconds."""

if TYPE_CHECKING:
    _Open = Callable[[Session, Audience | None], Audience]
    Again = Callable[[Scenario], Session]


def has_terminal() -> bool:
    """Whether stdin, where keys are read, and stdout, where the screen is drawn, are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def collect_no_garbage() -> None:
    """Turn off garbage collection until the first paint, when the app turns it on again.

    Imported and built objects stay anyway, and searching them takes a tenth of the time.
    """
    gc.disable()


def show(
    session: Session,
    arguments: argparse.Namespace,
    *,
    label: str = "",
    recording: Path | None = None,
    watched: WatchSource | None = None,
    again: Again | None = None,
    lesson: Role | None = None,
) -> int:
    """Show the screen until the user leaves it; return the exit code.

    ``label`` is the name under which the session is shared, ``recording`` the file of a replay,
    ``watched`` the source of a spectator; ``again`` starts a session of another scenario that the
    user chooses; ``lesson`` is shown beside the first session. Raises ``RecordingError`` for an
    unreadable ghost and, after the user has left, the error that ended the session.
    """
    from ccplay.stream.sources import check_recording

    ghost = getattr(arguments, "ghost", None)
    if ghost:
        check_recording(ghost)
    open_audience: _Open = partial(_present, arguments, label, recording)
    if watched is not None:
        open_audience = partial(_follow, watched, arguments.restricted)
    return behind_front(
        lambda: _show_each(
            session, arguments, ghost, again=again, opens=open_audience, lesson=lesson
        )
    )


def watching(source: WatchSource) -> Session:
    """Return the session of a spectator."""
    from ccplay.session.session import Session

    return Session(source, title=source.greeting.title, recorded=source.greeting.recorded)


def _follow(
    watched: WatchSource, restricted: bool, _: Session, before: Audience | None
) -> Audience:
    """Return the audience of a spectator's screen, which follows a presenter."""
    from ccplay.ui.audience import Following

    if isinstance(before, Following) and before.joined is not None:
        watched = before.joined
    return Following(watched, restricted=restricted)


def _present(
    arguments: argparse.Namespace,
    label: str,
    recording: Path | None,
    session: Session,
    before: Audience | None,
) -> Audience:
    """Return the audience of a presenter's screen, shared if requested. Raises ``CcplayError``.

    A network that follows another is shared if that was shared until its end.
    """
    from ccplay.ui.audience import Presenting

    group: str | None = getattr(arguments, "share_group", None)
    web: str | None = getattr(arguments, "web", None)
    if web:
        from ccplay.share.presenter import read_place

        read_place(web)
    if isinstance(before, Presenting):
        return before.followed_by(session)
    audience = Presenting(session, label, group=group, recording=recording)
    if group or getattr(arguments, "share", False):
        audience.start()
    if web is not None:
        audience.open_to_browsers(web)
    return audience


def _show_each(
    session: Session,
    arguments: argparse.Namespace,
    ghost: Path | None,
    *,
    again: Again | None,
    opens: _Open,
    lesson: Role | None,
) -> int:
    """Show a session, and then those of other networks, which the user or the presenter starts."""
    starts = again is not None
    audience = opens(session, None)
    while True:
        code, wanted = _show(
            session, arguments, ghost, starts=starts, audience=audience, lesson=lesson
        )
        ghost = lesson = None
        if (joined := audience.joined) is not None:
            session = watching(joined)
        elif wanted is None or again is None:
            return code
        else:
            try:
                session = again(wanted)
            except BaseException:
                audience.give_up()
                raise
        audience = opens(session, audience)


def _show(
    session: Session,
    arguments: argparse.Namespace,
    ghost: Path | None,
    *,
    starts: bool,
    audience: Audience,
    lesson: Role | None = None,
) -> tuple[int, Scenario | None]:
    collect_no_garbage()
    # A thread that reads a ghost would otherwise make the event loop wait for 5 ms, time and again.
    sys.setswitchinterval(0.0005)
    from ccplay.ui import preferences
    from ccplay.ui.app import CcplayApp
    from ccplay.ui.themes import load_looks

    looks = load_looks()
    app = CcplayApp(
        session,
        looks=looks,
        preferences=preferences.load(looks) if audience.keeps_files else None,
        look=arguments.theme,
        ascii=arguments.ascii or not can_draw(sys.stdout),
        start_at=getattr(arguments, "at", 0.0),
        speed=getattr(arguments, "speed", 1.0),
        window=getattr(arguments, "window", 30.0),
        ghost=ghost,
        lab_words=options.lab_words(arguments),
        audience=audience,
        starts=starts,
        lesson=lesson,
    )
    try:
        app.run()
    finally:
        audience.close()
    # The next network is shown over the same time span, in the same theme.
    arguments.window, arguments.theme = app.main.shown.playhead.width, app.appearance.look.name
    if not audience.keeps_files:
        return app.return_code or 0, None
    try:
        preferences.keep(app.changed_choices())
    except CcplayError as error:
        notify(f"ccplay: {error}")
    if app.return_code:
        return app.return_code, None
    _notify_recording(session)
    if session.failure is not None and app.wanted is None:
        raise session.failure
    return 0, app.wanted


def _notify_recording(session: Session) -> None:
    """Report where the session that has ended is recorded."""
    if session.archived is not None:
        from ccplay.session import archive

        # Another screen may have begun a session since.
        again = f"ccplay replay {archive.word_of(session.archived)}"
        until, shown = "", "it"
        if session.cut_off is not None:
            until = f" until {format_clock(session.cut_off - (session.state.ready_at or 0.0))}"
            shown = "that much"
        notify(f"this session is recorded{until}: {again} shows {shown} again")
    if session.unsaved is not None and session.unsaved.path is not None:
        notify(f"the recording is in {session.unsaved.path}")


def can_draw(terminal: TextIO) -> bool:
    """Whether the terminal's encoding has box-drawing characters and dots."""
    try:
        "─⣿●".encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True


# --- ``ccplay replay``: plays a recording on the screen, or draws it into files -------------------


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    options.add_recording(parser)
    options.add_speed(parser)
    parser.add_argument(
        "--at",
        type=options.seconds,
        default=0.0,
        metavar="T",
        help="start at T: 90 (seconds), or 1:30",
    )
    add_window(parser)
    options.add_screen(parser)
    options.add_ghost(parser)
    options.add_share(parser)
    add(parser)
    parser.set_defaults(run=run_replay)


def run_replay(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.stream.sources import check_recording

    check_recording(arguments.recording)
    if wanted(arguments):
        return draw(arguments, printable(arguments.recording.name))
    if not has_terminal():
        raise UsageError("replay needs a terminal: it reads keys from stdin and draws on stdout")
    return replay(arguments.recording, arguments, arguments.at)


def replay(recording: Path, arguments: argparse.Namespace, at: float = 0.0) -> int:
    """Show a recording on the screen, from the moment ``at`` on; return the exit code."""
    from ccplay.session.archive import preview
    from ccplay.session.session import Session
    from ccplay.stream.sources import ReplaySource

    early = partial(preview, recording, at) if at else None
    session = Session(ReplaySource(recording), title=printable(recording.name), preview=early)
    return show(session, arguments, label=recording.stem, recording=recording)
