"""A queue in software paces packets, keeps them when disciplines change, and can fall back."""

from array import array
from pathlib import Path
from typing import cast

import pytest

from ccplay.lab import disciplines
from ccplay.lab.disciplines.base import CE, ECT_0, FirstInFirstOut, Packet
from ccplay.lab.netfilter_queue import HeaderQueue
from ccplay.lab.packet_loop import Lateness
from ccplay.lab.software_queue import MARKED, PACED, ServedQueue
from ccplay.lab.software_shared import SharedCounters
from ccplay.lab.traces import MappedTrace
from ccplay.trace.content import Content, pack, steps

RATE = 12_112_000
"""Rate in bit/s at which a full-sized frame takes 1 ms."""


class Queue:
    """A kernel queue with packets to read, and the verdict on each."""

    def __init__(self) -> None:
        self.coming: list[Packet] = []
        self.sent: list[tuple[int, int]] = []
        self.dropped: list[int] = []

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass

    def receive(self) -> Packet | None:
        return self.coming.pop(0) if self.coming else None

    def send_on(self, packet: int, mark: int) -> None:
        self.sent.append((packet, mark))

    def discard(self, packet: int) -> None:
        self.dropped.append(packet)

    def flush(self) -> None:
        pass


class Link:
    """A served queue with a clock that the test sets."""

    def __init__(self, kind: str = "codel", **options: int | bool) -> None:
        self.queue = Queue()
        self.slot = SharedCounters().slot(0)
        self.served = ServedQueue(cast("HeaderQueue", self.queue), self.slot)
        self.served.change(kind, options, RATE, 1, 0.0)
        self.lateness = Lateness()
        self.number = 0

    def come(self, count: int, now: float, ecn: int = 0, length: int = 1514) -> None:
        for _ in range(count):
            self.number += 1
            self.queue.coming.append(Packet(length, ecn=ecn, number=self.number))
        while self.served.read(now):
            pass
        self.served.send(now, self.lateness)

    def at(self, now: float) -> list[int]:
        """Set the clock to ``now``; return the packets that are sent then."""
        before = len(self.queue.sent)
        self.served.send(now, self.lateness)
        return [number for number, _ in self.queue.sent[before:]]


def test_packets_leave_at_the_rate() -> None:
    link = Link()
    link.served.begin(0.0)
    link.come(4, 1.0)
    assert link.queue.sent == [(1, PACED)]
    assert link.served.wake == pytest.approx(1.001)
    assert link.at(1.0009) == []
    assert link.at(1.0011) == [2]
    # The third packet is due at its time although the second was 0.1 ms late.
    assert link.served.wake == pytest.approx(1.002)
    assert link.at(1.0032) == [3, 4]
    assert link.served.wake == 0.0


def test_a_link_that_was_idle_owes_nothing() -> None:
    link = Link()
    link.served.begin(0.0)
    link.come(1, 1.0)
    link.come(3, 5.0)
    assert [number for number, _ in link.queue.sent] == [1, 2]
    assert link.served.wake == pytest.approx(5.001)


def test_a_packet_waits_while_the_one_before_is_on_the_wire() -> None:
    link = Link()
    link.served.begin(0.0)
    link.come(1, 1.0)
    link.come(1, 1.0004)
    assert len(link.queue.sent) == 1
    assert link.served.wake == pytest.approx(1.001)


def test_nothing_leaves_before_the_kernel_has_sent_what_it_holds() -> None:
    link = Link()
    link.come(2, 1.0)
    assert link.served.wake == 0.0
    link.served.begin(1.050)
    assert link.at(1.049) == []
    assert link.at(1.050) == [1]


def test_marks_go_with_the_packet() -> None:
    link = Link(ecn=True, ce_threshold=1)
    link.served.begin(0.0)
    link.come(3, 1.0, ecn=ECT_0)
    link.at(1.01)
    assert link.queue.sent == [(1, PACED), (2, PACED | MARKED), (3, PACED | MARKED)]


def test_another_discipline_inherits_what_waits_and_how_long_it_has() -> None:
    link = Link()
    link.served.begin(0.0)
    link.come(10, 1.0)
    link.served.change("fq_codel", {}, RATE, 1, 1.0005)
    assert link.at(1.002) == [2, 3]
    link.served.publish()
    counts, _ = link.slot.read(0)
    assert (counts.qlen, counts.backlog, counts.drops) == (7, 7 * 1514, 0)
    assert counts.sojourn_us == 4000


def test_passing_on_keeps_the_order_and_loses_nothing() -> None:
    link = Link("fq_codel")
    link.served.begin(0.0)
    link.come(5, 1.0, ecn=CE)
    link.served.pass_on()
    assert link.queue.sent[1:] == [(number, MARKED) for number in (2, 3, 4, 5)]
    link.come(1, 1.0001)
    assert link.queue.sent[-1] == (6, 0)
    assert link.queue.dropped == []


def test_drops_reach_the_queue_and_the_counters() -> None:
    link = Link(limit=3)
    link.served.begin(2.0)
    link.come(5, 1.0)
    assert link.queue.dropped == [4, 5]
    link.served.publish()
    assert link.slot.read(0)[0].drops == 2


class _Failing(FirstInFirstOut):
    """A discipline that fails once fewer than five packets wait."""

    def dequeue(self, now: float) -> Packet | None:
        if self.qlen < 5:
            raise ZeroDivisionError("count is 0")
        return super().dequeue(now)


