"""Cells written directly to the terminal always show what Textual's own full redraw would."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen

import ccplay.ui
from ccplay.session.session import Session
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.compositor import CellsUpdate, ThriftyUpdate
from ccplay.ui.offscreen import is_settled
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.test_snapshots import RECORDING
from tests.ui.view import seek
from tests.unit.test_thrift import screen_of

CONSOLE = Console(color_system="truecolor", force_terminal=True)


class Recorded(CcplayApp):
    """The app, with a terminal whose contents are kept."""

    CSS_PATH = str(Path(ccplay.ui.__file__).with_name("ccplay.tcss"))

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown: dict[tuple[int, int], tuple[str, str]] = {}
        self.updates: list[type] = []

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        update = ThriftyUpdate(renderable) if type(renderable) is ChopsUpdate else renderable
        if isinstance(update, CompositorUpdate):
            self.updates.append(type(update))
            self.shown |= screen_of(update.render_segments(CONSOLE))
        super()._display(screen, renderable)

    def drawn_anew(self) -> dict[tuple[int, int], tuple[str, str]]:
        """Return the screen as Textual draws it from scratch."""
        strips = self.screen._compositor.render_strips()
        whole = LayoutUpdate([[strip] for strip in strips], Region(0, 0, *self.size))
        return screen_of(whole.render_segments(CONSOLE))


def seen(shown: dict[tuple[int, int], tuple[str, str]]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return what is visible: of a blank only its background."""
    return {
        place: (char, state if char != " " else "".join(re.findall("48=.*", state)))
        for place, (char, state) in shown.items()
    }


@asynccontextmanager
async def playing() -> AsyncIterator[tuple[Recorded, Pilot[int]]]:
    """Run the app on a session that has ended."""
    source = SyntheticSource(stream(flows=4, pairs=4, seconds=20))
    app = Recorded(Session(source, title="test"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: source.drained)
        await settled(app, pilot)
        yield app, pilot


async def settled(app: Recorded, pilot: Pilot[int]) -> None:
    """Wait until all changes are drawn."""
    await pilot.pause()
    await until(pilot, lambda: is_settled(app))


async def presses(app: Recorded, pilot: Pilot[int], *keys: str) -> list[type]:
    """Press keys and check the terminal after each; return the kinds of updates written."""
    app.updates.clear()
    for key in keys:
        await pilot.press(key)
        await settled(app, pilot)
        assert not (wrong := seen(app.shown).items() ^ seen(app.drawn_anew()).items()), (key, wrong)
    return list(app.updates)


async def test_scrubbing_writes_cells_and_nothing_else() -> None:
    async with playing() as (app, pilot):
        await presses(app, pilot, "space")
        updates = await presses(app, pilot, *["left"] * 6, *["right"] * 2, "down", "up", "K")
        assert set(updates) == {CellsUpdate}


async def test_another_layout_is_noticed() -> None:
    """A change of layout, such as another plot, a banner or a resize, is drawn correctly."""
    async with playing() as (app, pilot):
        await presses(app, pilot, "space", "left", "left", "t", "left", "left")
        app.main.plots.toggle("rtt")
        await settled(app, pilot)
        await presses(app, pilot, "left", "r", "left", "1", "left", "g", "escape", "left")
        await pilot.resize_terminal(100, 30)
        await settled(app, pilot)
        app.shown = app.drawn_anew()
        await presses(app, pilot, "left", "left", "right")


async def test_a_caption_that_comes_again_moves_what_is_below() -> None:
    app = Recorded(Session(ReplaySource(RECORDING), title="test"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.session.done)
        await presses(app, pilot, "space")
        heights = []
        for t in (3.0, 7.8, 9.0, 15.5, 3.0):
            seek(app, t)
            await settled(app, pilot)
            assert seen(app.shown) == seen(app.drawn_anew()), t
            heights.append(app.main.query_one("#banner").region.height)
        assert [bool(each) for each in heights] == [True, False, True, False, True]


async def test_what_lies_over_the_sheets_stays() -> None:
    async with playing() as (app, pilot):
        await presses(app, pilot, "space", "left")
        app.notify("a toast that lies over the events", timeout=1000)
        await until(pilot, lambda: any("toast" in line for line in lines(app)))
        await settled(app, pilot)
        updates = await presses(app, pilot, *["left"] * 8, "right", "down", "up")
        assert any("toast" in line for line in lines(app))
        # Only the cells under the toast are omitted.
        assert set(updates) == {CellsUpdate}
        await presses(app, pilot, "question_mark", "escape", "left")


def lines(app: Recorded) -> list[str]:
    """Return the text on the terminal."""
    width, height = app.size
    return ["".join(app.shown.get((x, y), " ")[0] for x in range(width)) for y in range(height)]


@pytest.mark.parametrize(
    "change",
    [
        lambda app: setattr(app, "theme", "ansi-dark"),
        lambda app: app.main.query(Sheet).set_styles("tint: red 30%;"),
    ],
)
async def test_colours_that_textual_changes_are_left_to_it(
    change: Callable[[CcplayApp], object],
) -> None:
    async with playing() as (app, pilot):
        await presses(app, pilot, "space", "left")
        change(app)
        await settled(app, pilot)
        assert CellsUpdate not in await presses(app, pilot, "left", "left", "right")
