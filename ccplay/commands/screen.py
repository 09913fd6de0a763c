"""A session on the screen, for the commands that show one."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING, TextIO

from ccplay.commands import options

if TYPE_CHECKING:
    from ccplay.session.session import Session


def show(session: Session, arguments: argparse.Namespace) -> int:
    """Open the screen until the person leaves it; return the exit code.

    SIGTERM is a way to leave too, or the terminal would stay as the screen had it.
    """
    from ccplay.stream.sources import check_recording
    from ccplay.ui.app import CcplayApp

    ghost = getattr(arguments, "ghost", None)
    if ghost:
        check_recording(ghost)
    app = CcplayApp(
        session,
        look=arguments.theme,
        ascii=arguments.ascii or not can_draw(sys.stderr),
        start_at=getattr(arguments, "at", 0.0),
        speed=getattr(arguments, "speed", 1.0),
        ghost=ghost,
        lab_words=options.lab_words(arguments),
    )
    before = signal.signal(signal.SIGTERM, lambda *_: app.exit(128 + signal.SIGTERM))
    try:
        return app.run() or 0
    finally:
        signal.signal(signal.SIGTERM, before)


def can_draw(terminal: TextIO) -> bool:
    """Whether boxes and dots can be written in this locale's encoding; Textual writes to stderr."""
    try:
        "─⣿●".encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True
