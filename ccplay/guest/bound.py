"""Runs a program that dies with its starter. Its arguments: the starter's PID, then the program."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""prctl(2)."""


def main() -> None:
    """Replace this process by the program, unless the starter is dead already."""
    starter, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(starter):
        os.execv(argv[0], argv)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
