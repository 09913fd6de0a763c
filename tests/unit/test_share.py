"""Spectators receive the presenter's state, and slow or hostile ones delay nobody."""

import contextlib
import random
import selectors
import socket
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.errors import WireError
from ccplay.model.base import Event
from ccplay.model.events import CaptureStarted, Ended, Health, Hello, Log
from ccplay.model.samples import Sweep, Sweeps
from ccplay.share import frames, sockets
from ccplay.share.backlog import LIVE_S, MOST_CHUNKS, Backlog, Packer, Unpacker, shorten_paths
from ccplay.share.frames import Gap, Greeting, Over, Playhead, Pointer, Present, Shown, Wants
from ccplay.share.relay import Server, Spectator
from ccplay.stream import wire
from ccplay.stream.wire import UnknownEvent
from tests.events import folded
from tests.ui.synthetic import stream
from tests.unit.test_recordings import everything, to_the_microsecond

GREETING = Greeting(protocol=frames.PROTOCOL, title="test")
EVENTS = [event for event in stream(seconds=8) if not isinstance(event, Health)]
VIEW = Shown(Playhead(t=1.0), plots=("cwnd", "queue"))


class Reader:
    """A spectator of a backlog, and the data received at the other end of its socket."""

    def __init__(self, backlog: Backlog, wants: Wants) -> None:
        ours, theirs = socket.socketpair()
        self.spectator = Spectator(theirs, backlog, GREETING)
        self.socket = ours
        self.data = b""
        ours.setblocking(False)
        ours.send(frames.encode_hello(wants))
        assert self.spectator.receive()

    def read(self) -> None:
        """Receive all available data."""
        while self.spectator.send() and (self._received() or self.spectator.blocked):
            pass

    def _received(self) -> bool:
        before = len(self.data)
        with contextlib.suppress(BlockingIOError):
            while data := self.socket.recv(1 << 20):
                self.data += data
        return len(self.data) > before

    @property
    def lines(self) -> list[bytes]:
        return list(Unpacker().lines(self.data))

    @property
    def frames(self) -> list[frames.AnyFrame]:
        return [frames.decode(each) for each in self.lines if each.startswith(frames.PREFIX)]

    @property
    def events(self) -> list[Event | UnknownEvent]:
        found = [each for each in self.lines if not each.startswith(frames.PREFIX)]
        return [wire.decode_event(each) for each in found]

    def close(self) -> None:
        self.socket.close()
        self.spectator.close()


@pytest.fixture
def backlog() -> Iterator[Backlog]:
    it = Backlog()
    yield it
    it.close()


@pytest.fixture
def join(backlog: Backlog) -> Iterator[Callable[[Wants], Reader]]:
    there: list[Reader] = []

    def join(wants: Wants) -> Reader:
        there.append(Reader(backlog, wants))
        return there[-1]

    yield join
    for each in there:
        each.close()


def put(backlog: Backlog, events: Sequence[Event | UnknownEvent], settle: int = 97) -> None:
    for number, event in enumerate(events, 1):
        backlog.put(event)
        backlog.make_chunk()
        if number % settle == 0:
            backlog.extend_past()
    backlog.flush()


def same(received: Sequence[object], sent: Sequence[Event | UnknownEvent]) -> bool:
    there, here = everything(folded(*received)), everything(folded(*to_the_microsecond(sent)))
    return bool(there == here)


@pytest.mark.parametrize("at", [0, 1, 40, 200, len(EVENTS)])
def test_whoever_joins_from_the_beginning_has_the_presenters_state(
    backlog: Backlog, join: Callable[[Wants], Reader], at: int
) -> None:
    put(backlog, EVENTS[:at])
    reader = join(Wants.WHOLE)
    reader.read()
    for first in range(at, len(EVENTS), 50):
        put(backlog, EVENTS[first : first + 50])
        reader.read()
    assert isinstance(reader.frames[0], Greeting)
    assert any(isinstance(each, Present) for each in reader.frames)
    assert same(reader.events, EVENTS)


def test_whoever_joins_from_now_has_everything_but_the_samples(
    backlog: Backlog, join: Callable[[Wants], Reader]
) -> None:
    half = len(EVENTS) // 2
    put(backlog, EVENTS[:half])
    backlog.show(frames.encode(VIEW))
    reader = join(Wants.NOW)
    reader.read()
    before = folded(*reader.events)
    assert not before.sweeps.end
    whole = folded(*EVENTS[:half])
    assert before.flows.keys() == whole.flows.keys()
    assert before.links == whole.links
    assert before.log == whole.log
    assert VIEW in reader.frames
    put(backlog, EVENTS[half:])
    reader.read()
    assert folded(*reader.events).flows.keys() == folded(*EVENTS).flows.keys()
    sweeps = sum(isinstance(each, Sweep) for each in EVENTS[half:])
    assert folded(*reader.events).sweeps.end == sweeps


