"""Bytes of each interval: of flows what was acknowledged, of UDP what arrived."""

import pytest

from ccplay.model.variables import DELAY, LOSS, RECEIVED
from ccplay.report.data import curves
from ccplay.report.data.curves import moved, summaries
from ccplay.state.lab_state import LabState
from ccplay.traffic.udp import Udp, UdpEnded, UdpSample, UdpStarted
from tests.events import folded, monitored

PACKET = 1000


def counted(t: float, reached: int, received: int) -> UdpSample:
    """Return what a receiver without a monitor has counted: it knows no delays."""
    return UdpSample(t=t, udp="u1", monitored=monitored(reached, received, None, size=PACKET))


def session() -> LabState:
    """Return a session with 100 packets a second from 1.0 s to 4.0 s, every fifth of which is lost
    after 2 s."""
    state = folded(
        UdpStarted(
            t=1.0, udp="u1", src="h1", dst="h2", rate_bps=800_000, packet_bytes=PACKET, port=5
        )
    )
    for tenth in range(1, 31):
        reached = 10 * tenth
        lost = max(reached - 100, 0) // 5
        state.apply(counted(round(1.0 + tenth / 10, 1), reached, reached - lost))
    state.apply(UdpEnded(t=4.1, udp="u1", sent=300, received=260, jitter_us=10.0, duration_s=3.0))
    return state


def test_bytes_of_an_interval_are_those_that_arrived_in_it() -> None:
    (found,) = moved(session(), 0.0, 5.0, 0.5)
    assert (found.kind, found.name, found.first) == ("udp", "u1", 2)
    assert found.bytes == pytest.approx([50_000] * 2 + [40_000] * 4 + [0])
    (whole,) = moved(session(), 0.5, 5.0, 1.0)
    # From 0.5 s on: half of the first second.
    assert whole.bytes == pytest.approx([50_000, 90_000, 80_000, 40_000])
    assert sum(whole.bytes) == pytest.approx(260_000)


def test_a_row_has_whole_intervals_only() -> None:
    (row,) = summaries(moved(session(), 0.5, 5.0, 1.0))
    assert (row.traffic, row.count, row.least, row.greatest) == ("UDP u1", 2, 80_000, 90_000)
    assert row.mean == 85_000
    cells = [column.cell(row) for column in curves.TABLE.columns]
    assert cells[:3] == ["UDP u1", "2", "85 kB"]


def test_rates_are_of_the_last_second_however_often_it_is_counted() -> None:
    udp = session().of(Udp)["u1"]

    def at(name: str, t: float) -> float | None:
        return udp.series[name].at(udp.timeline.before_or_at(t))

    assert at(RECEIVED.name, 2.0) == pytest.approx(800_000)
    # Half of it from before the losses began.
    assert at(RECEIVED.name, 2.5) == pytest.approx(720_000)
    assert at(LOSS.name, 2.5) == pytest.approx(0.1)
    assert at(LOSS.name, 3.5) == pytest.approx(0.2)
    assert at(DELAY.name, 3.5) is None


def test_its_line_has_no_delay_where_nobody_measures_one() -> None:
    state = session()
    lines = state.of(Udp)["u1"].lines(3.5)
    assert lines[0] == "UDP 640 of 800 kbit/s, 20 % lost"


def test_a_recording_of_years_has_no_intervals() -> None:
    """A stranger's recording may name any moment; the memory is the reader's."""
    assert moved(session(), 0.0, 99_999.0, 1.0)
    assert moved(session(), 0.0, 1e9, 1.0) == []
