"""A key draws theory over a flow's cwnd, without a change of the measured line or its axis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ccplay.stream import wire
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.plot_pane import lack
from ccplay.ui.plot_row import plot_at
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import RECORDING, SIZES, SnapCompare, app_on, at, settled
from tests.ui.view import text_of, toasts

_FIRST, _LAST = 0x2800, 0x28FF
"""First and last Braille pattern: without a dot, and with all eight."""


@asynccontextmanager
async def frozen(t: float = 13.5, **options: Any) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run the app on a synthetic recording, stopped at ``t``, with flow 1 (CUBIC) selected."""
    async with playing(SyntheticSource(stream(seconds=30)), **options) as (app, pilot):
        await at(app, t)(pilot)
        yield app, pilot


def cwnd_plot(app: CcplayApp) -> Canvas:
    return app.main.query_one("#cwnd", Canvas)


def title(app: CcplayApp) -> str:
    return text_of(app, "cwnd").splitlines()[0]


async def test_y_lays_both_lines_and_takes_them_away() -> None:
    async with frozen() as (app, pilot):
        before = text_of(app, "cwnd")
        await pilot.press("y")
        assert "W(t) " in title(app)
        assert "Reno " in title(app)
        area = text_of(app, "cwnd").partition("\n")[2]
        assert "W" in area
        assert "R" in area
        assert toasts(app) == []
        await pilot.press("y")
        assert text_of(app, "cwnd") == before


async def test_the_title_shows_the_theoretical_cwnd_at_the_moment_shown() -> None:
    async with frozen() as (app, pilot):
        await pilot.press("y")
        view = app.main.view
        assert view.theory is not None
        assert f"W(t) {view.theory.cubic.at(view.tick):.0f} " in title(app)
        assert f"Reno {view.theory.reno.at(view.tick):.0f} " in title(app)


async def test_it_goes_with_the_selection() -> None:
    async with frozen() as (app, pilot):
        await pilot.press("y", "down")
        theory = app.main.view.theory
        assert theory is not None
        assert theory.flow.name == "2"


async def test_what_was_measured_keeps_its_dots_its_marks_and_its_axis() -> None:
    """Theory keeps the dots and marks of the measured line, and adds dots, colours and letters."""
    async with frozen() as (app, pilot):
        plot = cwnd_plot(app)
        # A short window is used: in a long one, any line covers the band of the measured one.
        await pilot.press("plus")
        top, before = plot.scale.top, [[char for char, _ in row] for row in plot._cells]
        await pilot.press("y")
        assert plot.scale.top == top
        letters = 0
        for old, row in zip(before[1:-1], plot._cells[1:-1], strict=True):
            for was, (now, _) in zip(old, row, strict=True):
                if _FIRST < ord(was) <= _LAST and _FIRST < ord(now) <= _LAST:
                    assert ord(was) | ord(now) == ord(now)
                elif was != now and _FIRST < ord(was) <= _LAST:
                    assert now in "WR"
                    letters += 1
                elif was in "●■":
                    assert now == was
        assert letters <= 6


async def test_a_curve_far_above_what_was_measured_is_not_shown() -> None:
    """A curve far above cwnd does not enlarge the axis: W(t) grows with the cube of time."""
    async with frozen(29.0) as (app, pilot):
        plot = cwnd_plot(app)
        await pilot.press("y", "down")
        theory = app.main.view.theory
        assert theory is not None
        epoch = theory.epochs[-1]
        for tick in range(epoch.tick, theory.cubic.end):
            theory.cubic._values[tick - theory.cubic.first] = 1e6
        plot.picture = None
        plot.draw(plot_at(app.main.view, "cwnd").picture(app.main.view))
        assert plot.scale.top <= 250


@pytest.mark.parametrize("cells", [False, True])
async def test_drawing_piece_by_piece_ends_like_drawing_at_once(cells: bool) -> None:
    source = SyntheticSource(stream(flows=2, seconds=40))
    async with playing(source, ascii=cells) as (app, pilot):
        await pilot.press("y")
        plot, head = cwnd_plot(app), app.main.shown.playhead
        head.width, head.speed, head.t, head.left = 30.0, 1.0, 0.0, 0.0
        plot.blank(plot.width, plot.height)
        for step in range(1, 390):
            head.running = True
            head.advance(40.0, 0.1, done=True)
            drawn = plot_at(app.main.view, "cwnd").picture(app.main.view)
            plot.draw(drawn)
            if step % 97 == 0:
                piecewise = [list(row) for row in plot._cells[1:]]
                plot.picture = None
                plot.draw(drawn)
                assert plot._cells[1:] == piecewise, head.t


