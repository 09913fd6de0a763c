"""Dialogs send the right commands when they are filled in by keyboard alone."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from textual import timer
from textual._xterm_parser import XTermParser
from textual.app import ComposeResult
from textual.events import Key, Paste
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from ccplay.model.base import Command
from ccplay.model.commands import Mark, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.network import Topology
from ccplay.model.values import Qdisc
from ccplay.session.archive import Unsaved
from ccplay.session.session import Session
from ccplay.share.frames import Board, Playhead, Shown
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import LogEntry
from ccplay.traffic.call import StartCall
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.short_flows import StartShortFlows
from ccplay.traffic.udp import StartUdp
from ccplay.ui import help as keys_in_turn
from ccplay.ui.cells import ASCII, UNICODE, Glyphs
from ccplay.ui.dialog_form import LabelledRow, Menu, Stepper, TextField
from ccplay.ui.dialogs_links import CaptureDialog, LinkDialog, NetworkDialog, QueueDialog
from ccplay.ui.dialogs_session import (
    ChangeMarkDialog,
    GhostDialog,
    LeaveDialog,
    MarkDialog,
    PointDialog,
    PredictionDialog,
    SaveDialog,
)
from ccplay.ui.dialogs_traffic import CongestionDialog
from ccplay.ui.help import EventsScreen, Modal
from ccplay.ui.palette import Palette
from ccplay.ui.themes import load_looks
from ccplay.ui.view import View
from tests.terminals import PATIENCE_S
from tests.ui.hand_made import REASON, REMEDY, lab
from tests.ui.stage import Opens, Stage, starts, written
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.test_snapshots import still

STARTING = [starts(kind) for kind in TRAFFIC]
FlowDialog, DownloadDialog, PingDialog, UdpDialog, ShortFlowsDialog, CallDialog = STARTING
DIALOGS: list[Opens] = [*STARTING, CongestionDialog, QueueDialog, LinkDialog, MarkDialog]


def pfifo(limit: int) -> SetQdisc:
    """Return the command for a pfifo of ``limit`` packets at the bottleneck."""
    return SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": limit}))


@asynccontextmanager
async def staged(**of: Any) -> AsyncIterator[tuple[Stage, Pilot[None]]]:
    """Show an app in which one dialog after another may open: its start takes most of the time.

    ``of`` describes the lab, see ``lab``.
    """
    app = Stage(lab(**of))
    async with app.run_test() as pilot:
        await pilot.pause()
        yield app, pilot


async def opened(app: Stage, pilot: Pilot[None], dialog: Opens) -> Screen[Any]:
    """Open a dialog in place of the one before; return it."""
    if app.screen is not app.backdrop:
        app.pop_screen()
    app.answers.clear()
    app.open(dialog)
    await pilot.pause()
    assert app.screen is not app.backdrop
    return app.screen


async def answers(dialog: Opens, keys: str, **of: Any) -> list[Command | None]:
    """Return what a dialog answers to ``keys``; ``of`` describes the lab, see ``lab``."""
    async with staged(**of) as (app, pilot):
        await opened(app, pilot, dialog)
        await pilot.press(*keys.split())
        return app.answers


async def test_keys_make_a_command() -> None:
    cases: list[tuple[Opens, str, Command | None]] = [
        (FlowDialog, "enter", StartFlow(src="s2", dst="d2")),
        (FlowDialog, "b enter", StartFlow(src="s2", dst="d2", cc="bbr")),
        (
            FlowDialog,
            "tab tab tab tab tab tab right enter",
            StartFlow(src="s2", dst="d2", ecn=True),
        ),
        (
            FlowDialog,
            "tab tab tab tab tab tab tab b u l k enter",
            StartFlow(flow="bulk", src="s2", dst="d2"),
        ),
        (FlowDialog, "tab d tab s enter", StartFlow(src="d1", dst="s2")),
        (PingDialog, "2 enter", StartPing(src="s2", dst="d2")),
        (FlowDialog, "2 tab right enter", StartFlow(src="d1", dst="s1", cc="reno")),
        (
            FlowDialog,
            "tab tab tab 3 tab 5 M B tab 1 0 space s enter",
            StartFlow(src="s2", dst="d2", streams=3, bytes=5_000_000, duration_s=10.0),
        ),
        (CongestionDialog, "down enter", SetCongestionControl(cc="bbr", flow="1")),
        (CongestionDialog, "r enter", SetCongestionControl(cc="reno", flow="1")),
        (CongestionDialog, "b b r enter", SetCongestionControl(cc="bbr", flow="1")),
        (CongestionDialog, "right 3 enter", SetCongestionControl(cc="bbr", host="s1")),
        (QueueDialog, "enter", pfifo(100)),
        (QueueDialog, "tab 2 0 enter", pfifo(20)),
        (QueueDialog, "b enter", SetQdisc(qdisc=Qdisc(kind="bfifo", options={"limit": 150_000}))),
        (
            QueueDialog,
            "t enter",
            SetQdisc(
                qdisc=Qdisc(
                    kind="tbf", options={"rate": 10_000_000, "burst": 15_000, "limit": 150_000}
                )
            ),
        ),
        (LinkDialog, "enter", None),
        (LinkDialog, "5 M b i t enter", SetLink(rate=5_000_000)),
        (LinkDialog, "tab 4 0 m s down down 2 % enter", SetLink(delay_us=40_000, loss=0.02)),
        (LinkDialog, "up right down 9 0 0 k b i t enter", SetLink(link="r1-r2", rate=900_000)),
        (LinkDialog, "tab N o n e tab tab 0 enter", SetLink(delay_us=0, loss=0.0)),
        (PingDialog, "enter", StartPing(src="s1", dst="d1")),
        (
            PingDialog,
            "tab tab 1 s tab 5 enter",
            StartPing(src="s1", dst="d1", interval_s=1.0, count=5),
        ),
        (UdpDialog, "enter", StartUdp(src="s1", dst="d1")),
        (
            UdpDialog,
            "2 M b i t / s tab 5 0 0 b tab right tab tab 1 0 s enter",
            StartUdp(src="s2", dst="d2", rate_bps=2_000_000, packet_bytes=500, duration_s=10.0),
        ),
        (ShortFlowsDialog, "enter", StartShortFlows(src="s1", dst="d1")),
        (
            ShortFlowsDialog,
            "4 M b i t / s tab 2 0 k B tab f tab b tab right tab tab 7 tab 5 s tab 9 enter",
            StartShortFlows(
                src="s2",
                dst="d2",
                cc="bbr",
                rate_bps=4_000_000,
                bytes=20_000,
                sizes="fixed",
                seed=7,
                duration_s=5.0,
                count=9,
            ),
        ),
        (DownloadDialog, "enter", StartDownload(src="s1", dst="d1")),
        (DownloadDialog, "1 M B enter", StartDownload(src="s1", dst="d1", bytes=1_000_000)),
        (CallDialog, "enter", StartCall(src="s1", dst="d1")),
        (
            CallDialog,
            "1 M b i t / s tab tab tab 9 s tab n o enter",
            StartCall(src="s1", dst="d1", rate_bps=1_000_000, duration_s=9.0, bidir=False),
        ),
        (MarkDialog, "h i enter", Mark(text="hi")),
        (MarkDialog, "enter", None),
        (FlowDialog, "b escape", None),
    ]
    async with staged() as (app, pilot):
        for dialog, keys, expected in cases:
            await opened(app, pilot, dialog)
            await pilot.press(*keys.split())
            assert app.answers == [expected], (dialog.__name__, keys)


@pytest.mark.parametrize(
    ("dialog", "keys", "expected"),
    [
        (FlowDialog, f"{'tab ' * 9} right enter", StartFlow(src="s2", dst="d2", monitor=True)),
        (UdpDialog, "enter", StartUdp(src="s1", dst="d1", monitor=True)),
        (UdpDialog, f"{'tab ' * 5} right enter", StartUdp(src="s1", dst="d1")),
    ],
)
async def test_traffic_is_monitored_where_that_can_be(
    dialog: Opens, keys: str, expected: Command
) -> None:
    """Flows are monitored on request, cross traffic by default: nothing else shows it."""
    assert await answers(dialog, keys, full=True) == [expected]


OVER_MPTCP = StartFlow(src="s2", dst="d2", mptcp=True)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("right", OVER_MPTCP),
        ("right right", replace(OVER_MPTCP, subflows=4)),
        (
            "left tab b",
            replace(OVER_MPTCP, subflows=8, path_manager="kernel-subflow", scheduler="burst"),
        ),
        ("tab b", replace(OVER_MPTCP, mptcp=False)),
    ],
)
async def test_a_flow_takes_several_paths_where_the_kernel_has_mptcp(
    keys: str, expected: StartFlow
) -> None:
    assert await answers(FlowDialog, f"{'tab ' * 7} {keys} enter", full=True) == [expected]


async def test_a_kernel_without_mptcp_reports_it_in_the_flow_dialog() -> None:
    app = Stage(lab(), FlowDialog)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        (row,) = (each for each in app.screen.query(LabelledRow) if each.label == "MPTCP")
        (note,) = row.query(".note")
        assert REASON in str(note.render())
        assert REMEDY in str(note.render())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [("6 5 enter", SetLink(mark=65)), ("0 space p k t enter", SetLink(mark=0)), ("x enter", None)],
)
async def test_a_link_marks_from_a_threshold_on(keys: str, expected: SetLink | None) -> None:
    found = await answers(LinkDialog, f"{'down ' * 4} {keys}", full=True)
    assert found == ([expected] if expected else [])


async def test_the_reason_why_no_link_can_mark_is_reported() -> None:
    app = Stage(lab(), LinkDialog)
    async with app.run_test() as pilot:
        await pilot.pause()
        notes = [str(each.render()) for each in app.screen.query(".note")]
        assert notes == [f"✗ {REASON}: {REMEDY}", "1500 bytes, fixed when the network was built"]


async def test_escape_leaves_every_dialog() -> None:
    async with staged(full=True) as (app, pilot):
        for dialog in DIALOGS:
            await opened(app, pilot, dialog)
            await pilot.press("escape")
            assert app.answers == [None], dialog.__name__
            assert app.screen is app.backdrop


async def test_what_the_kernel_lacks_is_listed_and_refused_with_the_remedy() -> None:
    """A missing algorithm is listed; enter on it shows the reason and keeps the dialog open."""
    app = Stage(lab(), CongestionDialog)
    async with app.run_test() as pilot:
        menu = app.screen.query_one(Menu)
        assert [item.label for item in menu.items][:3] == ["reno", "cubic", "bbr"]
        assert "vegas" in [item.label for item in menu.items if item.missing]
        await pilot.press("v", "enter")
        assert app.answers == []
        complaint = app.screen.query_one("#complaint")
        assert complaint.display
        assert f"vegas: {REASON}; {REMEDY}" in str(complaint.render())


async def test_the_dialog_offers_what_a_full_kernel_has() -> None:
    qdisc = Qdisc(kind="fq_codel", options={"limit": 50, "target": 10_000})
    keys = "5 tab 5 0 tab 1 0 m s enter"
    assert await answers(QueueDialog, keys, full=True) == [SetQdisc(qdisc=qdisc)]


async def test_bad_input_reports_why_and_stays() -> None:
    """A bad value shows its reason under the field at once, and enter returns to the field."""
    app = Stage(lab(), LinkDialog)
    async with app.run_test() as pilot:
        await pilot.press("x", "y")
        field = app.screen.query(TextField).first()
        assert field.has_class("wrong")
        await pilot.press("tab", "enter")
        assert app.answers == []
        assert app.focused is field.input
        assert field.input.value == "xy"
        assert field.reason == '"xy" is not a rate such as "10 Mbit/s"'
        await pilot.press("end", "backspace", "backspace", "2", "M", "b", "i", "t", "enter")
        assert app.answers == [SetLink(rate=2_000_000)]


async def test_a_dialog_opens_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It receives keys even if its process is interrupted for 10 ms whenever a timer starts."""
    clock = itertools.count(0.0, 0.01)
    monkeypatch.setattr(timer, "_time", SimpleNamespace(get_time=lambda: next(clock)))
    app = Stage(lab(), UdpDialog)
    async with app.run_test() as pilot, asyncio.timeout(PATIENCE_S):
        while app.focused is None:
            await pilot.pause()


