"""Windows of minutes stay legible: no plot is solid, and axes can be logarithmic or held."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from ccplay.ui.app import CcplayApp
from ccplay.ui.plot_canvas import GUTTER, Canvas
from ccplay.ui.plot_traces import AxisInks, Pen, Picture, SeriesTrace
from tests.events import series_of
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing
from tests.ui.test_snapshots import SnapCompare, app_on, at
from tests.ui.view import text_of

SECONDS = 130.0
HZ = 20.0
_BRAILLE = 0x2800


def minutes(flows: int = 8) -> SyntheticSource:
    return SyntheticSource(stream(flows=flows, pairs=8, seconds=SECONDS, hz=HZ))


def widen(app: CcplayApp, width: float) -> None:
    """Show the last ``width`` seconds."""
    head = app.main.shown.playhead
    head.jump(app.session.state.now, app.session.state.now)
    head.width, head.left, head.seen = width, app.session.state.now - width, head.t
    app.main.redraw()


def density(plot: Canvas) -> float:
    """Return the fraction of the dots of a plot's area that are drawn."""
    cells = [char for row in plot._cells[1 : plot.lines + 1] for char, _ in row[GUTTER:]]
    dots = sum(
        (ord(char) - _BRAILLE).bit_count() for char in cells if 0 <= ord(char) - _BRAILLE < 256
    )
    return dots / (8 * len(cells))


@pytest.mark.parametrize("flows", [2, 8])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_no_plot_turns_solid(flows: int, size: tuple[int, int]) -> None:
    async with playing(minutes(flows), start_at=SECONDS, size=size) as (app, _):
        widen(app, 120.0)
        for name in ("cwnd", "queue", "rtt"):
            assert 0.0 < density(app.main.query_one(f"#{name}", Canvas)) < 0.3, name


async def test_what_a_longer_window_reads_is_built_before_it_is_asked_for() -> None:
    """Pyramids are built in advance, also of flows that no plot draws, so that no key waits."""
    async with playing(minutes(), start_at=SECONDS) as (app, _):
        app.main.view.shown.listing = replace(app.main.view.shown.listing, alone=True)
        flows = app.session.state.flows.values()
        for _ in range(100):
            app.main.draw()
        assert all(each.series["cwnd"]._pyramid.covered > SECONDS * HZ - 1024 for each in flows)


async def test_drops_of_minutes_are_bars_and_their_greatest_is_given() -> None:
    async with playing(minutes(), start_at=SECONDS) as (app, _):
        widen(app, 10.0)
        assert "×" not in text_of(app, "queue").splitlines()[1][:GUTTER]
        widen(app, 120.0)
        label, bars = text_of(app, "queue").splitlines()[1].split("│", 1)
        columns = app.main.query_one("#queue", Canvas).columns
        head, series = app.main.shown.playhead, app.session.state.queues["r1->r2"].series["drops"]
        edges = [head.left + head.width / columns * x for x in range(columns + 1)]
        counts = [series.at(max(series.timeline.at_or_after(t) - 1, 0)) or 0.0 for t in edges]
        greatest = max(after - before for before, after in pairwise(counts))
        assert label.strip() == f"×{greatest:.0f}"
        assert "█" in bars
        assert not set(bars.strip()) - set(" ▁▂▃▄▅▆▇█│┊")


async def test_the_ribbon_shows_how_much_of_the_time_a_flow_recovers() -> None:
    """The ribbon shows the share of time in Recovery: the worst state would always be Recovery."""
    async with playing(minutes(), start_at=SECONDS, size=(200, 55)) as (app, _):
        widen(app, 200.0)
        rows = text_of(app, "ribbon").splitlines()
        assert rows[0].startswith("time in")
        flow, series = rows[1], app.session.state.flows["1"].series["ca_state"]
        cells = flow[GUTTER:].strip()
        assert set(cells) & set("▂▃▄")
        assert not set(cells) & set("▆▇█")
        shares = series.shares(series.first, series.end, 5)
        assert shares is not None
        assert 0.5 < shares[0] < 1.0


