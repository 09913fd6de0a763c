"""A key captures packets of a chosen link, and the screen shows that the capture runs and ends."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ccplay.model.base import Command, Event
from ccplay.model.commands import StartCapture, StopCapture
from ccplay.model.events import CaptureEnded, CaptureStarted, Hello
from ccplay.model.values import Feature
from ccplay.ui.dialogs_links import CaptureDialog
from ccplay.ui.main_screen import MainScreen
from ccplay.ui.palette import entries
from tests.ui.hand_made import lab
from tests.ui.stage import Stage
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import SIZES, SnapCompare
from tests.ui.view import said, text_of

PATH = "/home/me/ccplay-20261121-072539-r1-r2.pcapng"
STARTED = CaptureStarted(t=19.0, capture="c1", link="r1->r2", path=PATH)
ENDED = CaptureEnded(t=19.5, capture="c1", path=PATH, packets=3564, bytes=541_464, dropped=0)


def without_programs() -> Iterator[Event]:
    """Yield a session on a machine without programs that capture packets."""
    tools = [
        Feature(name=name, available=False, reason="not installed", remedy=f"apt install {package}")
        for name, package in (("tcpdump", "tcpdump"), ("dumpcap", "wireshark-common"))
    ]
    for event in stream(busy=False):
        if isinstance(event, Hello):
            yield replace(event, capabilities=replace(event.capabilities, tools=tools))
        else:
            yield event


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("enter", StartCapture()),
        ("2 enter", StartCapture(link="r2->r1")),
        ("3 tab 1 0 M B enter", StartCapture(link="s1-r1", max_bytes=10_000_000)),
        ("tab tab 1 5 1 4 b enter", StartCapture(snaplen=1514)),
        ("tab 2 G B enter", None),
        ("tab tab 1 b enter", None),
    ],
)
async def test_the_dialog_asks_for_link_and_bounds(keys: str, expected: Command | None) -> None:
    app = Stage(lab(), CaptureDialog)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys.split())
        assert app.answers == ([expected] if expected else [])


async def test_k_asks_and_k_ends_once_though_it_is_held() -> None:
    async with playing(source := live(stream(seconds=20))) as (app, pilot):
        await pilot.press("k", "enter")
        assert source.sent == [StartCapture()]
        app.session.state.apply(STARTED)
        await until(pilot, lambda: "capturing c1" in text_of(app, "header"))
        await until(pilot, lambda: any(PATH in each.message for each in app._notifications))
        await pilot.press("k", "k")
        assert source.sent == [StartCapture(), StopCapture(capture="c1")]
        app.session.state.apply(ENDED)
        await until(pilot, lambda: "capturing" not in text_of(app, "header"))
        await until(pilot, lambda: "3,564 packets" in text_of(app, "events"))


async def test_many_captures_are_counted_in_a_narrow_header() -> None:
    async with playing(live(stream(seconds=20)), (80, 24)) as (app, pilot):
        for number in range(12):
            app.session.state.apply(replace(STARTED, capture=f"c{number}"))
        await until(pilot, lambda: "capturing 12 links" in text_of(app, "header"))
        assert "live" in text_of(app, "header")


async def test_a_recording_captures_nothing() -> None:
    async with playing(source := SyntheticSource(stream(seconds=20))) as (app, pilot):
        await pilot.press("k")
        assert isinstance(app.screen, MainScreen)
        assert source.sent == []


async def test_what_is_missing_is_reported_with_its_remedy() -> None:
    async with playing(source := live(without_programs())) as (app, pilot):
        await pilot.press("k", "enter")
        assert isinstance(app.screen, CaptureDialog)
        assert "apt install tcpdump" in said(app)
        assert source.sent == []


def test_the_palette_offers_every_link_and_every_end() -> None:
    state = lab()
    state.apply(STARTED)
    offered = {entry.text: entry.command for entry in entries(state)}
    assert offered["capture packets of bottleneck"] == StartCapture()
    assert offered["capture packets of s1-r1"] == StartCapture(link="s1-r1")
    assert offered["stop capture c1"] == StopCapture(capture="c1")


@pytest.mark.parametrize("size", SIZES)
def test_how_it_looks(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    assert snap_compare(Stage(lab(), CaptureDialog), terminal_size=size)
