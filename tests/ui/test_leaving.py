"""Leaving asks only if a session would be lost; earlier sessions are offered as ghosts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.pilot import Pilot
from textual.widgets import Input

from ccplay.model.commands import SetQdisc
from ccplay.session import archive
from ccplay.session.archive import Bounds, SessionRecorder, Unsaved, read_recording
from ccplay.session.session import Session
from ccplay.stream.sinks import Sink
from ccplay.ui.app import CcplayApp
from ccplay.ui.dialogs_session import GhostDialog, LeaveDialog
from ccplay.ui.palette import Palette
from tests.fake_lab import CODEL, FakeLab
from tests.ui.synthetic import stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import SIZES


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder; return it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def showing(
    *sinks: Sink, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run the screen of a lab whose queue was changed by hand."""
    app = CcplayApp(Session(FakeLab(), title="test", sinks=sinks))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.session.state.ready_at is not None)
        app.main.ask(SetQdisc(qdisc=CODEL))
        await until(pilot, lambda: len(app.session.state.applied) == 1)
        yield app, pilot


async def asked(app: CcplayApp, pilot: Pilot[int]) -> LeaveDialog:
    await pilot.press("ctrl+q")
    await until(pilot, lambda: isinstance(app.screen, LeaveDialog) and bool(app.screen.focused))
    assert isinstance(app.screen, LeaveDialog)
    return app.screen


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def left(app: CcplayApp) -> bool:
    return app._exit


async def test_a_session_that_is_recorded_is_left_at_once() -> None:
    async with showing(SessionRecorder("x", bounds=Bounds(keep_free=0))) as (app, pilot):
        await pilot.press("ctrl+q")
        assert left(app)
    (path,) = archive.sessions()
    assert [each.command for each in read_recording(path).applied] == [SetQdisc(qdisc=CODEL)]


async def test_a_recording_is_left_at_once() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("ctrl+q")
        assert left(app)


async def test_a_session_that_the_archive_could_not_record_is_asked_about(here: Path) -> None:
    """With a full disk the whole session is in memory, and can be saved on another one."""
    async with showing(SessionRecorder("x", bounds=Bounds(keep_free=1 << 60))) as (app, pilot):
        await asked(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: left(app))
    assert archive.sessions() == []
    (name,) = names(here)
    assert [each.command for each in read_recording(here / name).applied] == [SetQdisc(qdisc=CODEL)]


@pytest.mark.parametrize("size", SIZES)
async def test_a_session_that_is_recorded_nowhere_can_be_saved(
    here: Path, size: tuple[int, int]
) -> None:
    async with showing(Unsaved("A race"), size=size) as (app, pilot):
        dialog = await asked(app, pilot)
        assert dialog.region.contains_region(dialog.query_one("#box").region)
        assert not left(app)
        await pilot.press("enter")
        await until(pilot, lambda: left(app))
    (name,) = names(here)
    assert name.startswith("session-")
    state = read_recording(here / name)
    assert [each.command for each in state.applied] == [SetQdisc(qdisc=CODEL)]
    assert state.hello is not None
    assert state.hello.title == "A race"


async def test_an_existing_file_is_replaced_at_the_second_enter_only(here: Path) -> None:
    (here / "mine.ccplay").write_text("other")
    async with showing(Unsaved()) as (app, pilot):
        dialog = await asked(app, pilot)
        dialog.query_one(Input).value = "mine"
        await pilot.press("enter")
        assert not left(app)
        assert (here / "mine.ccplay").read_text() == "other"
        await pilot.press("enter")
        await until(pilot, lambda: left(app))
    assert read_recording(here / "mine.ccplay").applied


@pytest.mark.parametrize("keys", [["2", "enter"], ["ctrl+q"]])
async def test_it_can_be_left_unsaved(here: Path, keys: list[str]) -> None:
    async with showing(Unsaved()) as (app, pilot):
        await asked(app, pilot)
        await pilot.press(*keys)
        await until(pilot, lambda: left(app))
    assert names(here) == []


async def test_one_can_stay() -> None:
    async with showing(Unsaved()) as (app, pilot):
        for keys in (["3", "enter"], ["escape"]):
            await asked(app, pilot)
            await pilot.press(*keys)
            await until(pilot, lambda: app.screen is app.main)
            assert not left(app)
            assert app.session.live


async def test_nothing_is_asked_before_there_is_anything_to_lose() -> None:
    app = CcplayApp(Session(live(iter([next(stream())])), sinks=[Unsaved()]))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.session.state.hello is not None)
        await pilot.press("ctrl+q")
        assert left(app)


# --- earlier sessions as ghosts -------------------------------------------------------------


def session_of(seconds: float, label: str = "playground") -> Path:
    """Record a synthetic session; return its path."""
    sink = SessionRecorder(label, bounds=Bounds(keep_free=0))
    for event in stream(flows=1, seconds=seconds):
        sink.put(event)
    sink.close()
    assert sink.path is not None
    return sink.path


async def test_the_last_session_is_the_first_of_the_recordings_and_never_ones_own() -> None:
    last = session_of(30)
    own = SessionRecorder("own", bounds=Bounds(keep_free=0))
    async with showing(own) as (app, pilot):
        assert len(archive.sessions()) == 2
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, GhostDialog) and bool(app.screen.focused))
        dialog = app.screen
        assert isinstance(dialog, GhostDialog)
        assert [each.label for each in dialog.menu.items] == ["this session", "last session"]
        assert dialog.menu.item.label == "last session"
        assert dialog.menu.item.summary.endswith("playground")
        await pilot.press("enter")
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        assert app.main.ghosts.shown is not None
        assert app.main.ghosts.shown.name == last.name


async def test_a_session_is_typed_by_name_in_the_dialog() -> None:
    session_of(10)
    async with playing(live()) as (app, pilot):
        await pilot.press("g")
        await until(pilot, lambda: isinstance(app.screen, GhostDialog) and bool(app.screen.focused))
        field = app.screen.query_one(Input)
        field.focus()
        field.value = "@7"
        await pilot.press("enter")
        assert isinstance(app.screen, GhostDialog)
        field.value = "last"
        await pilot.press("enter")
        await until(pilot, lambda: app.main.ghosts.shown is not None)


async def test_the_palette_lays_the_last_session_under_this_one() -> None:
    path = session_of(10)
    async with playing(live()) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Palette))
        app.screen.query_one(Input).value = "ghost: last session"
        found = app.screen.query_one(CommandList)
        await until(pilot, lambda: found.option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.main.ghosts.shown is not None)
        assert app.main.ghosts.shown is not None
        assert app.main.ghosts.shown.name == path.name
