"""Many flows can be shown alone, grouped, sorted and filtered; the table has enough rows."""

from ccplay.traffic.download import DownloadEnded, DownloadStarted
from ccplay.ui import lineup
from ccplay.ui.cells import Sheet
from tests.ui.synthetic import stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import text_of


async def test_keys_change_what_is_seen() -> None:
    async with playing(live(stream(pairs=5, flows=5, seconds=20))) as (app, pilot):
        await pilot.press("d", "d")
        await until(pilot, lambda: "↑cc" in text_of(app, "flows"))
        await pilot.press("D")
        await until(pilot, lambda: "↓cc" in text_of(app, "flows"))
        await pilot.press("G")
        await until(pilot, lambda: "mean" in text_of(app, "flows"))
        await pilot.press("G", "o")
        await until(pilot, lambda: "1 of 5 flows" in text_of(app, "cwnd"))


async def test_letters_of_a_filter_are_no_commands() -> None:
    """Letters typed into the filter act as no keys, even those that open dialogs."""
    source = live(stream(pairs=5, flows=5, seconds=20))
    async with playing(source) as (app, pilot):
        await pilot.press("slash", *"fx", "backspace", "backspace", *"cubic")
        await until(pilot, lambda: "2 of 5" in text_of(app, "flows"))
        assert app.screen is app.main
        assert not source.sent
        await pilot.press("down", "enter")
        assert app.main.shown.selected == "5"
        assert "/cubic" in text_of(app, "flows")
        await pilot.press("escape")
        await until(pilot, lambda: "/cubic" not in text_of(app, "flows"))
        # Letters are keys again.
        await pilot.press("f")
        await until(pilot, lambda: app.screen is not app.main)


async def test_the_table_shows_every_flow_and_scrolls_where_it_cannot() -> None:
    async with playing(live(stream(pairs=2, flows=7, seconds=20)), (120, 40)) as (app, pilot):
        await until(pilot, lambda: app.main.query_one("#flows", Sheet).height >= 9)
        assert "more" not in text_of(app, "flows")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "more ↓" in text_of(app, "flows"))
        for _ in range(6):
            await pilot.press("down")
        await until(pilot, lambda: "more ↑" in text_of(app, "flows"))
        assert app.main.shown.selected == "7"
        assert any("▸" in line and " 7 " in line for line in text_of(app, "flows").splitlines())


async def test_nothing_to_stack_is_reported() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("T")
        await until(
            pilot, lambda: any("can be stacked" in each.message for each in app._notifications)
        )


async def test_the_ribbon_shows_what_the_table_lists() -> None:
    """The ribbon shows the filtered flows, or groups with their flows' share of time in states."""
    async with playing(live(stream(pairs=5, flows=5, seconds=20))) as (app, pilot):
        await pilot.press("slash", *"cubic", "enter")
        rows = text_of(app, "ribbon").splitlines()
        assert [row[:4].strip() for row in rows[1:] if row.strip()] == ["▲3", "○5"]
        await pilot.press("escape", "G")
        await until(pilot, lambda: "▂Disorder ░CWR" in text_of(app, "ribbon"))
        rows = text_of(app, "ribbon").splitlines()
        assert [row[:4] for row in rows[1:] if row.strip()] == ["●re…", "▲cu…"]


async def test_the_ribbon_lies_under_the_first_plot() -> None:
    """The ribbon has the place and width of the first plot, whose time axis it shares."""
    async with playing(live(stream(seconds=20)), (200, 55)) as (app, pilot):
        first, below = (app.main.query_one(f"#{name}", Sheet) for name in ("cwnd", "ribbon"))
        assert app.main.plots.displayed == ("cwnd", "queue", "rtt", "throughput")
        assert (first.width, below.width) == (50, 50)
        app.main.plots.toggle("throughput")
        await until(pilot, lambda: below.width == first.width == 66)


async def test_downloads_that_are_over_make_no_crowd() -> None:
    events = [*stream(pairs=5, flows=3, seconds=20)]
    for name, t in (("w1", 12.0), ("w2", 14.0)):
        at = next(n for n, each in enumerate(events) if each.t >= t)
        events.insert(at, DownloadStarted(t=t, download=name, src="s4", dst="d4", bytes=9))
        at = next(n for n, each in enumerate(events) if each.t >= t + 1)
        events.insert(at, DownloadEnded(t=t + 1, download=name, bytes=9, duration_s=1.0))
    async with playing(live(iter(events))) as (app, _):
        view = app.main.view
        flows = lineup.drawn(view)
        assert len(flows) == 5
        assert not lineup.crowded(view, flows)
        view.shown.playhead.t = 12.5
        assert lineup.crowded(view, flows)
