"""Quantities are read as people write them, and written with correct units."""

from collections.abc import Callable

import pytest

from ccplay import units

_RATES = "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s"


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "10 Mbit/s", 10_000_000),
        (units.parse_rate, "1.5Mbit", 1_500_000),
        (units.parse_rate, "10 MBit", 10_000_000),
        (units.parse_rate, "100 kbps", 100_000),
        (units.parse_rate, "1 Gbit/s", 10**9),
        (units.parse_rate, "10 MB/s", 80_000_000),
        (units.parse_rate, "187.5 kB/s", 1_500_000),
        (units.parse_time_us, "20 ms", 20_000),
        (units.parse_time_us, "1s", 1_000_000),
        (units.parse_time_us, "50 us", 50),
        (units.parse_time_us, "1.5 min", 90_000_000),
        (units.parse_time_us, "1 h", 3_600_000_000),
        (units.parse_size, "177669 bytes", 177_669),
        (units.parse_size, "10_000 B", 10_000),
        (units.parse_size, "50 MB", 50_000_000),
        # Exact to the last digit, unlike 7 * 0.01, which is not 0.07.
        (units.parse_ratio, "7 %", 0.07),
        (units.parse_ratio, "0.07", 0.07),
        (units.parse_ratio, "100%", 1.0),
    ],
)
def test_quantities_are_read(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ["", "ten Mbit/s", "10", "10 Mb", "-3 Mbit/s", "1.2.3 Mbit/s"])
def test_a_rate_that_is_none_reports_what_would_fit(text: str) -> None:
    with pytest.raises(ValueError, match=r"10 Mbit/s"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("parse", "text", "known"),
    [
        (units.parse_time_us, "1 day", "us, ms, s, min, h"),
        (units.parse_rate, "10 Tbit/s", _RATES),
        # Bits or bytes?
        (units.parse_rate, "10 mb/s", _RATES),
        (units.parse_rate, "10 MBps", _RATES),
        (units.parse_size, "2 TB", "bytes, kB, MB, GB, KiB, MiB"),
        (units.parse_ratio, "2 percent", "%"),
        (units.parse_frequency, "2 kHz", "Hz"),
    ],
)
def test_where_the_unit_is_wrong_those_that_there_are_are_named(
    parse: Callable[[str], float], text: str, known: str
) -> None:
    """An error about a unit lists the known units, each of which can be read."""
    with pytest.raises(units.UnitError, match=rf"\(units: {known}\)$"):
        parse(text)
    assert all(parse(f"1 {unit}") for unit in known.split(", "))


def test_more_than_everything_can_not_be_lost() -> None:
    with pytest.raises(ValueError, match="between 0 % and 100 %"):
        units.parse_ratio("101 %")


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (1_500_000, "1.5 Mbit/s"),
        (10_000_000, "10 Mbit/s"),
        (100_000, "100 kbit/s"),
        (999_999_999, "1 Gbit/s"),
        (0, "0 bit/s"),
        (12_345_678, "12.3 Mbit/s"),
    ],
)
def test_rates_are_written_with_three_digits(bps: int, text: str) -> None:
    assert units.format_rate(bps) == text


def test_what_is_written_is_read_back() -> None:
    for us in (1, 50, 999, 1000, 20_000, 1_500_000):
        assert units.parse_time_us(units.format_time_us(us)) == us