async def test_every_bad_value_has_its_reason() -> None:
    """Every bad value, even a number too great for a float, shows its reason."""
    cases: list[tuple[Opens, str, str]] = [
        (UdpDialog, "5", '"5" is not a rate such as "1 Mbit/s"'),
        (UdpDialog, "2 G b i t / s", "must be from 1 kbit/s to 1 Gbit/s, not 2 Gbit/s"),
        (UdpDialog, "tab 7 0 k B", "must be from 16 B to 65507 bytes, not 70 kB"),
        (UdpDialog, "tab tab tab tab 0 space s", "must be from 1 µs to 24 h, not 0 µs"),
        (PingDialog, "tab tab 1 m s", "must be from 10 ms to 60 s, not 1 ms"),
        (DownloadDialog, "0 B", "must be from 1 B to 1000 GB, not 0 B"),
        (
            LinkDialog,
            "9" * 320 + " M b i t / s",
            f'"{"9" * 57}..." is not a rate such as "10 Mbit/s"',
        ),
        (LinkDialog, "7 k b i t / s", "must be from 8 kbit/s to 1 Gbit/s, not 7 kbit/s"),
        (LinkDialog, "tab tab tab tab tab 0", 'must be yes or no, not "0"'),
        (LinkDialog, "0 k b i t / s", '"0kbit/s" is not a rate; for no limit write "unlimited"'),
    ]
    async with staged(full=True) as (app, pilot):
        for dialog, keys, reason in cases:
            screen = await opened(app, pilot, dialog)
            # A paste before a field has the focus would be lost.
            while app.focused is None:
                await pilot.pause()
            for key in (*keys.split(), "enter"):
                # Long numbers are pasted: drawing after each key takes most of the test's time.
                if key.isdigit() and len(key) > 1:
                    app.post_message(Paste(key))
                    await pilot.pause()
                else:
                    await pilot.press(key)
            assert app.answers == []
            assert [each.reason for each in screen.query(TextField) if each.reason] == [reason]


