"""Sojourn times are counted in a queue's histogram and become a report's distribution."""

import pytest

from ccplay.lab import software_shared
from ccplay.lab.software_shared import Sojourns
from ccplay.model.events import SojournTimes
from ccplay.plots.table import SOJOURN
from ccplay.report.data.findings import counted
from ccplay.state.lab_state import LabState
from ccplay.stream import wire


def of(*times_us: int) -> list[int]:
    counts = [0] * software_shared.PLACES
    for each in times_us:
        counts[software_shared.place(each)] += 1
    return counts


def packets(events: list[SojournTimes]) -> dict[tuple[str, str], int]:
    return {(each.link, each.kind): sum(each.packets) for each in events}


def test_each_report_has_what_came_since_the_last() -> None:
    spread = Sojourns()
    spread.count(1, "r->h2", "codel.py", of(5000, 5000))
    (first,) = spread.report(1.0)
    assert (first.link, first.kind, first.packets) == ("r->h2", "codel.py", [2])
    assert first.upto_us[0] == pytest.approx(5000, rel=0.13)
    assert first.upto_us[0] > 5000
    spread.count(1, "r->h2", "codel.py", of(5000, 5000, 7))
    (second,) = spread.report(2.0)
    assert (second.upto_us, second.packets) == ([8], [1])
    spread.count(1, "r->h2", "codel.py", of(5000, 5000, 7))
    assert spread.report(3.0) == []


def test_packets_before_a_swap_are_those_of_the_discipline_before() -> None:
    spread = Sojourns()
    spread.count(1, "r->h2", "codel.py", of(1, 1, 1))
    spread.count(1, "r->h2", "pie.py", of(1, 1, 1, 2))
    spread.count(2, "r->h3", "pie.py", of(9))
    assert packets(spread.report(1.0)) == {
        ("r->h2", "codel.py"): 3,
        ("r->h2", "pie.py"): 1,
        ("r->h3", "pie.py"): 1,
    }


def test_a_process_that_was_started_anew_counts_from_nothing() -> None:
    spread = Sojourns()
    spread.count(1, "r->h2", "codel.py", of(1, 1, 1))
    spread.report(1.0)
    spread.count(1, "r->h2", "codel.py", of())
    spread.count(1, "r->h2", "codel.py", of(1))
    assert packets(spread.report(2.0)) == {("r->h2", "codel.py"): 1}


def test_percentiles_of_the_last_second_are_the_variables_of_the_plot() -> None:
    spread = Sojourns()
    spread.count(1, "r->h2", "codel.py", of(*range(0, 10_000, 10)))
    assert spread.recent("r->h2") == {}
    spread.report(1.0)
    recent = spread.recent("r->h2")
    assert [*recent][::-1] == [line.variable.series for line in SOJOURN.lines]
    assert [*recent.values()] == pytest.approx([5000, 9500, 9900], rel=0.07)


def test_the_state_adds_up_what_it_receives() -> None:
    state = LabState()
    for t, kind, upto_us in ((1.0, "codel.py", [8, 5120]), (2.0, "pie.py", [8, 20_480])):
        event = SojournTimes(t=t, link="r->h2", kind=kind, upto_us=upto_us, packets=[1, 3])
        # Encoded and decoded as in a recording.
        state.apply(wire.decode_event(wire.encode(event)))
    assert state.sojourns.of("r->h2") == {8: 2, 5120: 3, 20_480: 3}
    assert state.sojourns.of("r->h2", "pie.py") == {8: 1, 20_480: 3}
    assert state.sojourns.of("r->h1") == {}
    found = counted(state.sojourns.of("r->h2"))
    assert found is not None
    assert (found.count, found.shares[-1]) == (8, 1.0)
    assert (found.quantile(0.25), found.quantile(0.5)) == (0.008, 5.12)
    assert counted({}) is None


def test_a_strangers_recording_takes_no_more_memory_than_a_labs() -> None:
    state = LabState()
    for start in range(0, 200_000, 1000):
        upto_us = [*range(start, start + 1000)]
        state.sojourns.add(
            SojournTimes(t=1.0, link="l", kind="x.py", upto_us=upto_us, packets=[1] * 1000)
        )
    for number in range(500):
        state.sojourns.add(
            SojournTimes(t=1.0, link="l", kind=f"{number}.py", upto_us=[1], packets=[1])
        )
    assert len(state.sojourns.of("l")) <= 1000
    kinds = [f"{number}.py" for number in range(500)]
    assert sum(1 for kind in kinds if state.sojourns.of("l", kind)) < 100
