"""Marks are set at the cursor, and can be changed, moved and removed."""

import pytest
from textual.pilot import Pilot

from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import Applied
from ccplay.traffic.flow import StopFlow
from ccplay.ui.app import CcplayApp
from ccplay.ui.dialogs_session import ChangeMarkDialog, MarkDialog
from ccplay.ui.main_screen import MainScreen
from tests.ui.test_main import live, playing, until
from tests.ui.view import seek, text_of


async def frozen_at(app: CcplayApp, pilot: Pilot[int], t: float) -> None:
    """Freeze the screen with the cursor at ``t``."""
    await until(pilot, lambda: app.main.shown.playhead.t > t)
    seek(app, t)


def mark(app: CcplayApp, at: float, text: str = "look") -> None:
    """Apply a mark to the state, as if the lab had set it."""
    app.session.state.apply(Applied(t=19.9, command=Mark(text=text, at=at, name="m1")))


async def test_a_mark_set_while_frozen_stands_at_the_cursor() -> None:
    async with playing(source := live()) as (app, pilot):
        await frozen_at(app, pilot, 12.5)
        await pilot.press("m", *"hi", "enter")
        assert source.sent == [Mark(text="hi", at=12.5)]
        assert "sent to the live lab" not in text_of(app, "banner"), "it is where one looks"


async def test_a_mark_set_live_is_of_now() -> None:
    async with playing(source := live()) as (_, pilot):
        await pilot.press("m", *"hi", "enter")
        assert source.sent == [Mark(text="hi")]


async def test_the_palette_marks_the_cursor_too() -> None:
    async with playing(source := live()) as (app, pilot):
        await frozen_at(app, pilot, 12.5)
        await pilot.press("ctrl+p", *"mark", "space", *"hi", "enter")
        await until(pilot, lambda: bool(source.sent))
        assert source.sent == [Mark(text="hi", at=12.5)]


@pytest.mark.parametrize("offset", [-0.4, 0.0, 0.4])
async def test_m_on_a_mark_changes_its_text(offset: float) -> None:
    """The key changes a mark near the cursor, without an exact match of their times."""
    async with playing(source := live()) as (app, pilot):
        mark(app, 12.5)
        await frozen_at(app, pilot, 12.5 + offset)
        await pilot.press("m", "tab", "end", "!", "enter")
        assert source.sent == [ChangeMark(name="m1", text="look!")]


async def test_beside_a_mark_m_sets_another() -> None:
    async with playing(live()) as (app, pilot):
        mark(app, 12.5)
        await frozen_at(app, pilot, 15.0)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, MarkDialog))


async def test_a_mark_is_removed() -> None:
    async with playing(source := live()) as (app, pilot):
        mark(app, 12.5)
        await frozen_at(app, pilot, 12.5)
        await pilot.press("m", "3", "enter")
        assert source.sent == [RemoveMark(name="m1")]


async def test_a_mark_is_moved_with_the_arrow_keys() -> None:
    async with playing(source := live()) as (app, pilot):
        mark(app, 12.5)
        await frozen_at(app, pilot, 12.6)
        await pilot.press("m", "2", "enter")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        assert app.main.shown.playhead.t == 12.5, "the cursor takes it where it stands"
        assert "moving the mark of 00:12" in text_of(app, "banner")
        await pilot.press("left", "left", "enter")
        assert source.sent == [ChangeMark(name="m1", at=11.5, text="look")]
        assert "moving" not in text_of(app, "banner")


async def test_a_mark_that_is_moved_can_be_left_where_it_was() -> None:
    async with playing(source := live()) as (app, pilot):
        mark(app, 12.5)
        await frozen_at(app, pilot, 12.5)
        await pilot.press("m", "2", "enter", "left", "escape", "left", "enter")
        assert source.sent == []


async def test_the_palette_finds_a_mark() -> None:
    async with playing(source := live()) as (app, pilot):
        mark(app, 12.5, "slow start ends")
        await pilot.press("ctrl+p", *"change", "space", *"mark", "space", *"slow", "enter")
        await until(pilot, lambda: isinstance(app.screen, ChangeMarkDialog))
        await pilot.press("escape", "ctrl+p", *"remove", "space", *"mark", "enter")
        await until(pilot, lambda: bool(source.sent))
        assert source.sent == [RemoveMark(name="m1")]


async def test_the_screen_reports_that_what_is_sent_while_frozen_goes_to_the_live_lab() -> None:
    async with playing(source := live(), size=(80, 24)) as (app, pilot):
        await frozen_at(app, pilot, 12.5)
        await pilot.press("x")
        assert source.sent == [StopFlow(flow="1")]
        assert "sent to the live lab at 00:19 (end goes there): flow 1 stops" in text_of(
            app, "banner"
        )
        await pilot.press("end", "space")
        assert "sent" not in text_of(app, "banner")


async def test_a_mark_is_shown_at_once_and_not_only_with_the_next_numbers() -> None:
    async with playing(live()) as (app, pilot):
        await until(pilot, lambda: app.session.state.now >= 19.9)
        main = app.main
        mark(app, app.session.state.now)
        main._numbers_at = main.clock()
        main.draw()
        assert "look" in text_of(app, "events")
