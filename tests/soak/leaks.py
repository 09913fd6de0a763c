"""What one session leaves behind: processes, namespaces, interfaces, mounts, BPF programs."""

from __future__ import annotations

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
"""The kernel needs some seconds to take a BPF algorithm out that sockets have used."""


class Traces:
    """What a session has on this machine, seen before it ends, looked for afterwards."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._before = Host.now()
        self._theirs: list[psutil.Process] = []
        self._programs: set[int] = set()

    def look(self) -> None:
        """Note what is there now: once it is dying, it can't be told from others' any more."""
        self._theirs = inhabitants(self._marker)
        self._programs = programs_held_for(self._marker)

    def left(self) -> list[str]:
        """Return what has not gone; wait for it for a while."""
        deadline = time.monotonic() + WITHIN_S
        while (left := self._now()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left

    def end(self) -> None:
        """Kill what is left: the next session shall not stumble over it."""
        for each in [*marked(self._marker), *filter(lives, self._theirs)]:
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
