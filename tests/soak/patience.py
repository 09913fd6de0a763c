"""How long a program may take to end: that others keep the machine busy is no fault of it."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.soak.terminal import Terminal

_LOOK_S = 0.25

_AT_MOST = 8
"""How many times the limit is the end of all patience: whatever takes longer hangs."""


class Patience:
    """Seconds since this was made, and those in which somebody on this machine lacked a CPU."""

    def __init__(self) -> None:
        self._begun, self._lacked_s = time.monotonic(), _lacked_s()

    @property
    def took_s(self) -> float:
        """All seconds."""
        return time.monotonic() - self._begun

    @property
    def lacked_s(self) -> float:
        """Those in which some process, the kernel's own too, waited for a CPU."""
        return _lacked_s() - self._lacked_s

    def code(self, terminal: Terminal, within_s: float) -> int | None:
        """Wait for the end, ``within_s`` without those seconds; return the exit code or None."""
        while (code := terminal.code(_LOOK_S)) is None:
            if self.took_s > min(within_s + self.lacked_s, _AT_MOST * within_s):
                return None
        return code


def _lacked_s() -> float:
    """Read the pressure stall information; a kernel without it is taken to be idle."""
    try:
        some = re.search(r"some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    except OSError:
        return 0.0
    return int(some[1]) / 1e6 if some else 0.0
