"""The receiver's table on the screen has rows up to the moment shown and the checkpoint."""

import re
from collections.abc import Awaitable, Callable, Iterator

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from ccplay.model.base import Event
from ccplay.model.events import Applied
from ccplay.session.session import Session
from ccplay.traffic.flow import StartFlow
from ccplay.ui.app import CcplayApp
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import SIZES, SnapCompare, at, settled
from tests.ui.view import text_of

SIZE = 10_000_000


def race(flows: int = 2, seconds: float = 40.0) -> Iterator[Event]:
    """Yield a session whose first two flows have a fixed size."""
    for event in stream(flows=flows, pairs=max(flows, 2), seconds=seconds):
        if isinstance(event, Applied) and isinstance(event.command, StartFlow):
            command = event.command
            if command.flow in ("1", "2"):
                command = replace(command, bytes=SIZE)
            yield replace(event, command=command)
        else:
            yield event


def shown(app: CcplayApp) -> list[str]:
    """Return the lines of the events panel, without blank ones."""
    return [line.strip() for line in text_of(app, "events").splitlines() if line.strip()]


async def test_r_shows_the_table_and_the_events_again() -> None:
    async with playing(live(race())) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 38)
        assert shown(app)[0] == "events"
        await pilot.press("r")
        head, *rows = shown(app)
        assert head.split() == ["receiver", "●", "1", "reno", "■", "2", "reno"]
        assert any("done" in row and "ratio" in row for row in rows)
        await pilot.press("r")
        assert shown(app)[0] == "events"


async def test_it_follows_the_playhead() -> None:
    """The rows end at the moment shown; flow 1 started at 1 s."""
    async with playing(SyntheticSource(race()), start_at=30.0) as (app, pilot):
        await pilot.press("r")
        head = app.main.shown.playhead
        for t, last in ((11.5, "10 s"), (3.2, "2 s")):
            head.jump(t, 40.0)
            app.main.redraw()
            rows = [row for row in shown(app)[1:] if "done" not in row]
            assert rows[-1].startswith(last)
            assert not any("done" in row for row in shown(app))
        await pilot.press("home")
        assert shown(app) == ["receiver", "no flow has reached it yet"]


async def test_the_checkpoint_stays_in_sight() -> None:
    async with playing(SyntheticSource(race(seconds=60)), start_at=58.0) as (app, pilot):
        await pilot.press("r")
        first, *rest = shown(app)[1:]
        assert "done" in first
        assert float(first.split()[0]) < 45
        assert rest[-1].startswith("57 s")


@pytest.mark.parametrize("flows", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("size", SIZES)
async def test_any_number_of_flows_is_legible(flows: int, size: tuple[int, int]) -> None:
    """Columns of any number of flows never touch, and the head counts those without room."""
    async with playing(live(race(flows)), size) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 39)
        await pilot.press("r")
        head, *rows = text_of(app, "events").splitlines()
        hidden = head.split()[1] == "of"
        columns = int(head.split()[0]) if hidden else flows
        assert hidden == (columns < flows)
        assert columns >= min(flows, 8)
        row = next(row for row in rows[::-1] if "done" not in row and row.strip())
        numbers = re.findall(r"(?:^| )[\d.,]+", row)
        assert len(numbers) in (1 + columns, 1 + 2 * columns), "with rates or without"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("flows", [2, 8])
def test_how_it_looks(snap_compare: SnapCompare, size: tuple[int, int], flows: int) -> None:
    app = CcplayApp(Session(SyntheticSource(race(flows)), title="race"))
    seek = at(app, 33.0)

    async def open_table(pilot: Pilot[int]) -> None:
        await seek(pilot)
        await pilot.press("r")
        await settled(app, pilot)

    run_before: Callable[[Pilot[int]], Awaitable[None]] = open_table
    assert snap_compare(app, terminal_size=size, run_before=run_before)
