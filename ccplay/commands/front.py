"""Puts a front process between shell and screen, which can stop while the session continues."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import termios
from collections.abc import Callable

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
