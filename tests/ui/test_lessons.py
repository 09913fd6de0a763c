"""A lesson next to the network has pages, answers by keys, revealed results and votes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.events import Key
from textual.geometry import Size
from textual.pilot import Pilot

from ccplay.lesson.course import Judgement, PageState, RunSpan, TakenLesson
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Lesson
from ccplay.session.session import Session
from ccplay.share import sockets
from ccplay.share.frames import Votes
from ccplay.ui.app import CcplayApp
from ccplay.ui.audience import Following, Presenting
from ccplay.ui.lesson_panel import LessonPanel, LessonTexts, PanelLine
from ccplay.ui.lesson_roles import Leader, Voter
from ccplay.ui.plot_canvas import Canvas
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.test_watching import watching
from tests.ui.view import said, text_of
from tests.unit.lesson.test_reading import HEAD, PAGES

THIRD = """
[[lesson.pages]]
title = "Three"
text = "Last one."
why = "Done."
run = "5 s"
steps = [{ at = "0 s", do = "start-ping", ping = "q" }]
measures.rtt = { metric = "pings.q.rtt_us", take = "mean", unit = "ms", text = "RTT" }
question = { ask = "How much?", number = { measure = "rtt", low = 0, high = 100 } }
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sockets, "_GROUPS", tmp_path / "groups")


def lesson() -> Lesson:
    found = parse(HEAD + PAGES + THIRD, Path("mine.toml")).lesson
    assert found is not None
    return found


@asynccontextmanager
async def taking(
    size: tuple[int, int] = (120, 40), at: int = 0, *, shares: bool = False
) -> AsyncIterator[tuple[CcplayApp, Pilot[int], Leader]]:
    """Open a lesson on page ``at`` next to a session whose events have all arrived."""
    course = TakenLesson(lesson())
    course.turn_page(at)
    source = SyntheticSource(stream(seconds=20), live=True)
    session = Session(source, title="test", script=course)
    leader = Leader(course, session, lambda: None)
    audience = Presenting(session, "test")
    if shares:
        audience.start()
    app = CcplayApp(session, lesson=leader, audience=audience)
    try:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: source.drained)
            await until(pilot, lambda: f"{at + 1}/3" in said(app))
            yield app, pilot, leader
    finally:
        audience.close()


def run_over(turn: PageState) -> None:
    """Set the run of a page to have ended."""
    turn.span = RunSpan(1.0, 2.0)


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_page_and_the_network_share_the_screen(at: int) -> None:
    async with taking(at=at) as (app, pilot, leader):
        page = leader.course.page
        question = page.question
        assert question is not None
        begin = page.text.replace("*", "").split(".", maxsplit=1)[0]
        for size in ((120, 40), (80, 24), (160, 50), (100, 30)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: begin in said(app) and question.ask in said(app))
            shown = said(app)
            assert f"{at + 1}/3  {page.title}" in shown
            for choice in question.choices:
                assert choice.text in shown
            panel = app.main.query_one("#lesson")
            canvases = [each for each in app.main.query(Canvas) if each.display]
            assert canvases
            for canvas in canvases:
                assert not canvas.region.overlaps(panel.region)
                assert canvas.region.height >= 6
            assert app.main.query_one("#header").region.width >= 80


async def test_links_are_shown_and_never_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url, **_: followed.append(url))
    links = "[go](https://a.example/x) <https://a.example/y> ![picture](https://a.example/z)"
    monkeypatch.setattr("tests.ui.test_lessons.PAGES", PAGES.replace("Read *this*.", links))
    async with taking(size=(160, 40)) as (app, pilot, _):
        await until(pilot, lambda: "picture" in said(app))
        shown = said(app).splitlines()
        text = app.main.query_one("#lesson Markdown").region
        for y in range(text.y, text.bottom):
            # A link has two characters or more, so that every second column hits each.
            for x in range(text.x, text.x + len(shown[y][text.x : text.right].rstrip()), 2):
                await pilot.click(offset=(x, y))
        app.open_url("https://a.example/w")
        await pilot.pause()
        assert followed == []
        assert "https://a.example/x" in said(app)


