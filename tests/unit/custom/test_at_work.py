"""A faulty discipline of the user's own is replaced by a FIFO, without a loss of packets."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from ccplay.lab.custom import limits, trial
from ccplay.lab.custom.limits import Printed
from ccplay.lab.custom.loading import SourceError
from ccplay.lab.software_queue import PATIENCE_S
from tests.unit.custom.sources import FIFO, POP, POP_LINE, PUSH, PUSH_LINE, instead
from tests.unit.software.test_serving import RATE, Link


def under(source: str, **options: int) -> Link:
    """Return a link with a discipline of the user's own, at time 0."""
    link = Link("codel")
    link.served.change("mine", options, RATE, 1, 0.0, source=source)
    link.served.begin(0.0)
    return link


WRONG = {
    "raises": (
        instead(POP, "return self.queue.pop() if self.qlen > 5 else 1 / 0"),
        "ZeroDivisionError",
        POP_LINE,
    ),
    "drops and raises": (
        instead(POP, "self.drop(self.queue.pop(), '')", "return 1 / 0"),
        "ZeroDivisionError",
        POP_LINE + 1,
    ),
    "exits": (instead(POP, "raise SystemExit"), "SystemExit", POP_LINE),
    "sends twice": (instead(POP, "return self.queue.packets[0]"), "is no longer waiting", 18),
    "sends no packet": (instead(POP, "return 'packet'"), "AttributeError", 18),
    "never empties": (instead(POP, "return None"), f"returned None for {PATIENCE_S:g} s", 18),
    "keeps nothing": (instead(PUSH, "pass"), "returned None", 18),
    "takes nothing": (instead(PUSH, "self.queue.push(packet + 1)"), "TypeError", PUSH_LINE),
    "reports nonsense": (
        FIFO.replace("len(self.queue)}", "1 if self.qlen < 5 else int('x')}"),
        "ValueError",
        22,
    ),
}


@pytest.mark.parametrize(("source", "said", "line"), WRONG.values(), ids=WRONG)
def test_a_fifo_takes_the_place_of_one_at_fault(source: str, said: str, line: int) -> None:
    """A FIFO replaces a faulty discipline: all waiting packets leave in order.

    The message has file and line.
    """
    link = under(source)
    link.come(10, 1.0)
    for step in range(1, 700):
        link.at(1.0 + step / 1000)
        link.served.publish()
    assert [number for number, _ in link.queue.sent] == list(range(1, 11))
    assert link.queue.dropped == []
    assert link.served.fault.startswith(f"mine.py:{line}: ")
    assert said in link.served.fault
    counts, _ = link.slot.read(0)
    assert (counts.qlen, counts.backlog, counts.drops, counts.packets) == (0, 0, 0, 10)
    # It continues as a FIFO.
    link.come(2, 3.0)
    link.at(3.1)
    assert len(link.queue.sent) == 12


@pytest.mark.parametrize("source", [each for each, *_ in WRONG.values()], ids=WRONG)
def test_check_reports_the_same(source: str) -> None:
    assert trial.try_discipline("mine", source).mistakes


def test_one_that_fails_on_what_waits_is_given_it_only_once() -> None:
    """A discipline that fails on the packets it inherits does not receive them a second time.

    It fails at the third of ten packets.
    """
    link = under(FIFO)
    link.served.begin(5.0)
    link.come(10, 1.0)
    failing = instead(PUSH, "self.queue.push(packet if self.qlen < 2 else None)")
    link.served.change("mine", {}, RATE, 1, 1.5, source=failing)
    assert "AttributeError" in link.served.fault
    for step in range(20):
        link.at(5.0 + step / 1000)
    assert [number for number, _ in link.queue.sent] == list(range(1, 11))
    # The FIFO received each packet once, or it would fail now, too.
    link.come(1, 6.0)
    assert link.queue.sent[-1][0] == 11
    assert "AttributeError" in link.served.fault


def test_a_source_that_cannot_be_loaded_leaves_the_earlier_one_at_work() -> None:
    link = under(FIFO)
    link.come(5, 1.0)
    for source in ("def x(:", instead(PUSH, "1").replace("configure", "enqueue"), "1 / 0"):
        with pytest.raises(SourceError, match=r"mine\.py"):
            link.served.change("mine", {}, RATE, 1, 1.0, source=source)
    assert link.at(1.0011) == [2]
    assert link.served.fault == ""


def test_saving_swaps_it_and_loses_nothing() -> None:
    link = under(FIFO)
    link.come(5, 1.0)
    last_first = instead(POP, "return self.queue.pop_last() if self.qlen else None")
    link.served.change("mine", {}, RATE, 1, 1.0005, source=last_first)
    assert link.at(1.01) == [5, 4, 3, 2]
    assert link.served.names == ["mine_waiting_packets"]


