"""A program that dies with whoever started it: PID of the starter, PROGRAM, its arguments."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""prctl(2)."""


def main() -> None:
    """Become the program, unless its starter is dead already, who would be waited for in vain."""
    starter, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(starter):
        os.execv(argv[0], argv)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
