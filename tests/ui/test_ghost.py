"""The ghost is drawn under the session; a key and a dialog choose it."""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ccplay.model.base import Event
from ccplay.model.commands import SetCongestionControl
from ccplay.model.events import Applied
from ccplay.stream import wire
from ccplay.stream.sources import ReplaySource
from ccplay.ui import plot_ghosts
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.dialog_form import TextField
from ccplay.ui.dialogs_session import GhostDialog
from ccplay.ui.main_screen import MainScreen
from ccplay.ui.plot_canvas import GUTTER, Canvas
from ccplay.ui.plot_row import DEFAULT, plot_at
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import RECORDING, SIZES, SnapCompare, app_on, at, settled
from tests.ui.view import seek, text_of


def record(path: Path, events: Iterator[Event] | None = None) -> Path:
    """Write a synthetic session to a file; return its path."""
    path.write_bytes(b"".join(wire.encode(each) for each in events or stream(seconds=30)))
    return path


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return a recording with one flow, which has the queue to itself."""
    return record(tmp_path / "one-flow.ccplay", stream(flows=1, seconds=40))


@asynccontextmanager
async def haunted(
    ghost: Path, source: SyntheticSource | None = None, **options: Any
) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run the app with a ghost; yield once the session and the ghost are read."""
    source = source or SyntheticSource(stream(seconds=30))
    async with playing(source, ghost=ghost, **options) as (app, pilot):
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        seek(app, 20.0)
        yield app, pilot


async def test_the_ghost_is_named_and_its_values_are_reported(earlier: Path) -> None:
    async with haunted(earlier) as (app, _):
        assert "ghost: one-flow.ccplay" in text_of(app, "header")
        table = text_of(app, "flows").splitlines()
        assert table[1].startswith("▸● 1")
        assert table[2].startswith("⠂• 1")
        ghost = app.main.ghosts.shown
        assert ghost is not None
        cwnd = ghost.state.flows["1"].series["cwnd"].at(ghost.state.sweeps.before_or_at(20.0))
        assert f"⠂• {cwnd:.0f}" in text_of(app, "cwnd").splitlines()[0]
        assert f" {cwnd:.0f} " in table[2]


def inks_of(app: CcplayApp, name: str) -> set[str]:
    """Return the colours of a plot's dots."""
    plot = app.main.query_one(f"#{name}", Canvas)
    return {
        ink for row in plot._cells[1:-1] for char, ink in row[GUTTER:] if "⠀" < char <= "\u28ff"
    }


@pytest.mark.parametrize("name", DEFAULT)
async def test_the_ghost_has_colours_of_its_own_in_every_plot(earlier: Path, name: str) -> None:
    async with haunted(earlier) as (app, _):
        view = app.main.view
        ghostly = {plot_ghosts.flow_ink(view, "1"), view.ghost_ink("queue")}
        assert inks_of(app, name) & ghostly
        app.main.ghosts.shown = None
        app.main.redraw()
        assert not inks_of(app, name) & ghostly


async def test_no_cell_of_the_session_is_changed_by_a_ghost_under_it(earlier: Path) -> None:
    """On the same axes, the cells of the session are the same with and without a ghost."""
    async with haunted(earlier) as (app, _):
        screen = app.main
        plot = screen.query_one("#cwnd", Canvas)
        live_inks = {screen.view.flow_ink(name) for name in ("1", "2")}
        with_ghost = _cells_in(plot, live_inks)
        screen.ghosts.shown = None
        # The axis stays the same: it shrinks only below 60 %, and the ghost's peak was near.
        plot.picture = None
        plot.draw(plot_at(screen.view, "cwnd").picture(screen.view))
        assert with_ghost == _cells_in(plot, live_inks)


def _cells_in(plot: Canvas, inks: set[str]) -> dict[tuple[int, int], str]:
    return {
        (x, y): char
        for y, row in enumerate(plot._cells[1:-1])
        for x, (char, ink) in enumerate(row)
        if ink.removeprefix("bold ") in inks
    }


async def test_what_was_done_in_the_ghost_is_marked_at_the_foot(earlier: Path) -> None:
    """The ghost's change of the queue at 22 s, after the cursor, is marked at the plot's foot."""
    async with haunted(earlier) as (app, _):
        plot = app.main.query_one("#queue", Canvas)
        x = GUTTER + plot._column(22.0)
        assert plot._cells[plot.lines][x] == ("┊", app.main.view.ghost_ink("mark"))
        assert plot._cells[1][x][0] != "┊"


