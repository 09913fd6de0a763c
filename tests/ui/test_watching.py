"""A spectator's screen, connected by a real socket, follows the presenter or roams."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ccplay.errors import CcplayError, UsageError
from ccplay.model.samples import Sweep
from ccplay.scenario.writing import trial
from ccplay.session.session import Session
from ccplay.share import frames, sockets
from ccplay.share.backlog import Unpacker
from ccplay.share.frames import Wants
from ccplay.share.presenter import MOST_BEHIND, Sharing
from ccplay.share.sockets import WatchSource
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from ccplay.ui.audience import Following, Presenting
from tests.terminals import PATIENCE_S, unhindered
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.view import text_of

RECORDING = Path(__file__).parent / "recordings" / "playground.ccplay"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sockets, "_GROUPS", tmp_path / "groups")
    return tmp_path


@asynccontextmanager
async def presenting(
    session: Session, *, recording: Path | None = None, shares: bool = True
) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run the presenter's screen."""
    audience = Presenting(session, "test", recording=recording)
    if shares:
        audience.start()
    app = CcplayApp(session, audience=audience)
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            yield app, pilot
    finally:
        audience.close()


@asynccontextmanager
async def watching(
    name: str = "test", *, restricted: bool = False, wants: Wants = Wants.WHOLE, **options: Any
) -> AsyncIterator[tuple[CcplayApp, Pilot[int]]]:
    """Run a spectator's screen."""
    connection, greeting = sockets.join(sockets.find(name).path, wants)
    source = WatchSource(connection, greeting)
    session = Session(source, title=greeting.title, recorded=greeting.recorded)
    app = CcplayApp(session, audience=Following(source, restricted=restricted), **options)
    async with app.run_test(size=(100, 30)) as pilot:
        yield app, pilot


def live(source: SyntheticSource | None = None) -> Session:
    return Session(source or SyntheticSource(stream(seconds=20), live=True), title="Live")


def replay() -> Session:
    return Session(ReplaySource(RECORDING), title="Replay")


async def test_a_spectator_sees_what_the_presenter_sees_until_a_key_is_touched() -> None:
    async with (
        presenting(replay(), recording=RECORDING) as (shown, keys),
        watching() as (app, pilot),
    ):
        await until(keys, lambda: shown.session.done)
        shown.main.shown.playhead.jump(12.0, 1e6)
        await until(pilot, lambda: app.main.shown.playhead.t == 12.0)
        await until(pilot, lambda: "following" in text_of(app, "header"))
        await keys.press("down", "minus", "1")
        await until(pilot, lambda: app.main.shown.large == "cwnd")
        assert app.main.shown.selected == shown.main.shown.selected != "1"
        assert app.main.shown.playhead.width == shown.main.shown.playhead.width

        await pilot.press("left")
        assert app.main.shown.playhead.t < 12.0
        await keys.press("home")
        await until(pilot, lambda: app.main.shown.pointer is None)
        await keys.press("2", "1")
        await pilot.pause(0.3)
        assert app.main.shown.playhead.t > 0
        await until(pilot, lambda: "roaming" in text_of(app, "header"))

        await pilot.press("F")
        assert app.main.shown.playhead.t == 0.0
        app.main.redraw()
        assert "following" in text_of(app, "header")


async def test_a_theme_is_a_spectators_own() -> None:
    async with (
        presenting(replay(), recording=RECORDING) as (shown, _),
        watching(look="light") as (app, pilot),
    ):
        await pilot.press("t")
        assert app.appearance.look.name != shown.appearance.look.name
        shown.main.plots.lend(("rtt", "cwnd"))
        await until(pilot, lambda: app.main.plots.chosen == ("rtt", "cwnd"))
        # What the presenter chose is no preference of the spectator.
        assert app.changed_choices() == {"theme": app.appearance.look.name}
        assert isinstance(app.main.audience, Following)
        assert app.main.audience.following


async def test_what_the_presenter_points_at_is_on_all_screens() -> None:
    async with (
        presenting(replay(), recording=RECORDING) as (shown, keys),
        watching() as (app, pilot),
    ):
        await until(keys, lambda: shown.session.done)
        shown.main.shown.playhead.jump(12.0, 1e6)
        await keys.press("M", *"full", "enter")
        await until(pilot, lambda: app.main.shown.pointer is not None)
        assert app.main.shown.pointer == frames.Pointer(t=12.0, text="full")
        for each in (shown, app):
            await until(pilot, partial(_shows, each, "▾ 00:12 full"))
            plot = each.main.plots._canvases["cwnd"]
            top = "".join(char for char, _ in plot._cells[1])
            assert "▾" in top
        await keys.press("M")
        await until(pilot, lambda: app.main.shown.pointer is None)


def _shows(app: CcplayApp, text: str) -> bool:
    return text in text_of(app, "banner")


