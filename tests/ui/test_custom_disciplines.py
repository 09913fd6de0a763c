"""The screen shows how the user's own discipline is chosen, replaced when saved, or fails."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from heapq import merge
from typing import Any

import pytest
from msgspec.structs import replace

from ccplay.lab.custom.loading import read_declaration
from ccplay.model import disciplines
from ccplay.model.base import Event
from ccplay.model.commands import SetQdisc
from ccplay.model.events import Applied, LinkChanged, Log
from ccplay.model.values import Feature, LinkSetting, Qdisc
from ccplay.ui.dialog_form import Menu
from ccplay.ui.dialogs_links import QueueDialog
from tests.events import link_changed
from tests.ui.hand_made import lab
from tests.ui.stage import Stage
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import seek, text_of

MINE = Qdisc(kind="mine.py", options={"limit": 1000})
FAULT = "link r1->r2: mine.py:20: ZeroDivisionError: division by zero; a FIFO has taken its place"


@pytest.fixture(autouse=True)
def _offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer a discipline of the user's own, as if the command line had named its file."""
    source = 'PARAMETERS = {"limit": "1000 packets", "target": "5 ms"}'
    monkeypatch.setattr(disciplines, "custom", {"mine": read_declaration("mine", source)})


async def test_it_is_chosen_with_its_parameters_like_any_other() -> None:
    state = lab()
    assert state.hello is not None
    offer = Feature(name="mine", available=True, summary="your own: waits less")
    known = state.hello.capabilities
    capabilities = replace(known, qdiscs=[offer, *known.qdiscs])
    state.hello = replace(state.hello, capabilities=capabilities)
    app = Stage(state, QueueDialog)
    async with app.run_test() as pilot:
        assert app.screen.query_one(Menu).items[0].key == "mine"
        await pilot.press("1", "tab", "tab", "2", "0", "m", "s", "enter")
        expected = Qdisc(kind="mine", options={"target": 20_000})
        assert app.answers == [SetQdisc(qdisc=expected)]


def events(seconds: float = 20.0) -> Iterator[Event]:
    """Yield a session in which the file is saved at 12 s and fails at 15 s."""
    later: list[Event] = [
        Applied(t=12.0, command=SetQdisc(link="r1->r2", qdisc=MINE), took_s=0.004, renewed=True),
        Log(t=15.0, level="error", text=FAULT, spoils=True),
        _changed(15.0, Qdisc(kind="pfifo", options={"limit": 1000})),
    ]
    for event in merge(later, stream(seconds=seconds), key=lambda each: each.t):
        yield event
        if isinstance(event, LinkChanged) and event.t < 1:
            yield _changed(event.t, MINE)


def _changed(t: float, qdisc: Qdisc) -> LinkChanged:
    setting = LinkSetting(rate=10_000_000, delay_us=10_000, qdisc=qdisc)
    return link_changed(t, "r1->r2", setting)


async def test_a_save_is_an_event_and_a_mark_and_an_exception_is_a_toast() -> None:
    async with playing(live(events())) as (app, pilot):
        await until(pilot, lambda: any("mine.py:20" in each.message for each in app._notifications))
        shown = " ".join(text_of(app, "events").split())
        assert "queue r1->r2 continues with the new mine.py" in shown
        marks = [entry for entry in app.session.state.log if entry.is_mark]
        assert [entry.t for entry in marks if "the new mine.py" in entry.text] == [12.0]
        assert "pfifo 1000 pkt" in text_of(app, "header")


async def test_the_toast_of_a_failure_ends_with_the_cure() -> None:
    """After the next save nothing on the screen says any more that the file can't be used."""
    cured = asyncio.Event()

    class Saved(SyntheticSource):
        async def events(self) -> AsyncIterator[Any]:
            async for event in super().events():
                if isinstance(event, Log) and event.level == "info":
                    self.drained = True
                    await cured.wait()
                yield event

    texts = {"error": "mine keeps the old version: mine.py:3", "info": "mine was saved"}
    news = (Log(t=20.0, level=level, text=text) for level, text in texts.items())
    source = Saved(itertools.chain(stream(seconds=19.0), news), live=True)
    async with playing(source) as (app, pilot):
        await until(pilot, lambda: bool(list(app._notifications)))
        cured.set()
        await until(pilot, lambda: "mine was saved" in text_of(app, "events"))
        await until(pilot, lambda: not list(app._notifications))
        assert texts["error"] in [each.text for each in app.main.notices]


async def test_the_header_shows_what_stood_at_the_playhead() -> None:
    async with playing(SyntheticSource(events()), start_at=14.0) as (app, pilot):
        seek(app, 14.0)
        await until(pilot, lambda: "mine.py 1000 pkt" in text_of(app, "header"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_mistake_in_a_saved_file_is_readable_whole_in_the_log(
    size: tuple[int, int],
) -> None:
    """The longest that clang and the verifier report, of an algorithm, with its line and advice."""
    text = (
        "mine keeps the old version: mine.bpf.c:49: no write support to "
        "'struct tcp_sock' at off 1692: a program may write only snd_cwnd, snd_ssthresh, the "
        "pacing rate and its PRIVATE state"
    )

    def mistaken() -> Iterator[Event]:
        yield from stream(seconds=5.0)
        yield Log(t=5.0, level="error", text=text)

    async with playing(live(mistaken()), size) as (app, pilot):
        await until(pilot, lambda: "PRIVATE state" in text_of(app, "events"))
        rows = text_of(app, "events").splitlines()
        at = next(number for number, row in enumerate(rows) if "failed" in row)
        shown = " ".join(row[8:].strip() for row in rows[at:]).strip()
        assert shown == f"failed: {text}"
