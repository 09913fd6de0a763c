"""Health: how well the lab keeps time, and what the machine takes away from it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ccplay.model.events import Health

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_SHARES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of the machine's time, in the order of proc(5), stat. Guests' follow, and are in user already."""


class Timekeeper:
    """Collects how late and how long sweeps were, and sums a second up as ``Health``."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """Begin; ``processes`` gives the pids that count as the lab's own."""
        self._processes = processes
        self._late_us: list[float] = []
        self._took_us: list[float] = []
        self._missed = 0
        self._cpu = self._cpu_seconds()
        self._times = _machine_ticks()
        self._since: float | None = None

    def sweep(self, late_s: float, took_s: float) -> None:
        """Note one sweep: how late it began and how long it took, in seconds."""
        self._late_us.append(late_s * 1e6)
        self._took_us.append(took_s * 1e6)

    def miss(self, count: int) -> None:
        """Note sweeps that fell out."""
        self._missed += count

    def report(
        self, t: float, delay_late_us: tuple[float, float] | None, events_dropped: int
    ) -> Health:
        """Sum up all since the last report and begin anew."""
        cpu, times = self._cpu_seconds(), _machine_ticks()
        elapsed = t - self._since if self._since is not None else t
        spent = [after - before for after, before in zip(times, self._times, strict=True)]
        shares, total = dict(zip(_SHARES, spent, strict=True)), sum(spent)
        idle = shares["idle"] + shares["iowait"]
        health = Health(
            t=t,
            ticks=len(self._late_us),
            missed=self._missed,
            late_p50_us=_percentile(self._late_us, 50),
            late_p99_us=_percentile(self._late_us, 99),
            sweep_p50_us=_percentile(self._took_us, 50),
            lab_cpu=max(0.0, (cpu - self._cpu) / elapsed) if elapsed > 0 else 0.0,
            host_cpu=min(1.0, max(0.0, 1 - idle / total)) if total > 0 else 0.0,
            steal=shares["steal"] / total if total > 0 else 0.0,
            delay_late_p50_us=delay_late_us[0] if delay_late_us else None,
            delay_late_p99_us=delay_late_us[1] if delay_late_us else None,
            events_dropped=events_dropped,
        )
        self._late_us, self._took_us, self._missed = [], [], 0
        self._cpu, self._times, self._since = cpu, times, t
        return health

    def _cpu_seconds(self) -> float:
        seconds = 0.0
        for pid in self._processes():
            with contextlib.suppress(OSError):
                seconds += _process_seconds(pid)
        return seconds


def _machine_ticks() -> list[int]:
    """Return what all CPUs have spent in each way."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        words = file.readline().split()
    return [int(each) for each in words[1 : 1 + len(_SHARES)]]


def _process_seconds(pid: int) -> float:
    """Return the CPU seconds of a process: ``utime`` and ``stime`` of proc(5), pid/stat."""
    # The name before it may have spaces and brackets.
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS_PER_SECOND


def _percentile(values: list[float], percent: int) -> float:
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
