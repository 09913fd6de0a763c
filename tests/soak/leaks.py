"""Finds what a session leaves behind: processes, interfaces, mounts, rules, BPF programs."""

import contextlib
import time

import psutil

from ccplay.assets import find_tool
from tests.lab.test_leaks import (
    Host,
    inhabitants,
    lives,
    loaded_programs,
    marked,
    programs_held_for,
)

WITHIN_S = 20.0
"""Seconds to wait for a session's traces to go; the kernel needs some to remove a BPF algorithm
that sockets have used."""


class Traces:
    """What a session has on this machine, noted before it ends and searched for afterwards."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._before = Host.now()
        self._theirs: list[psutil.Process] = []
        self._programs: set[int] = set()

    def look(self) -> None:
        """Note what else the session has now; it can't be recognised once the session is ending."""
        self._theirs += [each for each in inhabitants(self._marker) if each not in self._theirs]
        self._programs |= programs_held_for(self._marker)

    def left(self) -> list[str]:
        """Return what is still there, after waiting up to ``WITHIN_S`` seconds for it to go."""
        deadline = time.monotonic() + WITHIN_S
        while (left := self._now()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def end(self) -> None:
        """Kill the processes that are left, so that they do not disturb the next session."""
        for each in [*marked(self._marker), *filter(lives, self._theirs)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()

    def _now(self) -> list[str]:
        left = [f"process {each.pid}" for each in marked(self._marker)]
        left += [f"inhabitant {each.pid}" for each in self._theirs if lives(each)]
        if left:
            return left
        now = Host.now()
        left += [f"interface {name}" for name in now.links - self._before.links]
        left += [f"mount {line}" for line in now.mounts - self._before.mounts]
        left += ["iptables rules"] if now.rules != self._before.rules else []
        if self._programs and find_tool("bpftool"):
            left += [f"BPF program {each}" for each in self._programs & loaded_programs()]
        return left