async def test_the_tc_line_follows_what_is_typed_and_is_copied() -> None:
    app = Stage(lab(), QueueDialog)
    async with app.run_test() as pilot:
        await pilot.press("tab", "2", "0")
        line = str(app.screen.query_one(".tc", Static).content)
        assert line.startswith("tc qdisc replace dev r1-eth")
        assert "pfifo limit 20" in line
        await pilot.press("ctrl+y")
        copied = app.clipboard.splitlines()
        assert len(copied) == 2  # both directions
        assert all(each.endswith("parent 1:1 pfifo limit 20") for each in copied)


async def test_what_was_typed_for_a_kind_survives_another_kind() -> None:
    assert await answers(QueueDialog, "tab 7 shift+tab b p enter") == [pfifo(7)]


async def test_a_wrong_value_of_another_kind_does_not_matter() -> None:
    """A wrong value in the hidden form of another kind is ignored."""
    (answer,) = await answers(QueueDialog, "tab x shift+tab b enter")
    assert isinstance(answer, SetQdisc)


BFIFO = SetQdisc(qdisc=Qdisc(kind="bfifo", options={"limit": 4_000}))


@pytest.mark.parametrize("opens", [False, True], ids=["open", "while it opens"])
@pytest.mark.parametrize(
    ("dialog", "keys", "expected"),
    [
        (PingDialog, "right tab right enter", StartPing(src="s2", dst="s1")),
        (PingDialog, "right right left tab left enter", StartPing(src="s2", dst="d1")),
        (FlowDialog, "down down down tab right enter", StartFlow(src="d1", dst="s1", cc="bbr")),
        (CongestionDialog, "right tab down enter", SetCongestionControl(cc="cubic", host="s1")),
        (CongestionDialog, "3 enter", SetCongestionControl(cc="bbr", flow="1")),
        (CongestionDialog, "down enter", SetCongestionControl(cc="bbr", flow="1")),
        (QueueDialog, "tab 2 0 enter", pfifo(20)),
        # The form of bfifo is made when bfifo is chosen.
        (QueueDialog, "b tab 4 0 0 0 enter", BFIFO),
        (MarkDialog, "h i enter", Mark(text="hi")),
        (LinkDialog, "5 M b i t enter", SetLink(rate=5_000_000)),
    ],
    ids=written,
)
async def test_every_key_counts_where_it_was_pressed(
    dialog: Opens, keys: str, expected: Command, *, opens: bool
) -> None:
    """Each key acts on the field that had the focus when it was pressed, however fast keys come.

    They may even be in the queue before the dialog is composed, as those of a fast typist.
    """
    app = Stage(lab(), None if opens else dialog)
    async with app.run_test() as pilot:
        await pilot.pause()
        if opens:
            app.open(dialog)
        for key in keys.split():
            app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.answers == [expected]


