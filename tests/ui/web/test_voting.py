"""A real browser shows a lesson as text, and votes by tap, key and field."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from ccplay.share.frames import Board, Votes
from ccplay.share.web import feed
from tests.terminals import PATIENCE_S
from tests.ui.web.chromium import Tab, needs_chromium, new_tab
from tests.ui.web.conftest import Stage

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]

BOARD = Board(
    title="Queues",
    page=2,
    pages=3,
    heading="How <b>long</b>?",
    lines=(
        "A **queue** fills <script>x()</script> `tc`.",
        "",
        "- [slowly](https://elsewhere.example)",
    ),
    phase="asking",
    question=66,
    ask="Which one?",
    choices=("one", "two", "three"),
    open=True,
)
REVEALED = replace(
    BOARD,
    phase="revealed",
    open=False,
    counts=(1, 0, 3),
    voted_right=3,
    right=2,
    answers=(2, 2),
    measured=(("RTT of the ping", "48 ms"),),
    why=("It **waits**.",),
)
NUMBER = replace(BOARD, page=3, question=67, choices=(), low=0.0, high=10.0, unit="Mbit/s")
REGION = replace(NUMBER, question=68, low=0.0, high=600.0, width=200.0, unit="ms", plot="rtt")

LESSON = "document.getElementById('lesson')"
TEXT = f"{LESSON}.innerText"
STATUS = f"{LESSON}.querySelector('.status').textContent"
SPOKEN = "document.getElementById('spoken').textContent"
ENABLED = "document.querySelector('#lesson fieldset:enabled')"


@pytest_asyncio.fixture
async def tab(stage: Stage, browser: str) -> AsyncIterator[Tab]:
    """Yield a page of a session with a lesson, in the size of a phone."""
    stage.play(8)
    stage.sharing.show(BOARD)
    await stage.serve()
    async with new_tab(browser) as tab:
        await tab.size(390, 844)
        await tab.open(stage.link)
        await tab.until(ENABLED)
        yield tab


async def voted(stage: Stage, question: int, counts: tuple[int, ...]) -> Votes:
    """Wait until the presenter has these counts of votes; return the votes."""
    async with asyncio.timeout(PATIENCE_S):
        while stage.sharing.votes is None or stage.sharing.votes.counts != counts:
            stage.sharing.listen()
            await asyncio.sleep(0.02)
    assert stage.sharing.votes.question == question
    return stage.sharing.votes


async def test_its_words_are_text_and_a_few_known_elements(tab: Tab) -> None:
    assert "How <b>long</b>?" in await tab.evaluate(TEXT)
    assert "A queue fills <script>x()</script> tc." in await tab.evaluate(TEXT)
    assert await tab.evaluate(f"{LESSON}.querySelector('strong').textContent") == "queue"
    assert await tab.evaluate(f"{LESSON}.querySelector('li').textContent") == (
        "[slowly](https://elsewhere.example)"
    )
    assert await tab.evaluate(f"{LESSON}.querySelectorAll('script, a, b').length") == 0
    assert await tab.evaluate(f"{LESSON}.querySelector('legend').textContent") == "Which one?"
    assert "page 2 of 3" in await tab.until(SPOKEN)
    assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = f"[...{LESSON}.querySelectorAll('.answer')].map((each) => each.offsetHeight)"
    assert min(await tab.evaluate(boxes)) >= 40
    assert tab.complaints == []


async def test_a_tap_votes_a_key_changes_it_and_the_reveal_is_reported(
    stage: Stage, tab: Tab
) -> None:
    await tab.evaluate(f"{LESSON}.querySelectorAll('.answer')[0].click()")
    await tab.until(f"{STATUS}.includes('Your vote counts')")
    assert (await voted(stage, 66, (1, 0, 0))).voters == 1
    await tab.press("3")
    await tab.until(f"{LESSON}.querySelectorAll('.answer')[2].matches('.mine')")
    assert (await voted(stage, 66, (0, 0, 1))).voters == 1
    assert await tab.evaluate("document.querySelectorAll('#plots figure').length") == 4
    assert "3 votes" not in await tab.evaluate(TEXT)
    stage.sharing.show(replace(BOARD, phase="running", open=False, until=20.0))
    await tab.until(f"{STATUS} === 'The vote is closed. Your vote counts.'")
    assert not await tab.evaluate(ENABLED)
    assert "right" not in await tab.evaluate(TEXT)
    stage.sharing.show(REVEALED)
    await tab.until(f"{TEXT}.includes('That is right.')")
    shown = await tab.evaluate(TEXT)
    assert "3 votes" in shown
    assert "48 ms" in shown
    assert "It waits." in shown
    assert "The right answer: three" in await tab.until(SPOKEN)
    assert "Votes: 3 of 4 right" in shown
    assert shown.index("That is right.") < shown.index("It waits.")
    assert not await tab.evaluate(ENABLED)
    # Digit keys choose plots again.
    await tab.press("2")
    await tab.until("document.querySelectorAll('#plots figure').length === 5")
    assert tab.complaints == []


async def test_a_browser_that_is_opened_again_keeps_its_vote(
    stage: Stage, tab: Tab, browser: str
) -> None:
    await tab.press("2")
    await voted(stage, 66, (0, 1, 0))
    await tab.until(f"{STATUS}.includes('Your vote counts')")
    await tab.open(stage.link)
    await tab.until(f"{ENABLED} && {LESSON}.querySelector('.mine')?.textContent.includes('two')")
    await tab.press("1")
    assert (await voted(stage, 66, (1, 0, 0))).voters == 1
    async with new_tab(browser) as other:
        await other.open(stage.link)
        await other.until(ENABLED)
        await other.press("1")
        assert (await voted(stage, 66, (2, 0, 0))).voters == 2


async def test_a_number_is_typed(stage: Stage, tab: Tab) -> None:
    stage.sharing.show(NUMBER)
    await tab.until(f"{ENABLED} && {LESSON}.querySelector('input[type=number]')")
    await tab.press("a")
    await tab.until("document.activeElement.type === 'number'")
    for key in ("9", "9", "Enter"):
        await tab.press(key)
    await tab.until(f"{STATUS}.includes('from 0 to 10 Mbit/s, please')")
    await tab.evaluate("document.activeElement.value = '9.5'")
    await tab.evaluate(f"{LESSON}.querySelector('button').click()")
    await tab.until(f"{STATUS}.includes('Your vote, 9.5 Mbit/s, counts')")
    await voted(stage, 67, (0, 0, 0, 0, 0, 0, 0, 1))
    # The typed answer stays when the run begins.
    stage.sharing.show(replace(NUMBER, phase="running", until=12.0))
    stage.sharing.show(replace(NUMBER, open=False, phase="revealed", right=3.0))
    await tab.until(f"{TEXT}.includes('Your answer: 9.5 Mbit/s.')")
    assert tab.complaints == []


async def test_digits_begin_a_number_and_go_to_a_region_and_choose_no_plot(
    stage: Stage, tab: Tab
) -> None:
    await tab.until("document.querySelectorAll('#plots figure').length === 4")
    for board, kind, value in ((NUMBER, "number", "9"), (REGION, "range", "192")):
        stage.sharing.show(board)
        await tab.until(f"{ENABLED} && {LESSON}.querySelector('input[type={kind}]')")
        await tab.press("9")
        await tab.until(f"document.activeElement.type === '{kind}'")
        assert await tab.evaluate("document.activeElement.value") == value
    assert await tab.evaluate("document.querySelectorAll('#plots figure').length") == 4
    assert tab.complaints == []


async def test_a_region_is_moved_and_drawn(stage: Stage, tab: Tab) -> None:
    stage.sharing.show(REGION)
    await tab.until(f"{ENABLED} && {LESSON}.querySelector('input[type=range]')")
    output = f"{LESSON}.querySelector('output').textContent"
    assert await tab.evaluate(output) == "192 to 392 ms"
    await tab.press("a")
    await tab.until("document.activeElement.type === 'range'")
    moved = "document.activeElement.dispatchEvent(new Event('input'))"
    await tab.evaluate(f"(document.activeElement.value = 48, {moved})")
    assert await tab.evaluate(output) == "48 to 248 ms"
    await tab.evaluate(f"{LESSON}.querySelector('button').click()")
    # Its middle, 148 ms, is in the second eighth of 600 ms.
    await voted(stage, 68, (0, 1, 0, 0, 0, 0, 0, 0))
    closed = replace(REGION, open=False, phase="revealed", right=100.0, answers=(-100.0, 100.0))
    stage.sharing.show(closed)
    await tab.until(f"{TEXT}.includes('That is right.')")
    assert "Your answer: 48 to 248 ms." in await tab.evaluate(TEXT)
    stage.sharing.show(Board())
    await tab.until(f"{LESSON}.hidden")
    assert tab.complaints == []


async def test_nobody_is_asked_for_the_past_when_the_session_is_over(
    stage: Stage, browser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: float) -> bytes:
        raise feed.TooBusyError

    monkeypatch.setattr(feed.Windows, "get", refuse)
    stage.play(8)
    await stage.serve()
    async with new_tab(browser) as tab:
        await tab.open(stage.link)
        await tab.until(
            "performance.getEntriesByType('resource').some((e) => /window/.test(e.name))"
        )
        await stage.over()
        await tab.until(f"{SPOKEN}.includes('stopped sharing')")
        # Requests under way may still fail; later ones would, three a second, without an end.
        failed = -1
        async with asyncio.timeout(PATIENCE_S):
            while failed != (failed := len(tab.complaints)):
                await tab.evaluate("new Promise((done) => setTimeout(done, 1500))")


async def test_what_was_asked_stays_when_the_session_is_over(stage: Stage, tab: Tab) -> None:
    await stage.over()
    await tab.until(f"{STATUS} === 'The vote is closed.'")
    assert "Which one?" in await tab.evaluate(TEXT)
    assert not await tab.evaluate(ENABLED)
    assert "stopped sharing" in await tab.until(SPOKEN)
    # A request for the past may have been under way, or the browser may fetch the icon only now.
    others = [each for each in tab.complaints if not re.search(r"/window\?|/icon\.svg", each)]
    assert not others, others
