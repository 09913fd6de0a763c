"""Captions are legible, cut texts end in an ellipsis, and toasts cover nothing new."""

import time
from collections.abc import Iterator
from functools import partial

import pytest
from textual.widgets._toast import Toast

from ccplay.model.base import Event
from ccplay.model.commands import Mark
from ccplay.model.events import Applied, Ready
from ccplay.session.session import Session
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import TrafficKind
from ccplay.ui import status_lines
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import spread, whole_items
from ccplay.ui.dialogs_traffic import StartDialog, TrafficDialog
from ccplay.ui.help import EventsScreen, LogLines, Notice
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import seek, text_of

LONG = "the queue is short now: less delay, and more packets are lost at the bottleneck, " * 2


def marked(at: float, text: str) -> Iterator[Event]:
    """Yield a session with a mark."""
    for event in stream(seconds=20):
        yield event
        if isinstance(event, Ready):
            command = Mark(text=text, at=at, name="m1")
            yield Applied(t=event.t, command=command)


def caption(app: CcplayApp, t: float) -> str:
    """Return the banner's text at a moment."""
    app.main.shown.playhead.jump(t, app.session.state.now)
    said = status_lines.banner(app.main.view, 60, 40)
    return " ".join("".join(text for text, _ in row).strip() for row in said).strip()


async def test_a_mark_is_a_caption_while_it_is_read() -> None:
    async with playing(live(marked(5.0, "a short queue"))) as (app, _):
        assert caption(app, 4.9) == ""
        assert caption(app, 5.0) == "a short queue"
        assert caption(app, 10.9) == "a short queue"
        assert caption(app, 11.1) == ""


async def test_a_long_caption_stays_longer_and_is_whole() -> None:
    async with playing(live(marked(5.0, LONG))) as (app, _):
        assert caption(app, 5 + 0.06 * len(LONG) - 0.2) == LONG.strip()
        assert caption(app, 5 + 0.06 * len(LONG) + 0.2) == ""


async def test_a_fast_replay_leaves_the_time_to_read() -> None:
    source = SyntheticSource(marked(2.0, "a short queue"))
    async with playing(source, speed=2.0) as (app, _):
        app.main.shown.playhead.running = True
        app.main.shown.playhead.t = 13.5
        assert status_lines.captioned(app.main.view) is not None
        app.main.shown.playhead.running = False
        assert status_lines.captioned(app.main.view) is None


async def test_a_caption_takes_lines_of_its_own() -> None:
    async with playing(live(marked(5.0, LONG)), (80, 24)) as (app, pilot):
        seek(app, 6.0)
        await until(pilot, lambda: LONG[:60] in text_of(app, "banner"))
        assert app.main.query_one("#banner").size.height == 3
        assert " ".join(text_of(app, "banner").split()) == LONG.strip()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 55)])
async def test_toasts_cover_nothing_that_is_new(size: tuple[int, int]) -> None:
    """Toasts cover neither the header nor a plot, however many and long they are."""
    source = live()
    app = CcplayApp(Session(source, title="test"))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: source.drained)
        app.main.draw()
        for number in range(4):
            app.notify(f"{number} {LONG}", markup=False)
        await until(pilot, lambda: len(app.main.query(Toast)) == 4)
        await pilot.pause()
        rack = app.main.query_one("ToastRack")
        for part in ("header", "network", "flows", "plots", "footer"):
            assert not rack.region.overlaps(app.main.query_one(f"#{part}").region), part
        if size[0] >= 112:
            toasts = [each.region for each in app.main.query(Toast)]
            events = app.main.query_one("#events").region
            assert not any(each.overlaps(events) for each in toasts)


async def test_a_toast_that_expired_as_it_was_drawn_ends() -> None:
    """Textual's own notification would let its timer loop for ever, and with it the whole app."""
    async with playing(live()) as (app, pilot):
        late = Notice("x", raised_at=time.time() - 9)
        assert late.has_expired
        await app.main.mount(Toast(late))
        await until(pilot, lambda: not app.main.query(Toast))


async def test_e_shows_events_and_toasts_in_full() -> None:
    async with playing(live(marked(1.0, LONG)), (80, 24)) as (app, pilot):
        app.notify(f"saved {LONG}", markup=False)
        await pilot.press("e")
        screen = app.screen
        assert isinstance(screen, EventsScreen)
        lines = screen.query_one(LogLines)
        await until(pilot, lambda: len(lines.entries) > 1)
        rows = [lines.render_line(y).text.rstrip() for y in range(lines.size.height)]
        assert max(map(len, rows)) <= lines.size.width
        for text in (LONG, f"saved {LONG}"):
            assert text.replace(" ", "") in "".join("".join(row[8:] for row in rows).split())
        await pilot.press("e")
        assert app.screen is app.main


