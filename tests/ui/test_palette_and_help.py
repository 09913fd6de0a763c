"""The palette and the help offer every command and key, and only those that are current."""

from collections.abc import Callable
from functools import partial

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.command import CommandList
from textual.events import Click, Key
from textual.pilot import Pilot

from ccplay.model.base import Command
from ccplay.model.commands import Mark, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.values import Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StopFlow
from ccplay.traffic.ping import PingStarted, StopPing
from ccplay.traffic.udp import StartUdp, StopUdp, UdpStarted
from ccplay.ui.cells import ASCII
from ccplay.ui.help import HelpScreen
from ccplay.ui.keys import GROUPS, MOST_ESSENTIALS, bindings_of, group_of, wording
from ccplay.ui.palette import Palette, entries, typed
from tests.ui.hand_made import lab
from tests.ui.stage import Stage
from tests.ui.test_main import until
from tests.ui.view import said


def commands(state: LabState) -> dict[str, Command]:
    """Return the palette's commands by their texts."""
    return {entry.text: entry.command for entry in entries(state)}


def test_what_can_be_done_with_running_flows_is_offered() -> None:
    offered = commands(lab(flows=2))
    assert offered["switch flow 1 to bbr"] == SetCongestionControl(cc="bbr", flow="1")
    assert offered["stop flow 2"] == StopFlow(flow="2")
    assert "switch flow 1 to cubic" not in offered, "it uses that already"
    assert "switch flow 1 to vegas" not in offered, "this kernel has none"


def test_a_full_kernel_has_more_to_offer() -> None:
    offered = commands(lab(full=True))
    assert "switch flow 1 to vegas" in offered
    assert offered["queue: fq_codel"] == SetQdisc(qdisc=Qdisc(kind="fq_codel"))
    assert {text.split()[1] for text in offered if text.startswith("queue:")} <= set(DISCIPLINES)


def test_a_running_ping_can_be_stopped() -> None:
    state = lab()
    state.apply(PingStarted(t=3.0, ping="p1", src="s1", dst="d1", interval_s=0.2))
    assert commands(state)["stop ping p1"] == StopPing(ping="p1")


def test_cross_traffic_is_offered_and_can_be_stopped() -> None:
    state = lab()
    assert commands(state)["cross traffic by UDP"] == StartUdp(src="s1", dst="d1")
    where = {"src": "s1", "dst": "d1", "rate_bps": 1_000_000, "packet_bytes": 1024, "port": 1}
    state.apply(UdpStarted(t=3.0, udp="u1", **where))  # type: ignore[arg-type]
    assert commands(state)["stop UDP u1"] == StopUdp(udp="u1")


def test_texts_are_distinguished() -> None:
    texts = [entry.text for entry in entries(lab(full=True, flows=2))]
    assert len(texts) == len(set(texts))


def test_without_a_lab_there_is_nothing_to_do() -> None:
    assert entries(LabState()) == []
    assert typed("rate 5 Mbit/s", LabState()) is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("queue pfifo 37", SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": 37}))),
        (
            "queue: codel target 5 ms, ecn on",
            SetQdisc(qdisc=Qdisc(kind="codel", options={"target": 5000, "ecn": True})),
        ),
        ("rate 7 Mbit/s", SetLink(rate=7_000_000)),
        ("delay 40 ms", SetLink(delay_us=40_000)),
        ("jitter 1 ms", SetLink(jitter_us=1_000)),
        ("loss 2 %", SetLink(loss=0.02)),
        ("rate 5", SetLink(rate=5_000_000)),
        ("Delay: 5", SetLink(delay_us=5_000)),
        ("loss 1", SetLink(loss=0.01)),
        ("mark here it starts", Mark(text="here it starts")),
        ("queue pfifoo 37", None),
        ("rate fast", None),
        (f"rate {'9' * 400} Mbit/s", None),
        ("rate", None),
        ("frobnicate 3", None),
    ],
)
def test_what_is_typed_in_full_is_done(query: str, expected: Command | None) -> None:
    entry = typed(query, lab())
    assert (entry.command if entry else None) == expected


async def run_in_palette(app: Stage, *queries: str) -> None:
    """Open the palette, type a query, and press enter once the first line matches it."""
    async with app.run_test() as pilot:
        for query in queries:
            await pilot.press("ctrl+p", *("space" if each == " " else each for each in query))
            await until(pilot, partial(_is_first, app, query.rsplit(maxsplit=1)[-1]))
            await pilot.press("enter")


