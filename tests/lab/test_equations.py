"""The code of each algorithm, compiled for this machine, against the equation in its header.

Here no packet is sent: any window can be asked for, and numbers are exact but for whole segments.
What comes out of it on a real path is the subject of test_algorithms.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from ccplay.assets import ALGORITHMS, algorithms
from ccplay.bpf.support import lack
from tests.lab.native import CWR, LOSS, SHIM, Connection, compiled

_missing = lack()
pytestmark = [
    pytest.mark.skipif(_missing is not None, reason=f"{_missing}"),
    pytest.mark.xdist_group("equations"),
]

Start: TypeAlias = Callable[..., Connection]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Return a function that starts a connection with an algorithm, which is compiled once."""
    folder = tmp_path_factory.mktemp("native")
    libraries: dict[str, ctypes.CDLL] = {}

    def start(name: str, cwnd: int, base_us: int = 100_000) -> Connection:
        if name not in libraries:
            source = ALGORITHMS / f"{name}.bpf.c"
            libraries[name] = compiled(source, ALGORITHMS, folder)
        return Connection(libraries[name], cwnd, base_us)

    return start


GROWTH = {
    # RFC 5681.
    "reno": dict.fromkeys((20, 100, 1000, 10_000), 1.0),
    "template": dict.fromkeys((20, 100, 1000, 10_000), 1.0),
    # RFC 6356: a connection without subflows is a TCP connection.
    "lia": dict.fromkeys((20, 100, 1000, 10_000), 1.0),
    # RFC 8257, section 3.4: as any other TCP.
    "dctcp": dict.fromkeys((20, 1000, 10_000), 1.0),
    # At an RTT above 25 ms as Reno.
    "prague": dict.fromkeys((20, 1000, 10_000), 1.0),
    "westwood": dict.fromkeys((20, 1000, 10_000), 1.0),
    "westwood-plus": dict.fromkeys((20, 1000, 10_000), 1.0),
    # Nothing waits in the queue: below alpha, and below beta.
    "vegas": dict.fromkeys((100, 1000, 10_000), 1.0),
    "veno": dict.fromkeys((20, 1000, 10_000), 1.0),
    # No delay at all: GAIN.
    "ledbat": dict.fromkeys((20, 1000, 10_000), 1.0),
    # As Reno, as long as there has been neither loss nor delay nor a second without loss.
    "bic": dict.fromkeys((20, 1000, 10_000), 1.0),
    "illinois": dict.fromkeys((20, 1000, 10_000), 1.0),
    "htcp": dict.fromkeys((20, 1000, 10_000), 1.0),
    # rho = 100 ms / 25 ms, squared.
    "hybla": dict.fromkeys((100, 1000, 10_000), 16.0),
    # A hundredth of the window, and Reno's below 100.
    "scalable": {20: 1.0, 1000: 10.0, 10_000: 100.0},
    "yeah": {20: 1.0, 1000: 10.0, 10_000: 100.0},
    # RFC 3649, table 12 (appendix B).
    "highspeed": {38: 1.0, 118: 2.0, 1058: 8.0, 10_661: 30.0},
    # Where no W_max is known: 5 %, as in Linux.
    "cubic": {100: 5.0, 1000: 50.0, 10_000: 500.0},
}
"""Growth of cwnd in segments per RTT of 100 ms, by name and window."""