def test_a_fifo_takes_the_place_of_one_of_ours_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """All waiting packets leave in order, and the message has the line.

    The tests of a user's own disciplines have the other ways to fail.
    """
    options = disciplines.options_of("codel", {})
    monkeypatch.setattr(
        "ccplay.lab.software_queue.make_kind", lambda _, __, seed: _Failing(options, seed)
    )
    link = Link("codel")
    link.served.begin(0.0)
    link.come(10, 1.0)
    for step in range(1, 20):
        link.at(1.0 + step / 1000)
    assert [number for number, _ in link.queue.sent] == list(range(1, 11))
    assert link.queue.dropped == []
    assert link.served.fault.startswith(
        "codel: ZeroDivisionError: count is 0 (test_serving.py, line"
    )


# --- links that move ------------------------------------------------------------------------------


class MovingLink(Link):
    """A served queue of a link that moves from 0 s on."""

    def __init__(self, folder: Path, content: Content, *, loop: bool = True) -> None:
        super().__init__("pfifo", limit=1000)
        path = folder / "trace"
        path.write_bytes(pack(content))
        self.course = MappedTrace(str(path), 0.0, loop)
        self.served.move(self.course, RATE, 0.0)
        self.served.begin(0.0)

    def come(self, count: int, now: float, ecn: int = 0, length: int = 1514) -> None:
        self.served.catch_up(now, self.lateness)
        super().come(count, now, ecn, length)

    def at(self, now: float) -> list[int]:
        before = len(self.queue.sent)
        self.served.catch_up(now, self.lateness)
        self.served.send(now, self.lateness)
        return [number for number, _ in self.queue.sent[before:]]


def test_an_opportunity_carries_what_fits_and_unused_ones_are_lost(tmp_path: Path) -> None:
    content = Content(array("I", [10, 20, 20, 30, 40]), 40)
    link = MovingLink(tmp_path, content)
    link.come(4, 0.015, length=400)
    assert link.queue.sent == []
    assert link.served.wake == pytest.approx(0.020)
    # 390 bytes each by mahimahi's count: three in the first opportunity, the rest of the fourth in
    # the second.
    assert link.at(0.0201) == [1, 2, 3, 4]
    assert link.served.wake == 0.0
    link.come(1, 0.035)
    assert link.at(0.0399) == []
    assert link.at(0.0402) == [5]


def test_a_packet_spans_opportunities_and_leaves_with_the_last(tmp_path: Path) -> None:
    link = MovingLink(tmp_path, Content(array("I", [10, 20, 30]), 30))
    link.come(2, 0.001, length=2000)
    assert link.at(0.0101) == []
    assert link.served.wake == pytest.approx(0.020)
    assert link.at(0.0201) == [1]
    # The second packet has 1018 bytes of the second opportunity already.
    assert link.at(0.0301) == [2]


def test_a_late_process_gives_no_opportunity_to_packets_that_came_later(tmp_path: Path) -> None:
    link = MovingLink(tmp_path, Content(array("I", [10, 11, 12, 50]), 50))
    link.come(1, 0.001)
    link.served.catch_up(0.015, link.lateness)
    assert [number for number, _ in link.queue.sent] == [1]
    link.come(2, 0.015)
    assert [number for number, _ in link.queue.sent] == [1]
    assert link.served.wake == pytest.approx(0.050)


def test_steps_of_the_rate_pace_packets(tmp_path: Path) -> None:
    rates = steps([0, 10_000], [RATE, RATE / 2], 20_000)
    link = MovingLink(tmp_path, Content(rates=rates))
    link.come(4, 0.0085)
    assert link.served.wake == pytest.approx(0.0095)
    assert link.at(0.0096) == [2]
    # Half of it in the first half millisecond, the other half at half the rate.
    assert link.served.wake == pytest.approx(0.011)
    assert link.at(0.0111) == [3]
    assert link.served.wake == pytest.approx(0.013)


def test_the_fixed_rate_returns_when_a_trace_stops_or_ends(tmp_path: Path) -> None:
    link = MovingLink(tmp_path, Content(array("I", [10, 1000]), 1000))
    link.come(3, 0.001, length=2000)
    link.at(0.0101)
    link.served.move(None, RATE, 0.020)
    assert link.at(0.0201) == [2]
    assert link.at(0.0215) == [3]
    link = MovingLink(tmp_path, Content(array("I", [10, 20]), 20), loop=False)
    link.come(4, 0.001)
    assert link.at(0.0202) == [1, 2, 3]
    assert link.at(0.0222) == [4]


def test_a_policer_drops_what_has_no_tokens(tmp_path: Path) -> None:
    link = MovingLink(tmp_path, Content(policer=(1_000_000, 3028)))
    link.come(5, 1.0)
    for tick in range(10):
        link.at(1.0 + tick / 1000)
    assert [number for number, _ in link.queue.sent] == [1, 2]
    assert link.queue.dropped == [3, 4, 5]
    link.served.publish()
    assert link.slot.read(0)[0].drops == 3


def test_passing_on_sends_the_packet_in_transit_first(tmp_path: Path) -> None:
    link = MovingLink(tmp_path, Content(array("I", [10, 1000]), 1000))
    link.come(2, 0.001, length=2000)
    link.at(0.0101)
    link.served.pass_on()
    assert [number for number, _ in link.queue.sent] == [1, 2]
