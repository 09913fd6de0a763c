"""What a page is sent is what the state has, and nothing has to be sent twice."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from ccplay.model.commands import Mark
from ccplay.model.events import Applied
from ccplay.session.session import Session
from ccplay.share.frames import Board, Playhead, Shown
from ccplay.share.web.facts import columns, lines, value
from ccplay.share.web.feed import PageFeed, deltas
from ccplay.state.lab_state import LabState
from tests.ui.synthetic import stream

EVENTS = list(stream(seconds=12))


@dataclass
class Watched:
    """The part of a session that a feed reads."""

    state: LabState = field(default_factory=LabState)
    title: str = "A title"
    recorded: bool = False
    at: int = 0

    def play(self, until: float) -> None:
        while self.at < len(EVENTS) and EVENTS[self.at].t <= until:
            self.state.apply(EVENTS[self.at])
            self.at += 1


class Page:
    """Takes messages as the page's values.js does."""

    def __init__(self) -> None:
        self.lines: list[list[Any]] = []
        self.last: list[int | None] = []
        self.values: dict[float, list[int | None]] = {}
        self.facts: dict[str, Any] = {}
        self.log: dict[int, list[Any]] = {}
        self.kinds: list[str] = []

    def take(self, messages: bytes) -> None:
        for block in messages.decode().split("\n\n")[:-1]:
            first, second = block.split("\n")
            kind, content = first.removeprefix("event: "), second.removeprefix("data: ")
            self.kinds.append(kind)
            self._take(kind, msgspec.json.decode(content))

    def _take(self, kind: str, content: Any) -> None:
        if kind == "opening":
            self.lines, self.last = content["lines"], content["last"]
            self.facts, self.log = content["facts"], {each[0]: each for each in content["log"]}
        elif kind == "facts":
            self.facts |= content
        elif kind == "lines":
            self.lines += content
            self.last += [None] * len(content)
        elif kind == "log":
            self.log |= {each[0]: each for each in content}
        elif kind == "frame":
            self._frame(*content)

    def _frame(self, step_ms: int, first: int, count: int, rows: list[Any]) -> None:
        assert len(rows) == len(self.lines)
        for number, row in enumerate(rows):
            steps = row if isinstance(row, list) else [row] * count
            assert len(steps) == count
            known = self.last[number] or 0
            for at, step in enumerate(steps):
                known += step or 0
                found = None if step is None else known
                self.values.setdefault((first + at) * (step_ms / 1000), []).append(found)
                self.last[number] = found


@pytest.fixture
def watched() -> Watched:
    return Watched()


def feed_of(watched: Watched) -> PageFeed:
    return PageFeed(cast("Session", watched))


def test_frames_have_the_values_of_all_lines(watched: Watched) -> None:
    feed, page = feed_of(watched), Page()
    for number in range(80):
        watched.play(number / 7)
        page.take(feed.messages(number / 7, None))
    assert len(page.values) > 200
    state = watched.state
    cwnd = next(at for at, each in enumerate(feed.lines) if each.key[:3] == ("cwnd", "line", "1"))
    series = state.flows["1"].series["cwnd"]
    for t, values in page.values.items():
        if cwnd < len(values) and 1 < t < state.now - 0.2:
            # A frame is made when it comes: what is later can't have changed it.
            known = series.at(state.sweeps.before_or_at(t))
            assert values[cwnd] == (None if known is None else round(known)), t
    # Each is a moment after the one before, and none is missing.
    moments = sorted(page.values)
    gaps = [round(other - one, 3) for one, other in pairwise(moments)]
    assert set(gaps) == {0.05}


def test_who_joins_later_has_the_same(watched: Watched) -> None:
    feed, first, second = feed_of(watched), Page(), Page()
    for number in range(60):
        if number == 30:
            second.take(feed.opening())
        watched.play(number / 5)
        messages = feed.messages(number / 5, None)
        first.take(messages)
        if number >= 30:
            second.take(messages)
    assert second.last == first.last
    assert second.lines == first.lines
    assert second.facts == first.facts
    assert second.log == first.log
    assert {t: first.values[t] for t in second.values} == second.values