async def test_the_selected_flow_is_the_one_that_switches() -> None:
    app = Stage(lab(flows=2), CongestionDialog, selected_flow="2")
    async with app.run_test() as pilot:
        await pilot.press("1", "enter")
        assert app.answers == [SetCongestionControl(cc="reno", flow="2")]


async def test_a_host_does_not_talk_to_itself() -> None:
    app = Stage(lab(), PingDialog)
    async with app.run_test() as pilot:
        await pilot.press("tab", "left", "left", "enter")
        assert app.answers == []
        assert "s1 can't send to itself" in str(app.screen.query_one("#complaint").render())


async def test_a_link_that_was_never_set_is_described_as_doing_nothing() -> None:
    """A link that was never set shows no limits, not the values of the bottleneck."""
    app = Stage(lab(full=True), LinkDialog)
    async with app.run_test() as pilot:
        await pilot.press("up", "right", "right")
        said = [field.input.value for field in app.screen.query(TextField)]
        assert said == ["unlimited", *["none"] * 4, "no", "uniform", *["none"] * 5]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_a_dialog_fits_on_the_screen(size: tuple[int, int]) -> None:
    """No part of the box is off the screen, and none of it needs scrolling."""
    app = Stage(lab(full=True, flows=2))
    async with app.run_test(size=size) as pilot:
        for dialog in DIALOGS:
            screen = await opened(app, pilot, dialog)
            box = screen.query_one("#box")
            assert screen.region.contains_region(box.region), dialog.__name__
            assert box.region.height > 0
            assert box.max_scroll_y == 0, dialog.__name__


