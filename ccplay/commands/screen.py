"""Shows a session on the screen, for the commands that do."""

from __future__ import annotations

import argparse
import gc
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ccplay.commands import options
from ccplay.commands.front import behind_front
from ccplay.errors import CcplayError
from ccplay.units import format_clock
from ccplay.visible import notify

if TYPE_CHECKING:
    from collections.abc import Callable

    from ccplay.scenario.values import Scenario
    from ccplay.session.session import Session
    from ccplay.share.watching import WatchSource
    from ccplay.ui.audience.kinds import Audience
    from ccplay.ui.lesson.lectern import Lectern

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
    lesson: Lectern | None = None,
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
    from ccplay.ui.audience.following import Following

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
    from ccplay.ui.audience.presenting import Presenting

    group: str | None = getattr(arguments, "share_group", None)
    web: str | None = getattr(arguments, "web", None)
    if web:
        from ccplay.share.browsers import read_place

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
    lesson: Lectern | None,
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
    lesson: Lectern | None = None,
) -> tuple[int, Scenario | None]:
    collect_no_garbage()
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
    arguments.window, arguments.theme = app.main.playhead.width, app.look.name
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
    if session.cut_off is not None:
        until = format_clock(session.cut_off - (session.state.ready_at or 0.0))
        notify(f"this session is recorded until {until}: ccplay replay last shows that much again")
    elif session.archived is not None:
        notify("this session is recorded: ccplay replay last shows it again")
    if session.unsaved is not None and session.unsaved.path is not None:
        notify(f"the recording is in {session.unsaved.path}")


def can_draw(terminal: TextIO) -> bool:
    """Whether the terminal's encoding has box-drawing characters and dots."""
    try:
        "─⣿●".encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True