async def test_the_axis_has_room_for_the_ghost(tmp_path: Path) -> None:
    """The axis has room for a ghost's queue of 100 packets under a session without traffic."""
    ghost = record(tmp_path / "full.ccplay", stream(flows=8, seconds=20))
    async with haunted(ghost, SyntheticSource(stream(busy=False))) as (app, _):
        seek(app, 0.1)
        assert app.main.query_one("#queue", Canvas).scale.top >= 100


@pytest.mark.parametrize("cells", [False, True])
async def test_drawing_piece_by_piece_ends_like_drawing_at_once(earlier: Path, cells: bool) -> None:
    """Drawing only new columns, with the ghost's dots ahead of them, equals drawing all at once."""
    source = SyntheticSource(stream(flows=2, seconds=40))
    async with haunted(earlier, source, ascii=cells) as (app, _):
        screen = app.main
        head = screen.shown.playhead
        head.width, head.speed, head.t, head.left = 30.0, 1.0, 0.0, 0.0
        for plot in screen.query(Canvas):
            plot.blank(plot.width, plot.height)
        for step in range(1, 390):
            head.running = True
            head.advance(40.0, 0.1, done=True)
            for plot in screen.query(Canvas):
                drawn = plot_at(screen.view, plot.id or "").picture(screen.view)
                plot.draw(drawn)
                if step % 97 == 0:
                    piecewise = [list(row) for row in plot._cells[1:]]
                    plot.picture = None
                    plot.draw(drawn)
                    assert plot._cells[1:] == piecewise, (plot.id, head.t)


async def test_a_frame_without_news_repaints_nothing(earlier: Path) -> None:
    async with haunted(earlier) as (app, pilot):
        await pilot.pause()
        app.main.redraw()
        assert not any(sheet._repaint_regions for sheet in app.main.query(Sheet))


async def test_ascii_is_ascii(earlier: Path) -> None:
    async with haunted(earlier, ascii=True) as (app, _):
        shown = "".join(text_of(app, sheet.id or "") for sheet in app.main.query(Sheet))
        assert shown.isascii(), {char for char in shown if not char.isascii()}


