"""A spectator's stream has the limits of a recording, whoever sends it."""

import asyncio
import random
import socket
from collections.abc import Sequence

import pytest

from ccplay.errors import CcplayError
from ccplay.model.base import Event
from ccplay.model.events import Ended, Log
from ccplay.model.samples import Sweep
from ccplay.share import frames
from ccplay.share.frames import Gap, Greeting, Over, Playhead, Present, Shown
from ccplay.share.sockets import WatchSource
from ccplay.stream import wire
from ccplay.stream.sources import RecordingLimits
from ccplay.stream.wire import UnknownEvent
from tests.ui.synthetic import stream

EVENTS = list(stream(seconds=2))
LINES = [wire.encode(each) for each in EVENTS]
VIEW = Shown(Playhead(t=1.0))


async def received(
    data: bytes, *, closes: bool = True
) -> tuple[WatchSource, list[Event | UnknownEvent]]:
    """Return a source that has read these bytes, and its events."""
    ours, theirs = socket.socketpair()
    source = WatchSource(theirs, Greeting(protocol=frames.PROTOCOL))
    ours.setblocking(False)
    found: list[Event | UnknownEvent] = []

    async def read() -> None:
        async for event in source.events():
            found.append(event)  # noqa: PERF401 - what came before a failure is kept

    reading = asyncio.create_task(read())
    try:
        await asyncio.get_running_loop().sock_sendall(ours, data)
        if closes:
            ours.close()
        else:
            await source.close()
        await reading
    except ConnectionError:
        await reading
    finally:
        reading.cancel()
        ours.close()
        await source.close()
    return source, found


async def test_events_come_as_they_were_sent() -> None:
    frame = frames.encode(Present()) + frames.encode(VIEW)
    source, found = await received(b"".join(LINES) + frame)
    assert found[:-1] == EVENTS
    assert found[-1] == Ended(t=EVENTS[-1].t, reason="the connection to the presenter is lost")
    assert source.present
    assert source.view == VIEW


async def test_a_presenter_who_stops_is_not_lost() -> None:
    _, found = await received(b"".join(LINES) + frames.encode(Over(reason="it is over")))
    assert found[-1] == Ended(t=EVENTS[-1].t, reason="it is over")


async def test_a_session_that_has_ended_ends_once() -> None:
    last = wire.encode(Ended(t=3.0, reason="done"))
    _, found = await received(b"".join(LINES) + last + frames.encode(Over(reason="it is over")))
    assert [each for each in found if isinstance(each, Ended)] == [Ended(t=3.0, reason="done")]


async def test_a_gap_is_a_hole_and_a_message() -> None:
    _, found = await received(b"".join(LINES) + frames.encode(Gap(since=1.0, until=65.0)))
    hole, message = found[-3:-1]
    assert hole == Sweep(t=EVENTS[-1].t)
    assert isinstance(message, Log)
    assert message.t == 65.0
    assert message.text.startswith("missed 00:01 to 01:05")


async def test_messages_of_gaps_count_in_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    monkeypatch.setattr(RecordingLimits, "check", lambda _, event: checked.append(event))
    _, found = await received(b"".join(LINES) + frames.encode(Gap(since=1.0, until=65.0)))
    assert checked == found[:-1], "all but the end, which is this screen's own"


@pytest.mark.parametrize(
    "lines",
    [
        [b"nonsense\n"],
        [*LINES, b"nonsense\n"],
        [LINES[1]],
        [*LINES, wire.encode(Sweep(t=0.5))],
        [*LINES, b'{"share":"nothing"}\n'],
        [*LINES, b'{"share":"over","reason":"' + b"x" * 20_000 + b'"}\n'],
        [*LINES, b'{"event":"log","level":"info","text":"' + b"x" * (2 << 20) + b'","t":3.0}\n'],
        [*LINES, b"x" * (wire.LONGEST_LINE + (1 << 20))],
    ],
)
async def test_a_stream_that_is_none_ends_with_a_message(lines: Sequence[bytes]) -> None:
    with pytest.raises(CcplayError):
        await received(b"".join(lines))


async def test_noise_ends_with_a_message_or_changes_nothing() -> None:
    rng = random.Random(14)
    whole = b"".join(LINES[:20])
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            _, found = await received(bytes(data))
        except CcplayError:
            continue
        assert len(found) <= len(LINES)


async def test_who_leaves_hears_of_no_end() -> None:
    _, found = await received(LINES[0], closes=False)
    assert not any(isinstance(each, Ended) for each in found)
