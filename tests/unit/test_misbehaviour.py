"""A cwnd that does no good is told once it lasts; what may be right never is."""

from __future__ import annotations

import pytest

from ccplay.lab.misbehaviour import PATIENCE_S, Watchdog
from ccplay.model import TcpSamples


def samples(cwnd: int, unacked: int, *, ca_state: int = 0, cc: str = "mine") -> TcpSamples:
    columns: dict[str, list[object]] = {name: [0] for name in TcpSamples.__struct_fields__}
    columns |= {"flow": ["1"], "cc": [cc], "cwnd": [cwnd], "unacked": [unacked]}
    columns |= {"ca_state": [ca_state]}
    return TcpSamples(**columns)  # type: ignore[arg-type]


def told(watchdog: Watchdog, each: TcpSamples, *, seconds: float, start: float = 0.0) -> list[str]:
    ticks = range(int(seconds * 50) + 1)
    return [log.text for i in ticks for log in watchdog.look(start + i / 50, each)]


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (samples(1, 1), "keeps cwnd at 1"),
        (samples(100_000, 60), "lets cwnd grow without bound"),
    ],
)
def test_what_lasts_is_told_once(each: TcpSamples, words: str) -> None:
    watchdog = Watchdog()
    assert told(watchdog, each, seconds=PATIENCE_S - 0.1) == []
    warnings = told(watchdog, each, seconds=20, start=PATIENCE_S)
    assert len(warnings) == 1
    assert f"flow 1: mine {words}" in warnings[0]


@pytest.mark.parametrize(
    "each",
    [
        samples(1, 1, ca_state=4),  # after a timeout
        samples(1, 0),  # nothing to send
        samples(2, 2),
        samples(5000, 4000),  # 1 Gbit/s over 60 ms
        samples(900, 10),
    ],
)
def test_what_may_be_right_is_never_told(each: TcpSamples) -> None:
    assert told(Watchdog(), each, seconds=20) == []


def test_a_moment_of_good_sense_begins_the_wait_anew() -> None:
    watchdog = Watchdog()
    assert told(watchdog, samples(1, 1), seconds=2) == []
    assert told(watchdog, samples(10, 10), seconds=0.1, start=2.1) == []
    assert told(watchdog, samples(1, 1), seconds=2, start=2.3) == []


def test_another_algorithm_is_suspected_on_its_own() -> None:
    watchdog = Watchdog()
    assert len(told(watchdog, samples(1, 1), seconds=4)) == 1
    assert len(told(watchdog, samples(1, 1, cc="other"), seconds=4, start=5)) == 1
