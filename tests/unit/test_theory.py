"""Epochs begin where cwnd was reduced, and the windows of Reno and CUBIC are those of the RFCs."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccplay.analysis.theory import ALPHA_CUBIC, Epoch, Theory
from ccplay.model.series import Series, Timeline
from ccplay.traffic.connections import Flow

OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)

STEP_S = 0.02
RTT_S = 0.1

Row = tuple[int, float, float | None]
"""A sweep of a flow: congestion state, cwnd and ssthresh in segments."""


def flow_of(rows: Iterable[Row | None], cc: str = "cubic", rtt_s: float = RTT_S) -> Flow:
    """Return a flow with a row of values every ``STEP_S``."""
    timeline = Timeline()
    names = ("ca_state", "cwnd", "ssthresh", "srtt_us")
    series = {name: Series(timeline) for name in names}
    flow = Flow(name="1", src="h1", dst="h2", cc=cc, started=0.0, series=series)
    flow.cc_changes.append((0.0, cc))
    add(flow, rows, rtt_s)
    return flow


def add(flow: Flow, rows: Iterable[Row | None], rtt_s: float = RTT_S) -> None:
    """Append rows of values to a flow."""
    timeline = flow.series["cwnd"].timeline
    for row in rows:
        tick = timeline.append(timeline.end * STEP_S)
        if row is not None:
            for name, value in zip(flow.series, (*row, rtt_s * 1e6), strict=True):
                flow.series[name].put(tick, value)


def theory_of(flow: Flow) -> Theory:
    theory = Theory(flow)
    theory.follow()
    return theory


def tooth(peak: int, floor: int, state: int = RECOVERY, seconds: float = 1.0) -> list[Row]:
    """Return congestion avoidance at ``peak``, a reduction, and ``floor``, for ``seconds`` each."""
    sweeps = round(seconds / STEP_S)
    return [
        *[(OPEN, peak, 50.0)] * sweeps,
        (state, peak, floor),
        *[(state, (peak + floor) // 2, floor)] * 4,
        *[(OPEN, floor, floor)] * sweeps,
    ]


EPOCH = Epoch(tick=0, start=0.0, cc="cubic", cwnd_prior=100.0, w_max=100.0, cwnd_epoch=70.0)

windows = st.floats(min_value=2, max_value=1e5)


@given(windows, windows)
def test_the_curve_starts_at_cwnd_and_is_at_w_max_after_k(w_max: float, cwnd: float) -> None:
    """W_cubic(0) is cwnd and W_cubic(K) is W_max: RFC 9438, figures 1 and 2."""
    epoch = Epoch(0, 0.0, "cubic", w_max, max(w_max, cwnd), cwnd)
    assert epoch.w_cubic(0.0) == pytest.approx(cwnd)
    assert epoch.w_cubic(epoch.k) == pytest.approx(epoch.w_max)


def test_k_by_hand() -> None:
    """K after a reduction from 100 to 70 is the cube root of 30 / 0.4 = 75."""
    assert EPOCH.k == pytest.approx(4.217, abs=0.001)


def test_the_curve_is_concave_then_convex() -> None:
    steps = [EPOCH.w_cubic(t + 1) - EPOCH.w_cubic(t) for t in range(9)]
    assert steps[0] > steps[1] > steps[2] > steps[3]
    assert steps[5] < steps[6] < steps[7] < steps[8]


def test_where_renos_estimate_is_more_cubic_follows_it() -> None:
    """CUBIC follows Reno's estimate if that is greater, as at short RTTs: RFC 9438, section 4.3."""
    assert EPOCH.cubic(2.0, rounds=1) == EPOCH.w_cubic(2.0)
    assert EPOCH.cubic(2.0, rounds=80) == pytest.approx(70 + 80 * 9 / 17)
    assert pytest.approx(0.529, abs=0.001) == ALPHA_CUBIC


def test_reno_has_half_and_a_segment_more_each_rtt() -> None:
    """Reno halves cwnd and adds one segment per RTT: RFC 5681, section 3.1."""
    assert [EPOCH.reno(rounds) for rounds in (0, 1, 10)] == [50, 51, 60]


@pytest.mark.parametrize("state", [CWR, RECOVERY])
def test_an_epoch_begins_when_cwnd_has_been_reduced(state: int) -> None:
    theory = theory_of(flow_of(tooth(100, 70, state)))
    (epoch,) = theory.epochs
    assert (epoch.tick, epoch.cwnd_prior, epoch.w_max, epoch.cwnd_epoch) == (55, 100, 100, 70)
    assert epoch.start == pytest.approx(55 * STEP_S)
    assert theory.cubic.at(54) is None
    assert theory.cubic.at(55) == pytest.approx(70)
    assert theory.reno.at(55) == pytest.approx(50)


def test_reno_grows_by_the_rtt_that_was_measured() -> None:
    """Reno grows by one segment per measured RTT: in 0.98 s by 9.8 at 100 ms, 4.9 at 200 ms."""
    for rtt_s in (0.1, 0.2):
        theory = theory_of(flow_of(tooth(100, 50), "reno", rtt_s))
        assert theory.reno.last == pytest.approx(50 + 0.98 / rtt_s)


def test_the_first_sweep_of_recovery_may_have_the_peak() -> None:
    """The first sweep of Recovery has the peak if cwnd grew before a loss between two sweeps."""
    rows: list[Row] = [(OPEN, 99, 50), (RECOVERY, 101, 70), (RECOVERY, 70, 70), (OPEN, 70, 70)]
    assert theory_of(flow_of(rows)).epochs[0].cwnd_prior == 101