def test_a_slow_spectator_misses_samples_and_sees_that_it_does(
    backlog: Backlog, join: Callable[[Wants], Reader]
) -> None:
    put(backlog, EVENTS[:50])
    slow = join(Wants.WHOLE)
    slow.read()
    t = EVENTS[-1].t
    put(backlog, EVENTS[50:])
    # The spectator reads nothing meanwhile.
    for number in range(MOST_CHUNKS * 3):
        put(backlog, [Log(t=t + number, level="info", text=f"message {number}")])
    before = slow.spectator._at
    assert backlog.first > before
    slow.read()
    (gap,) = (each for each in slow.frames if isinstance(each, Gap))
    assert gap.since <= EVENTS[60].t
    assert gap.until >= t
    # Only samples are missing, and no event comes twice.
    assert folded(*slow.events).log == folded(*EVENTS, *_logs(t)).log
    assert folded(*slow.events).flows.keys() == folded(*EVENTS).flows.keys()


def _logs(t: float) -> list[Event]:
    return [
        Log(t=t + number, level="info", text=f"message {number}")
        for number in range(MOST_CHUNKS * 3)
    ]


def test_what_is_kept_for_spectators_is_bounded(
    backlog: Backlog, join: Callable[[Wants], Reader]
) -> None:
    frozen = join(Wants.WHOLE)
    sweep = next(each for each in EVENTS if isinstance(each, Sweep) and each.tcp is not None)
    put(backlog, EVENTS[:20])
    for number in range(5000):
        t = 100 + number / 50
        backlog.put(Sweep(t=t, tcp=sweep.tcp, qdisc=sweep.qdisc))
        backlog.make_chunk()
        frozen.spectator.send()
    assert len(backlog.chunks) <= MOST_CHUNKS
    assert len(frozen.spectator._queue) <= 3
    assert len(frozen.spectator._rest) < 1 << 16


def test_a_full_past_leaves_a_gap(backlog: Backlog, join: Callable[[Wants], Reader]) -> None:
    backlog.spool_bytes = 20_000
    put(backlog, EVENTS)
    for _ in range(MOST_CHUNKS):
        backlog.show(frames.encode(VIEW))
    backlog.extend_past()
    assert backlog.past_now < backlog.now, "the past is full"
    late = join(Wants.WHOLE)
    late.read()
    assert any(isinstance(each, Gap) for each in late.frames)
    assert folded(*late.events).flows.keys() == folded(*EVENTS).flows.keys()


def test_no_path_of_the_host_is_sent(backlog: Backlog, join: Callable[[Wants], Reader]) -> None:
    begun = CaptureStarted(t=1.0, capture="1", link="r1->r2", path="lab:/home/alice/x.pcapng")
    unknown = wire.decode_event(b'{"event":"later","file":"/home/alice/y","t":1.0}\n')
    log = Log(t=1.0, level="error", text="can't write /home/alice/z (as ~alice/q): no space")
    put(backlog, [*EVENTS[:5], begun, unknown, log])
    reader = join(Wants.WHOLE)
    reader.read()
    said = b"".join(reader.lines)
    assert b"alice" not in reader.data + said
    assert b"lab:x.pcapng" in said
    assert b"can't write z (as q): no space" in said


@pytest.mark.parametrize(
    "text", ["10 Mbit/s", "flow 1/2", "3 / 4", "s1 -> d1", "and/or", "https://a/b"]
)
def test_what_is_no_path_stays(text: str) -> None:
    assert shorten_paths(text) == text


@given(st.binary(max_size=40))
def test_only_a_hello_is_a_hello(data: bytes) -> None:
    if data not in [frames.encode_hello(each) for each in Wants]:
        with pytest.raises(WireError):
            frames.decode_hello(data)


@pytest.mark.parametrize("wants", Wants)
def test_a_hello_is_read_as_it_was_written(wants: Wants) -> None:
    hello = frames.encode_hello(wants)
    assert len(hello) == frames.HELLO_BYTES
    assert frames.decode_hello(hello) is wants


def test_frames_are_read_as_they_were_written() -> None:
    view = Shown(Playhead(t=3.5), selected="1", pointer=Pointer(t=2.0, text="here"))
    for frame in (GREETING, view, Gap(since=1.0, until=2.0), Present(), Over(reason="it is over")):
        line = frames.encode(frame)
        assert line.startswith(frames.PREFIX)
        assert frames.decode(line) == frame


def test_a_frame_sends_no_control_characters_to_a_terminal() -> None:
    frame = frames.decode(frames.encode(Over(reason="\x1b]0;owned\x07")))
    assert isinstance(frame, Over)
    assert frame.reason.isprintable()