async def test_a_dialog_is_plain_ascii_where_that_was_asked() -> None:
    app = Stage(lab(), glyphs=ASCII)
    async with app.run_test() as pilot:
        for dialog in DIALOGS:
            screen = await opened(app, pilot, dialog)
            box = screen.query_one("#box").region
            lines = [
                strip.crop(box.x, box.right).text for strip in screen._compositor.render_strips()
            ]
            shown = "".join(lines[box.y : box.bottom])
            assert shown.strip(), dialog.__name__
            assert {each for each in shown if not each.isascii()} == set(), dialog.__name__


@dataclass(frozen=True)
class Picture:
    """A dialog and the conditions of its snapshot."""

    dialog: Opens
    keys: str = ""
    theme: str = "dark"
    glyphs: Glyphs = UNICODE
    full: bool = False
    size: tuple[int, int] = (80, 24)

    def __str__(self) -> str:
        """Name the snapshot."""
        return f"{self.dialog.__name__}-{self.theme}-{self.glyphs.name}-{self.size[0]}"


@pytest.mark.parametrize(
    "picture",
    [
        Picture(FlowDialog),
        Picture(DownloadDialog, theme="light"),
        Picture(PingDialog, "tab tab", theme="projector"),
        Picture(UdpDialog, "tab 9", full=True),
        Picture(CongestionDialog, "v"),
        Picture(QueueDialog, "5", theme="colourblind", full=True),
        Picture(LinkDialog, "x", glyphs=ASCII),
        Picture(MarkDialog, "h i", theme="print"),
        Picture(QueueDialog, "3 tab", size=(120, 40)),
    ],
    ids=str,
)
def test_how_it_looks(snap_compare: Callable[..., bool], picture: Picture) -> None:
    app = Stage(lab(full=picture.full), picture.dialog, theme=picture.theme, glyphs=picture.glyphs)
    for_good = {"press": picture.keys.split(), "terminal_size": picture.size}
    assert snap_compare(app, run_before=still, **for_good)