async def test_a_key_makes_value_axes_logarithmic() -> None:
    async with playing(minutes(), start_at=SECONDS) as (app, pilot):
        widen(app, 10.0)
        # The table may have changed its height, and with it that of the plots.
        await pilot.pause()
        app.main.redraw()
        before = text_of(app, "cwnd")
        await pilot.press("L")
        title, *rows = text_of(app, "cwnd").splitlines()
        assert title.startswith("cwnd segments log")
        labels = [row[: GUTTER - 1].strip() for row in rows]
        assert [label for label in labels if label.isdigit()] == ["10", "1"]
        ticked = [row for row in rows if row[GUTTER - 1 : GUTTER] == "┤"]
        assert len(ticked) > 6, "minor ticks too"
        await pilot.press("L")
        assert text_of(app, "cwnd") == before


async def test_a_key_holds_the_value_axes() -> None:
    """Windows share one scale while the axes are held; after that, each has its own."""
    async with playing(minutes(2), start_at=SECONDS) as (app, pilot):
        plot = app.main.query_one("#cwnd", Canvas)
        widen(app, 10.0)
        calm = plot.scale.top
        await pilot.press("H")
        assert f" ={calm:.0f}" in text_of(app, "cwnd").splitlines()[0]
        head = app.main.shown.playhead
        head.jump(4.0, app.session.state.now)
        head.left = 0.0
        app.main.redraw()
        assert plot.scale.top == calm
        plot.blank(plot.width, plot.height)
        app.main.redraw()
        assert plot.scale.top == calm, "another size is no other scale"
        await pilot.press("H")
        plot.blank(plot.width, plot.height)
        app.main.redraw()
        assert plot.scale.top != calm
        assert "=" not in text_of(app, "cwnd").splitlines()[0]


async def test_an_axis_follows_what_is_in_the_window() -> None:
    """The axis has room for a peak only while that is in the window."""
    async with playing(minutes(1), start_at=SECONDS) as (app, _):
        series = app.session.state.flows["1"].series["cwnd"]
        series._values[5 * int(HZ)] = 900.0
        series._pyramid.clear()
        plot, head = app.main.query_one("#cwnd", Canvas), app.main.shown.playhead
        head.width = 20.0
        tops = []
        for left in (0.0, 4.0, 7.0, 10.0):
            head.jump(left + 19.0, app.session.state.now)
            head.left = left
            app.main.redraw()
            tops.append(plot.scale.top)
        assert tops[0] >= 900
        assert tops[1] >= 900
        assert tops[2] < 300
        assert tops[2] == tops[3], "and then it is steady"


async def test_a_dim_trace_is_fainter_and_its_mark_is_not_bold() -> None:
    async with playing(minutes(1), start_at=SECONDS) as (app, _):
        plot, ink = app.main.query_one("#cwnd", Canvas), "#ff0000"
        for dim in (False, True):
            line = SeriesTrace(series_of([5.0] * 500), Pen(ink, glyph="●", dim=dim))
            inks = AxisInks(ground="#000000")
            plot.draw(Picture(left=0.0, width=10.0, until=10.0, traces=(line,), inks=inks))
            area = [cell for row in plot._cells[1:-1] for cell in row[GUTTER:] if cell[0] != " "]
            used = {ink for char, ink in area if char != "┄"}
            assert used == ({"#990000"} if dim else {"#ff0000", "bold #ff0000"})


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_minutes_of_eight_flows(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = app_on(minutes())
    seek = at(app, SECONDS - 1)

    async def run(pilot: object) -> None:
        app.main.shown.playhead.width = 120.0
        await seek(pilot)  # type: ignore[arg-type]

    assert snap_compare(app, terminal_size=size, run_before=run)


def test_minutes_on_logarithmic_axes_in_ascii(snap_compare: SnapCompare) -> None:
    app = app_on(minutes(), ascii=True)
    seek = at(app, SECONDS - 1)

    async def run(pilot: object) -> None:
        app.main.shown.playhead.width = 120.0
        app.main.shown.logarithmic = True
        await seek(pilot)  # type: ignore[arg-type]

    assert snap_compare(app, terminal_size=(120, 40), run_before=run)