def test_facts_come_once(watched: Watched) -> None:
    feed, page = feed_of(watched), Page()
    watched.play(10)
    page.take(feed.messages(0, None))
    assert {"facts", "lines", "log", "frame"} <= set(page.kinds)
    page.kinds.clear()
    page.take(feed.messages(1, None))
    assert page.kinds == []
    watched.state.apply(Applied(t=10.0, command=Mark(text="now")))
    page.take(feed.messages(2, None))
    assert page.kinds == ["log"]
    assert [*page.log.values()][-1][3] == "now"


def test_an_event_and_a_page_of_a_lesson_come_at_once(watched: Watched) -> None:
    feed, page = feed_of(watched), Page()
    watched.play(10)
    page.take(feed.messages(0, None))
    page.kinds.clear()
    watched.state.apply(Applied(t=10.0, command=Mark(text="now")))
    page.take(feed.messages(0.02, None))
    assert page.kinds == [], "several at once are looked at together"
    page.take(feed.messages(0.06, None))
    assert page.kinds == ["log"]
    page.kinds.clear()
    page.take(feed.messages(0.12, None, Board(title="x", page=1, pages=1)))
    assert page.kinds == ["facts"]
    page.take(feed.messages(0.2, None, Board(title="x", page=1, pages=1)))
    assert page.kinds == ["facts"]


def test_a_view_is_passed_on_when_it_changes(watched: Watched) -> None:
    feed, page = feed_of(watched), Page()
    view = Shown(Playhead(t=1.0))
    for each in (view, view, Shown(Playhead(t=1.0), selected="1")):
        page.take(feed.messages(0, each))
    assert page.kinds.count("view") == 2


@pytest.mark.parametrize(("start", "step", "count"), [(0.0, 0.1, 90), (2.0, 0.01, 100), (3, 1, 5)])
def test_no_peak_is_lost_in_a_window(
    watched: Watched, start: float, step: float, count: int
) -> None:
    watched.play(12)
    state = watched.state
    for line in lines(state):
        low, high = columns(state, line, start, step, count)
        assert len(low) == len(high) == count
        if line.role == "line" and line.variable.rate is None and line.series is not None:
            known = [each for each in high if each is not None]
            first, last = (line.series.timeline.at_or_after(start + at * step) for at in (0, count))
            found = line.series.extremes(first, last)
            assert bool(known) == (found is not None) or step < 0.02
            if found is not None:
                assert max(known) == round(found[1] / line.quantum)


async def test_a_window_is_computed_once(watched: Watched) -> None:
    feed = feed_of(watched)
    watched.play(12)
    feed.messages(0, None)
    asked = [feed.windows.get(2.0 + at / 100, 9.0) for at in range(5)]
    first, *others = await asyncio.gather(*asked)
    assert all(each is first for each in others)
    found = msgspec.json.decode(first)
    assert found["from"] <= 2.0
    assert found["from"] + found["step"] * found["count"] >= 9.0 - found["step"]
    assert len(found["rows"]) == len(feed.lines)


@pytest.mark.parametrize(("since", "until"), [(-9.0, 1e300), (5, 2), (1e9, 2e9), (0, 0)])
async def test_any_window_is_bounded(watched: Watched, since: float, until: float) -> None:
    feed = feed_of(watched)
    watched.play(12)
    feed.messages(0, None)
    found = msgspec.json.decode(await feed.windows.get(since, until))
    assert 1 <= found["count"] <= 500


def test_what_does_not_change_is_one_number() -> None:
    assert deltas([7, 7, 7]) == 7
    assert deltas([None, None]) is None
    assert deltas([5, 6, None, 4]) == [5, 1, None, -2]
    assert deltas([]) is None


def test_a_line_of_other_traffic_ends_with_it(watched: Watched) -> None:
    watched.play(12)
    [ping] = [each for each in lines(watched.state) if each.subject == "p1"]
    assert ping.style == "dots"
    found = [value(watched.state, ping, at / 20, 0.05) for at in range(40, 240)]
    known = [each for each in found if each is not None]
    assert 0 < len(known) < len(found) / 2
    assert value(watched.state, ping, 100.0, 0.05) is None
