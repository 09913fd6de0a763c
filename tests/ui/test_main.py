"""The main screen sends commands by keys, shows the past, and reports the end of a session."""

import asyncio
import gc
import itertools
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.binding import Binding
from textual.events import Key
from textual.pilot import Pilot

from ccplay.errors import LabError
from ccplay.model.base import Event
from ccplay.model.commands import SetQdisc
from ccplay.model.events import Ended, Failed, Hello, Ready
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.session.session import Session
from ccplay.stream.sinks import Sink
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.ui import pictures
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.main_screen import MainScreen
from ccplay.ui.pictures import frame_of, png, stem, svg
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.plot_row import plot_at
from tests.terminals import PATIENCE_S
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.view import seek, text_of


class DyingSource(SyntheticSource):
    """A lab that is killed after its last event."""

    async def events(self) -> AsyncIterator[Any]:
        async for event in super().events():
            yield event
        raise LabError("the lab ended by signal 9")


@asynccontextmanager
async def playing(
    source: SyntheticSource,
    size: tuple[int, int] = (120, 40),
    sinks: Sequence[Sink] = (),
    **options: Any,
) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run the app; yield once all events are read. A replay that starts at a moment stays there."""
    options = {"speed": 1e-9 if "start_at" in options else 1.0} | options
    app = CcplayApp(Session(source, title="test", sinks=sinks), **options)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: source.drained)
        app.main.draw()
        yield app, pilot


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait until a condition holds. Fails after ``PATIENCE_S``.

    It looks less often the longer it waits: a look may render the whole screen.
    """
    wait_s = 0.01
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(wait_s)
            wait_s = min(1.5 * wait_s, 0.1)


def live(events: Iterator[Event] | None = None) -> SyntheticSource:
    return SyntheticSource(events or stream(seconds=20), live=True)


async def test_f_starts_a_flow() -> None:
    async with playing(live(stream(busy=False))) as (app, pilot):
        await pilot.press("f")
        await pilot.press("enter")
        source = app.session._source
        assert isinstance(source, SyntheticSource)
        assert [type(each) for each in source.sent] == [StartFlow]


async def test_the_network_has_a_row_for_each_host_of_the_fuller_side() -> None:
    hello = next(stream())
    assert isinstance(hello, Hello)
    network = plan(Topology(kind="parking-lot", parameters={"hops": 5}))
    events: list[Event] = [replace(hello, network=network), Ready(t=0.1)]
    async with playing(live(iter(events)), size=(120, 60)) as (app, pilot):
        for _ in network.observed:
            app.main.draw()
            await pilot.pause()
            shown = text_of(app, "network").split()
            assert set(network.hosts) <= set(shown)
            await pilot.press("b")


async def test_x_stops_the_selected_flow() -> None:
    async with playing(source := live()) as (_, pilot):
        await pilot.press("down", "x", "x")
        assert source.sent == [StopFlow(flow="2")], "a key may be held"


async def test_a_recording_takes_no_commands() -> None:
    async with playing(source := SyntheticSource(stream(seconds=20))) as (app, pilot):
        await pilot.press("f", "x")
        assert source.sent == []
        assert isinstance(app.screen, MainScreen)


async def test_space_freezes_and_the_recording_continues() -> None:
    async with playing(live()) as (app, pilot):
        screen = app.main
        await until(pilot, lambda: screen.shown.playhead.t > 19)
        await pilot.press("space")
        frozen = screen.shown.playhead.t
        app.session.state.apply(Failed(t=30.0, command=None, message="no"))
        await pilot.pause(0.3)
        assert screen.shown.playhead.t == frozen
        assert "frozen" in text_of(app, "header")
        await pilot.press("end")
        await until(pilot, lambda: screen.shown.playhead.t == 30.0)


async def test_scrolling_back_shows_what_was_then() -> None:
    """Scrolled back to 10 s, the screen shows CUBIC and the limit of 100, which changed later."""
    async with playing(SyntheticSource(stream(seconds=30)), start_at=28.0) as (app, pilot):
        assert "reno" in seek(app, 28.0).splitlines()[1]
        assert "/40 pkt" in text_of(app, "network")
        assert "→ pfifo 40 pkt" in text_of(app, "events")
        assert "cubic" in seek(app, 10.0).splitlines()[1]
        assert "/100 pkt" in text_of(app, "network")
        assert "→ pfifo 40 pkt" not in text_of(app, "events")
        await pilot.press("home")
        assert app.main.shown.playhead.t == 0


