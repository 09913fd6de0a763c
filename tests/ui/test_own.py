"""The screen shows own values of algorithms below the selected flow, as of the playhead."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from ccplay.model.base import Event
from ccplay.model.samples import Sweep
from ccplay.ui.app import CcplayApp
from ccplay.ui.plot_ghosts import ShiftedTrace
from ccplay.ui.plot_row import plot_at
from ccplay.ui.plot_traces import SeriesTrace
from ccplay.ui.view import of_run
from tests.events import folded
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing
from tests.ui.test_snapshots import SnapCompare, app_on, at
from tests.ui.view import seek, text_of, toasts


def telling() -> Iterator[Event]:
    """Yield a session in which flow 1 has BBR's values from 5 s on; bw is the time in Mbit/s."""
    for event in stream(flows=2, pairs=2, seconds=20.0):
        if isinstance(event, Sweep) and event.tcp is not None and event.t > 5:
            own: dict[str, list[int | None]] = {
                "bbr_bw_bps": [int(event.t) * 1_000_000],
                "bbr_min_rtt_us": [20_140],
                "bbr_pacing_gain": [320],
                "bbr_cwnd_gain": [512],
            }
            others: list[None] = [None] * (len(event.tcp.flow) - 1)
            own = {name: [*value, *others] for name, value in own.items()}
            yield replace(event, own=own)
        else:
            yield event


async def test_the_values_of_the_selected_flow_are_those_of_the_moment_shown() -> None:
    async with playing(SyntheticSource(telling()), start_at=20.0) as (app, pilot):
        for t, bandwidth in ((9.5, "9"), (12.5, "12")):
            seek(app, t)
            # Lines may break anywhere.
            table = " ".join(text_of(app, "flows").split())
            assert f"bw {bandwidth} Mbit/s min rtt 20.1 ms" in table
            assert "pacing gain 1.25 cwnd gain 2.00" in table
        seek(app, 4.0)
        assert "gain" not in text_of(app, "flows")
        app.main.shown.playhead.jump(12.0, 20.0)
        await pilot.press("down")
        assert "gain" not in text_of(app, "flows")


def title(app: CcplayApp) -> str:
    return text_of(app, "rtt").splitlines()[0]


async def test_v_draws_one_after_the_other_and_then_rtt_again() -> None:
    async with playing(SyntheticSource(telling()), start_at=12.0) as (app, pilot):
        assert "RTT ms" in title(app)
        for said in ("bbr bw Mbit/s", "bbr min rtt ms", "bbr pacing gain", "bbr cwnd gain"):
            await pilot.press("v")
            assert said in title(app)
        assert "2.00" in title(app)
        await pilot.press("v")
        assert "RTT ms" in title(app)
        await pilot.press("V", "V")
        assert "bbr pacing gain" in title(app)


async def test_a_variable_without_values_in_the_window_gives_way_to_rtt() -> None:
    """A variable without values in the window is replaced by RTT until the window has some.

    It stays chosen when another flow is selected, as long as one flow reports it.
    """
    async with playing(SyntheticSource(telling()), start_at=12.0) as (app, pilot):
        await pilot.press("v", "down")
        assert "bbr bw" in title(app)
        app.main.shown.playhead.width = 2.0
        for t, said in ((3.0, "RTT ms"), (12.0, "bbr bw Mbit/s")):
            seek(app, t)
            assert said in title(app)
        await pilot.press("down", "v")
        assert "RTT ms" in title(app)


async def test_v_reports_where_there_is_nothing_to_draw() -> None:
    async with playing(SyntheticSource(stream(seconds=20.0)), start_at=12.0) as (app, pilot):
        await pilot.press("v")
        assert toasts(app) == ["cubic reports no variables"]
        assert "RTT ms" in title(app)


def switching() -> Iterator[Event]:
    """Yield a session in which flow 1 has BBR's values until 10 s, and then those of Vegas."""
    for event in telling():
        if isinstance(event, Sweep) and event.own and event.t > 10:
            several = [None] * (len(event.tcp.flow) - 1) if event.tcp else []
            yield replace(event, own={"vegas_diff_segments": [2, *several]})
        else:
            yield event


async def test_v_begins_with_the_algorithm_in_use() -> None:
    """Variables of the algorithm before it, which has no values any more, come last."""
    async with playing(SyntheticSource(switching()), start_at=15.0) as (app, pilot):
        await pilot.press("v")
        assert "vegas diff" in title(app)
        await pilot.press("v")
        assert "bbr bw" in title(app)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("N v", "N shows the plots, where v draws variables."),
        (
            "1 v",
            "v draws variables in place of RTT, which is not on the screen: 1 shows all plots.",
        ),
        ("toggle v", "v draws variables in place of RTT, which is not on the screen: choose plot:"),
    ],
)
async def test_v_names_the_key_that_shows_its_plot(keys: str, said: str) -> None:
    async with playing(SyntheticSource(telling()), start_at=12.0) as (app, pilot):
        for key in keys.split():
            if key == "toggle":
                app.main.plots.toggle("rtt")
            else:
                await pilot.press(key)
        assert app.main.shown.variable is None
        *_, told = app._notifications
        assert told.message[: len(said)] == said


async def test_an_earlier_run_lies_under_it() -> None:
    earlier = folded(*telling())
    async with playing(SyntheticSource(telling()), start_at=12.0) as (app, pilot):
        await pilot.press("v")
        assert app.appearance.glyphs.ghost not in title(app)
        app.main.ghosts.shown = of_run(earlier, "earlier")
        seek(app, 12.0)
        assert "12.0 ⠂• 12.0" in title(app)
        traces = plot_at(app.main.view, "rtt").picture(app.main.view).traces
        kinds: list[type] = [type(each) for each in traces]
        assert kinds == [ShiftedTrace, SeriesTrace]


async def test_a_variable_that_only_the_ghost_has_can_be_chosen() -> None:
    """A variable that only the ghost has is drawn from the ghost, as over the kernel's CUBIC."""
    earlier = folded(*telling())
    async with playing(SyntheticSource(stream(seconds=20.0)), start_at=12.0) as (app, pilot):
        app.main.ghosts.shown = of_run(earlier, "earlier")
        app.main.shown.playhead.jump(12.0, 20.0)
        await pilot.press("v")
        assert "bbr bw Mbit/s ⠂• 12.0" in " ".join(title(app).split())
        traces = plot_at(app.main.view, "rtt").picture(app.main.view).traces
        assert [type(each) for each in traces] == [ShiftedTrace]
        app.main.shown.playhead.width = 2.0
        seek(app, 3.0)
        assert "RTT ms" in title(app), "neither run tells anything there"
        app.main.shown.playhead.jump(12.0, 20.0)
        app.main.ghosts.shown = None
        app.main.redraw()
        assert "RTT ms" in title(app)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_how_a_variable_looks(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    """A variable's plot has a gap without values, the value at the cursor, and its own axis."""

    app = app_on(SyntheticSource(telling()))

    async def seek(pilot: Pilot[int]) -> None:
        await at(app, 12.0)(pilot)
        await pilot.press("v")

    assert snap_compare(app, terminal_size=size, run_before=seek)
