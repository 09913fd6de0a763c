"""A session on the screen, for the commands that show one."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ccplay.commands import options
from ccplay.commands.front import behind_front
from ccplay.errors import CcplayError
from ccplay.visible import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from ccplay.scenario.values import Scenario
    from ccplay.session.session import Session
    from ccplay.session.unsaved import Unsaved

    Again = Callable[[Scenario], tuple[Session, Unsaved | None]]


def has_terminal() -> bool:
    """Whether there is a terminal: keys are read from stdin, and stdout is drawn on."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def show(
    session: Session,
    arguments: argparse.Namespace,
    *,
    unsaved: Unsaved | None = None,
    again: Again | None = None,
) -> int:
    """Show the screen until the user leaves it; return the exit code.

    ``unsaved`` is the recording of a session that is in no file; ``again`` starts the session of
    another scenario, which a user may ask for. Raises ``RecordingError`` for an
    unreadable ghost and, after the user has left, the error that ended the session.
    """
    from ccplay.stream.sources import check_recording

    ghost = getattr(arguments, "ghost", None)
    if ghost:
        check_recording(ghost)
    return behind_front(lambda: _show_each(session, arguments, ghost, unsaved, again))


def _show_each(
    session: Session,
    arguments: argparse.Namespace,
    ghost: Path | None,
    unsaved: Unsaved | None,
    again: Again | None,
) -> int:
    """Show a session, and then those of other scenarios that the user asks for."""
    while True:
        code, wanted = _show(session, arguments, ghost, unsaved, starts=again is not None)
        if wanted is None or again is None:
            return code
        ghost = None
        session, unsaved = again(wanted)


def _show(
    session: Session,
    arguments: argparse.Namespace,
    ghost: Path | None,
    unsaved: Unsaved | None,
    *,
    starts: bool,
) -> tuple[int, Scenario | None]:
    # What is imported and built is kept, and searching it for garbage takes a tenth of the time to
    # the first paint. After that the app turns it on again.
    gc.disable()
    from ccplay.ui import preferences
    from ccplay.ui.app import CcplayApp
    from ccplay.ui.themes import load_looks

    looks = load_looks()
    app = CcplayApp(
        session,
        looks=looks,
        preferences=preferences.load(looks),
        look=arguments.theme,
        ascii=arguments.ascii or not can_draw(sys.stdout),
        start_at=getattr(arguments, "at", 0.0),
        speed=getattr(arguments, "speed", 1.0),
        window=getattr(arguments, "window", 30.0),
        ghost=ghost,
        lab_words=options.lab_words(arguments),
        unsaved=unsaved,
        starts=starts,
    )
    app.run()
    try:
        preferences.keep(app.changed_choices())
    except CcplayError as error:
        tell(f"ccplay: {error}")
    if app.return_code:
        return app.return_code, None
    if session.archived is not None:
        tell("this session is recorded: ccplay replay last shows it again")
    if unsaved is not None and unsaved.path is not None:
        tell(f"the recording is in {unsaved.path}")
    if session.failure is not None and app.wanted is None:
        raise session.failure
    return 0, app.wanted


def can_draw(terminal: TextIO) -> bool:
    """Whether boxes and dots can be written in this locale's encoding."""
    try:
        "─⣿●".encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True
