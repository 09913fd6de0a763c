"""Figures show traces where they exist, and samples elsewhere; exports have both."""

import csv
from pathlib import Path

import pytest

from ccplay.cli import main
from ccplay.model import blocks
from ccplay.model.base import Event
from ccplay.model.events import Ready
from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.model.series import Series, Timeline
from ccplay.report.data import scene
from ccplay.report.data.curves import Curve
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import FlowStarted
from tests.events import folded, recorded
from tests.unit.test_summary import HELLO


def acks(t: float, cwnd: list[int], every_us: int = 10_000) -> TraceSamples:
    return TraceSamples(
        t=t,
        flow="1",
        after_us=[every_us] * (len(cwnd) - 1),
        cwnd=blocks.row(cwnd),
        ssthresh=None,
        srtt_us=50_000,
        snd_wnd=65_536,
    )


def events() -> list[Event]:
    """Return 1 s of ACKs from 1 s on, more from 3 s on, and Recovery from 1.4 to 1.6 s."""
    first = [*range(10, 50), *([25] * 61)]
    return [
        FlowStarted(t=0.5, flow="1", src="h1", dst="h2", cc="reno", port=5201),
        acks(1.0, first),
        CaStateChanged(t=1.0, flow="1", ca_state=0),
        CaStateChanged(t=1.4, flow="1", ca_state=3),
        CaStateChanged(t=1.6, flow="1", ca_state=0),
        acks(3.0, [30] * 50),
    ]


@pytest.fixture
def flow() -> Flow:
    """Return a traced flow whose samples are always cwnd 7 and Loss, unlike its trace."""
    state = folded(*events())
    found = state.flows["1"]
    timeline = Timeline()
    found.series |= {name: Series(timeline) for name in ("cwnd", "ca_state")}
    for number in range(200):
        tick = timeline.append(number * 0.02)
        found.series["cwnd"].put(tick, 7.0)
        found.series["ca_state"].put(tick, 4.0)
    return found


def between(line: Curve, left: float, right: float) -> set[float]:
    return {y for t, y in zip(line.t, line.y, strict=True) if left <= t < right}


def test_a_line_is_of_acks_where_they_are_and_of_samples_elsewhere(flow: Flow) -> None:
    line = scene.line(flow, "cwnd")
    assert line.t == sorted(line.t)
    assert between(line, 0.0, 0.99) == {7.0}
    assert between(line, 1.0, 1.4) == set(map(float, range(10, 50)))
    assert between(line, 1.4, 2.005) == {25.0}, "up to the last ACK"
    assert between(line, 2.01, 2.99) == {7.0}
    assert between(line, 3.0, 3.4) == {30.0}


def test_states_are_exact_where_they_were_reported(flow: Flow) -> None:
    spans = scene.states(flow)
    assert [each for each in spans if each[2] == 3] == [pytest.approx((1.4, 1.6, 3))]
    assert not [each for each in spans if each[2] == 4 and 1.0 <= each[0] <= 2.0]
    assert [each for each in spans if each[2] == 4 and each[0] < 1.0]


def test_the_first_reduction_has_room_around_it(flow: Flow) -> None:
    """The first reduction is shown with two RTTs before and after it."""
    assert scene.first_reduction(flow) == pytest.approx((1.3, 1.7))
    assert scene.within(flow.series["cwnd"], (1.3, 1.35)).y == [7.0, 7.0, 7.0]
    flow.trace = None
    assert scene.first_reduction(flow) is None


@pytest.mark.parametrize(
    ("changes", "acks_s", "shown"),
    [
        ({1.0: 3}, 1.0, None),
        ({1.0: 0, 1.2: 1, 1.4: 0}, 1.0, None),
        ({1.0: 0, 1.2: 1, 1.4: 2, 1.6: 1, 1.7: 0}, 1.0, (1.3, 1.7)),
        ({1.0: 0, 1.4: 3}, 0.6, (1.3, 1.7)),
        ({1.0: 0, 1.4: 3}, 1.0, (1.3, 1.9)),
    ],
    ids=["it began before", "Disorder", "CWR", "up to the last ACK", "ten RTTs"],
)
def test_the_period_of_a_reduction(
    changes: dict[float, int], acks_s: float, shown: tuple[float, float] | None
) -> None:
    """A reduction lasts until Open or Disorder, but is shown for at most ten RTTs of 50 ms."""
    state = folded(events()[0], acks(1.0, [30] * round(acks_s * 100 + 1)))
    for t, ca_state in changes.items():
        state.apply(CaStateChanged(t=t, flow="1", ca_state=ca_state))
    assert scene.first_reduction(state.flows["1"]) == (shown and pytest.approx(shown))


def test_traces_are_exported(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.ccplay", (HELLO, Ready(t=0.25), *events()))
    assert main(["export", str(path), "--to", str(tmp_path / "data")]) == 0
    rows = {}
    for name in ("trace", "ca-states"):
        with (tmp_path / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows[name] = list(csv.DictReader(file))
    assert len(rows["trace"]) == 151
    second = rows["trace"][1]
    assert (second["t_s"], second["flow"], second["cwnd_segments"]) == ("0.76", "1", "11")
    assert (second["ssthresh_segments"], second["srtt_us"]) == ("", "50000")
    assert [(row["t_s"], row["ca_state"]) for row in rows["ca-states"]] == [
        ("0.75", "Open"),
        ("1.15", "Recovery"),
        ("1.35", "Open"),
    ]
