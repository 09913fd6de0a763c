"""A session on the screen, for the commands that show one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, TextIO

from ccplay.commands import options

if TYPE_CHECKING:
    from ccplay.session.session import Session


def show(session: Session, arguments: argparse.Namespace) -> int:
    """Open the screen until the person leaves it; return the exit code.

    Raises what ended the session against its will, once the person has seen it and left.
    """
    from ccplay.stream.sources import check_recording
    from ccplay.ui.app import CcplayApp

    ghost = getattr(arguments, "ghost", None)
    if ghost:
        check_recording(ghost)
    app = CcplayApp(
        session,
        look=arguments.theme,
        ascii=arguments.ascii or not can_draw(sys.stdout),
        start_at=getattr(arguments, "at", 0.0),
        speed=getattr(arguments, "speed", 1.0),
        ghost=ghost,
        lab_words=options.lab_words(arguments),
    )
    app.run()
    if app.return_code:
        return app.return_code
    if session.failure is not None:
        raise session.failure
    return 0


def can_draw(terminal: TextIO) -> bool:
    """Whether boxes and dots can be written in this locale's encoding."""
    try:
        "─⣿●".encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True