def test_one_may_hold_packets_back_for_a_while() -> None:
    """A discipline may hold packets back, as a shaper that sends one per 3 ms on a faster link."""
    shaper = instead(
        POP,
        "if now < getattr(self, 'next', 0):",
        "    return None",
        "self.next = now + 0.003",
        "return self.queue.pop()",
    )
    link = under(shaper)
    link.come(4, 1.0)
    moments = [step / 10 for step in range(1, 120) if link.at(1.0 + step / 10_000)]
    assert moments == pytest.approx([3.0, 6.0, 9.0], abs=1.01)
    assert link.served.fault == ""


def test_what_is_dropped_and_then_sent_is_dropped() -> None:
    link = under(
        instead(POP, "packet = self.queue.pop()", "self.drop(packet, '')", "return packet")
    )
    link.come(3, 1.0)
    assert "is no longer waiting" in link.served.fault
    link.at(1.01)
    assert link.queue.dropped == [1]
    assert [number for number, _ in link.queue.sent] == [2, 3]


def test_drops_before_a_swap_are_counted_after_it() -> None:
    link = under(FIFO, limit=3)
    link.served.begin(9.0)
    link.come(5, 1.0)
    link.served.change("mine", {"limit": 3}, RATE, 1, 1.5, source=FIFO + "# saved\n")
    link.served.publish()
    assert link.slot.read(0)[0].drops == 2
    link.come(2, 1.6)
    link.served.pass_on()
    assert link.slot.read(0)[0].drops == 4


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limit calls of a discipline to 40 ms; in the process of disciplines the limit is 500 ms."""
    monkeypatch.setattr(limits, "LIMIT_S", 0.04)
    with limits.watched():
        yield


@pytest.mark.usefixtures("watched")
def test_one_that_computes_for_ever_is_interrupted_in_its_line() -> None:
    link = under(instead(POP, "while self.qlen:", "    pass", "return self.queue.pop()"))
    link.come(3, 1.0)
    assert "TimeoutError: it is still computing" in link.served.fault
    assert link.served.fault.startswith((f"mine.py:{POP_LINE}:", f"mine.py:{POP_LINE + 1}:"))
    link.at(1.01)
    assert [number for number, _ in link.queue.sent] == [1, 2, 3]


def test_one_that_waits_for_a_core_is_not_interrupted() -> None:
    """A call of 1.2 s in which another process has the core for nearly all of the time."""
    core = min(os.sched_getaffinity(0))
    loop = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"

    def call() -> bytes:
        os.sched_setaffinity(0, [core])
        os.nice(19)
        end = time.monotonic() + 1.2
        with limits.Limited():
            while time.monotonic() < end:
                pass
        return b"done"

    with subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            assert limits.run_alone("mine", call, 60) == b"done\n"
        finally:
            other.kill()


@pytest.mark.usefixtures("watched")
def test_check_interrupts_one_that_computes_for_ever() -> None:
    (mistake,) = trial.try_discipline("mine", instead(POP, "while True:", "    now += 1")).mistakes
    assert "TimeoutError: it is still computing" in str(mistake)


def test_check_reports_what_fails_under_any_load() -> None:
    """The check finds a mistake under light load, and another in code that drops packets."""
    source = FIFO.replace('self.drop(packet, "limit")', "self.drop(packet, 1 / 0)")
    idle = "        assert now < 1 or self.qlen > 1\n"
    source = source.replace(POP, idle + POP).replace("100 packets", "20 packets")
    found = trial.try_discipline("mine", source).mistakes
    assert [each.line for each in found] == [POP_LINE, 16]


def test_what_it_prints_is_reported_a_few_lines_a_second() -> None:
    printed = Printed()
    for number in range(25):
        print("line", number, file=printed)
    assert printed.due_lines(5.0).splitlines() == [
        *(f"line {n}" for n in range(10)),
        "(15 more lines)",
    ]
    print("later", file=printed)
    assert printed.due_lines(5.5) == ""
    assert printed.due_lines(6.1) == "later"
    assert printed.due_lines(6.2) == ""


def test_a_packet_is_known_by_more_than_its_number() -> None:
    """A discipline that invents a packet with the number of a waiting one is at fault."""
    link = under(
        instead(
            POP, "from ccplay.lab.disciplines.base import Packet", "return Packet(60, number=1)"
        )
    )
    link.come(1, 1.0)
    assert "is no longer waiting" in link.served.fault
    link.at(1.1)
    assert [number for number, _ in link.queue.sent] == [1]
