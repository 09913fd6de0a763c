"""The screen equals its snapshots at fixed moments of a recording."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ccplay.session.session import Session
from ccplay.stream.sources import ReplaySource, Source
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.preferences import Preferences
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until

SnapCompare = Callable[..., bool]
RECORDING = Path(__file__).parent / "recordings" / "playground.ccplay"
MOVING = RECORDING.with_name("moving.ccplay")
SIZES = [(120, 40), (80, 24)]


def app_on(source: Source, **options: Any) -> CcplayApp:
    return CcplayApp(Session(source, title="playground"), **options)


async def settled(app: CcplayApp, pilot: Pilot[int]) -> None:
    """Wait until every key has had its effect, and every part its final position and size."""
    await pilot.pause()
    sheets = app.main.query(Sheet)
    await until(pilot, lambda: not any(map(_moves, sheets)))
    await still(pilot)


async def still(pilot: Pilot[Any]) -> None:
    """Stop cursors from blinking, so that pictures do not depend on the time."""
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False


def _moves(sheet: Sheet) -> bool:
    # One that was shown and is hidden again keeps the size in which it was drawn.
    sized = not sheet.display or (sheet.width, sheet.height) == sheet.size
    return sheet._layout_required or not sized


def at(app: CcplayApp, t: float) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Return a function that moves the playhead to ``t`` once the recording is read."""

    async def seek(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: app.session.done and app.main.query("#top"))
        # Parts get their heights once the network is known, and must be drawn with them.
        app.main.draw()
        await pilot.pause(0.3)
        await settled(app, pilot)
        head = app.main.shown.playhead
        head.jump(t, app.session.state.now)
        head.left, head.seen = head._page(t), t
        # A caption takes lines from the others.
        app.main.redraw()
        await settled(app, pilot)
        for plot in app.main.query(Canvas):
            # The axes depend on what was shown before, and that depends on the clock.
            plot.blank(plot.width, plot.height)
        app.main.redraw()
        await settled(app, pilot)

    return seek


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("t", [14.0, 26.0])
def test_a_real_recording(snap_compare: SnapCompare, size: tuple[int, int], t: float) -> None:
    """Reno and CUBIC fill a queue at 14 s; flow 1 has switched to BBR by 26 s."""
    app = app_on(ReplaySource(RECORDING))
    assert snap_compare(app, terminal_size=size, run_before=at(app, t))


@pytest.mark.parametrize("size", SIZES)
def test_eight_flows(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = app_on(SyntheticSource(stream(flows=8, pairs=8)))
    assert snap_compare(app, terminal_size=size, run_before=at(app, 33.0))


@pytest.mark.parametrize("look", ["light", "colourblind", "projector"])
def test_looks(snap_compare: SnapCompare, look: str) -> None:
    app = app_on(ReplaySource(RECORDING), look=look)
    assert snap_compare(app, terminal_size=(120, 40), run_before=at(app, 26.0))


def test_ascii(snap_compare: SnapCompare) -> None:
    app = app_on(ReplaySource(RECORDING), ascii=True)
    assert snap_compare(app, terminal_size=(120, 40), run_before=at(app, 26.0))


def test_no_colour(snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(ReplaySource(RECORDING))
    assert snap_compare(app, terminal_size=(120, 40), run_before=at(app, 26.0))


def test_before_the_first_flow(snap_compare: SnapCompare) -> None:
    app = app_on(SyntheticSource(stream(busy=False)))
    assert snap_compare(app, terminal_size=(120, 40), run_before=at(app, 0.12))


@pytest.mark.parametrize("size", SIZES)
def test_a_link_that_moves(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    """Two flows chase a satellite's capacity, whose delay has changed at 17 s."""
    app = app_on(ReplaySource(MOVING), preferences=Preferences(plots=("throughput", "rtt")))
    assert snap_compare(app, terminal_size=size, run_before=at(app, 18.5))
