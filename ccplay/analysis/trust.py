"""Judges whether a run can be trusted: the timing of the lab, of steps, rates and delays."""

from __future__ import annotations

import math

import msgspec

from ccplay.analysis.accuracy import delay_off
from ccplay.analysis.framing import above_framing
from ccplay.analysis.punctual import late_steps, lateness_text
from ccplay.model.events import Health
from ccplay.model.values import MOST_SEGMENTS
from ccplay.state.lab_state import Flow, LabState

MOST_MISSED = 0.01
"""Largest acceptable share of missed sweeps; percentiles would omit the busiest moments."""
MOST_STEAL = 0.05
"""Largest acceptable mean share of stolen CPU time; at 17 % goodput fell by a tenth of the rate."""
MOST_HOST_CPU = 0.95
"""Largest acceptable mean share of all cores in use; beyond it packets wait for a core."""
MOST_DELAY_LATE_US = 5_000.0
"""Largest acceptable p99 in µs of the delay line's lateness in the median second; beyond it the RTT
is the machine's."""
MOST_RATE_OFF = 0.03
"""Largest acceptable error of the rate in the median second; HTB itself is within 1 %."""


class HealthResult(msgspec.Struct, frozen=True, kw_only=True):
    """The lab's own timing over a case. Means and worst values are over its seconds."""

    ticks: int
    """Number of sweeps made."""
    missed: int
    """Number of sweeps that were skipped."""
    late_p50_us: float | None
    """Microseconds by which sweeps began late: the median of the median second."""
    late_p99_us: float | None
    """Microseconds by which sweeps began late: the p99 of the worst second."""
    sweep_p50_us: float | None
    """Duration of sweeps in µs, median."""
    lab_cpu: float | None
    """Cores used by the lab, mean."""
    host_cpu: float | None
    """Share of all cores in use, mean."""
    steal: float | None
    """Share of all cores taken by the hypervisor, mean."""
    steal_max: float | None
    delay_late_p50_us: float | None
    """Microseconds by which packets left the delay line late: the median; null if netem delays."""
    delay_late_p99_us: float | None
    """Microseconds by which packets left the delay line late: the p99 of the median second."""
    rate_accuracy: float | None = None
    """Traffic that left a busy link over what its rate allows, in the median second; null if no
    link was busy for long."""
    events_dropped: int
    impossible_windows: int = 0
    """Flows with a cwnd or ssthresh that no path can hold."""
    late_steps: int = 0
    """Number of timeline steps that took effect more than ``MOST_LATE_S`` after their moment."""
    trustworthy: bool
    reasons: list[str]
    """Reasons not to trust the run."""


def judge(state: LabState) -> HealthResult:
    """Summarise every ``Health`` of a session, with the reasons not to trust it."""
    healths = state.healths
    ticks = sum(each.ticks for each in healths)
    missed = sum(each.missed for each in healths)
    steal = [each.steal for each in healths]
    delay_p50 = [e.delay_late_p50_us for e in healths if e.delay_late_p50_us is not None]
    delay_p99 = [e.delay_late_p99_us for e in healths if e.delay_late_p99_us is not None]
    dropped = max((each.events_dropped for each in healths), default=0)
    rates = [each.rate_accuracy for each in healths if each.rate_accuracy is not None]
    accuracy = _middle(rates)
    reasons = _reasons(healths, ticks, missed, dropped, _middle(delay_p99))
    if accuracy is not None and abs(accuracy - 1) > MOST_RATE_OFF:
        reasons.append(f"a busy link carried {accuracy:.0%} of its rate")
    if (off := delay_off(state)) is not None:
        reasons.append(off)
    if (late := lateness_text(state)) is not None:
        reasons.append(late)
    reasons += state.spoiled
    if (above := above_framing(state)) is not None:
        reasons.append(above)
    windows = impossible_windows(state)
    reasons += [
        f"flow {name} had a window of {most:,} segments: its algorithm was skipped, or is wrong"
        for name, most in windows.items()
    ]
    return HealthResult(
        ticks=ticks,
        missed=missed,
        late_p50_us=_middle([each.late_p50_us for each in healths]),
        late_p99_us=max((each.late_p99_us for each in healths), default=None),
        sweep_p50_us=_middle([each.sweep_p50_us for each in healths]),
        lab_cpu=_mean([each.lab_cpu for each in healths]),
        host_cpu=_mean([each.host_cpu for each in healths]),
        steal=_mean(steal),
        steal_max=max(steal, default=None),
        delay_late_p50_us=_middle(delay_p50),
        delay_late_p99_us=_middle(delay_p99),
        rate_accuracy=accuracy,
        events_dropped=dropped,
        impossible_windows=len(windows),
        late_steps=len(late_steps(state)),
        trustworthy=not reasons,
        reasons=reasons,
    )


def was_judged(health: HealthResult) -> bool:
    """Return whether a lab ran long enough to report its health."""
    return health.late_p50_us is not None


def for_want_of_cpu(health: HealthResult) -> bool:
    """Return whether fewer parallel labs could have helped; they can't against a hypervisor."""
    return (
        health.missed > MOST_MISSED * (health.ticks + health.missed)
        or (health.host_cpu or 0) > MOST_HOST_CPU
        or (health.delay_late_p99_us or 0) > MOST_DELAY_LATE_US
        or (health.rate_accuracy or 1) < 1 - MOST_RATE_OFF
        or health.events_dropped > 0
    )


def _reasons(
    healths: list[Health], ticks: int, missed: int, dropped: int, delay_late: float | None
) -> list[str]:
    if not healths:
        return ["ended before the lab had checked its own health (1 s)"]
    reasons = []
    if missed > MOST_MISSED * (ticks + missed):
        reasons.append(f"{missed} of {ticks + missed} samples were missed")
    if (steal := _mean([each.steal for each in healths]) or 0) > MOST_STEAL:
        reasons.append(f"the hypervisor took {steal:.0%} of the time")
    if (busy := _mean([each.host_cpu for each in healths]) or 0) > MOST_HOST_CPU:
        reasons.append(f"the machine was {busy:.0%} busy")
    if delay_late is not None and delay_late > MOST_DELAY_LATE_US:
        reasons.append(f"the delay line was {delay_late / 1000:.1f} ms late (p99)")
    if dropped:
        reasons.append(f"{dropped} samples were lost on a slow pipe")
    return reasons


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _middle(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None


def credible(field: str) -> float:
    """Return the greatest possible value of a flow's series."""
    return MOST_SEGMENTS if field in ("cwnd", "ssthresh") else math.inf


def impossible_windows(state: LabState) -> dict[str, int]:
    """Return the greatest impossible cwnd or ssthresh of each flow.

    Some kernels skip a BPF program when an interrupt finds process 1 running. The result of a
    program such as ``ssthresh`` is then whatever the register contained.
    """
    found = {name: _greatest(flow) for name, flow in state.flows.items()}
    return {name: most for name, most in found.items() if most > MOST_SEGMENTS}


def _greatest(flow: Flow) -> int:
    both = (flow.series["cwnd"], flow.series["ssthresh"])
    extremes = (each.extremes(each.first, each.end) for each in both)
    return max((int(each[1]) for each in extremes if each is not None), default=0)
