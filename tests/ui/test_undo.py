"""Undo and redo work by key and in the palette, live or frozen, but not in a recording."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.command import CommandList
from textual.pilot import Pilot
from textual.widgets import Input

from ccplay.model.base import Command
from ccplay.model.commands import SetLink, SetQdisc
from ccplay.session.session import Session
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import ASCII
from ccplay.ui.palette import Palette
from tests.fake_lab import AT_FIRST, CODEL, PFIFO, SHORT, FakeLab
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing, until
from tests.ui.view import text_of, toasts

BACK = "undo: queue bottleneck back to pfifo 100 pkt"


@asynccontextmanager
async def changed(*commands: Command) -> AsyncIterator[tuple[CcplayApp, FakeLab, Pilot[int]]]:
    """Run the screen of a lab in which these commands were given by hand."""
    lab = FakeLab()
    app = CcplayApp(Session(lab, title="test"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.session.state.ready_at is not None)
        for command in commands:
            app.main.ask(command)
        await until(pilot, lambda: len(app.session.state.applied) == len(commands))
        yield app, lab, pilot


async def test_z_puts_back_what_was_and_both_toast_and_log_report_it() -> None:
    async with changed(SetLink(rate=5_000_000), SetQdisc(qdisc=CODEL)) as (app, lab, pilot):
        await pilot.press("z")
        await until(pilot, lambda: lab.links["r1->r2"].qdisc == PFIFO)
        await until(pilot, lambda: len(app.session.state.applied) == 3)
        assert lab.links["r1->r2"].rate == 5_000_000
        assert toasts(app) == [BACK]
        await until(pilot, lambda: BACK in text_of(app, "events"))
        await pilot.press("z")
        await until(pilot, lambda: lab.links["r1->r2"] == AT_FIRST)
        await until(pilot, lambda: len(app.session.state.applied) == 4)
        await pilot.press("z")
        await until(pilot, lambda: len(toasts(app)) == 3)
        assert toasts(app)[-1] == "nothing to undo: you have not changed anything"


async def test_shift_z_does_it_again() -> None:
    async with changed(SetQdisc(qdisc=CODEL)) as (app, lab, pilot):
        await pilot.press("z")
        await until(pilot, lambda: len(app.session.state.applied) == 2)
        await pilot.press("Z")
        await until(pilot, lambda: lab.links["r1->r2"].qdisc == CODEL)
        assert toasts(app)[-1] == "redo: queue bottleneck → codel target 5 ms"


async def test_frozen_it_goes_to_the_live_lab_and_reports_it() -> None:
    async with changed(SetQdisc(qdisc=CODEL)) as (app, lab, pilot):
        await pilot.press("space", "z")
        await until(pilot, lambda: lab.links["r1->r2"].qdisc == PFIFO)
        assert "sent to the live lab at " in text_of(app, "banner")
        assert BACK in text_of(app, "banner")
        assert not app.main.shown.playhead.running


async def test_in_a_recording_it_reports_that_nothing_can_be_undone() -> None:
    async with playing(source := SyntheticSource(stream(seconds=20))) as (app, pilot):
        await pilot.press("z")
        assert toasts(app) == ["this is a recording: nothing in it can be undone"]
        assert source.sent == []


async def test_without_unicode_it_is_reported_in_ascii() -> None:
    async with changed(SetQdisc(qdisc=CODEL)) as (app, _, pilot):
        app.appearance.glyphs = ASCII
        await pilot.press("z")
        await until(pilot, lambda: len(app.session.state.applied) == 2)
        await pilot.press("Z")
        assert all(each.isascii() for each in toasts(app))
        assert toasts(app)[-1] == "redo: queue bottleneck -> codel target 5 ms"


async def test_the_palette_reports_what_would_be_undone_and_undoes_it() -> None:
    async with changed(SetQdisc(qdisc=SHORT)) as (app, lab, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, Palette))
        app.screen.query_one(Input).value = BACK
        found = app.screen.query_one(CommandList)
        await until(pilot, lambda: found.option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: lab.links["r1->r2"].qdisc == PFIFO)
