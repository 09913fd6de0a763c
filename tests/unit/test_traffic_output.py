"""The output of ping and wget is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.lab.traffic.program import SENDERS, Ports
from ccplay.traffic.download.run import read_result
from ccplay.traffic.ping.run import Ledger


def answer(number: int, ms: float = 20.5) -> str:
    return f"64 bytes from 10.0.2.2: icmp_seq={number} ttl=63 time={ms} ms"


def test_an_answer_has_its_rtt_in_microseconds() -> None:
    assert Ledger(0.2).read(answer(1)) == [(1, 20_500.0)]


def test_our_own_sender_prints_what_ping_does() -> None:
    """The output of ccplay's own pings is read as ping's; tests/lab runs the program."""
    ledger = Ledger(0.2)
    assert ledger.read("no answer yet for seq=1") == []
    assert ledger.read("seq=2 time=20.500 ms") == [(2, 20_500.0)]
    ledger.read("2 packets transmitted, 1 received")
    assert (ledger.sent, ledger.lost) == (2, 0)
    assert ledger.close() == [(1, None)]


def test_a_late_answer_is_not_a_lost_one() -> None:
    """A ping that is answered late is not lost: under bufferbloat several are under way at once."""
    ledger = Ledger(0.2)
    for number in range(1, 5):
        assert ledger.read(f"no answer yet for icmp_seq={number}") == []
    assert ledger.read(answer(1, 900)) == [(1, 900_000)]
    assert ledger.lost == 0


def test_three_later_answers_make_a_missing_one_lost() -> None:
    ledger = Ledger(0.2)
    assert ledger.read(answer(2)) == [(2, 20_500.0)]
    assert [number for number, _ in ledger.read(answer(3))] == [3]
    assert ledger.read(answer(4))[0] == (1, None)
    assert (ledger.sent, ledger.lost) == (4, 1)


def test_a_silent_path_loses_pings_after_a_while() -> None:
    ledger = Ledger(1.0)
    lost = [ledger.read(f"no answer yet for icmp_seq={number}") for number in range(1, 8)]
    assert lost[-2:] == [[(1, None)], [(2, None)]]


def test_what_never_came_is_lost_in_the_end() -> None:
    ledger = Ledger(0.2)
    ledger.read(answer(1))
    ledger.read("3 packets transmitted, 1 received, 66.6667% packet loss, time 402ms")
    assert ledger.close() == [(2, None), (3, None)]
    assert (ledger.sent, ledger.lost) == (3, 2)


def test_a_duplicate_answer_changes_nothing() -> None:
    ledger = Ledger(0.2)
    ledger.read(answer(1))
    assert ledger.read(answer(1) + " (DUP!)") == []


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)))
def test_every_ping_is_decided_exactly_once(order: list[int], dropped: set[int]) -> None:
    """Every ping is answered or lost, never both, whatever answers come and in any order."""
    ledger = Ledger(0.2)
    decided = [each for n in order if n not in dropped for each in ledger.read(answer(n))]
    ledger.read("8 packets transmitted, 0 received")
    decided += ledger.close()
    assert sorted(number for number, _ in decided) == list(range(1, 9))
    assert ledger.lost == sum(rtt is None for _, rtt in decided)


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [("177 KB/s", 177_669 / 177 / 1024), ("20.4 KB/s", 8.505), ("1.20 MB/s", 0.1412)],
)
def test_wget_tells_its_time_by_its_rate(rate: str, seconds: float) -> None:
    line = f"2026-01-02 03:04:05 ({rate}) - '/dev/null' saved [177669/177669]"
    result = read_result(line)
    assert result is not None
    assert result[0] == 177_669
    assert result[1] == pytest.approx(seconds, rel=0.001)


def test_wget_without_a_result_has_none() -> None:
    assert read_result("2026-01-02 03:04:05 ERROR 404: only /bytes/N exists.") is None


def test_ports_of_streams_are_neighbours_and_start_over_at_the_end() -> None:
    ports = Ports()
    assert list(ports.senders(2)) == [10_000, 10_001]
    ports._senders = len(SENDERS) - 1
    assert list(ports.senders(3)) == [10_000, 10_001, 10_002]
