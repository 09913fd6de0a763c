"""The drain meter: only time in which packets surely waited counts."""

import pytest

from ccplay.lab.qdisc_counters import DrainMeter
from ccplay.model.samples import QdiscSamples
from tests.events import qdisc

RATE = 8_000_000
STEP = 0.02


def samples(backlog: int, size: int, kind: str = "pfifo") -> QdiscSamples:
    counts = {"qlen": backlog // 1514, "bytes": size, "packets": size // 1514}
    return qdisc("a->b", kind=kind, backlog=backlog, ecn_marks=None, **counts)


def measure(
    factor: float,
    *,
    seconds: float = 2.0,
    backlog: int = 100_000,
    took_s: float = 0.0002,
    kind: str = "pfifo",
) -> float | None:
    """Drain a queue at ``factor`` times its rate, read every 20 ms."""
    meter = DrainMeter()
    for step in range(round(seconds / STEP)):
        t = step * STEP
        size = round(t * RATE / 8 * factor)
        meter.add_sweep(t, took_s, samples(backlog, size, kind), {"a->b": RATE})
    return meter.ratio()


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.05])
def test_a_busy_link_reports_what_share_of_its_rate_it_carried(factor: float) -> None:
    assert measure(factor) == pytest.approx(factor, abs=0.001)


def test_a_queue_that_may_have_run_empty_reports_nothing() -> None:
    """20 kB drain between two sweeps: with less in front of them nobody knows."""
    assert measure(0.9, backlog=20_000) is None


def test_too_short_too_late_unlimited_or_otherwise_shaped_reports_nothing() -> None:
    assert measure(0.9, seconds=0.4) is None
    assert measure(0.9, took_s=0.01) is None
    assert measure(0.9, kind="tbf") is None
    meter = DrainMeter()
    for step in range(100):
        meter.add_sweep(step * STEP, 0.0, samples(10**6, step), {"a->b": 0})
    assert meter.ratio() is None


def test_a_changed_rate_starts_over_and_a_ratio_is_reported_once() -> None:
    meter = DrainMeter()
    size = 0.0
    for step in range(100):
        rate = RATE if step < 40 else 2 * RATE
        meter.add_sweep(step * STEP, 0.0, samples(10**6, round(size)), {"a->b": rate})
        size += rate / 8 * STEP
    assert meter.ratio() == pytest.approx(1.0, abs=0.03)
    assert meter.ratio() is None