async def test_spectators_are_counted_in_the_header() -> None:
    async with presenting(live()) as (shown, keys):
        assert "watching" not in text_of(shown, "header")
        async with watching() as (_, pilot):
            await until(pilot, lambda: "1 watching" in text_of(shown, "header"))
            assert sockets.find("test").greeting.watching == 1
        await until(keys, lambda: "watching" not in text_of(shown, "header"))


async def test_a_live_session_is_shared_by_a_key_with_all_that_was_before(tmp_path: Path) -> None:
    source = SyntheticSource(stream(seconds=20), live=True)
    session = Session(source, title="Live", sinks=[Recorder(tmp_path / "it.ccplay")])
    async with presenting(session, shares=False) as (_, keys):
        await until(keys, lambda: source.drained)
        with pytest.raises(UsageError, match="share one with"):
            sockets.find("test")
        await keys.press("W", "enter")
        async with watching() as (app, pilot):
            await until(pilot, lambda: app.session.state.now == session.state.now)
            assert app.session.state.sweeps.end == session.state.sweeps.end
            assert app.session.state.flows.keys() == session.state.flows.keys()
            assert not app.session.recorded
            assert "● live" in text_of(app, "header")
            # No key of a spectator sends a command.
            await pilot.press("f", "x", "z", "m", "k")
            assert app.screen is app.main
            assert not source.sent
            await keys.press("W", "enter")
            await until(pilot, lambda: app.session.done)
            await until(pilot, lambda: "stopped sharing" in text_of(app, "banner"))
        assert not sockets.list_shared()


async def test_spectators_learn_that_another_network_follows() -> None:
    session = Session(SyntheticSource(stream(seconds=20), live=True), title="Live")
    async with AsyncExitStack() as stack:
        presenter, _ = await stack.enter_async_context(presenting(session))
        async with watching() as (app, pilot):
            await until(pilot, lambda: app.session.state.hello is not None)
            presenter.wanted = trial('{ kind = "star" }')
            presenter.exit()
            await stack.aclose()
            await until(pilot, lambda: "another network" in text_of(app, "banner"))


async def test_from_now_there_is_no_past() -> None:
    source = SyntheticSource(stream(seconds=20), live=True)
    async with presenting(live(source)) as (_, keys):
        await until(keys, lambda: source.drained)
        await asyncio.to_thread(_served_up_to, 19.0)
        async with watching(wants=Wants.NOW) as (app, pilot):
            await until(pilot, lambda: bool(app.session.state.flows))
            await until(pilot, lambda: not app.main.audience.reading)
            # The end of a block may still have been on its way.
            assert app.session.state.sweeps.end < 10


def _served_up_to(t: float) -> None:
    while sockets.find("test").greeting.now < t:
        pass


async def test_a_restricted_spectator_reaches_no_file() -> None:
    async with presenting(live()), watching(restricted=True) as (app, pilot):
        offered = {each.binding.id for each in app.screen.active_bindings.values()}
        assert not offered & {"picture", "scenario", "ghost", "suspend"}
        assert {"follow", "help", "quit"} <= offered
        await pilot.press("s", "S", "g", "ctrl+z")
        assert app.screen is app.main
        assert not app.main.notices


async def test_a_spectator_joins_the_presenters_next_network() -> None:
    first = live(SyntheticSource(stream(seconds=20), live=True))
    audience = Presenting(first, "test")
    audience.start()
    source = WatchSource.join(sockets.find("test").path, Wants.WHOLE)
    following = Following(source)
    app = CcplayApp(Session(source, title="Live"), audience=following)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: source.present)
        audience.announce("the presenter starts another network")
        await asyncio.to_thread(audience.close)
        second = audience.followed_by(Session(SyntheticSource(stream(seconds=5)), title="Next"))
        try:
            assert second.name == "test"
            await until(pilot, lambda: following.joined is not None)
            joined = following.joined
            assert joined is not None
            assert joined.greeting.title == "Next"
        finally:
            second.close()
        seen = Session(joined, title="Next")
        await seen.run()
        assert seen.error is None
    assert app.return_code in (0, None)


async def test_a_network_after_one_that_is_no_longer_shared_is_not_shared() -> None:
    audience = Presenting(live(), "test")
    audience.start()
    audience.stop()
    assert not audience.followed_by(live()).name


async def test_a_spectator_of_a_session_that_has_ended_joins_no_other() -> None:
    async with presenting(live()) as (shown, _), watching() as (app, pilot):
        await until(pilot, lambda: not app.main.audience.reading)
        await asyncio.to_thread(shown.main.audience.close)
        await until(pilot, lambda: app.session.done)
        assert not await app.main.audience.rejoin()


