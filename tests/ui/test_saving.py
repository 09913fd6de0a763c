"""A key saves a session as a scenario: live, frozen or replayed, and never over a file unasked."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ccplay.scenario.reading import load
from ccplay.session.session import Session
from ccplay.stream.sources import ReplaySource
from ccplay.ui import dialogs_session
from ccplay.ui.app import CcplayApp
from ccplay.ui.main_screen import MainScreen
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import RECORDING, SIZES, SnapCompare, at, settled

NAME = "session-20261121-064512.toml"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dialogs_session, "proposal", lambda: NAME)


def keys(text: str) -> list[str]:
    names = {".": "full_stop", "/": "slash", "-": "minus", "~": "tilde"}
    return [names.get(each, each) for each in text]


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


def text_of(name: str) -> str:
    return Path(name).read_text()


def files() -> list[str]:
    return sorted(each.name for each in Path().iterdir())


async def closed(app: CcplayApp, pilot: Pilot[int]) -> None:
    await until(pilot, lambda: isinstance(app.screen, MainScreen))


async def test_a_live_session_is_saved_and_the_screen_reports_how_to_run_it() -> None:
    async with playing(live(stream(seconds=20))) as (app, pilot):
        await pilot.press("S", "enter")
        await closed(app, pilot)
        (toast,) = app._notifications
        assert f"ccplay run {NAME}" in toast.message
    case = load(Path(NAME)).case()
    assert case.title == "test"
    assert [str(step.command.__struct_config__.tag) for step in case.timeline] == [
        "start-flow",
        "start-flow",
        "set-congestion-control",
    ]
    assert case.duration_s == 20


async def test_what_was_typed_is_the_file_and_gets_its_ending() -> None:
    async with playing(live(stream(seconds=5))) as (app, pilot):
        await pilot.press("S", *keys("mine"), "enter")
        await closed(app, pilot)
    assert load(Path("mine.toml")).cases


async def test_no_file_is_replaced_unasked() -> None:
    """A file is replaced only after a second enter; another name asks again."""
    for name in ("a.toml", "b.toml"):
        write(name, "precious")
    async with playing(live(stream(seconds=5))) as (app, pilot):
        await pilot.press("S", *keys("a.toml"), "enter")
        assert isinstance(app.screen, dialogs_session.SaveDialog)
        await pilot.press("backspace", "backspace", *keys("ml"))
        await pilot.press(*["backspace"] * 6, *keys("b.toml"), "enter")
        assert isinstance(app.screen, dialogs_session.SaveDialog)
        assert text_of("b.toml") == "precious"
        await pilot.press("enter")
        await closed(app, pilot)
    assert text_of("a.toml") == "precious"
    assert load(Path("b.toml")).cases


@pytest.mark.parametrize("name", ["nowhere/x.toml", "/", "~nobody-by-that-name/x", "."])
async def test_a_file_that_can_not_be_is_reported_and_the_dialog_stays(name: str) -> None:
    async with playing(live(stream(seconds=5))) as (app, pilot):
        await pilot.press("S", *keys(name), "enter")
        assert isinstance(app.screen, dialogs_session.SaveDialog)
        await pilot.press("escape")
        await closed(app, pilot)
    assert files() == []


async def test_frozen_it_is_saved_up_to_the_moment_shown() -> None:
    async with playing(live(stream(seconds=20))) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 19)
        app.main.shown.playhead.jump(2.0, 20.0)
        await pilot.press("S", "enter")
        await closed(app, pilot)
        assert len(load(Path(NAME)).case().timeline) == 1
        await pilot.press("S", *keys("all"), "tab", "right", "enter")
        await closed(app, pilot)
    assert len(load(Path("all.toml")).case().timeline) == 3


async def test_a_replay_is_saved_whole_wherever_its_playhead_is() -> None:
    app = CcplayApp(Session(ReplaySource(RECORDING), title=RECORDING.name))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.session.done)
        await pilot.press("S", "enter")
        await closed(app, pilot)
        await until(pilot, lambda: app.main.shown.playhead.t > 0)
    case = load(Path(NAME)).case()
    assert case.title == "playground"
    assert len(case.timeline) == 17


async def test_while_the_network_builds_there_is_nothing_to_save() -> None:
    events = (event for event in stream() if event.t < 0.1)
    async with playing(live(events)) as (app, pilot):
        await pilot.press("S")
        assert isinstance(app.screen, MainScreen)
        assert any("still being built" in each.message for each in app._notifications)


@pytest.mark.parametrize("size", SIZES)
def test_how_it_looks(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    Path(NAME).write_text("precious")
    app = CcplayApp(Session(SyntheticSource(stream(seconds=20)), title="test"))
    seek = at(app, 12.0)

    async def open_dialog(pilot: Pilot[int]) -> None:
        await seek(pilot)
        await pilot.press("S", "enter")
        await settled(app, pilot)

    run_before: Callable[[Pilot[int]], Awaitable[None]] = open_dialog
    assert snap_compare(app, terminal_size=size, run_before=run_before)