async def test_a_lab_that_dies_is_reported_and_the_screen_stays_usable() -> None:
    source = DyingSource(stream(seconds=20), live=True)
    source.stays = False
    async with playing(source) as (app, pilot):
        await until(pilot, lambda: app.session.error is not None)
        await until(pilot, lambda: "the lab ended by signal 9" in text_of(app, "banner"))
        assert "scroll" in text_of(app, "banner")
        await pilot.press("left", "left")
        assert app.main.shown.playhead.t < 20
        assert "lab died" in text_of(app, "header")


async def test_an_orderly_end_is_reported() -> None:
    source = live(iter([*stream(seconds=5), Ended(t=6.0, reason="asked to end")]))
    source.stays = False
    async with playing(source) as (app, pilot):
        await until(pilot, lambda: app.session.done and not app.main.shown.playhead.running)
        await until(pilot, lambda: "asked to end" in text_of(app, "banner"))
        await pilot.press("f")
        assert isinstance(app.screen, MainScreen)


async def test_a_refused_command_raises_a_toast() -> None:
    async with playing(live()) as (app, pilot):
        app.session.state.apply(Failed(t=21.0, command=None, message='no "fq" here'))
        await until(pilot, lambda: any("fq" in each.message for each in app._notifications))


async def test_while_the_network_builds_the_plan_is_shown() -> None:
    events = itertools.takewhile(lambda event: event.t < 0.1, stream())
    async with playing(live(events)) as (app, pilot):
        await until(pilot, lambda: "building" in text_of(app, "banner"))
        assert "4/4" in text_of(app, "banner")
        assert "r1" in text_of(app, "network")


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (79, 24), (80, 23), (300, 90)])
async def test_every_size_works(size: tuple[int, int]) -> None:
    async with playing(live(), size) as (app, pilot):
        app.main.redraw()
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        app.main.redraw()
        assert "congestion window" in text_of(app, "cwnd")
        await pilot.resize_terminal(*size)
        await pilot.pause()


async def test_a_terminal_too_small_is_reported() -> None:
    async with playing(live(), (70, 20)) as (app, pilot):
        await until(pilot, lambda: "80x24" in text_of(app, "too-small"))


async def test_all_keys_at_any_time() -> None:
    """No key fails in any phase of a session."""
    keys = [each.key.split(",")[0] for each in MainScreen.BINDINGS if isinstance(each, Binding)]
    for source in (live(stream(busy=False)), live(), SyntheticSource(stream(seconds=10))):
        async with playing(source) as (app, pilot):
            for key in keys:
                if key != "s":
                    await pilot.press(key)
                    if not isinstance(app.screen, MainScreen):
                        await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, MainScreen))


def files_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def saved(pilot: Pilot[int], folder: Path, *names: str) -> None:
    """Wait until these pictures exist; a thread writes them."""
    await until(pilot, lambda: all((folder / name).exists() for name in names))


async def test_s_saves_what_is_seen_as_svg_and_png(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with playing(live()) as (app, pilot):
        await pilot.press("space")
        name, frame = stem(app.main.shown.playhead.t), frame_of(app)
        await pilot.press("s")
        await saved(pilot, tmp_path, f"{name}.svg", f"{name}.png")
        assert (tmp_path / f"{name}.svg").read_text() == svg(frame, "ccplay")
        assert (tmp_path / f"{name}.png").read_bytes() == png(frame)
        await until(pilot, lambda: len(app.main.notices) == 2)
        assert [each.text for each in app.main.notices] == [
            f"saved {name}.svg",
            f"saved {name}.png",
        ]


async def test_the_screen_does_not_wait_for_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    go_on = threading.Event()

    def slow(_: object) -> bytes:
        assert go_on.wait(PATIENCE_S)
        return b"drawn"

    monkeypatch.setattr(pictures, "DRAWN", {".png": slow})
    async with playing(live()) as (app, pilot):
        await pilot.press("s", "space")
        await until(pilot, lambda: not app.main.shown.playhead.running)
        assert not files_in(tmp_path)
        go_on.set()
        await until(pilot, lambda: len(app._notifications) == 1)
        assert len(files_in(tmp_path)) == 1
        go_on.clear()
        await pilot.press(*["s"] * 30)
        go_on.set()
        await until(pilot, lambda: "pictures" not in {each.group for each in app.workers})
    assert len(files_in(tmp_path)) == 4, "a key that is held saves three at a time"


async def test_a_picture_asked_for_as_the_app_ends_leaves_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Python warns on the terminal of a coroutine that never ran."""
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("always")
    async with playing(live()) as (app, _):
        app.main.action_picture()
        app.workers.cancel_all()
    gc.collect()
    assert not [each for each in recwarn if "never awaited" in str(each.message)]


async def test_a_picture_is_never_written_over_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture never overwrites a file: others may write to the folder and guess the name."""
    monkeypatch.chdir(tmp_path)
    async with playing(live()) as (app, pilot):
        await pilot.press("space")
        name = stem(app.main.shown.playhead.t)
        (tmp_path / "precious").write_text("mine")
        for suffix in (".svg", ".png"):
            (tmp_path / f"{name}{suffix}").symlink_to("precious")
        await pilot.press("s")
        await saved(pilot, tmp_path, f"{name}-2.svg", f"{name}-2.png")
        assert (tmp_path / "precious").read_text() == "mine"
        assert (tmp_path / f"{name}-2.svg").read_text().startswith("<svg")
        assert (tmp_path / f"{name}-2.png").read_bytes().startswith(b"\x89PNG")
        assert len(files_in(tmp_path)) == 5


async def test_a_picture_that_can_not_be_saved_is_reported_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "PIL", None)
    async with playing(live()) as (app, pilot):
        folder.rmdir()
        await pilot.press("s")
        await until(pilot, lambda: len(app._notifications) == 2)
        first, second = (each.message for each in app._notifications)
        assert first.startswith("can't save ccplay-")
        assert first.endswith("s.svg: No such file or directory")
        assert "a PNG needs Pillow" in second