@pytest.fixture
def here(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to the folder of the recording; return it."""
    monkeypatch.chdir(earlier.parent)
    return earlier.parent


@pytest.mark.parametrize("recorded", [False, True])
async def test_g_lays_the_newest_recording_and_takes_it_away(here: Path, recorded: bool) -> None:
    source = SyntheticSource(stream(seconds=30), live=not recorded)
    async with playing(source) as (app, pilot):
        await pilot.press("g", "enter")
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        await until(pilot, lambda: "ghost: one-flow.ccplay" in text_of(app, "header"))
        await pilot.press("g", "enter")
        await until(pilot, lambda: app.main.ghosts.shown is None)
        await until(pilot, lambda: "ghost" not in text_of(app, "header"))


async def test_escape_leaves_the_ghost_alone(here: Path, earlier: Path) -> None:
    async with haunted(earlier) as (app, pilot):
        await pilot.press("g", "escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        assert app.main.ghosts.shown is not None


async def test_an_earlier_attempt_lies_under_the_next_one(here: Path) -> None:
    """An earlier attempt, chosen as a ghost, begins together with the next command of its kind.

    Here that is flow 1's switch of algorithm at 14 s.
    """
    async with playing(live(stream(seconds=30))) as (app, pilot):
        screen, state = app.main, app.session.state
        await until(pilot, lambda: screen.shown.playhead.t > 29)
        screen.shown.playhead.jump(14.3, state.now)
        await pilot.press("g", "t", "enter")
        waits = "from 00:14 on, waits for the next set-congestion-control"
        await until(pilot, lambda: waits in text_of(app, "header"))
        assert screen.shown.playhead.running
        assert screen.view.shift is None
        again = SetCongestionControl(cc="bbr", flow="1")
        state.apply(Applied(t=33.0, command=again))
        assert screen.view.shift == pytest.approx(33.0 - 14.0)
        await until(pilot, lambda: "waits" not in text_of(app, "header"))


async def open_dialog(app: CcplayApp, pilot: Pilot[int]) -> GhostDialog:
    await pilot.press("g")
    await until(pilot, lambda: isinstance(app.screen, GhostDialog) and app.focused is not None)
    assert isinstance(app.screen, GhostDialog)
    return app.screen


async def test_a_live_session_at_its_head_has_nothing_to_repeat(tmp_path: Path) -> None:
    """At the live head the dialog explains how to choose an attempt to repeat."""
    async with playing(live()) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 19)
        dialog = await open_dialog(app, pilot)
        assert "freeze" in dialog.menu.items[0].missing


@pytest.mark.parametrize(
    ("typed", "said"),
    [("none.ccplay", "No such file"), (".", "Is a directory"), ("text.txt", "not a")],
)
async def test_the_reason_why_a_path_is_no_recording_is_reported(
    here: Path, typed: str, said: str
) -> None:
    (here / "text.txt").write_text("hello\n")
    async with playing(live()) as (app, pilot):
        dialog = await open_dialog(app, pilot)
        dialog.query_one(Input).value = typed
        await pilot.press("tab", "enter")
        assert app.screen is dialog
        assert said in str(dialog.query_one(TextField).render())


async def test_a_path_that_is_typed_wins_over_the_list(here: Path) -> None:
    record(here / "sub.dat")
    async with playing(live()) as (app, pilot):
        dialog = await open_dialog(app, pilot)
        dialog.query_one(Input).value = "sub.dat"
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        assert app.main.ghosts.shown is not None
        assert app.main.ghosts.shown.name == "sub.dat"


@pytest.fixture
def broken(here: Path, earlier: Path) -> None:
    """Insert an invalid line 51 into the recording."""
    lines = earlier.read_bytes().splitlines(keepends=True)
    earlier.write_bytes(b"".join([*lines[:50], b"{broken\n", *lines[50:]]))


@pytest.mark.usefixtures("broken")
async def test_a_recording_that_breaks_off_inside_is_reported_in_a_toast() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("g", "enter")
        await until(pilot, lambda: any(":51" in each.message for each in app._notifications))
        assert app.main.ghosts.shown is None


@pytest.mark.parametrize("size", SIZES)
async def test_the_dialog_fits_on_the_screen(here: Path, size: tuple[int, int]) -> None:
    for number in range(20):
        record(here / f"a-recording-with-a-long-name-{number}.ccplay", stream(seconds=3))
    async with playing(live(), size) as (app, pilot):
        dialog = await open_dialog(app, pilot)
        box = dialog.query_one("#box")
        assert dialog.region.contains_region(box.region)
        assert box.max_scroll_y == 0


# --- pictures -----------------------------------------------------------------------------------


def at_with_ghost(app: CcplayApp, t: float) -> Callable[[Pilot[int]], Any]:
    """Return a function that moves the playhead to ``t`` once session and ghost are read."""

    async def seek(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        await at(app, t)(pilot)

    return seek


@pytest.mark.parametrize("size", SIZES)
def test_a_ghost(snap_compare: SnapCompare, earlier: Path, size: tuple[int, int]) -> None:
    """The screen with a ghost of one flow under two that share the network."""
    app = app_on(ReplaySource(RECORDING), ghost=earlier)
    assert snap_compare(app, terminal_size=size, run_before=at_with_ghost(app, 20.0))


def test_a_ghost_without_colour(
    snap_compare: SnapCompare, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(ReplaySource(RECORDING), ghost=earlier)
    assert snap_compare(app, terminal_size=(120, 40), run_before=at_with_ghost(app, 20.0))


def test_a_ghost_in_ascii(snap_compare: SnapCompare, earlier: Path) -> None:
    app = app_on(ReplaySource(RECORDING), ghost=earlier, ascii=True)
    assert snap_compare(app, terminal_size=(80, 24), run_before=at_with_ghost(app, 20.0))


def test_the_dialog(snap_compare: SnapCompare, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    (here / "notes.ccplay").write_text("none\n")
    app = app_on(ReplaySource(RECORDING))

    async def ask(pilot: Pilot[int]) -> None:
        await at(app, 14.3)(pilot)
        await open_dialog(app, pilot)
        await settled(app, pilot)

    try:
        assert snap_compare(app, terminal_size=(80, 24), run_before=ask)
    finally:
        monkeypatch.undo()
        time.tzset()
