"""The screen shows as many plots as have room, and the plot of goodput shows mean rates."""

from itertools import pairwise

import pytest

from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.plot_row import DEFAULT, PANES, room, toggled
from ccplay.ui.plot_traces import RateTrace
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing
from tests.ui.view import text_of


@pytest.mark.parametrize(("width", "plots"), [(80, 3), (120, 4), (200, 7), (250, 9)])
def test_as_many_plots_as_the_terminal_has_room_for(width: int, plots: int) -> None:
    assert room(width) == plots


def test_a_plot_is_put_last_replaces_the_last_or_goes() -> None:
    assert toggled(DEFAULT, "throughput", 4) == (*DEFAULT, "throughput")
    assert toggled(DEFAULT, "throughput", 3) == ("cwnd", "queue", "throughput")
    assert toggled(DEFAULT, "queue", 3) == ("cwnd", "rtt")
    assert toggled(("cwnd",), "cwnd", 3) == ("cwnd",), "one stays"


def test_what_has_no_room_any_more_is_not_brought_back_in_front() -> None:
    assert toggled((*DEFAULT, "throughput"), "throughput", 3) == ("cwnd", "queue", "throughput")


async def test_a_fourth_plot_stands_beside_the_others_and_goes_again() -> None:
    source = SyntheticSource(stream(flows=2, pairs=2, seconds=20.0))
    async with playing(source, start_at=20.0, size=(160, 40)) as (app, pilot):
        band = app.main.plots
        # A screen of this width begins with the plot of goodput.
        band.toggle("throughput")
        offers = {text: (what, run) for text, what, run in band.offers(app.main.view)}
        what, run = offers["plot: goodput"]
        assert what.startswith("next to the others")
        run()
        await pilot.pause()
        app.main.redraw()
        canvases = [each for each in app.main.query(Canvas) if each.display]
        assert [each.id for each in canvases] == [*DEFAULT, "throughput"]
        assert {each.region.width for each in canvases} == {40}
        edges = [(each.region.x, each.region.right) for each in canvases]
        assert all(one[1] == other[0] for one, other in pairwise(edges))
        title = text_of(app, "throughput").splitlines()[0]
        assert title.startswith("goodput Mbit/s")
        assert "Jain" in title
        band.toggle("throughput")
        await pilot.pause()
        shown = [each.id for each in app.main.query(Canvas) if each.display]
        assert tuple(shown) == DEFAULT


async def test_a_rate_is_the_mean_of_the_last_second() -> None:
    source = SyntheticSource(stream(flows=1, pairs=2, seconds=20.0))
    async with playing(source, start_at=20.0) as (app, _):
        view = app.main.view
        trace = PANES["throughput"].traces(view)[0]
        assert isinstance(trace, RateTrace)
        acked = view.state.flows["1"].series["bytes_acked"]
        assert trace.over_s == 1.0
        for end in (5.0, 9.5, 19.0):
            ticks = [acked.timeline.before_or_at(t) for t in (end - 1.0, end)]
            moved = (acked.at(ticks[1]) or 0.0) - (acked.at(ticks[0]) or 0.0)
            span = trace.spans([end - 1e-6, end])[0]
            assert span is not None
            # The second may have one sweep of 50 more or less; counters are in single precision.
            assert span[1] == pytest.approx(moved * 8e-6, rel=0.06)
            assert span[1] <= trace.peak(0.0, 20.0) * 1.05
