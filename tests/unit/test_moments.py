"""When flows opened and reached their limit, from readings before and after."""

import pytest

from ccplay.traffic.flow import tcp
from ccplay.traffic.flow.tcp import CLOSE_S, Reading, look_after_s, opening, reaching


def test_an_opening_between_two_close_readings_lies_in_their_middle() -> None:
    assert opening(1.0, 1.001, 0.0) == pytest.approx(1.0005, abs=1e-6)


def test_how_long_data_was_outstanding_reports_when_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read 100 ms late, and busy for 60 ms by then, give or take the kernel's tick."""
    monkeypatch.setattr(tcp, "_TICK_S", 0.004)
    assert opening(1.0, 1.1, 0.060) == pytest.approx(1.040)
    # It was open no earlier than it was not.
    assert opening(1.0, 1.1, 0.2) == pytest.approx(1.0)
    assert opening(1.0, 1.1, 0.098) == pytest.approx(1.003)


def test_a_limit_is_reached_between_the_readings_around_it() -> None:
    before, after = Reading(2.0, 1_000_000), Reading(2.1, 2_000_000)
    assert reaching(1_250_000, before, after) == pytest.approx(2.025)
    assert reaching(2_000_000, before, after) == pytest.approx(2.1)
    assert reaching(1, Reading(2.0, 5), Reading(2.1, 5)) == 2.1


def test_a_flow_is_left_alone_until_its_limit_may_be_near() -> None:
    """10 segments now: at most 10, then 20, then 40 more come in the next RTTs, 70 by the third."""
    assert look_after_s(70 * 1448, 10 * 1448, 0.02) == pytest.approx(0.06)
    assert look_after_s(69 * 1448, 10 * 1448, 0.02) == pytest.approx(0.04)
    assert look_after_s(9 * 1448, 10 * 1448, 0.02) == CLOSE_S
    # Where no RTT is known nothing is.
    assert look_after_s(10**9, 0, 0.0) == CLOSE_S
