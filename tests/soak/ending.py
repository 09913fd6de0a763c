"""The ways to end a program, and the exit codes that are right for each."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import psutil

from tests.lab.test_leaks import kill
from tests.soak import keys
from tests.soak.terminal import Terminal


def _signalled(number: signal.Signals) -> Callable[[Terminal], None]:
    def send(terminal: Terminal) -> None:
        with contextlib.suppress(psutil.Error):
            if program := terminal.program():
                program.send_signal(number)

    return send


def _quit(terminal: Terminal) -> None:
    # Right after an Escape, Ctrl-Q would be read as another key.
    time.sleep(0.3)
    terminal.press(keys.QUIT)


def _quit_in_the_dark(terminal: Terminal) -> None:
    terminal.stall()
    time.sleep(1.0)
    terminal.press(keys.QUIT)


def _terminated_in_the_dark(terminal: Terminal) -> None:
    terminal.stall()
    time.sleep(1.0)
    _signalled(signal.SIGTERM)(terminal)


def _without_a_lab(terminal: Terminal) -> None:
    kill(terminal.marker, "lab")
    time.sleep(1.0)
    terminal.press(keys.QUIT)


@dataclass(frozen=True)
class Ending:
    """A way to end a program: what to do, the right exit codes, whether its recording is whole."""

    name: str
    do: Callable[[Terminal], None]
    right: Callable[[int], bool]
    whole: bool = True
    itself: bool = False
    """Whether the program may already have ended by itself."""

    def or_finished(self, whole: Callable[[], bool]) -> Ending:
        """Return this ending, also right for a program that finished before, if ``whole``."""

        def right(code: int) -> bool:
            return self.right(code) or (code == 0 and whole())

        return replace(self, right=right, itself=True)


def _interrupt(terminal: Terminal) -> None:
    terminal.press(b"\x03")


def _nothing(terminal: Terminal) -> None:
    """Do nothing, because the program ends by itself."""


def _is(*codes: int) -> Callable[[int], bool]:
    return lambda code: code in codes


def _error(code: int) -> bool:
    return code != 0


CLOSED = Ending("closed terminal", Terminal.close, _error)
HANGUP = Ending("SIGHUP", _signalled(signal.SIGHUP), _error)
TERMINATED = Ending("SIGTERM", _signalled(signal.SIGTERM), _is(143))
INTERRUPTED = Ending("SIGINT", _signalled(signal.SIGINT), _error)
KILLED = Ending("SIGKILL", _signalled(signal.SIGKILL), _is(137), whole=False)

FINISHED = Ending("its end", _nothing, _is(0), itself=True)
LEFT = Ending("the palette", _nothing, _is(0), itself=True)
"""Ending of a program that quits because a key chose that in the palette."""

OF_SCREENS = (
    Ending("ctrl+q", _quit, _is(0)),
    Ending("ctrl+q, nobody reads", _quit_in_the_dark, _is(0)),
    Ending("SIGTERM, nobody reads", _terminated_in_the_dark, _is(143)),
    Ending("lab killed, ctrl+q", _without_a_lab, _error),
    CLOSED,
    HANGUP,
    TERMINATED,
    INTERRUPTED,
    KILLED,
)
OF_REPLAYS = tuple(each for each in OF_SCREENS if not each.name.startswith("lab killed"))
OF_RUNS = (FINISHED, Ending("ctrl+c", _interrupt, _is(130)), CLOSED, HANGUP, TERMINATED, KILLED)
