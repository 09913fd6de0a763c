"""The delay line's rules, without a queue of the kernel's."""

import struct
import time
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.lab import delay_line as delayline
from ccplay.lab import netfilter_queue
from ccplay.lab.delay_line import DelayedLink, DelayRequest, Impairment
from ccplay.lab.netfilter_queue import PacketQueue
from ccplay.lab.packet_loop import Lateness
from ccplay.model.values import LinkSetting


class Packets:
    """A queue of packets that came at given moments."""

    def __init__(self, *_: object) -> None:
        self.waiting: list[float] = []
        self.number = 0
        self.stamp = 0.0
        self.released: list[int] = []
        self.dropped: list[int] = []
        self.alone: list[tuple[int, bytes | None]] = []
        self.whole = False

    def copy(self, *, whole: bool) -> None:
        self.whole = whole

    def content(self) -> bytes:
        return bytes([0x45, *range(1, 60)]) if self.whole else b""

    def accept(self, packet: int, content: bytes | None) -> None:
        self.released.append(packet)
        self.alone.append((packet, content))

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
    monkeypatch.setattr(delayline, "Copies", Sent)


class Sent:
    """Copies that were sent."""

    packets: ClassVar[list[bytes]] = []

    def __init__(self, *_: object) -> None:
        self.packets.clear()

    def send(self, packet: bytes) -> None:
        self.packets.append(packet)


def held(seed: int = 0, **path: float) -> tuple[DelayedLink, Packets]:
    made = DelayedLink(DelayRequest(queue=1, seed=seed, path=Impairment(**path)))  # type: ignore[arg-type]
    assert isinstance(made.queue, Packets)
    return made, made.queue


class Messages:
    """A netlink socket with messages to receive."""

    def __init__(self, *waiting: bytes) -> None:
        self._waiting = [*waiting]

    def recv_into(self, buffer: bytearray) -> int:
        if not self._waiting:
            raise BlockingIOError
        message = self._waiting.pop(0)
        buffer[: len(message)] = message
        return len(message)


def test_an_error_about_packets_that_are_gone_is_no_packet() -> None:
    """Its bytes would be number 50,528,512, and release everything that waits."""
    stamped = struct.pack("=HH", 20, 4) + struct.pack("!QQ", 7, 500_000)
    packet = struct.pack("=IHHIIHHHH", 48, 0x300, 0, 0, 0, 0, 0, 11, 1) + struct.pack(
        "!IHBB", 9, 8, 0, 0
    )
    verdict = struct.pack("=IHHII", 32, 0x303, 1, 0, 0)
    error = struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -2) + verdict
    queue = PacketQueue.__new__(PacketQueue)
    queue._socket = Messages(packet + stamped, error, packet + stamped, error)  # type: ignore[assignment]
    queue._buffer, queue._packet = bytearray(4096), netfilter_queue._packet_layout(28)
    assert (queue.next_packet(), queue.stamp) == (9, 7.5)
    assert (queue.next_packet(), queue.next_packet()) == (9, None)


def test_a_packet_is_due_its_delay_after_it_came() -> None:
    """Not after it was read: the kernel noted its arrival, here 4 ms ago."""
    line, packets = held(delay_us=10_000)
    came = time.monotonic() - 0.004
    packets.waiting = [came]
    line.read_packets(epoch=0.0)
    assert line.due[0] == pytest.approx(came + 0.010)


@given(moments=st.lists(st.floats(0, 0.5), max_size=30), jitter_us=st.integers(0, 10_000))
def test_packets_never_overtake(moments: list[float], jitter_us: int) -> None:
    line, packets = held(delay_us=10_000, jitter_us=jitter_us)
    now = time.monotonic()
    packets.waiting = [now - each for each in sorted(moments, reverse=True)]
    line.read_packets(epoch=0.0)
    assert list(line.due) == sorted(line.due)


def test_no_packet_leaves_before_its_moment() -> None:
    """What is due just behind goes with the next wake-up, which is a moment later."""
    line, packets = held(delay_us=10_000)
    now = time.monotonic()
    packets.waiting = [now - 0.0300, now - 0.0299, now - 0.0150]
    line.read_packets(epoch=0.0)
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
    line.read_packets(epoch=0.0)
    line.change(DelayRequest(queue=1, path=Impairment(delay_us=1_000)))
    packets.waiting = [came]
    line.read_packets(epoch=0.0)
    assert line.due[1] == line.due[0]


def test_loss_is_repeatable_and_drops_alone() -> None:
    lost = []
    for _ in range(2):
        line, packets = held(loss=0.5, seed=7)
        packets.waiting = [time.monotonic()] * 100
        line.read_packets(epoch=0.0)
        assert len(packets.dropped) == line.lost == 100 - len(line.due)
        lost.append(packets.dropped)
    assert lost[0] == lost[1]
    assert 20 < len(lost[0]) < 80  # six standard deviations around 50


def test_packets_sent_ahead_leave_at_once_and_by_themselves() -> None:
    line, packets = held(delay_us=10_000, reorder=0.5)
    packets.waiting = [time.monotonic()] * 40
    line.read_packets(epoch=0.0)
    assert packets.alone == [(each, None) for each in packets.released]
    assert 5 < len(packets.alone) == 40 - len(line.due) < 35  # five standard deviations around 20
    assert line.shortest_s == 0.0


def test_a_copy_and_a_wrong_bit_leave_in_their_turn() -> None:
    """Nothing overtakes them; contents are asked for only as long as a model needs them."""
    line, packets = held(delay_us=1_000, duplicate=0.5, corrupt=0.5)
    packets.waiting = [time.monotonic()] * 60
    line.read_packets(epoch=0.0)
    line.release(time.monotonic() + 1, Lateness())
    assert packets.released == sorted(packets.released)
    wrong = [content for _, content in packets.alone if content is not None]
    whole = packets.content()
    assert wrong
    assert all(each != whole and each[:20] == whole[:20] for each in wrong)
    assert line.lost == len(packets.dropped) > 0  # a bit of the header: a third of them
    assert Sent.packets
    assert {len(each) for each in Sent.packets} == {60}
    line.change(DelayRequest(queue=1))
    assert not packets.whole


def test_lateness_percentiles() -> None:
    lateness = Lateness()
    assert lateness.percentile_us(0.5) is None
    for _ in range(99):
        lateness.add(42e-6)
    lateness.add(1.0)
    assert lateness.percentile_us(0.5) == 45.0
    assert lateness.percentile_us(1.0) == 10_235.0


def test_a_path_changes_only_what_is_given() -> None:
    path = Impairment(delay_us=5, jitter_us=2, loss=0.1)
    assert path.changed(LinkSetting(loss=0.0)) == Impairment(delay_us=5, jitter_us=2)
    assert path
    assert not Impairment()
