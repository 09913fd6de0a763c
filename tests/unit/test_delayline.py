"""The delay line's rules, without a queue of the kernel's."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.lab.delay import line as delayline
from ccplay.lab.delay.engines import Impairment
from ccplay.lab.delay.line import Held
from ccplay.lab.delay.messages import Order
from ccplay.lab.packets.lateness import Lateness
from ccplay.model.values import LinkSetting


class Packets:
    """A queue of packets that came at given moments."""

    def __init__(self, *_: object) -> None:
        self.waiting: list[float] = []
        self.number = 0
        self.stamp = 0.0
        self.released: list[int] = []
        self.dropped: list[int] = []

    def next_packet(self) -> int | None:
        if not self.waiting:
            return None
        self.stamp = self.waiting.pop(0)
        self.number += 1
        return self.number

    def release(self, last: int) -> None:
        self.released.append(last)

    def drop(self, packet: int) -> None:
        self.dropped.append(packet)


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayline, "PacketQueue", Packets)


def held(**order: float) -> tuple[Held, Packets]:
    made = Held(Order(queue=1, **order))  # type: ignore[arg-type]
    assert isinstance(made.queue, Packets)
    return made, made.queue


def test_a_packet_is_due_its_delay_after_it_came() -> None:
    """Not after it was read: the kernel noted its arrival, here 4 ms ago."""
    line, packets = held(delay_us=10_000)
    came = time.monotonic() - 0.004
    packets.waiting = [came]
    line.take(epoch=0.0)
    assert line.due[0] == pytest.approx(came + 0.010)


@given(moments=st.lists(st.floats(0, 0.5), max_size=30), jitter_us=st.integers(0, 10_000))
def test_packets_never_overtake(moments: list[float], jitter_us: int) -> None:
    line, packets = held(delay_us=10_000, jitter_us=jitter_us)
    now = time.monotonic()
    packets.waiting = [now - each for each in sorted(moments, reverse=True)]
    line.take(epoch=0.0)
    assert list(line.due) == sorted(line.due)


def test_no_packet_leaves_before_its_moment() -> None:
    """What is due just behind goes with the next wake-up, which is a moment later."""
    line, packets = held(delay_us=10_000)
    now = time.monotonic()
    packets.waiting = [now - 0.0300, now - 0.0299, now - 0.0150]
    line.take(epoch=0.0)
    first, second, third = line.due
    assert line.wake == first
    line.release(first - 1e-6, Lateness())
    assert packets.released == []
    line.release(first, Lateness())
    assert packets.released == [1]
    assert second < line.wake == first + 200e-6
    line.release(line.wake, Lateness())
    assert packets.released == [1, 2]
    assert line.wake == third


def test_a_shorter_delay_waits_for_those_ahead() -> None:
    line, packets = held(delay_us=200_000)
    packets.waiting = [came := time.monotonic()]
    line.take(epoch=0.0)
    line.change(Order(queue=1, delay_us=1_000))
    packets.waiting = [came]
    line.take(epoch=0.0)
    assert line.due[1] == line.due[0]


def test_loss_is_repeatable_and_drops_alone() -> None:
    lost = []
    for _ in range(2):
        line, packets = held(loss=0.5, seed=7)
        packets.waiting = [time.monotonic()] * 100
        line.take(epoch=0.0)
        assert len(packets.dropped) == line.lost == 100 - len(line.due)
        lost.append(packets.dropped)
    assert lost[0] == lost[1]
    assert 20 < len(lost[0]) < 80  # six standard deviations around 50


def test_lateness_percentiles() -> None:
    lateness = Lateness()
    assert lateness.percentile_us(0.5) is None
    for _ in range(99):
        lateness.add(42e-6)
    lateness.add(1.0)
    assert lateness.percentile_us(0.5) == 45.0
    assert lateness.percentile_us(1.0) == 10_235.0


def test_a_path_changes_only_where_something_is_said() -> None:
    path = Impairment(delay_us=5, jitter_us=2, loss=0.1)
    assert path.changed(LinkSetting(loss=0.0)) == Impairment(delay_us=5, jitter_us=2)
    assert path
    assert not Impairment()