async def test_full_events_show_what_comes_while_they_are_open() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("e")
        screen = app.screen
        assert isinstance(screen, EventsScreen)
        lines = screen.query_one(LogLines)
        for number in range(99):
            app.notify(f"one more {number}", markup=False)
            app.notify(f"one more {number}", markup=False)
        await until(pilot, lambda: bool(lines.entries) and lines.entries[-1].text == "one more 98")
        await until(pilot, lambda: lines.scroll_offset.y == lines.max_scroll_y > 0)
        assert len({each.text for each in lines.entries}) == len(lines.entries)
        assert lines.render_line(lines.size.height - 1).text.rstrip().endswith("one more 98")
        await pilot.press("escape")
        assert app.screen is app.main


async def test_at_120_columns_words_are_written_out() -> None:
    async with playing(live()) as (app, _):
        assert "congestion window" in text_of(app, "cwnd").splitlines()[0]
        assert "cwnd" in text_of(app, "flows").splitlines()[0]
        for state in ("Open", "Disorder", "CWR", "Recovery", "Loss"):
            assert state in text_of(app, "ribbon")
        assert "seg" in text_of(app, "cwnd").splitlines()[-1]


async def test_the_header_drops_whole_items() -> None:
    """The header omits whole items, so that no number loses digits or its unit."""
    async with playing(live()) as (app, _):
        seen = set()
        for width in range(80, 140):
            [row] = status_lines.header(app.main.view, width)
            text = "".join(run for run, _ in row)
            assert len(text) == width
            for item in ("10 Mbit/s", "pfifo 100 pkt"):
                assert (item.split()[0] in text) == (item in text)
                seen.add(item in text)
        assert seen == {True, False}


def test_items_are_dropped_whole() -> None:
    assert whole_items(["10 Mbit/s", "20 ms"], ", ", 16) == "10 Mbit/s, 20 ms"
    assert whole_items(["10 Mbit/s", "20 ms"], ", ", 15) == "10 Mbit/s"
    assert whole_items(["10 Mbit/s"], ", ", 5) == ""


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    row = spread([("a long title", "")], [("87", "")], 12)
    assert "".join(text for text, _ in row) == "a long t… 87"


async def test_the_title_of_cwnd_leaves_room_for_ssthresh_at_120_columns() -> None:
    """At 120 columns the title has "congestion window" and ssthresh; at 80 it is short: "cwnd"."""
    async with playing(live(stream(seconds=20))) as (app, pilot):
        title = text_of(app, "cwnd").splitlines()[0]
        series = app.session.state.flows["1"].series["ssthresh"]
        value = f"{series.at(app.main.view.tick):.0f}"
        assert title.startswith("congestion window ")
        assert title.rstrip().endswith((f" ssthresh {value}", f" ┄ {value}"))
        await pilot.resize_terminal(200, 55)
        await until(pilot, lambda: f"ssthresh {value}" in text_of(app, "cwnd").splitlines()[0])
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: text_of(app, "cwnd").startswith("cwnd "))


async def test_the_title_of_rtt_has_the_base_before_other_flows() -> None:
    """RTT's title shows the base RTT before other flows: it reveals a standing queue."""
    async with playing(live(stream(pairs=8, flows=8, seconds=30)), (80, 24)) as (app, _):
        title = text_of(app, "rtt").splitlines()[0].split()
        assert title[:4] == ["RTT", "ms", "●", title[3]]
        assert title[4:6] == ["base", "20"]


EIGHT = "⏎ start x stop c congestion q queue l link space freeze i explain ? help"
"""Footer of a live session while the selected flow runs."""


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_the_footer_has_the_keys_that_matter_now(width: int) -> None:
    """At most eight entries, whole at every width: they follow what runs and what is shown."""

    async with playing(live(stream(busy=False)), (width, 24)) as (app, pilot):
        await until(pilot, lambda: "start traffic" in text_of(app, "footer"))
        assert "x stop" not in text_of(app, "footer")
    async with playing(live(), (width, 24)) as (app, pilot):
        await until(pilot, lambda: "x stop" in text_of(app, "footer"))
        flowing = text_of(app, "footer")
        assert flowing.split() == EIGHT.split()
        await pilot.press("space")
        for item in ("space resume", "end live", "z undo", "? help"):
            assert item in text_of(app, "footer")
        assert "x stop" not in text_of(app, "footer")
    async with playing(SyntheticSource(stream()), (width, 24)) as (app, pilot):
        for item in ("space pause", "← → time", "i explain", "^q quit", "? help"):
            assert item.replace(" ", "") in text_of(app, "footer").replace(" ", "")


def asks_for(app: CcplayApp, kind: TrafficKind) -> bool:
    """Return whether the dialog of this kind is on top."""
    return isinstance(app.screen, StartDialog) and app.screen.kind is kind


async def test_one_key_starts_every_kind_of_traffic() -> None:
    """The menu has every kind, each by its initial, and leads to the dialog of its own key."""
    async with playing(live()) as (app, pilot):
        await until(pilot, lambda: "x stop" in text_of(app, "footer"))
        for key, kind in zip(("enter", *"AAAAA"), TRAFFIC, strict=True):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, TrafficDialog))
            await pilot.press(kind.word[0].lower(), "enter")
            await until(pilot, partial(asks_for, app, kind))
            await pilot.press("escape")
        await pilot.press("A", "escape")
        await until(pilot, lambda: app.screen is app.main)
