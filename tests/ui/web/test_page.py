"""The page works in a real browser: its contents, keys and themes, and without a server."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from msgspec.structs import replace

from ccplay.model.commands import Mark
from ccplay.model.events import Applied
from ccplay.share.frames import Over, Playhead, Pointer, Shown
from ccplay.share.presenter import Sharing
from ccplay.traffic.flow import FlowStarted
from tests.ui.web.chromium import Tab, needs_chromium, new_tab
from tests.ui.web.conftest import Stage

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]

SCRIPT = "<script>document.title='broken into'</script>"

NAME = "<script>x=1<script>"
"""Hostile name of a flow, which can't have a slash."""

STATE = "document.getElementById('state').textContent"
ROWS = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.innerText).join('|')"
DRAWN = """[...document.querySelectorAll('canvas')].map((canvas) => {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
})"""

NEVER_ANEW = """const later = window.setTimeout;
window.setTimeout = (does, ms) => ms === 25000 ? 0 : later(does, ms);"""
"""Script for a page that does not connect anew if no message comes for 25 s."""


@pytest_asyncio.fixture
async def tab(stage: Stage, browser: str) -> AsyncIterator[Tab]:
    """Yield a page that shows a session of twelve seconds."""
    stage.play(12)
    await stage.serve()
    async with new_tab(browser) as tab:
        await tab.size(1366, 900)
        await tab.open(stage.link)
        await tab.until(f"{ROWS}.includes('cubic')")
        yield tab


async def test_a_session_is_shown_live(stage: Stage, tab: Tab) -> None:
    await tab.until(f"{STATE}.includes('live')")
    assert (
        await tab.evaluate("document.querySelector('h1').textContent") == "A <script>title</script>"
    )
    assert await tab.evaluate("document.querySelectorAll('#plots figure').length") == 4
    # Each plot has lines, not only axes: their colours, mixed with the background at the edges.
    await tab.until(f"{DRAWN}.every((colours) => colours > 20)")
    assert "s1 → d1" in await tab.evaluate(ROWS)
    assert "10 Mbit/s" in await tab.until("document.getElementById('queue-words').textContent")
    assert await tab.evaluate("document.querySelectorAll('#drawing rect.box').length") >= 6
    assert "flow" in await tab.evaluate("document.getElementById('log').innerText")
    stage.play(20)
    await tab.until(f"{STATE}.includes('0:2') || {STATE}.includes('0:19')")
    assert tab.complaints == []


async def test_the_past_is_there_to_pan_and_zoom(stage: Stage, tab: Tab) -> None:
    await tab.press("Home")
    await tab.until(f"{STATE}.includes('held')")
    await tab.press("+")
    await tab.press("+")
    await tab.until(f"{DRAWN}.every((colours) => colours > 20)")
    stage.play(20)
    assert "held" in await tab.evaluate(STATE)
    await tab.press("End")
    await tab.until(f"{STATE}.includes('live 0:19') || {STATE}.includes('live 0:20')")
    assert tab.complaints == []


async def test_names_and_texts_are_text(stage: Stage, tab: Tab) -> None:
    stage.sharing.put(FlowStarted(t=12.5, flow=NAME, src="s1", dst="d1", cc="reno", port=9))
    stage.sharing.put(Applied(t=12.6, command=Mark(text=SCRIPT)))
    stage.play(14)
    await tab.until(f"{ROWS}.includes({json.dumps(NAME)})")
    await tab.until(f"document.getElementById('log').innerText.includes({json.dumps(SCRIPT)})")
    assert await tab.evaluate("document.querySelectorAll('main script').length") == 0
    assert "broken" not in await tab.evaluate("document.title")
    assert tab.complaints == []


async def test_keys_alone_are_enough(stage: Stage, tab: Tab) -> None:
    await tab.press("ArrowDown")
    await tab.until("document.querySelector('tr[data-chosen]')?.innerText.includes('1')")
    await tab.press("v")
    said = await tab.until("document.getElementById('spoken').textContent")
    assert "congestion window (cwnd) in segments at 0:1" in said
    assert "round-trip time in ms" in said
    await tab.press("2")
    await tab.until("document.querySelectorAll('#plots figure').length === 5")
    await tab.press("?")
    await tab.until("document.querySelector('dialog').open")
    await tab.press("Escape")
    await tab.until("!document.querySelector('dialog').open")
    await tab.press(" ")
    await tab.until(f"{STATE}.includes('held')")
    # The first tab stop is a link that skips the buttons.
    await tab.press("Tab")
    assert await tab.evaluate("document.activeElement.className") == "skip"
    await tab.press("Tab")
    assert await tab.evaluate("document.activeElement.dataset.does") == "follow"
    assert tab.complaints == []