class Waiting(SyntheticSource):
    """A lab whose first flow has just begun, and that continues once ``go_on`` is set."""

    def __init__(self) -> None:
        super().__init__(stream(seconds=14), live=True)
        self.go_on = asyncio.Event()

    async def events(self) -> AsyncIterator[Any]:
        async for event in super().events():
            if event.t > 1.2:
                await self.go_on.wait()
            yield event


async def test_live_it_follows_what_is_measured() -> None:
    """Theory that is requested before the first reduction appears with it."""
    source = Waiting()
    app = app_on(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.main.view.shown.selected == "1")
        await pilot.press("y")
        assert toasts(app) == [
            "cwnd of flow 1 has not been reduced yet; theory starts at its first reduction."
        ]
        source.go_on.set()
        await until(pilot, lambda: source.drained)
        await until(pilot, lambda: "W(t) " in title(app))


async def test_a_frame_without_news_repaints_nothing_and_theory_is_kept() -> None:
    async with frozen() as (app, pilot):
        await pilot.press("y")
        theory = app.main.view.theory
        await pilot.pause()
        app.main.redraw()
        assert not any(sheet._repaint_regions for sheet in app.main.query(Sheet))
        assert app.main.view.theory is theory


async def test_without_a_flow_there_is_nothing_to_lay() -> None:
    async with playing(live(stream(busy=False))) as (app, pilot):
        await pilot.press("y")
        assert toasts(app) == ["No flow is selected: select one with ↑↓ to see theory."]


async def test_bbr_follows_neither() -> None:
    """A flow with BBR has no theory; flow 1 of the recording switches to BBR at 17 s."""
    app = app_on(ReplaySource(RECORDING))
    async with app.run_test(size=(120, 40)) as pilot:
        await at(app, 20.0)(pilot)
        await pilot.press("y")
        assert toasts(app) == ["Flow 1 runs BBR, which follows neither W(t) nor Reno's line."]
        await pilot.press("down")
        assert app.main.view.theory is not None


async def test_after_a_switch_it_reports_what_it_waits_for() -> None:
    """After a switch the reason names the wait for a reduction.

    Flow 1 switches from CUBIC to Reno at 14 s, and is first reduced with Reno at 14.4 s.
    """
    async with frozen(14.3) as (app, pilot):
        head = app.main.shown.playhead
        await pilot.press("y")
        assert lack(app.main.view) == ""
        head.left, head.width = 14.1, 0.25
        said = "cwnd of flow 1 has not been reduced since it switched to reno"
        assert lack(app.main.view) == f"{said}; theory starts at its first reduction."


async def test_ascii_is_ascii() -> None:
    async with frozen(ascii=True) as (app, pilot):
        await pilot.press("y")
        assert text_of(app, "cwnd").isascii()
        assert "W" in text_of(app, "cwnd").partition("\n")[2]


# --- pictures -----------------------------------------------------------------------------------


async def _laid(app: CcplayApp, pilot: Pilot[int]) -> None:
    await pilot.press("y")
    await settled(app, pilot)


@pytest.mark.parametrize("size", SIZES)
def test_theory(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    """The screen with theory over Reno, which follows its line and ends far below W(t)."""
    app = app_on(ReplaySource(RECORDING))

    async def lay(pilot: Pilot[int]) -> None:
        await at(app, 12.5)(pilot)
        await _laid(app, pilot)

    assert snap_compare(app, terminal_size=size, run_before=lay)


def test_theory_with_a_ghost_under_it(snap_compare: SnapCompare, tmp_path: Path) -> None:
    ghost = tmp_path / "one-flow.ccplay"
    ghost.write_bytes(b"".join(wire.encode(each) for each in stream(flows=1, seconds=40)))
    app = app_on(ReplaySource(RECORDING), ghost=ghost)

    async def lay(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        await at(app, 12.5)(pilot)
        await _laid(app, pilot)

    assert snap_compare(app, terminal_size=(120, 40), run_before=lay)


def test_theory_without_colour(snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(ReplaySource(RECORDING))

    async def lay(pilot: Pilot[int]) -> None:
        await at(app, 12.5)(pilot)
        await _laid(app, pilot)

    assert snap_compare(app, terminal_size=(120, 40), run_before=lay)