def _is_first(app: Stage, word: str) -> bool:
    options = app.screen.query_one(CommandList).options
    return bool(options) and word in str(options[0].prompt)


async def test_the_palette_sends() -> None:
    app = Stage(lab())
    await run_in_palette(app, "switch flow 1 to bbr", "queue pfifo 37", "mark a [b] c")
    assert app.backdrop.session.sent == [
        SetCongestionControl(cc="bbr", flow="1"),
        SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": 37})),
        Mark(text="a [b] c"),
    ]


async def test_enter_does_what_was_typed_and_nothing_else() -> None:
    """Enter runs what was typed, even while the list still shows matches of its first letters."""
    cases: list[tuple[str, list[Command]]] = [
        ("rate 2 mbit", [SetLink(rate=2_000_000)]),
        ("rate 5", [SetLink(rate=5_000_000)]),
        ("delay 5 ms", [SetLink(delay_us=5_000)]),
        ("loss 1 %", [SetLink(loss=0.01)]),
        ("queue pfifo 10", [SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": 10}))]),
        ("rate 2 mbi", []),
        ("rate 1.5", [SetLink(rate=1_500_000)]),
    ]
    app = Stage(lab())
    async with app.run_test() as pilot:
        for query, expected in cases:
            app.backdrop.session.sent.clear()
            await pilot.press("ctrl+p")
            for key in (
                *(Key("space" if each == " " else each, each) for each in query),
                Key("enter", None),
            ):
                app.post_message(key)
            for _ in range(50):  # rounds of messages; some ten are enough
                if app.backdrop.session.sent:
                    break
                await pilot.pause()
            assert app.backdrop.session.sent == expected, query
            assert isinstance(app.screen, Palette) == (not expected), "nothing else was run"
            if not expected:
                await pilot.press("escape")
                assert app.screen is app.backdrop


async def test_what_was_typed_in_full_stands_first() -> None:
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p", *"delay", "space", "5")
        found = app.screen.query_one(CommandList)
        await until(pilot, lambda: found.option_count == 2)
        shown = [str(each.prompt).splitlines()[0] for each in found.options]
        assert shown == ["delay: 5 ms", "delay: 50 ms"]


async def test_a_recording_takes_no_commands() -> None:
    """The palette of a recording sends no commands."""
    app = Stage(lab())
    app.backdrop.session.live = False
    await run_in_palette(app, "flow")
    assert app.backdrop.session.sent == []


async def test_the_palette_runs_what_keys_run() -> None:
    app = Stage(lab())
    await run_in_palette(app, "freeze, pause")
    assert app.backdrop.done == ["freeze"]


async def test_the_palette_changes_the_theme() -> None:
    app = Stage(lab())
    await run_in_palette(app, "theme: projector")
    assert app.theme == "projector"


@pytest.mark.parametrize(
    ("action", "group"),
    [
        ("open('flow')", "traffic"),
        ("stop_flow", "traffic"),
        ("start_traffic('udp')", "traffic"),
        ("open('queue')", "network"),
        ("zoom(2)", "time"),
        ("app.quit", "screen"),
    ],
)
def test_actions_belong_to_groups(action: str, group: str) -> None:
    assert group_of(action) == group
    assert group in GROUPS


@pytest.mark.parametrize("size", [(80, 24), (200, 55)])
async def test_the_help_opens_on_the_keys_that_matter_and_leads_to_every_other(
    size: tuple[int, int],
) -> None:
    """The first page fits every terminal; a digit each opens the keys of a subject."""
    app = Stage(lab())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        told = [wording(each) for each in bindings_of(app.backdrop)]
        assert len(told) > 60
        await pilot.press("question_mark")
        page = app.screen
        assert isinstance(page, HelpScreen)
        first = said(app)
        for meaning in [meaning for _, meaning in page._essentials()]:
            assert meaning in first
        assert len(page._essentials()) == MOST_ESSENTIALS
        assert page.query_one("#page").max_scroll_y == 0
        pages = {text for _, lines in page.subjects for _, text in lines}
        assert [text for text in told if text not in pages] == []
        for digit, (subject, lines) in enumerate(page.subjects, 1):
            assert f"{digit}  {subject}" in first
            await pilot.press(str(digit))
            assert subject in said(app)
            assert lines[0][1][:40] in said(app)
            await pilot.press("0")
        await pilot.press("9", "escape")
        assert app.screen_stack[-1:] == [app.backdrop]


async def test_the_help_scrolls_to_its_end_on_a_small_screen() -> None:
    app = Stage(lab(), glyphs=ASCII)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark", "5", "end")
        shown = said(app)
        assert "earlier run, dimmed" in shown
        assert shown.isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_how_the_help_looks(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    async def drawn(pilot: Pilot[None]) -> None:
        """Open the help and wait until its page has its size."""
        await pilot.press("question_mark")
        while not isinstance(pilot.app.screen, HelpScreen):
            await pilot.pause()
        while not pilot.app.screen.query("#page") or pilot.app.screen._layout_required:
            await pilot.pause()
        while not pilot.app.screen.query_one("#page").virtual_size.height:
            await pilot.pause()

    assert snap_compare(Stage(lab()), run_before=drawn, terminal_size=size)


async def test_enter_twice_at_once_runs_one_line_of_the_palette() -> None:
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p", *"stop", "space", *"flow", "space", "1")
        await app.workers.wait_for_complete()
        await pilot.pause()
        for key in ("enter", "enter"):
            app.post_message(Key(key, None))
        while not app.backdrop.session.sent:
            await pilot.pause()
        await pilot.pause()
        assert app.screen is app.backdrop
    assert app.backdrop.session.sent == [StopFlow(flow="1")]


async def test_the_help_is_left_once() -> None:
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")

        for key in ("escape", "enter", "q"):
            app.post_message(Key(key, None))
        await pilot.pause()
        assert app.screen is app.backdrop


async def test_keys_before_the_help_is_there_and_after_it_was_left_do_nothing() -> None:
    app = Stage(lab())
    async with app.run_test() as pilot:
        for key in ("question_mark", "space", "space", "escape", "space", "space"):
            app.post_message(Key(key, None))
        await pilot.pause()
        await pilot.press("question_mark")
        help_screen = app.screen
        assert isinstance(help_screen, HelpScreen)
        help_screen.dismiss()
        await help_screen.query("*").remove()
        assert not await app.run_action("page_down", help_screen)
        unborn = HelpScreen()
        assert not await app.run_action("page_down", unborn)


async def test_a_palette_that_has_lost_its_widgets_may_still_search() -> None:
    """A search may end after the palette has closed and lost its widgets, without an error."""
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p")
        palette = app.screen
        assert isinstance(palette, Palette)
        await palette.query("*").remove()
        palette._show_busy = not palette._show_busy
        palette._list_visible = not palette._list_visible
        await palette._gather_commands("rate").wait()
        await pilot.pause()


async def test_the_help_is_composed_before_it_is_on_the_stack() -> None:
    """From Python 3.12 on Textual's tasks begin at once, while the screen is being pushed."""
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        helping = app.screen
        assert isinstance(helping, HelpScreen)
        shown = helping._keys_below()
        await pilot.press("escape")
        assert helping._keys_below() == shown


async def test_a_click_on_a_line_that_is_gone_chooses_nothing() -> None:
    """A letter empties the list; a click may arrive before the screen is drawn again."""
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count > 2)
        entries = app.screen.query_one(CommandList)
        click = Click(entries, 1, 2, 0, 0, 1, shift=False, meta=False, ctrl=False)
        click.style = Style(meta={"option": 2})
        entries.clear_options()
        entries.post_message(click)
        await pilot.pause()
        assert isinstance(app.screen, Palette)


async def test_a_click_outside_the_palette_s_screen_changes_nothing() -> None:
    """A terminal may become smaller between a click and its arrival."""
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+p")
        palette = app.screen
        palette.post_message(Click(palette, 200, 60, 0, 0, 1, shift=False, meta=False, ctrl=False))
        await pilot.pause()
        assert app.screen is palette


async def test_a_palette_without_widgets_searches_nothing() -> None:
    """An app that ends while its palette opens mounts none of them."""

    class Ending(Palette):
        def compose(self) -> ComposeResult:
            yield from ()

    app = Stage(lab())
    async with app.run_test() as pilot:
        app.push_screen(Ending())
        await pilot.pause()
        assert not list(app.workers)


async def test_a_key_that_arrives_while_the_app_ends_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An app that ends removes the widgets of its screens before the screens."""
    monkeypatch.setattr(App, "exit", lambda *_: None)
    app = Stage(lab())
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        app.exit()
        await app.screen.query("*").remove()
        await pilot.press("space")
        assert isinstance(app.screen, HelpScreen)