async def test_each_plot_has_its_newest_values_in_words(stage: Stage, tab: Tab) -> None:
    words = """[...document.querySelectorAll('canvas')].map((canvas) =>
      document.getElementById(canvas.getAttribute('aria-describedby')).textContent)"""
    await tab.call("Page.addScriptToEvaluateOnNewDocument", source=NEVER_ANEW)
    await tab.open(stage.link)
    await tab.until(f"{words}.every((each) => / at 0:1\\d: .*\\d/.test(each))")
    stage.play(25)
    await tab.until(f"{words}.every((each) => / at 0:2\\d: .*\\d/.test(each))")


async def test_it_follows_the_presenter_until_a_key_is_touched(stage: Stage, tab: Tab) -> None:
    view = Shown(
        Playhead(t=6.0, left=2.0, width=8.0, running=False), plots=("rtt", "cwnd"), selected="1"
    )
    pointer = Pointer(t=5.0, text="here <b>it</b> is")
    stage.sharing.show(view)
    await tab.until(f"{STATE} === 'held 0:06 · following the presenter'")
    shown = "[...document.querySelectorAll('#plots strong')].map((each) => each.textContent).join()"
    assert await tab.evaluate(shown) == "round-trip time,congestion window (cwnd)"
    stage.sharing.show(replace(view, pointer=pointer))
    await tab.until("document.getElementById('notice').textContent.includes('here <b>it</b> is')")
    await tab.press("ArrowLeft")
    await tab.until(f"{STATE}.includes('roaming')")
    stage.sharing.show(Shown(Playhead(t=9.0, left=2.0, width=8.0, running=False), plots=("queue",)))
    stage.play(14)
    await tab.until("!document.getElementById('notice').textContent")
    assert await tab.evaluate(shown) == "round-trip time,congestion window (cwnd)"
    await tab.press("F")
    await tab.until(f"{shown} === 'queue'")


async def test_it_connects_again_by_itself_and_reports_it(stage: Stage, tab: Tab) -> None:
    link = urlsplit(stage.link)
    await stage.stop()
    await tab.until(f"{STATE}.includes('Connection lost; reconnecting')")
    assert "lost" in await tab.evaluate("document.getElementById('spoken').textContent")
    # The page still shows the data received so far.
    assert "cubic" in await tab.evaluate(ROWS)
    from ccplay.share.web import pages

    token = link.path.strip("/")
    known, pages.make_token = pages.make_token, lambda: token
    try:
        await stage.serve(link.port or 0)
    finally:
        pages.make_token = known
    stage.play(20)
    await tab.until(f"{STATE}.includes('live 0:19') || {STATE}.includes('live 0:20')")


async def test_the_end_is_shown_and_what_came_stays(stage: Stage, tab: Tab) -> None:
    await stage.over()
    await tab.until("document.getElementById('notice').textContent.includes('stopped sharing')")
    assert "cubic" in await tab.evaluate(ROWS)
    assert "over" in await tab.evaluate(STATE)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1366, 768), (1920, 1080)])
async def test_nothing_is_cut_off(stage: Stage, tab: Tab, width: int, height: int) -> None:
    await tab.size(width, height)
    await tab.until(f"innerWidth === {width}")
    await tab.until("document.documentElement.scrollWidth <= innerWidth")
    shown = "[...document.querySelectorAll('button')].filter((each) => each.offsetParent)"
    # Buttons are large enough for a finger: "target size (minimum)" of WCAG 2.2.
    assert await tab.evaluate(f"{shown}.every((each) => each.offsetHeight >= 24)")


async def test_light_and_dark_follow_the_system_and_a_key(tab: Tab) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    await tab.prefer("dark")
    await tab.until(f"{ground} === 'rgb(17, 22, 28)'")
    await tab.prefer("light")
    await tab.until(f"{ground} !== 'rgb(17, 22, 28)'")
    await tab.press("t")
    await tab.until(f"{ground} === 'rgb(17, 22, 28)'")
    assert tab.complaints == []


async def test_the_page_joins_the_presenters_next_network(stage: Stage, tab: Tab) -> None:
    await tab.press("-")
    assert await tab.evaluate("document.querySelector('[data-does=follow]').ariaPressed") == "false"
    stage.sharing.show(Over(reason="another", another=True))
    await asyncio.to_thread(stage.sharing.close)
    await tab.until("document.getElementById('notice').textContent.includes('another network')")
    stage.sharing = Sharing("test", "Next")
    stage.restart()
    stage.play(3)
    await tab.until("document.getElementById('title').textContent === 'Next'")
    await tab.until("document.getElementById('notice').hidden")
    await tab.until("document.querySelectorAll('#plots figure').length > 0")
    assert tab.complaints == []