@pytest.mark.parametrize("acked", [1, 2, 16])
@pytest.mark.parametrize("name", sorted(GROWTH))
def test_growth_is_the_same_however_much_an_ack_acknowledges(
    start: Start, name: str, acked: int
) -> None:
    """At any window, because fractions of a segment must not be lost."""
    for window, growth in GROWTH[name].items():
        connection = start(name, window)
        gained = [connection.round_trip(acked=acked) for _ in range(5)]
        # A segment is there or is not yet; 5 RTTs of growth make cwnd larger by a quarter at most.
        assert sum(gained) / 5 == pytest.approx(growth, rel=0.15, abs=0.3), (window, gained)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("reno", 0.5),
        ("template", 0.5),
        ("lia", 0.5),
        ("vegas", 0.5),
        ("hybla", 0.5),
        ("ledbat", 0.5),
        ("htcp", 0.5),  # the first time
        ("illinois", 0.5),  # no delay is known
        ("dctcp", 0.5),
        ("prague", 0.5),
        ("scalable", 0.875),
        ("yeah", 0.875),  # nothing in the queue
        ("bic", 0.8),
        ("veno", 0.8),  # nothing in the queue
        ("cubic", 0.7),
        ("highspeed", 0.67),  # at 1058: b = 0.33
    ],
)
def test_what_a_loss_leaves(start: Start, name: str, kept: float) -> None:
    connection = start(name, 1058)
    connection.round_trip()
    # b and others are of 1024.
    assert connection.congestion() == pytest.approx(kept, abs=0.006)