async def test_a_presenter_who_dies_leaves_spectators_what_they_have() -> None:
    source = SyntheticSource(stream(seconds=20), live=True)
    async with presenting(live(source)) as (shown, keys), watching() as (app, pilot):
        await until(keys, lambda: source.drained)
        await until(pilot, lambda: app.session.state.now > 19.0)
        assert isinstance(shown.main.audience, Presenting)
        sharing = shown.main.audience._sharing
        assert sharing is not None
        sharing._process.kill()
        await until(pilot, lambda: app.session.done)
        await until(pilot, lambda: "is lost" in text_of(app, "banner"))
        await pilot.press("home")
        assert app.main.shown.playhead.t == 0.0


def test_a_server_that_stands_still_costs_the_presenter_nothing() -> None:
    sharing = Sharing("still")
    try:
        events = list(stream(seconds=4))
        for event in events:
            sharing.put(event)
        sweep = next(each for each in events if isinstance(each, Sweep) and each.tcp)
        sharing._process.send_signal(signal.SIGSTOP)
        began = unhindered()
        for number in range(30_000):
            sharing.put(Sweep(t=10 + number / 50, tcp=sweep.tcp, qdisc=sweep.qdisc))
        # Each takes about 10 us on an idle machine; any wait for the server would exceed the bound.
        assert unhindered() - began < 10.0
        assert sharing._behind < 2 * MOST_BEHIND
        sharing._process.send_signal(signal.SIGCONT)
        _until_still(sharing)
        connection, _ = sockets.join(sockets.find("still").path, Wants.WHOLE)
        sharing.close()
        data = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        data = b"".join(Unpacker().lines(data))
        connection.close()
        assert b"not shared: 0" in data
        assert b"stopped sharing" in data
    finally:
        sharing.close()


def _until_still(sharing: Sharing) -> None:
    """Wait until the server has received all that waits, also which moments it misses."""
    deadline = time.monotonic() + PATIENCE_S
    while sharing._behind:
        assert time.monotonic() < deadline
        sharing.listen()
    assert sharing._left_out is None


def test_a_socket_is_its_owners_alone(folders: Path) -> None:
    one, other = sockets.listen("My play.ground"), sockets.listen("My play.ground")
    assert (one.name, other.name) == ("my-play.ground", "my-play.ground-2")
    assert one.path.parent == folders / "ccplay"
    assert one.path.stat().st_mode & 0o777 == 0o600
    assert one.path.parent.stat().st_mode & 0o777 == 0o700
    one.socket.close()
    # A socket on which nothing listens any more is replaced.
    again = sockets.listen("My play.ground")
    assert again.name == "my-play.ground"
    for each in (other, again):
        each.socket.close()


def test_a_group_may_connect_to_a_socket_for_it(folders: Path) -> None:
    import grp
    import os

    group = grp.getgrgid(os.getegid()).gr_name
    (folders / "groups").mkdir()
    there = sockets.listen("class", group)
    assert there.path.stat().st_mode & 0o777 == 0o660
    assert there.path.stat().st_gid == os.getegid()
    assert there.path.parent.stat().st_mode & 0o777 == 0o755
    assert there.path in list(sockets._sockets())
    there.path.parent.chmod(0o777)
    assert there.path not in list(sockets._sockets())
    there.socket.close()


def test_a_socket_that_sends_a_byte_at_a_time_delays_nobody(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket
    import threading

    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            while not over.wait(0.02):
                connection.send(b"x")

    with contextlib.ExitStack() as stack:
        sharing = stack.enter_context(contextlib.closing(Sharing("zebra", "honest")))
        monkeypatch.setattr(sockets, "_LIST_S", PATIENCE_S)
        assert [each.name for each in sockets.list_shared()] == ["zebra"], "its server has started"
        monkeypatch.setattr(sockets, "_LIST_S", 4.0)
        for number in range(5):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(sharing.path.parent / f"{number}.share"))
            listener.listen()
            threading.Thread(target=drip, args=(listener,), daemon=True).start()
        began = unhindered()
        assert [each.name for each in sockets.list_shared()] == ["zebra"]
        # One after the other would take 20 s, and without a deadline for all bytes hours.
        assert unhindered() - began < 16.0
        over.set()


def test_what_others_may_write_is_not_asked(folders: Path) -> None:
    there = sockets.listen("mine")
    assert list(sockets._sockets()) == [there.path]
    there.path.chmod(0o666)
    assert not list(sockets._sockets())
    there.path.chmod(0o600)
    there.path.parent.chmod(0o770)
    assert not list(sockets._sockets())
    there.path.parent.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(there.path, 12345, -1)
        assert not list(sockets._sockets())
    there.socket.close()


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(UsageError, match="no such group"):
        sockets.listen("x", "no-such-group-here")


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\n", b'{"share":"greeting","protocol":99}\n', b"x" * 100_000]
)
def test_a_server_that_is_none_is_refused(folders: Path, said: bytes) -> None:
    import socket
    import threading

    path = folders / "odd.share"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(said)
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(CcplayError, match="can't watch odd"):
            sockets.join(path, Wants.WHOLE)
        thread.join()
