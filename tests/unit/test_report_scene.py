"""A run's figure shows a queue in the unit of its limit, and short runs in finer intervals."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from ccplay.model.events import LinkChanged
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.plots import levels
from ccplay.report.data.scene import Scene, scene
from ccplay.state.lab_state import LabState

pytest.importorskip("matplotlib")

from ccplay.report.figures.lines import widths

LINK = "r1->r2"


def of(*qdiscs: Qdisc, mark: int | None = None, mtu: int | None = None) -> Scene:
    """Return a run with a link that had these queues in turn, for a second each."""
    state = LabState()
    for t, qdisc in enumerate(qdiscs):
        setting = LinkSetting(rate=1_000_000_000, qdisc=qdisc, mark=mark, mtu=mtu)
        state.apply(
            LinkChanged(t=t, link=LINK, setting=setting, offloads=False, delay_engine="none")
        )
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