@pytest.mark.parametrize(
    "line",
    [
        b'{"share":"view"}',
        b'{"share":"view","playhead":{"t":-1}}',
        b'{"share":"view","playhead":{"width":0}}',
        b'{"share":"nothing"}',
        b'{"share":"over","reason":"' + b"x" * 20_000 + b'"}',
        b'{"share":"view","playhead":{},"pointer":{"t":1,"text":"' + b"x" * 200 + b'"}}',
        b'{"share":' + b"[" * 10_000,
    ],
)
def test_a_frame_beyond_its_bounds_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        frames.decode(line)


class Hosted:
    """A server in this process that works step by step."""

    def __init__(self) -> None:
        self.feed, theirs = socket.socketpair()
        self.listener = socket.socket(socket.AF_UNIX)
        # The kernel chooses an abstract address, without a file.
        self.listener.bind("")
        self.listener.listen(64)
        self.server = Server(theirs, self.listener)
        self._connections: list[socket.socket] = []
        self.feed.sendall(frames.encode(frames.Setup(title="test")))
        self.step()

    def step(self) -> None:
        """Handle everything that is ready."""
        while ready := self.server._selector.select(0):
            done = False
            for key, events in ready:
                if events & selectors.EVENT_READ or events & selectors.EVENT_WRITE:
                    key.data(events)
                    done = True
            if not done:
                break
        self.server._send_all()
        self.server._count()
        self.server._report_votes()

    def connect(self, wants: Wants | None = None) -> socket.socket:
        """Return a new connection, of a spectator if it ``wants`` anything."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.listener.getsockname())
        connection.setblocking(False)
        self._connections.append(connection)
        if wants is not None:
            connection.send(frames.encode_hello(wants))
            self.step()
        return connection

    def close(self) -> None:
        for spectator in list(self.server.spectators):
            self.server._drop(spectator)
        self.server._selector.close()
        self.server.backlog.close()
        for each in (self.feed, self.server._feed, self.listener, *self._connections):
            each.close()


@pytest.fixture
def hosted() -> Iterator[Hosted]:
    with contextlib.closing(Hosted()) as it:
        yield it


def received(connection: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(BlockingIOError):
        while more := connection.recv(1 << 20, socket.MSG_DONTWAIT):
            data += more
    return data


def test_spectators_are_counted(hosted: Hosted) -> None:
    hosted.feed.sendall(b"".join(map(wire.encode, EVENTS[:10])))
    hosted.step()
    one, other, lister = (hosted.connect(each) for each in (Wants.WHOLE, Wants.NOW, Wants.GREETING))
    assert frames.decode(received(hosted.feed).splitlines()[-1]) == frames.Watching(count=2)
    assert received(lister).count(b"\n") == 1
    one.close()
    hosted.step()
    assert frames.decode(received(hosted.feed).splitlines()[-1]) == frames.Watching(count=1)
    assert b'"hello"' in received(other)


def test_nothing_that_10_000_hostile_messages_say_gets_through(hosted: Hosted) -> None:
    rng = random.Random(14)
    friend = hosted.connect(Wants.WHOLE)
    received(hosted.feed)
    hello = frames.encode_hello(Wants.WHOLE)
    orders = [
        b'{"do":"stop-flow","flow":"1"}\n',
        b'{"share":"view","t":1,"left":0,"width":30}\n',
        b'{"share":"setup","title":"mine"}\n',
        wire.encode(Ended(t=1.0, reason="hostile")),
    ]
    sent = 0
    while sent < 10_000:
        connections = [hosted.connect() for _ in range(20)]
        for connection in connections:
            for _ in range(10):
                what = rng.randrange(4)
                message = (
                    rng.randbytes(rng.randrange(1, 200))
                    if what == 0
                    else rng.choice(orders)
                    if what == 1
                    else hello[: rng.randrange(1, len(hello))]
                    if what == 2
                    else hello + rng.choice(orders)
                )
                with contextlib.suppress(OSError):
                    connection.send(message)
                sent += 1
        hosted.step()
        for connection in connections:
            connection.close()
        hosted.step()
    assert len(hosted.server.spectators) == 1
    counts = [frames.decode(each) for each in received(hosted.feed).splitlines()]
    assert all(isinstance(each, frames.Watching) for each in counts)
    assert not hosted.server.backlog.kept
    data = b""
    for event in EVENTS:
        hosted.feed.sendall(wire.encode(event))
        hosted.step()
        data += received(friend)
    hosted.server.backlog.flush()
    hosted.step()
    data += received(friend)
    lines = list(Unpacker().lines(data))
    assert b"hostile" not in data + b"".join(lines)
    events = [each for each in lines if b'{"share":' not in each]
    assert same([wire.decode_event(each) for each in events], EVENTS)


def test_one_who_sends_nothing_is_dropped(hosted: Hosted) -> None:
    hosted.connect()
    hosted.step()
    (spectator,) = hosted.server.spectators
    hosted.server._drop_silent(spectator.joined + 60)
    assert not hosted.server.spectators


def test_sweeps_go_out_soon(backlog: Backlog) -> None:
    put(backlog, EVENTS, settle=10_000)
    lines = [line for chunk in backlog.chunks for line in chunk.lines.splitlines()]
    blocks = [each for line in lines if isinstance(each := wire.decode_event(line), Sweeps)]
    assert blocks
    assert all(sum(each.after_us) <= LIVE_S * 1e6 for each in blocks)
    assert all(one.t < other.t for one, other in pairwise(blocks))


def test_a_chunk_is_packed_once_for_all_who_have_those_before(backlog: Backlog) -> None:
    put(backlog, EVENTS, settle=100)
    raw = sum(len(each.lines) for each in backlog.chunks)
    packed = sum(len(each.packed) for each in backlog.chunks)
    assert packed < raw / 2
    unpacker = Unpacker()
    for chunk in backlog.chunks:
        assert b"".join(unpacker.lines(chunk.packed)) == chunk.lines


def test_who_has_lost_its_place_needs_no_chunk_that_it_missed(
    backlog: Backlog, join: Callable[[Wants], Reader]
) -> None:
    put(backlog, EVENTS[: len(EVENTS) // 2], settle=10_000)
    reader = join(Wants.NOW)
    reader.read()
    # The compression context of these chunks began before the reader joined.
    put(backlog, EVENTS[len(EVENTS) // 2 :], settle=100)
    reader.read()
    raw, _, packed = reader.data.partition(b'{"share":"packed"')
    assert b'{"event":"sweeps"' in raw
    assert packed
    assert any(isinstance(each, Sweeps) for each in reader.events)


def test_nothing_is_packed_while_nobody_watches(
    backlog: Backlog, join: Callable[[Wants], Reader]
) -> None:
    third = len(EVENTS) // 3
    reader = join(Wants.WHOLE)
    backlog.packs = False
    put(backlog, EVENTS[:third])
    assert not any(each.packed for each in backlog.chunks)
    backlog.packs = True
    put(backlog, EVENTS[third : 2 * third])
    backlog.packs = False
    put(backlog, EVENTS[2 * third :])
    reader.read()
    assert same(reader.events, EVENTS)


@pytest.mark.parametrize(
    "data",
    [
        b'{"share":"packed","bytes":4}\nabcd',
        b'{"share":"packed","bytes":0,"begins":true}\n',
        b'{"share":"packed","bytes":99999999,"begins":true}\n',
        b'{"share":"packed","bytes":4,"begins":true}\n\xff\xff\xff\xff\n',
        b'{"share":"packed"}\n',
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        list(Unpacker().lines(data))


def test_a_small_chunk_does_not_become_a_large_one() -> None:
    packed, _ = Packer().pack(b" " * (wire.LONGEST_LINE + 1) + b"\n")
    assert len(packed) < 100_000
    with pytest.raises(WireError, match="more than"):
        list(Unpacker().lines(packed))


def test_a_small_chunk_does_not_become_millions_of_lines_at_once() -> None:
    packed, _ = Packer().pack(b"{}\n" * (wire.LONGEST_LINE // 3))
    assert len(packed) < 100_000
    tracemalloc.start()
    try:
        assert next(Unpacker().lines(packed)) == b"{}\n"
        assert tracemalloc.get_traced_memory()[1] < 3 * wire.LONGEST_LINE
    finally:
        tracemalloc.stop()


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(1, 40))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], piece: int) -> None:
    packer, unpacker = Packer(), Unpacker()
    wanted = [line.replace(b"\n", b"").replace(b"\r", b"") + b"\n" for line in lines]
    data = b"".join(packer.pack(line)[0] for line in wanted)
    cut = (data[at : at + piece] for at in range(0, len(data), piece))
    assert [line for each in cut for line in unpacker.lines(each)] == wanted


def test_the_first_event_is_hello(backlog: Backlog, join: Callable[[Wants], Reader]) -> None:
    put(backlog, EVENTS)
    for wants in (Wants.WHOLE, Wants.NOW):
        reader = join(wants)
        reader.read()
        assert isinstance(reader.events[0], Hello)


def test_the_socket_of_a_server_that_was_killed_with_its_presenter_is_deleted_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets on which a server listens, and files of other kinds, stay."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with sockets.listen("dead").socket:
        pass
    (tmp_path / "ccplay" / "file.share").touch()
    with sockets.listen("first").socket:
        assert (tmp_path / "ccplay" / "dead.share").exists(), "it may not be listening yet"
        monkeypatch.setattr(sockets, "_STALE_S", -1.0)
        with sockets.listen("second").socket:
            names = {each.name for each in (tmp_path / "ccplay").iterdir()}
    assert names == {"file.share", "first.share", "second.share"}