def test_fast_convergence_lowers_w_max_where_it_is_below_the_one_before() -> None:
    """W_max is 0.85 of cwnd if cwnd is below the W_max before: RFC 9438, section 4.7.

    The third peak, 80, is compared with 0.85 of 90.
    """
    rows = [*tooth(100, 70), *tooth(90, 63), *tooth(80, 56)]
    epochs = theory_of(flow_of(rows)).epochs
    assert [each.w_max for each in epochs] == pytest.approx([100, 76.5, 80])
    assert [each.cwnd_prior for each in epochs] == [100, 90, 80]


def test_a_second_reduction_within_recovery_starts_from_ssthresh() -> None:
    """A second reduction starts from ssthresh: Recovery ended and began between two sweeps."""
    rows: list[Row] = [(OPEN, 100, 50), (RECOVERY, 80, 70), (RECOVERY, 60, 49), (OPEN, 49, 49)]
    (epoch,) = theory_of(flow_of(rows)).epochs
    assert epoch.cwnd_prior == 70
    assert epoch.w_max == pytest.approx(59.5)


def test_after_a_timeout_the_epoch_waits_for_slow_start_and_k_is_0() -> None:
    """After a timeout the epoch begins after slow start, with K = 0: RFC 9438, section 4.8."""
    rows: list[Row] = [
        (OPEN, 100, 50),
        (LOSS, 1, 70),
        *[(OPEN, cwnd, 70) for cwnd in (2, 4, 8, 16, 32, 64)],
        *[(OPEN, 71, 70)] * 10,
    ]
    theory = theory_of(flow_of(rows))
    (epoch,) = theory.epochs
    assert epoch.tick == 8
    assert (epoch.k, epoch.w_max, epoch.cwnd_prior) == (0, 71, 100)
    assert theory.cubic.at(7) is None


def test_a_reduction_that_was_undone_is_none() -> None:
    rows: list[Row] = [(OPEN, 100, 50), (RECOVERY, 80, 70), *[(OPEN, 100, 50)] * 10]
    theory = theory_of(flow_of(rows))
    assert theory.epochs == []
    assert theory.cubic.last is None


def test_disorder_ends_no_epoch() -> None:
    """Disorder ends no epoch, since it reduces nothing."""
    rows = [*tooth(100, 70), *[(DISORDER, 70, 70)] * 5, *[(OPEN, 70, 70)] * 5]
    theory = theory_of(flow_of(rows))
    assert len(theory.epochs) == 1
    assert all(theory.reno.at(tick) for tick in range(55, theory.reno.end))


def test_a_recovery_that_no_sweep_saw_is_seen_by_its_cut() -> None:
    """A fall of cwnd and ssthresh reveals a Recovery between sweeps, as on a path of few ms."""
    rows: list[Row] = [*[(OPEN, 40, 20)] * 5, *[(OPEN, 28, 28)] * 5]
    (epoch,) = theory_of(flow_of(rows)).epochs
    assert (epoch.tick, epoch.cwnd_prior, epoch.cwnd_epoch) == (5, 40, 28)


def test_another_algorithm_knows_nothing_of_the_one_before() -> None:
    """A switch of algorithm ends the epoch and discards W_max: there is no fast convergence."""
    flow = flow_of(tooth(100, 50), "reno")
    switched = flow.series["cwnd"].end
    flow.cc_changes.append((switched * STEP_S, "cubic"))
    add(flow, tooth(90, 63))
    theory = theory_of(flow)
    assert theory.cubic.at(switched) is None
    assert [(each.cc, each.w_max) for each in theory.epochs] == [("reno", 100), ("cubic", 90)]


def test_bbr_has_no_epochs() -> None:
    assert theory_of(flow_of(tooth(100, 70), "bbr")).epochs == []


def test_nothing_is_reported_of_a_flow_without_a_reduction() -> None:
    theory = theory_of(flow_of([(OPEN, 10 + at, None) for at in range(50)]))
    assert theory.epochs == []
    assert theory.reno.last is None
    assert theory_of(flow_of([])).epochs == []


@settings(deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=40), max_size=12))
def test_followed_in_pieces_or_at_once_it_is_the_same(pieces: list[int]) -> None:
    """Theory is the same whether sweeps come a few at a time (live) or all at once (recorded)."""
    rows = [*tooth(100, 70), None, None, *tooth(90, 63), *tooth(80, 40, LOSS), *tooth(30, 21)]
    whole = theory_of(flow_of(rows))
    flow = flow_of([])
    theory = Theory(flow)
    at = 0
    for piece in [*pieces, len(rows)]:
        add(flow, rows[at : at + piece])
        at += piece
        theory.follow()
    assert theory.epochs == whole.epochs
    ticks = range(len(rows))
    for one, other in ((theory.cubic, whole.cubic), (theory.reno, whole.reno)):
        assert list(map(one.at, ticks)) == list(map(other.at, ticks))


def test_what_was_forgotten_is_not_asked_for() -> None:
    """Theory that is requested late reads no values that the series have forgotten."""
    flow = flow_of([])
    flow.series["cwnd"].timeline.limit = 60
    add(flow, [*tooth(100, 70), *tooth(90, 63)])
    theory = theory_of(flow)
    assert [each.cwnd_prior for each in theory.epochs] == [90]
    assert theory.cubic.last is not None