async def test_enter_twice_at_once_asks_for_one_thing() -> None:
    """Enter pressed twice sends one command, even if the second arrives while the dialog closes."""
    app = Stage(lab(), FlowDialog)
    async with app.run_test() as pilot:
        await pilot.pause()
        for key in ("enter", "enter"):
            app.post_message(Key(key, None))
        await pilot.pause()
        assert app.screen is app.backdrop
    assert len(app.answers) == 1
    assert isinstance(app.answers[0], StartFlow)


def made_from_a_state(dialog: Callable[[LabState, str], Modal[Any]]) -> Callable[[], Modal[Any]]:
    """Return what makes a dialog from the state of a lab."""
    return lambda: dialog(lab(full=True, flows=2), "1")


def other_dialogs() -> dict[str, Callable[[], Modal[Any]]]:
    """Return what makes each modal screen that isn't made from a state alone, by name."""
    entry = LogEntry(1.0, "mark", "hello", name="mark1")
    board = Board(heading="Predict", low=0, high=100, unit="ms")
    return {
        "ChangeMarkDialog": lambda: ChangeMarkDialog(entry),
        "PointDialog": lambda: PointDialog(1.0),
        "PredictionDialog": lambda: PredictionDialog(board, "1"),
        "NetworkDialog": lambda: NetworkDialog(Topology(kind="dumbbell", pairs=2)),
        "SaveDialog": lambda: SaveDialog(lab(), Playhead(recorded=False), "test"),
        "LeaveDialog": lambda: LeaveDialog(Unsaved()),
        "GhostDialog": lambda: GhostDialog(earlier_view()),
    }


def earlier_view() -> View:
    """Return the view of a recording, from which the ghost dialog begins."""
    session = Session(SyntheticSource(stream(seconds=5)), title="test")
    return View(session, Shown(Playhead()), load_looks()["dark"], UNICODE)


MODAL: dict[str, Callable[[], Modal[Any]]] = {
    **{each.__name__: made_from_a_state(each) for each in (*DIALOGS, CaptureDialog)},
    **other_dialogs(),
    "Palette": Palette,
}


def keys_of(data: str) -> list[Message]:
    """Return what Textual's parser makes of ``data``, which came in one read."""
    return list(XTermParser().feed(data))


def contents(screen: Screen[Any]) -> list[object]:
    """Return what the user has entered on a screen, and where the focus is."""
    entered: list[object] = [type(screen), repr(screen.focused)]
    for each in screen.query("*"):
        if isinstance(each, Input):
            entered.append((each.value, each.cursor_position))
        elif isinstance(each, Stepper):
            entered.append(each.value)
        elif isinstance(each, OptionList):
            entered.append((each.highlighted, each.option_count))
        elif isinstance(each, TextField):
            entered.append(each.reason)
    return entered


