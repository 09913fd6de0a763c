"""Video calls: the control of their rate against RFC 8698, freezes, and what a state keeps."""

import math

import pytest

from ccplay.traffic import results
from ccplay.traffic.call import Call, CallEnded, CallSample, CallStarted
from ccplay.traffic.call.video import (
    _HEADER,
    FRAME_S,
    QTH,
    RMIN,
    XREF,
    ReferenceRate,
    VideoReceiver,
)
from tests.events import folded, monitored

MOST = 1_500_000.0


def packet(number: int, frame: int, sent_s: float, place: int = 0, packets: int = 1) -> bytes:
    return _HEADER.pack(number, frame, place, packets, round(sent_s * 1e9)).ljust(1000, b"\0")


def filled(delay_s: float, *, skip: int = 0, until: int = 50) -> VideoReceiver:
    """Return a receiver of one packet each 40 ms, the first without and the others with a delay."""
    seen = VideoReceiver()
    for number in range(until):
        if not skip or not number or number % skip:
            late = delay_s if number else 0.0
            sent = 10 + number * FRAME_S
            seen.arrive(sent + late, packet(number, number, sent))
    return seen


def test_an_empty_path_ramps_up_by_at_most_half_of_what_arrives() -> None:
    seen = filled(0.0)
    signal, mode, received = seen.report(10 + 49 * FRAME_S)
    assert mode == 0
    assert signal == pytest.approx(0.0, abs=1e-6)
    # 13 packets of 1000 bytes within the window of 0.5 s.
    assert received == pytest.approx(13 * 8000 / 0.5)
    rate = ReferenceRate(MOST)
    rate.learn(0.0, ramps=True, received=400_000, rtt=0.03)
    # QBOUND / (rtt + DELTA + DFILT) = 0.05 / 0.25.
    assert rate.now == pytest.approx(1.2 * 400_000)


def test_the_rate_is_in_equilibrium_where_the_signal_is_that_of_its_share() -> None:
    """Gradual update: at x = XREF * RMAX / r, and unchanged, the rate stays."""
    rate = ReferenceRate(MOST)
    rate.now, rate._signal = 500_000, XREF * 3
    rate.learn(XREF * 3, ramps=False, received=0, rtt=0.05)
    assert rate.now == pytest.approx(500_000)
    rate.learn(XREF * 3 + 0.010, ramps=False, received=0, rtt=0.05)
    # KAPPA * DELTA / TAU * 0.01 / TAU = 0.002, then KAPPA * ETA * 0.01 / TAU = 0.02.
    assert rate.now == pytest.approx(500_000 * (1 - 0.002) * (1 - 0.02))


@pytest.mark.parametrize("signal", [0.0, 10.0])
def test_the_rate_stays_between_its_bounds(signal: float) -> None:
    rate = ReferenceRate(MOST)
    for _ in range(1000):
        rate.learn(signal, ramps=not signal, received=rate.now, rtt=0.05)
    assert rate.now == (RMIN if signal else MOST)


def test_delay_counts_whole_until_losses_show_that_others_fill_the_queue() -> None:
    now = 10 + 49 * FRAME_S + 0.2
    signal, mode, _ = filled(0.2).report(now)
    assert mode == 1
    assert signal == pytest.approx(0.2, abs=1e-6)
    warped, _, _ = filled(0.2, skip=10).report(now)
    least = QTH * math.exp(-0.5 * (0.2 - QTH) / QTH)
    # And 10 % lost, once smoothed by ALPHA: about 1 %.
    assert least < warped < least + 0.015


def test_a_late_or_lost_frame_freezes_the_picture() -> None:
    seen = VideoReceiver()
    moments = [0.0, 0.04, 0.08, 0.269, 0.46]
    for number, t in enumerate(moments):
        seen.arrive(20 + t, packet(number, number, 20 + t))
    # 189 ms are none, 191 ms are one.
    assert seen.freezes == 1
    assert seen.frozen_us == pytest.approx(191_000, abs=2)
    # Half a frame is not shown.
    seen.arrive(20.5, packet(5, 5, 20.5, packets=2))
    seen.arrive(20.7, packet(7, 6, 20.7))
    assert seen.freezes == 2


def counted(t: int) -> CallSample:
    seen = monitored(100 * t, 90 * t, 20_000.0, delay_min_us=10_000.0, delay_max_us=50_000.0)
    return CallSample(t=t, call="v1", monitored=seen, freezes=2, frozen_us=500_000, rate_bps=1)


EVENTS = (
    CallStarted(t=1.0, call="v1", src="h1", dst="h2", rate_bps=1_000_000),
    *map(counted, range(2, 5)),
    CallEnded(t=5.0, call="v1", sent=400, duration_s=4.0),
)


def test_a_state_keeps_what_arrives_and_its_result() -> None:
    state = folded(*EVENTS[:-1])
    call = state.of(Call)["v1"]
    assert call.series["monitor_received_bps"].last == pytest.approx(720_000)
    assert call.lines(4.5)[0] == "call 720 kbit/s, 10 % lost, 20 ms, 2 freezes"
    state.apply(EVENTS[-1])
    (result,) = results(state)["calls"]
    assert (result.rate_bps, result.loss, result.freezes) == (720_000, 0.1, 2)
    assert (result.frozen_s, result.delay_mean_ms, result.path) == (0.5, 20.0, "h1 → h2")