async def test_ascii_is_ascii() -> None:
    async with playing(live(), ascii=True) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 19)
        app.main.redraw()
        shown = "".join(text_of(app, sheet.id or "") for sheet in app.main.query(Sheet))
        assert shown.isascii(), {char for char in shown if not char.isascii()}


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("width", [10.0, 30.0])
async def test_drawing_piece_by_piece_ends_like_drawing_at_once(cells: bool, width: float) -> None:
    """Drawing only new columns equals drawing all of them at once."""
    source = SyntheticSource(stream(flows=4, pairs=4, seconds=40))
    async with playing(source, ascii=cells) as (app, _):
        screen = app.main
        head = screen.shown.playhead
        head.width, head.speed, head.t = width, 1.0, 0.0
        for plot in screen.query(Canvas):
            plot.blank(plot.width, plot.height)
        for step in range(1, 390):
            head.running = True
            head.advance(40.0, 0.1, done=True)
            if step % 97 == 0:
                for plot in screen.query(Canvas):
                    drawn = plot_at(screen.view, plot.id or "").picture(screen.view)
                    plot.draw(drawn)
                    piecewise = [list(row) for row in plot._cells[1:]]
                    plot.picture = None
                    plot.draw(drawn)
                    assert plot._cells[1:] == piecewise, (plot.id, head.t)
            for plot in screen.query(Canvas):
                plot.draw(plot_at(screen.view, plot.id or "").picture(screen.view))


async def test_keys_that_more_keys_follow_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a held key is drawn long after its release, and ctrl+q waits behind it."""
    async with playing(SyntheticSource(stream(seconds=20)), start_at=20.0) as (app, pilot):
        drawn: list[object] = []
        monkeypatch.setattr(app.main, "_draw_plots", drawn.append)
        monkeypatch.setattr(app.main, "draw", lambda: None)
        for _ in range(41):
            app.post_message(Key("left", None))
        await until(pilot, lambda: app.main.shown.playhead.t == 0 and not app.keys_wait)
        assert 1 <= len(drawn) <= 2, "one for the last key, and one if it changes the layout"


async def test_no_dialog_waits_for_a_search_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("l")
        searched: list[float] = []
        monkeypatch.setattr(gc, "get_count", lambda: (50_000, 0, 0))
        monkeypatch.setattr(gc, "collect", lambda: searched.append(time.monotonic()))
        await until(pilot, lambda: searched != [])
        assert searched[0] > app._waits_since + 0.4


async def test_a_frame_without_news_repaints_nothing() -> None:
    async with playing(SyntheticSource(stream(seconds=20))) as (app, pilot):
        screen = app.main
        screen.shown.playhead.jump(15.0, 20.0)
        screen.redraw()
        await pilot.pause()
        screen.redraw()
        assert not any(sheet._repaint_regions for sheet in screen.query(Sheet))


def test_the_made_up_session_switches_the_queue() -> None:
    """The synthetic session, on which other tests rely, changes the queue."""
    assert any(
        isinstance(getattr(event, "command", None), SetQdisc) for event in stream(seconds=30)
    )