async def entered(
    app: Stage, pilot: Pilot[None], dialog: Modal[Any], keys: str, *, at_once: bool
) -> list[object]:
    """Return the answers and contents after ``keys``, typed one by one or all in one read."""
    app.answers.clear()
    app.push_screen(dialog, app.answers.append)
    for message in keys_of(keys):
        if not at_once:
            await pilot.pause()
        app.post_message(message)
    await pilot.pause()
    await until(pilot, lambda: not getattr(app.screen, "gathers_commands", False))
    found = [[*app.answers], *contents(app.screen)]
    while app.screen is not app.backdrop:
        app.pop_screen()
        await pilot.pause()
    return found


TAB, DOWN, RIGHT, BACKSPACE = "\t", "\x1b[B", "\x1b[C", "\x7f"

IN_ONE_READ = (
    f"abc\r{BACKSPACE}5",
    f"\x1b[Z7{TAB}b{BACKSPACE}9{DOWN}{RIGHT}5\x1b[200~60\x1b[201~{BACKSPACE}{TAB}x\x1b[D0\r\r",
)


@pytest.mark.parametrize("dialog", MODAL)
async def test_keys_that_come_in_one_read_act_like_keys_typed_one_by_one(
    dialog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a slow line many keys come together; none may overtake another, none may be lost."""
    monkeypatch.setattr("ccplay.ui.dialogs_session.proposal", lambda *_: "session")
    # The palette reports after half a second that nothing matches, whether keys come or not.
    monkeypatch.setattr(Palette, "_NO_MATCHES_COUNTDOWN", 3600)
    app = Stage(lab(full=True, flows=2))
    async with app.run_test(size=(100, 50)) as pilot:
        await pilot.pause()
        for number, keys in enumerate(IN_ONE_READ):
            found = []
            for at_once in (False, True):
                folder = tmp_path / f"{number}-{at_once}"
                folder.mkdir()
                monkeypatch.chdir(folder)
                found.append(await entered(app, pilot, MODAL[dialog](), keys, at_once=at_once))
            assert found[0] == found[1], keys


async def test_a_key_that_comes_while_the_app_ends_is_dropped() -> None:
    app = Stage(lab(full=True, flows=2))
    app._typed.extend(Key(each, each) for each in "ab")
    assert not app.screen_stack
    await app._deliver()
    assert not app.keys_wait


@pytest.mark.parametrize("bound", [{"_LATEST_S": 0.5}, {"_LATEST_S": 60.0, "_MOST": 1}])
async def test_a_screen_that_is_never_done_takes_keys_that_have_waited(
    monkeypatch: pytest.MonkeyPatch, bound: dict[str, float]
) -> None:
    """Else a key that quits would take seconds for each key before it on a busy machine."""
    for name, value in {"_PATIENCE_S": 0.5, **bound}.items():
        monkeypatch.setattr(keys_in_turn, name, value)
    app = Stage(lab(full=True, flows=2))
    async with app.run_test() as pilot:
        await pilot.pause()
        looks: list[float] = []
        clock = itertools.count(0.0, 0.01)

        def busy(_: Stage) -> bool:
            looks.append(next(clock))
            return True

        monkeypatch.setattr(keys_in_turn, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        monkeypatch.setattr(Stage, "_is_busy", busy)
        for _ in range(40):
            key = Key("up", None)
            key.time = 0.0
            app.post_message(key)
        await pilot.pause()
        assert 0.3 < looks[-1] - looks[0] < 1, "else 40 keys would take 20 s"


async def test_a_list_of_events_that_opens_while_the_app_ends_shows_nothing() -> None:
    class Bare(EventsScreen):
        """A screen whose widgets are not mounted any more."""

        def compose(self) -> ComposeResult:
            yield from ()

    app = Stage(lab(full=True, flows=2))
    async with app.run_test() as pilot:
        entry = LogEntry(t=1.0, kind="info", text="a line")
        await app.push_screen(Bare(lambda: [entry]))
        await pilot.press("escape")
        assert app.screen is app.backdrop
