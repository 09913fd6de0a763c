"""Health: how late and how long the lab's sweeps are, and how much CPU time is in use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping

from ccplay.model.events import Health


class Timekeeper:
    """Collects the lateness and length of sweeps, and summarises each second as ``Health``."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """Start empty; ``processes`` returns the PIDs whose CPU time counts as the lab's own."""
        self._processes = processes
        self._late_us: list[float] = []
        self._took_us: list[float] = []
        self._missed = 0
        self._since: float | None = None
        self._cpu, self._times = 0.0, dict[str, float]()

    @property
    def begun(self) -> bool:
        """Whether CPU time is being counted."""
        return self._since is not None

    def begin(self, t: float) -> None:
        """Count CPU time from ``t`` on.

        psutil is imported only now, so that the first sweep need not wait for it.
        """
        self._since, self._cpu, self._times = t, self._cpu_seconds(), _machine_seconds()

    def sweep(self, late_s: float, took_s: float) -> None:
        """Record one sweep: its lateness and its length, in seconds."""
        self._late_us.append(late_s * 1e6)
        self._took_us.append(took_s * 1e6)

    def miss(self, count: int) -> None:
        """Record sweeps that were skipped."""
        self._missed += count

    def report(
        self, t: float, delay_late_us: tuple[float, float] | None, events_dropped: int
    ) -> Health:
        """Summarise everything since the last report, and start over.

        ``delay_late_us`` is the median and 99th percentile of the lateness of released packets.
        """
        cpu, times = self._cpu_seconds(), _machine_seconds()
        elapsed = t - self._since if self._since is not None else 0.0
        spent = {name: seconds - self._times.get(name, 0.0) for name, seconds in times.items()}
        total = sum(spent.values())
        health = Health(
            t=t,
            ticks=len(self._late_us),
            missed=self._missed,
            late_p50_us=_percentile(self._late_us, 50),
            late_p99_us=_percentile(self._late_us, 99),
            sweep_p50_us=_percentile(self._took_us, 50),
            lab_cpu=max(0.0, (cpu - self._cpu) / elapsed) if elapsed > 0 else 0.0,
            host_cpu=busy_share(spent, os.getpriority(os.PRIO_PROCESS, 0)),
            steal=spent.get("steal", 0.0) / total if total > 0 else 0.0,
            delay_late_p50_us=delay_late_us[0] if delay_late_us else None,
            delay_late_p99_us=delay_late_us[1] if delay_late_us else None,
            events_dropped=events_dropped,
        )
        self._late_us, self._took_us, self._missed = [], [], 0
        self._cpu, self._times, self._since = cpu, times, t
        return health

    def _cpu_seconds(self) -> float:
        import psutil  # noqa: PLC0415 - see begin

        seconds = 0.0
        for pid in self._processes():
            with contextlib.suppress(psutil.Error):
                used = psutil.Process(pid).cpu_times()
                seconds += used.user + used.system
        return seconds


def busy_share(spent: Mapping[str, float], nice: int) -> float:
    """Return the share of all cores, 0 to 1, in use by processes of this priority or a higher one.

    ``spent`` is CPU time in seconds by its name in proc_stat(5). Programs of a lower priority do
    not count, because the scheduler prefers the lab to them.
    """
    free = ("idle", "iowait") if nice > 0 else ("idle", "iowait", "nice")
    total = sum(spent.values())
    if total <= 0:
        return 0.0
    return min(1.0, max(0.0, 1 - sum(spent.get(name, 0.0) for name in free) / total))


def _machine_seconds() -> dict[str, float]:
    """Return the CPU time of all cores in seconds by name; ``user`` includes that of guests."""
    import psutil  # noqa: PLC0415 - see Timekeeper.begin

    times = psutil.cpu_times()._asdict()
    return {name: times[name] for name in times if not name.startswith("guest")}


def _percentile(values: list[float], percent: int) -> float:
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