async def test_number_keys_answer_and_enter_runs_reveals_and_turns_the_page() -> None:
    async with taking() as (app, pilot, leader):
        course = leader.course
        await pilot.press("2")
        assert course.turn.answer == 1.0
        assert app.main.shown.large == "", "no plot was enlarged"
        await pilot.press("enter")
        assert course.phase(20.0) == "clearing"
        await pilot.press("1")
        assert course.turn.answer == 1.0, "who has seen it answers no more"
        assert app.main.shown.large, "but keys have their own meaning again"
        course._clearing = False
        run_over(course.turn)
        await pilot.press("enter")
        verdict = course.turn.verdict
        assert verdict is not None
        await until(pilot, lambda: "Because." in said(app))
        assert "did not measure" in said(app)
        await pilot.press("enter")
        assert course.at == 1
        await until(pilot, lambda: "2/3  Two" in said(app))
        await pilot.press("backspace")
        assert course.at == 0


async def test_the_reveal_shows_what_is_right_and_what_was_measured() -> None:
    async with taking() as (app, pilot, leader):
        turn = leader.course.turn
        turn.answer, turn.correct = 0.0, False
        turn.verdict = Judgement({"rate": 9.4, "top": 40.0}, 1.0)
        for part in ("Not this time.", "fast  ✓ right", "goodput: 9.40 Mbit/s"):
            await until(pilot, lambda part=part: part in said(app))  # type: ignore[misc]


async def test_nobody_runs_a_page_without_having_predicted() -> None:
    async with taking() as (_, pilot, leader):
        await pilot.press("enter")
        assert leader.course.phase(20.0) == "asking"


async def test_a_region_is_moved_with_the_keys_and_drawn_on_its_plot() -> None:
    async with taking(at=1) as (app, pilot, leader):
        app.main.plots.lend(("rtt", "cwnd"))
        selected = app.main.shown.selected
        first = leader.draft
        await pilot.press("up", "up", "down")
        assert leader.draft == first + 4.0
        assert app.main.shown.selected == selected, "the table stays"
        await until(pilot, lambda: "░" in said(app))
        await pilot.press("enter")
        assert leader.answer == first + 4.0
        assert leader.course.phase(20.0) == "clearing"


@pytest.mark.parametrize(("keys", "low"), [("42", 32.0), ("0", 0.0), ("99", 80.0)])
async def test_digits_on_a_page_with_a_region_answer_as_on_other_pages(
    keys: str, low: float
) -> None:
    async with taking(at=1) as (app, pilot, leader):
        await pilot.press(keys[0])
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press(*keys[1:], "enter")
        await until(pilot, lambda: leader.answer == low)
        assert leader.draft == low
        assert not app.main.shown.large, "no plot was enlarged"


async def test_what_a_lesson_shows_is_no_preference() -> None:
    async with taking() as (app, pilot, _):
        await until(pilot, lambda: app.main.plots.displayed == ("cwnd",))
        app.main.plots.toggle("rtt")
        await pilot.press("1", "enter", "1", "1")
        assert app.changed_choices() == {}
        assert "later sessions" not in str(app.session.state.log)
        await pilot.press("B")
        assert app.changed_choices() == {"stroke": "bold"}