@pytest.mark.parametrize("name", [each.removesuffix(".bpf") for each in sorted(algorithms())])
def test_no_window_is_beyond_reason(start: Start, name: str) -> None:
    """At any RTT and window nothing overflows, and cwnd stays within the kernel's limits."""
    for window in (1, 2, 3, 100_000):
        for base in (1, 100, 10_000_000):
            connection = start(name, window, base)
            for _ in range(3):
                connection.round_trip(acked=1 + window // 100)
                # Hybla's first RTT at rho = 16: 2^16 segments for each.
                assert 1 <= connection.cwnd <= 2**17 * window
            assert connection.congestion() <= max(1, 2 / window)
            assert connection.ssthresh >= 2
            connection.congestion(LOSS)
            connection.round_trip(queue_us=2 * base)
            assert connection.cwnd >= 1


def test_cubic_is_back_at_its_maximum_after_k_seconds(start: Start) -> None:
    """RFC 9438, figures 1 and 2; and K seconds later it has gained as much again."""
    connection = start("cubic", 10_000)
    connection.congestion()
    begin, k = connection.now_s, (10_000 * 0.3 / 0.4) ** (1 / 3)
    windows = {}
    while connection.now_s < begin + 2 * k:
        connection.round_trip()
        windows[(connection.now_s - begin) / k] = connection.cwnd
    assert connection.shown["cubic_k_us"] == pytest.approx(k * 1e6, rel=0.001)
    for t, w_cubic in windows.items():
        # An RTT ahead of the curve, whose steepest is 3 * 3000 segments in K.
        assert w_cubic == pytest.approx(10_000 + 3000 * (t - 1) ** 3, abs=100)


def test_cubic_makes_room_where_loss_comes_earlier(start: Start) -> None:
    """Fast convergence: RFC 9438, section 4.7."""
    connection = start("cubic", 1000)
    connection.congestion()
    connection.congestion()
    connection.round_trip()
    assert connection.shown["cubic_w_max_segments"] == pytest.approx(700 * 1.7 / 2, abs=1)


def test_cubic_continues_where_a_loss_was_none(start: Start) -> None:
    """RFC 9438, section 4.9: W_max, K and the epoch are restored, after a timeout too."""
    for state in (CWR, LOSS):
        connection = start("cubic", 1000)
        connection.congestion()
        for _ in range(20):
            connection.round_trip()
        before, ssthresh = connection.shown, connection.ssthresh
        cwnd = connection.cwnd
        connection.congestion(state)
        connection.undo()
        connection.set(snd_ssthresh=ssthresh)
        assert connection.cwnd == cwnd
        connection.round_trip()
        for name in ("cubic_w_max_segments", "cubic_k_us"):
            assert connection.shown[name] == before[name]
        assert connection.cwnd - cwnd == pytest.approx(connection.round_trip(), abs=2)


def test_cubic_forgets_after_a_timeout(start: Start) -> None:
    """RFC 9438, section 4.8: W_max is cwnd at the start of avoidance, K is 0."""
    connection = start("cubic", 1000)
    connection.congestion(LOSS)
    assert connection.ssthresh == 700
    connection.set(snd_cwnd=700)
    connection.round_trip()
    assert connection.shown["cubic_k_us"] == 0


def test_bic_halves_the_way_an_rtt(start: Start) -> None:
    """By at most 16 segments and at least 0.2, and in reverse beyond W_max."""
    connection = start("bic", 200)
    connection.congestion()
    for _ in range(60):
        away = abs(200 - connection.cwnd)
        # What has been gained so far makes the next step smaller while the RTT lasts.
        step = connection.round_trip()
        assert 0 <= step <= 17
        assert step <= away * 0.75 + 1
    assert connection.cwnd > 400
    slow = start("bic", 1000)
    slow.congestion()
    slow.set(snd_cwnd=1000)
    assert [slow.round_trip() for _ in range(5)] == [0, 0, 0, 0, 1]


def test_bic_is_reno_up_to_14_segments(start: Start) -> None:
    connection = start("bic", 14)
    assert connection.congestion() == 0.5


@pytest.mark.parametrize(("base_us", "growth"), [(50_000, 11), (100_000, 22), (200_000, 44)])
def test_htcp_grows_by_the_clock(start: Start, base_us: int, growth: float) -> None:
    """D = 3 s: alpha = 1 + 10 * 2 + 1 = 22, times RTT_min / 100 ms; and beta is 0.5."""
    connection = start("htcp", 10_000, base_us)
    connection.congestion()
    end = connection.now_s + 3.0
    gained = 0
    while connection.now_s < end:
        gained = connection.round_trip()
    # In that RTT D has been up to 0.2 s less, and a segment is there or is not yet.
    assert gained == pytest.approx(growth, rel=0.08, abs=1)


def test_htcp_keeps_what_the_path_holds_where_throughput_is_the_same(start: Start) -> None:
    """beta = RTT_min / RTT_max = 100 / 150 ms, once two periods had the same throughput."""
    connection = start("htcp", 1000)
    kept = []
    for _ in range(3):
        connection.round_trip()
        connection.round_trip(queue_us=50_000)
        kept.append(connection.congestion())
        connection.set(snd_cwnd=1000)
    assert kept == pytest.approx([0.5, 0.67, 0.67], abs=0.02)


def test_htcp_continues_where_a_loss_was_none(start: Start) -> None:
    """D continues from the loss before."""
    connection = start("htcp", 1000)
    for _ in range(30):
        fast = connection.round_trip()
    connection.congestion()
    connection.undo()
    assert connection.round_trip() >= fast
    connection.congestion()
    assert connection.round_trip() <= 1


@pytest.mark.parametrize(
    ("da_us", "alpha", "beta"),
    [
        (0, 10.0, 0.125),
        (10_000, 2.54, 0.125),  # d2
        (45_000, 0.66, 0.3125),  # half way from d2 to d3
        (80_000, 0.37, 0.5),  # d3
        (100_000, 0.3, 0.5),
    ],
)
def test_illinois_follows_the_delay(start: Start, da_us: int, alpha: float, beta: float) -> None:
    """dm = 100 ms, d1 = 1 ms: alpha = k1 / (k2 + da), k1 = 30.62 ms, k2 = 2.062 ms."""
    connection = start("illinois", 10_000)
    connection.round_trip()
    connection.round_trip(queue_us=100_000)
    # After five rounds without any delay alpha is 10 again.
    for _ in range(7):
        connection.round_trip(queue_us=da_us)
    assert connection.shown["illinois_alpha_1000"] / 1000 == pytest.approx(alpha, rel=0.03)
    assert connection.round_trip(queue_us=da_us) == pytest.approx(alpha, abs=1)
    assert 1 - connection.congestion() == pytest.approx(beta, abs=0.005)


def test_illinois_forgets_after_a_timeout(start: Start) -> None:
    connection = start("illinois", 1000)
    connection.round_trip()
    connection.round_trip(queue_us=100_000)
    connection.round_trip()
    connection.congestion(LOSS)
    connection.set(snd_cwnd=1000)
    assert connection.congestion() == 0.5


@pytest.mark.parametrize("delay_ms", [0, 30, 54, 59, 66, 90, 120, 600])
def test_ledbat_grows_and_falls_by_the_distance_to_its_target(start: Start, delay_ms: int) -> None:
    """RFC 6817: cwnd += (60 ms - delay) / 60 ms per RTT."""
    connection = start("ledbat", 500)
    connection.round_trip()
    # The least of the last few samples counts, so the first RTT is still on its way there.
    connection.round_trip(queue_us=delay_ms * 1000)
    gained = sum(connection.round_trip(queue_us=delay_ms * 1000) for _ in range(30))
    assert gained == pytest.approx(30 * (60 - delay_ms) / 60, rel=0.05, abs=1)


def test_ledbat_yields_where_the_application_has_little_to_send(start: Start) -> None:
    """A window that is not used does not grow, but still falls."""
    connection = start("ledbat", 500)
    connection.round_trip()
    # The lowest byte stands in for the flag that the window was full.
    connection.set(snd_cwnd_clamp=0xFFFFFF00)
    assert connection.round_trip() == 0
    assert sum(connection.round_trip(queue_us=120_000) for _ in range(5)) < -3


@pytest.mark.parametrize(("queued", "growth"), [(1, 1), (3, 0), (6, -1)])
def test_vegas_keeps_two_to_four_segments(start: Start, queued: int, growth: int) -> None:
    """Diff = cwnd (RTT - BaseRTT) / RTT."""
    connection = start("vegas", 100)
    connection.round_trip()
    # Half a segment more, for Diff is rounded down.
    queue_us = int(100_000 * (queued + 0.5) / (101 - queued))
    connection.round_trip(queue_us=queue_us)
    assert connection.round_trip(queue_us=queue_us) == growth


def test_vegas_doubles_every_other_rtt(start: Start) -> None:
    connection = start("vegas", 10)
    connection.set(snd_ssthresh=2**31 - 1)
    grown = [connection.round_trip() for _ in range(6)]
    # An ACK ends the round that began with the one before it, so both may share a round trip.
    assert 3 * 10 < sum(grown) < 10 * (2**3 + 2)
    connection.round_trip(queue_us=10_000)
    connection.round_trip(queue_us=10_000)
    connection.round_trip(queue_us=10_000)
    assert connection.ssthresh < connection.cwnd, "more than gamma waits: slow start is over"


def test_veno_is_half_as_fast_with_a_queue(start: Start) -> None:
    """N = 1000 * 1 / 101 is more than beta: congestion."""
    connection = start("veno", 1000)
    connection.round_trip()
    connection.round_trip(queue_us=1000)
    assert sum(connection.round_trip(queue_us=1000) for _ in range(10)) == pytest.approx(5, abs=1)
    assert connection.congestion() == pytest.approx(0.5, abs=0.001)


@pytest.mark.parametrize("name", ["westwood", "westwood-plus"])
def test_westwood_falls_to_bandwidth_times_least_rtt(start: Start, name: str) -> None:
    """1000 segments every 150 ms, over 100 ms: 667."""
    connection = start(name, 1000)
    connection.round_trip()
    for _ in range(60):
        connection.set(snd_cwnd=1000)
        connection.round_trip(queue_us=50_000)
    assert connection.congestion() == pytest.approx(0.667, abs=0.02)


def test_westwoods_sample_of_a_pause_is_as_low_as_the_pause_is_long(start: Start) -> None:
    """After 10 s the filter is empty: the mean of two segments in 10 s and the sample before."""
    connection = start("westwood", 1000)
    for _ in range(20):
        connection.round_trip()
    before = connection.shown["westwood_bandwidth_bps"]
    connection.set(snd_cwnd=2, tcp_mstamp=int(connection.now_s * 1e6) + 10_000_000)
    connection.round_trip()
    assert connection.shown["westwood_bandwidth_bps"] == pytest.approx(before / 2, rel=0.05)


def test_yeah_takes_the_queue_off_before_it_overflows(start: Start) -> None:
    """Q = 1000 * 20 / 120 = 167 is more than 80; below that, L alone makes it Reno."""
    connection = start("yeah", 1000)
    connection.round_trip()
    connection.round_trip(queue_us=20_000)
    assert connection.round_trip(queue_us=20_000) == pytest.approx(-170, abs=8)
    slow = start("yeah", 400)
    slow.round_trip()
    slow.round_trip(queue_us=20_000)
    assert slow.round_trip(queue_us=20_000) == 1
    # What is queued is lost from it: 67 of 400, more than an eighth.
    assert slow.congestion() == pytest.approx(1 - 20 / 120, abs=0.01)


def test_yeah_knows_the_queue_that_slow_start_made(start: Start) -> None:
    """A loss in slow start therefore takes more than an eighth off."""
    connection = start("yeah", 50)
    connection.set(snd_ssthresh=2**31 - 1)
    connection.round_trip()
    connection.round_trip(queue_us=80_000)
    connection.round_trip(queue_us=80_000)
    assert connection.congestion() < 0.7


@pytest.mark.parametrize("marked", [0.0, 0.1, 0.5, 1.0])
def test_dctcp_cuts_by_half_the_share_of_marks(start: Start, marked: float) -> None:
    """RFC 8257: alpha comes to M, and 1 - alpha / 2 of cwnd remains; a loss halves in any case."""
    connection = start("dctcp", 1000)
    for _ in range(120):
        connection.set(snd_cwnd=1000)
        connection.round_trip(marked=marked)
    assert connection.shown["dctcp_alpha"] / 1024 == pytest.approx(marked, abs=0.02)
    assert connection.congestion(CWR) == pytest.approx(1 - marked / 2, abs=0.01)
    for state in (3, LOSS):
        connection.set(snd_cwnd=1000)
        assert connection.congestion(state) == 0.5


@pytest.mark.parametrize("marked", [0.1, 0.5, 1.0])
def test_prague_cuts_once_by_half_the_share_of_marks(start: Start, marked: float) -> None:
    """Alpha comes to M, a round trip with marks leaves 1 - alpha / 2, and a loss halves."""
    connection = start("prague", 1000)
    for _ in range(150):
        connection.set(snd_cwnd=1000)
        connection.round_trip(marked=marked)
    assert connection.shown["prague_alpha_1024"] / 1024 == pytest.approx(marked, abs=0.03)
    connection.set(snd_cwnd=1000)
    # What is not marked makes it grow meanwhile, by a segment at most.
    assert connection.round_trip(marked=marked) == pytest.approx(-500 * marked, abs=16)
    connection.set(snd_cwnd=1000)
    assert connection.congestion() == 0.5


@pytest.mark.parametrize(("rtt_us", "growth"), [(5_000, 0.04), (12_500, 0.25), (50_000, 1.0)])
def test_prague_grows_at_a_short_rtt_as_at_25_ms(start: Start, rtt_us: int, growth: float) -> None:
    """By (RTT / 25 ms)^2 segments per RTT, so the rate grows as fast as at 25 ms."""
    connection = start("prague", 1000, rtt_us)
    gained = [connection.round_trip() for _ in range(100)]
    assert sum(gained) == pytest.approx(100 * growth, rel=0.06, abs=1)


def test_the_first_mark_of_prague_halves(start: Start) -> None:
    """Slow start has overshot, and alpha has no measurement yet."""
    connection = start("prague", 1000)
    connection.round_trip(marked=0.001)
    assert connection.cwnd == pytest.approx(500, abs=3)


def test_the_kernel_never_divides_by_zero(tmp_path: Path) -> None:
    """No algorithm of the user can crash the machine in this way."""
    text = (ALGORITHMS / "template.bpf.c").read_text()
    for old, new in (
        ("max(tp->snd_cwnd / INCREASE, 1U)", "0"),
        ("return max(cwnd * KEPT / 1024, 2U);", "return 0;"),
        ("return reno_undo_cwnd(sk);", "return 0;"),
    ):
        assert old in text
        text = text.replace(old, new)
    source = tmp_path / "mine.bpf.c"
    source.write_text(text)
    lib = compiled(source, ALGORITHMS, tmp_path)
    connection = Connection(lib, 10)
    connection.round_trip()
    assert ctypes.c_uint32.in_dll(lib, "divided_by_zero").value == 0
    connection.congestion()
    assert (connection.cwnd, connection.ssthresh) == (1, 1)
    connection.undo()
    assert connection.cwnd == 1


@pytest.mark.parametrize(
    ("written", "cwnd", "ssthresh"), [("0", 1, 1), ("0xffffffff", 1 << 25, 0x7FFFFFFF)]
)
def test_no_window_is_left_that_the_kernel_can_not_work_with(
    tmp_path: Path, written: str, cwnd: int, ssthresh: int
) -> None:
    """Whether written to the socket or returned; the kernel's own Reno would divide by 0."""
    text = (ALGORITHMS / "template.bpf.c").read_text()
    growth = "tcp_cong_avoid_ai(tp, max(tp->snd_cwnd / INCREASE, 1U), acked);"
    for old, new in (
        (growth, f"tp->snd_cwnd = {written};\n\ttp->snd_ssthresh = {written};"),
        ("return max(cwnd * KEPT / 1024, 2U);", f"return {written};"),
        ("return reno_undo_cwnd(sk);", f"return {written};"),
    ):
        assert old in text
        text = text.replace(old, new)
    source = tmp_path / "mine.bpf.c"
    source.write_text(text)
    connection = Connection(compiled(source, ALGORITHMS, tmp_path), 10)
    connection.round_trip()
    assert (connection.cwnd, connection.ssthresh) == (cwnd, ssthresh)
    connection.set(snd_cwnd=10, snd_ssthresh=10)
    connection.congestion()
    assert connection.ssthresh == ssthresh
    connection.undo()
    assert connection.cwnd == cwnd


def test_a_window_that_an_algorithm_has_not_written_is_left_to_be_seen(tmp_path: Path) -> None:
    """Some kernels skip a call now and then, and use whatever value the register contained."""
    connection = Connection(compiled(ALGORITHMS / "template.bpf.c", ALGORITHMS, tmp_path), 10)
    connection.set(snd_ssthresh=0x81104110)
    connection.round_trip()
    assert connection.ssthresh == 0x81104110


class _Subflow(ctypes.Structure):
    _fields_ = (("cwnd", ctypes.c_uint32), ("rtt_us", ctypes.c_uint32), ("seen", ctypes.c_uint64))


@pytest.mark.parametrize(
    "subflows",
    [
        [(20, 100_000)],
        [(100, 50_000)] * 4,
        [(10, 10_000), (300, 200_000)],
        [(1000, 500), (5, 900_000), (40, 40_000)],
        [(1 << 20, 100), (1 << 20, 10_000_000)],
    ],
)
def test_lia_takes_what_one_connection_would(
    tmp_path: Path, subflows: list[tuple[int, int]]
) -> None:
    """RFC 6356, section 3: segments per increase of cwnd. One not seen for 2 s does not count."""
    shim = tmp_path / "shim.c"
    shim.write_text(
        f'#include "{SHIM}"\n'
        "u32 needed_by(struct connection *c, u64 now, u32 *total)"
        "{ return needed(c, now, total); }\n"
    )
    lia = compiled(ALGORITHMS / "lia.bpf.c", ALGORITHMS, tmp_path, shim).needed_by
    lia.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    lia.restype = ctypes.c_uint32
    now, total = 10_000_000, ctypes.c_uint32()
    gone = _Subflow(7, 1, now - 2_000_001)
    known = (_Subflow * 8)(*(_Subflow(*each, now) for each in subflows), gone)
    rates = sum(cwnd / rtt for cwnd, rtt in subflows)
    wanted = rates**2 / max(cwnd / rtt**2 for cwnd, rtt in subflows)
    found = lia(ctypes.byref(known), now, ctypes.byref(total))
    assert found == pytest.approx(min(wanted, 1 << 25), rel=0.02, abs=1)
    assert total.value == sum(cwnd for cwnd, _ in subflows)
