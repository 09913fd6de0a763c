"""Limits the time that a program may take to end, except for time without a CPU."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.soak.terminal import Terminal

_LOOK_S = 0.25

_AT_MOST = 8
"""Multiple of the limit after which a program counts as hung, however busy the machine is."""


class Patience:
    """Measures the seconds since its creation, and those in which a process waited for a CPU."""

    def __init__(self) -> None:
        self._begun, self._lacked_s = time.monotonic(), _lacked_s()

    @property
    def took_s(self) -> float:
        """All seconds since this object was made."""
        return time.monotonic() - self._begun

    @property
    def lacked_s(self) -> float:
        """The seconds in which some process or kernel thread waited for a CPU."""
        return _lacked_s() - self._lacked_s

    def code(
        self, terminal: Terminal, within_s: float, end: Callable[[Terminal], None]
    ) -> int | None:
        """Wait ``within_s`` plus ``lacked_s`` seconds for the end; return the exit code or None.

        It waits no longer than ``_AT_MOST`` times ``within_s``. If an earlier Ctrl-Z has suspended
        the program meanwhile, it is resumed and ended once more.
        """
        resumed = False
        while (code := terminal.code(_LOOK_S)) is None:
            if terminal.suspended:
                terminal.resume()
                resumed = True
            elif resumed and terminal.takes_keys:
                end(terminal)
                resumed = False
            if self.took_s > min(within_s + self.lacked_s, _AT_MOST * within_s):
                return None
        return code


def _lacked_s() -> float:
    """Return the seconds of CPU pressure since boot (PSI); 0 on a kernel without PSI."""
    try:
        some = re.search(r"some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    except OSError:
        return 0.0
    return int(some[1]) / 1e6 if some else 0.0
