"""Disciplines' own values are transmitted, bounded and kept like those of algorithms."""

import pytest

from ccplay.errors import WireError
from ccplay.lab.qdisc_counters import LinkQueues
from ccplay.model import blocks
from ccplay.model.samples import Sweep
from ccplay.model.values import MOST_VARIABLES
from ccplay.report.data.export import _sweeps
from ccplay.state.lab_state import LabState
from ccplay.stream import sources, wire
from tests.events import folded, qdisc
from tests.unit.test_link_queues import queue

VALUES: list[list[int | None]] = [[3, None], [5, None], [5, 7]]


def sweep(t: float, own: dict[str, list[int | None]]) -> Sweep:
    samples = qdisc(("r1->r2", "r2->r1"), kind=["codel", "pfifo"])
    return Sweep(t=t, qdisc=samples, queue_own=own)


def sweeps() -> list[Sweep]:
    return [sweep(1 + n / 50, {"codel_ldelay_us": each}) for n, each in enumerate(VALUES)]


@pytest.mark.parametrize("packed", [False, True])
def test_values_of_queues_are_kept_by_link(packed: bool) -> None:
    """Own values are kept by link, from single sweeps and from a block, over the wire."""
    state = LabState()
    for event in [blocks.pack(sweeps())] if packed else sweeps():
        state.apply(wire.decode_event(wire.encode(event)))
    series = state.queues["r1->r2"].own["codel_ldelay_us"]
    assert series.values(0, 3) == [3, 5, 5]
    assert state.queues["r2->r1"].own["codel_ldelay_us"].values(0, 3) == [7]


def test_old_recordings_have_none() -> None:
    line = wire.encode(sweep(1.0, {}))
    assert b"queue_own" not in line
    state = folded(wire.decode_event(line))
    assert state.queues["r1->r2"].own == {}


def test_each_value_is_a_row_of_the_export() -> None:
    rows = dict(_sweeps(blocks.pack(sweeps()), 0.0))["queue-variables"]
    assert rows["link"] == ["r1->r2"] * 3 + ["r2->r1"]
    assert rows["qdisc"] == ["codel"] * 3 + ["pfifo"]
    assert rows["variable"] == ["codel_ldelay_us"] * 4
    assert rows["value"] == [3.0, 5.0, 5.0, 7.0]


@pytest.mark.parametrize(
    "own", [{"codel_count": [1]}, {f"v{n}": [1, 1] for n in range(2 * MOST_VARIABLES + 1)}]
)
def test_what_does_not_fit_the_queues_is_refused(own: dict[str, list[int | None]]) -> None:
    with pytest.raises(WireError):
        blocks.check_sweep(sweep(1.0, own))


def test_a_queue_keeps_no_more_than_it_may() -> None:
    state = folded(sweep(1.0, {f"v{n}": [1, None] for n in range(MOST_VARIABLES + 3)}))
    assert len(state.queues["r1->r2"].own) == MOST_VARIABLES


def test_values_of_queues_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_BYTES", 2 * sources.OF_QUEUE + 4)
    sources.RecordingLimits().check(sweep(1.0, {"a": [1, None]}))
    with pytest.raises(WireError, match="memory"):
        sources.RecordingLimits().check(sweep(1.0, {"a": [1, 1]}))


def test_each_class_has_what_its_own_discipline_reports() -> None:
    queues = LinkQueues("a->b")
    found = {0x10010: queue(0x100000, 5)._replace(own={"codel_count": 2}), 0x10011: queue(1, 1)}
    assert queues.own({0x10001: found[0x10010]}) == [{"codel_count": 2}]
    queues.names = {0x10010: "bulk", 0x10011: "rest"}
    assert queues.own(found) == [{}, {"codel_count": 2}, {}]
    assert len(queues.rows(found)) == 3