async def test_enter_says_which_answer_is_missing() -> None:
    async with taking(shares=True) as (app, pilot, leader), watching() as (other, crowd):
        await until(crowd, lambda: "How fast?" in said(other))
        await pilot.press("enter")
        await crowd.press("enter")
        notices = [[each.text for each in one.main.notices][-1:] for one in (app, other)]
        assert notices == [
            ["Answer with a key from 1 to 2 first: what do you expect?"],
            ["Vote with a key from 1 to 2 first: what do you expect?"],
        ]
        leader.course.turn_page(2)
        await until(pilot, lambda: "3/3" in said(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press("enter")
        await until(pilot, lambda: "type your answer first: from 0 to 100 ms" in said(app))
        assert leader.answer is None


async def test_the_vote_closes_when_the_run_starts() -> None:
    async with taking(shares=True) as (_, pilot, leader), watching() as (other, crowd):
        await until(crowd, lambda: "How fast?" in said(other))
        await crowd.press("2")
        await until(pilot, lambda: leader.counts == (0, 1))
        leader.course.turn.span = RunSpan(1.0, 1e6)
        await until(crowd, lambda: "the vote is closed: the run has started" in said(other))
        voter = other.main.lesson
        assert isinstance(voter, Voter)
        await crowd.press("1")
        assert "Too late" in other.main.notices[-1].text
        assert isinstance(other.main.audience, Following)
        assert other.main.audience.following, "a late vote is no roaming"
        assert not other.main.shown.large
        assert not voter.give(0.0)
        assert leader.counts == (0, 1)
        leader.course.turn.span = None
        await until(crowd, lambda: "your vote counts" in said(other))
        assert leader.counts == (0, 1), "a run that is left is void, the votes are not"


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_verdict_stands_on_top_for_presenter_and_spectators(
    size: tuple[int, int],
) -> None:
    async with (
        taking(size, at=2, shares=True) as (app, pilot, leader),
        watching() as (other, crowd),
    ):
        await crowd.resize_terminal(*size)
        await until(crowd, lambda: "How much?" in said(other))
        await crowd.press("2", "0", "enter")
        await until(pilot, lambda: leader.voters == 1)
        turn = leader.course.turn
        turn.answer, turn.verdict = 60.0, Judgement({"rtt": 20.43}, 20.43)
        for one, keys, mine in ((app, pilot, "Not this time."), (other, crowd, "That is right.")):
            await until(keys, lambda one=one: "Votes: 1 of 1 right" in said(one))  # type: ignore[misc]
            assert mine in said(one)
            assert "The right answer: 20.4 ms" in said(one)
            places = {each: one.main.query_one(f"#lesson-{each}").region for each in PARTS}
            assert places["head"].bottom == places["verdict"].y
            assert places["verdict"].bottom <= places["reading"].y
        lines = [each.sign.strip() for each in _bars(other) if each.text.endswith("█ 1")]
        assert lines == ["12.5 to <25"], "the range that contains the vote of 20"


PARTS = ("head", "verdict", "reading")


def _bars(app: CcplayApp) -> tuple[PanelLine, ...]:
    """Return the lines of the question, bars of votes among them."""
    written = app.main.query_one(LessonPanel)._written
    assert written is not None
    return written.question


async def test_a_number_is_typed() -> None:
    async with taking(at=2) as (app, pilot, leader):
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press("1", "2", "0", "enter")
        assert leader.answer is None, "above the greatest answer"
        await pilot.press("backspace", "enter")
        await until(pilot, lambda: leader.answer == 12.0)
        assert app.screen is app.main


@pytest.mark.parametrize(("keys", "number"), [("12", 12.0), ("0.5", 0.5), ("9", 9.0)])
async def test_a_digit_begins_a_number(keys: str, number: float) -> None:
    async with taking(at=2) as (app, pilot, leader):
        names = {".": "full_stop"}
        await pilot.press(keys[0])
        await until(pilot, lambda: app.screen is not app.main)
        await pilot.press(*(names.get(key, key) for key in keys[1:]), "enter")
        await until(pilot, lambda: leader.answer == number)
        assert not app.main.shown.large, "no plot was enlarged"


async def test_a_number_is_typed_faster_than_its_dialog_opens() -> None:
    async with taking(at=2) as (app, pilot, leader):
        for key, character in (("1", "1"), ("full_stop", "."), ("5", "5"), ("enter", "\r")):
            app.post_message(Key(key, character).set_sender(app))
        await until(pilot, lambda: leader.answer == 1.5)
        assert app.screen is app.main


async def test_spectators_see_the_page_vote_and_see_the_counts_once_revealed() -> None:
    async with taking(shares=True) as (app, pilot, leader), watching() as (other, crowd):
        await until(crowd, lambda: "How fast?" in said(other))
        await crowd.press("2")
        assert isinstance(other.main.audience, Following)
        assert other.main.audience.following, "a vote is no roaming"
        await until(pilot, lambda: leader.counts == (0, 1))
        await crowd.press("1")
        await until(pilot, lambda: leader.counts == (1, 0))
        assert leader.voters == 1
        await until(pilot, lambda: "1 voted" in said(app))
        assert not isinstance(other.main.lesson, Leader)
        voter = other.main.lesson
        assert isinstance(voter, Voter)
        assert not voter.counts
        turn = leader.course.turn
        turn.verdict = Judgement({"rate": 9.4, "top": 40.0}, 1.0)
        await until(crowd, lambda: "Not this time." in said(other))
        assert voter.counts == (1, 0)
        await crowd.press("2")
        assert leader.counts == (1, 0), "nobody votes any more"
        await crowd.press("enter")
        await crowd.press("backspace")
        assert leader.course.at == 0, "a spectator turns no page"


async def test_a_spectator_follows_the_drawing_of_the_network() -> None:
    async with taking(shares=True) as (app, pilot, _), watching() as (other, crowd):
        await pilot.press("N")
        await until(crowd, lambda: other.main.shown.map)
        await pilot.press("N")
        await until(crowd, lambda: not other.main.shown.map)
        await crowd.press("N")
        audience = other.main.audience
        assert isinstance(audience, Following)
        assert not audience.following
        assert app.main.shown.map is False


async def test_before_a_run_the_plots_offer_no_other_way_to_start_traffic() -> None:
    async with taking() as (app, _, leader):
        assert app.main.view.awaits == "this page's run starts traffic"
        assert "start" not in text_of(app, "footer"), "Enter is the lesson's"
        leader.course.turn.verdict = Judgement({})
        assert not app.main.view.awaits, "from here on the keys are what starts some"


async def test_the_first_page_offers_no_page_before_it_and_the_last_one_the_way_out() -> None:
    async with taking() as (app, pilot, leader):
        await pilot.press("2")
        await until(pilot, lambda: "⏎ run" in said(app))
        assert "back" not in said(app)
        leader.course.turn_page(1)
        await until(pilot, lambda: "⌫ back" in said(app))
        leader.course.turn_page(1)
        leader.course.turn.verdict = Judgement({"rtt": 3.0}, 3.0)
        await until(pilot, lambda: "the end, ^q leaves" in said(app))
        await pilot.press("enter")
        await until(pilot, lambda: any("last page" in each.message for each in app._notifications))


async def test_the_right_answer_and_the_key_that_scrolls_are_in_sight_on_a_small_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with taking((80, 24)) as (app, pilot, leader):
        assert "more" not in said(app)
        votes = Votes(question=leader.question, counts=(3, 1), voters=4, right=1)
        monkeypatch.setattr(Presenting, "votes", votes)
        turn = leader.course.turn
        turn.answer, turn.correct = 0.0, False
        turn.verdict = Judgement({"rate": 9.4, "top": 40.0}, 1.0)
        await until(pilot, lambda: "✓ The right answer: fast" in said(app))
        assert "Votes: 1 of 4 right" in said(app)
        await until(pilot, lambda: "pgdn more" in said(app))
        for _ in range(6):
            await pilot.press("pagedown")
        await until(pilot, lambda: "pgdn more" not in said(app))


async def test_a_region_is_named_by_the_title_of_its_plot() -> None:
    async with taking(at=1) as (app, pilot, leader):
        assert leader.board.plot == "rtt"
        await until(pilot, lambda: "on the plot of RTT" in said(app))


async def test_a_run_stays_in_sight_while_its_explanation_is_read() -> None:
    async with taking() as (app, pilot, leader):
        playhead = app.main.shown.playhead
        playhead.width = 2.0
        await pilot.press("2")
        leader.course.turn.span = RunSpan(8.0, 9.5)
        await pilot.press("enter")
        assert leader.course.turn.verdict is not None
        assert playhead.t == 9.5
        assert playhead.left <= 8.0
        assert not playhead.running
        await pilot.press("enter")
        assert leader.course.at == 1
        assert playhead.t == leader._session.state.now, "the next page is about what happens now"


def test_a_line_of_keys_leaves_out_whole_keys() -> None:
    """A spectator's line on a narrow panel ends with a whole word."""
    panel: Any = LessonPanel()
    panel._foot = SimpleNamespace(size=Size(36, 1))
    panel._reading = panel._answer = SimpleNamespace(scroll_y=0, max_scroll_y=0)
    foot = "1 to 4 answer  (your vote counts)  (it can be changed)"
    written = LessonTexts(head="", verdict=(), reading="", question=(), foot=foot, more="")
    assert panel._footer(written) == "1 to 4 answer  (your vote counts)"
