"""A run's figure: units of queues, lengths of intervals, and the panels of own values."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.plots import levels
from ccplay.report.data.scene import Scene, scene
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted
from tests.events import link_changed, tcp

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ccplay.report.figures import run_figures, style
from ccplay.report.figures.lines import widths
from ccplay.report.figures.run_figures import own_values
from ccplay.report.figures.style import Inks

LINK = "r1->r2"


def of(*qdiscs: Qdisc, mark: int | None = None, mtu: int | None = None) -> Scene:
    """Return a run with a link that had these queues in turn, for a second each."""
    state = LabState()
    for t, qdisc in enumerate(qdiscs):
        setting = LinkSetting(rate=1_000_000_000, qdisc=qdisc, mark=mark, mtu=mtu)
        state.apply(link_changed(t, LINK, setting))
    return scene(state)


def amounts(changes: Sequence[tuple[float, float | None]]) -> list[float]:
    return [amount for _, amount in changes if amount is not None]


def test_a_queue_that_is_limited_in_bytes_is_drawn_in_bytes() -> None:
    """A queue limited in bytes is drawn in bytes: with offloads, packets have up to 64 KB."""
    run = of(Qdisc(kind="bfifo", options={"limit": 302_800}), mark=65)
    assert run.in_bytes(LINK)
    assert amounts(levels.limits(*run.scopes(LINK))) == pytest.approx([302_800])
    assert amounts(levels.thresholds(*run.scopes(LINK))) == pytest.approx([65 * 1514])


def test_a_queue_that_is_limited_in_packets_is_drawn_in_packets() -> None:
    run = of(Qdisc(kind="pfifo", options={"limit": 100}), mark=65)
    assert not run.in_bytes(LINK)
    assert amounts(levels.limits(*run.scopes(LINK))) == [100]
    assert amounts(levels.thresholds(*run.scopes(LINK))) == [65]


def test_a_queue_that_was_both_is_drawn_in_packets() -> None:
    run = of(
        Qdisc(kind="bfifo", options={"limit": 15_140}), Qdisc(kind="pfifo", options={"limit": 20})
    )
    assert not run.in_bytes(LINK)
    assert amounts(levels.limits(*run.scopes(LINK))) == pytest.approx([10, 20])


def test_a_full_packet_is_the_link_s() -> None:
    run = of(Qdisc(kind="bfifo", options={"limit": 302_800}), mark=10, mtu=400)
    assert amounts(levels.thresholds(*run.scopes(LINK))) == pytest.approx([4140])


@pytest.mark.parametrize(
    ("span", "found"),
    [(0.5, (0.1, 0.02)), (15.0, (1.0, 0.1)), (120.0, (1.0, 0.2)), (600.0, (5.0, 1.0))],
)
def test_intervals_fit_the_run(span: float, found: tuple[float, float]) -> None:
    assert widths(span) == found


def test_longer_runs_never_have_finer_intervals() -> None:
    spans = [0.2 * 1.3**n for n in range(40)]
    for short, long in pairwise(map(widths, spans)):
        assert short <= long


# --- own values that changed have panels, up to a limit -------------------------------------------


def panels(*sweeps: dict[str, list[int | None]]) -> list[str]:
    """Return title and label of each panel for two flows with these own values, sweep by sweep."""
    state = LabState()
    for flow in ("1", "2"):
        state.apply(FlowStarted(t=0.0, flow=flow, src="s1", dst="d1", cc="bbr", port=5201))
    for n, own in enumerate(sweeps):
        state.apply(Sweep(t=1 + n / 50, tcp=tcp(("1", "2"), cc="bbr"), own=own))
    return [f"{each.title}|{each.label}" for each in own_values(scene(state), Inks(["1", "2"]))]


def test_nothing_is_drawn_where_no_flow_tells_any() -> None:
    assert panels({}, {}) == []


def test_what_never_changes_is_left_out() -> None:
    """A value that never changes has no panel, unless two flows differ in it."""
    before: dict[str, list[int | None]] = {
        "vegas_enabled": [1, 1],
        "bbr_bw_bps": [8_000_000, None],
        "hybla_rho_1000": [1600, 2000],
        "vegas_rtt_us": [None, None],
    }
    after: dict[str, list[int | None]] = before | {"bbr_bw_bps": [9_000_000, None]}
    assert panels(before, after) == ["bbr bw|bw (Mbit/s)", "hybla rho|rho"]


def test_of_too_many_each_algorithm_has_its_first() -> None:
    names = [f"{algorithm}_{n}" for algorithm in ("a", "b", "c") for n in "pqrs"]
    found = panels({name: [1, None] for name in names}, {name: [2, None] for name in names})
    assert [each.partition("|")[0] for each in found] == ["a p", "a q", "b p", "b q", "c p", "c q"]


def test_what_the_flow_monitor_tells_has_words_of_its_own() -> None:
    name = "monitor_one_way_delay_us"
    [found] = panels({name: [90_000, None]}, {name: [91_000, None]})
    assert found == "one-way delay of the flow's packets|delay (ms)"


def test_the_capacity_of_a_link_that_moves_stands_behind_goodput() -> None:
    """From a recording of two flows over a satellite: the band is as high as what could leave."""
    recording = Path(__file__).parents[1] / "ui" / "recordings" / "moving.ccplay"
    found = run_figures.panels(scene(read_recording(recording)), Inks(["1", "2"]))
    (goodput,) = [each for each in found if each.name == "throughput"]
    axes = Figure().add_subplot()
    assert "capacity" in [each.get_label() for each in goodput.draw(axes)]
    band = axes.patches[0]
    assert band.get_facecolor()[:3] == pytest.approx(to_rgb(style.QUEUE_FILL))
    # The trace has 8 Mbit/s in the mean, from half to one and a half of it.
    assert 4 < band.get_path().get_extents().y1 < 16
