"""Records as JSON lines, on the lab's pipe and in recordings."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ccplay import __version__
from ccplay.errors import RecordingError, WireError
from ccplay.model import blocks, events
from ccplay.model.base import Command, Event, Moment, StartTraffic
from ccplay.model.commands import CHANGES, Build, StartTogether, TraceData
from ccplay.model.events import Applied, Failed, Health, Hello
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.traffic import TRAFFIC
from ccplay.visible import printable as printable  # noqa: PLC0414 - others find it here
from ccplay.visible import printable_json

FORMAT = 2
"""Version of the stream's format, given in ``Hello``. A reader accepts its own and older versions.

2: recordings keep sweeps in blocks (``Sweeps``), and ``Hello`` has the requested network."""

LONGEST_LINE = 1 << 24
"""Bytes of the longest line; two seconds of a thousand flows at 50 Hz take a third of it."""

_LONGEST_OTHER = 1 << 20
"""Bytes of the longest line without sweeps; reading such a line takes more memory per byte."""

_MOST_PARTS = 1 << 18
"""Most arrays and objects in a line; each takes up to thirty times its bytes in memory. A row of
sweeps is one array."""
LONGEST_COMMAND = 4 << 20
"""Bytes of the longest line with a command; a network with ten thousand reserved names takes half
of it."""

END = b"end\n"
"""Line that ends a lab once the command under way is done; commands that wait are dropped."""

LAB_ERROR = "ccplay lab: "
"""Prefix of the line on stderr in which a lab reports why it ends."""

GUEST_RUNS = "ccplay guest: the kernel runs"
"""Line that a guest writes to stderr before it starts the lab."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a kind that this version does not know, kept as received."""

    t: float
    kind: str
    raw: bytes


class _Envelope(msgspec.Struct):
    """The fields of a line that identify its event."""

    event: str
    t: Moment


class _Opening(msgspec.Struct, tag_field="event", tag="hello"):
    """The fields of a first line that identify its writer."""

    format: int
    version: str


_encoder = msgspec.json.Encoder()

encode_value: Callable[[msgspec.Struct], bytes] = _encoder.encode
"""Function that returns any of ccplay's structs as one line of JSON, without a newline."""
_envelopes = msgspec.json.Decoder(_Envelope)
_openings = msgspec.json.Decoder(_Opening)


if TYPE_CHECKING:
    AnyBuild: TypeAlias = Build
    AnyCommand: TypeAlias = Command
    _STARTS: TypeAlias = StartTraffic
else:
    _STARTS = reduce(or_, (kind.start for kind in TRAFFIC))
    AnyBuild = Build[_STARTS]
    AnyCommand = reduce(
        or_, (AnyBuild, *(each for kind in TRAFFIC for each in (kind.start, kind.stop)), *CHANGES)
    )
    """What a decoder accepts as a command: those of all kinds of traffic, and all others."""

_HOLDING: dict[type[Event], Any] = {
    Hello: Hello[_STARTS],
    Applied: Applied[AnyCommand],
    Failed: Failed[AnyCommand],
}
"""Events that hold commands, with the commands that a decoder accepts in them."""

EVENTS: tuple[Any, ...] = (
    *(
        event
        for kind in TRAFFIC
        for event in (kind.started, *kind.samples, *kind.others, kind.ended)
    ),
    *(_HOLDING.get(each, each) for each in events.EVENTS),
)
"""All events that a stream may contain."""

SAMPLES: tuple[type[Event], ...] = (
    *(Sweep, Sweeps, TraceSamples, CaStateChanged, Health),
    *(sample for kind in TRAFFIC for sample in kind.samples),
)
"""Events that can be left out without changing any other part of the state. They make up nearly all
of a recording."""

SAMPLE_LINES = tuple(f'{{"event":"{kind.__struct_config__.tag}",'.encode() for kind in SAMPLES)
"""First bytes of the lines of samples."""

_MOMENT = re.compile(rb'.*"t":([0-9.]{1,20})}\n')
_TAIL = 40
"""Bytes at the end of a line that contain the event's moment."""


def moment_of_line(line: bytes) -> float:
    """Return the moment at the end of an event's line. Raises ``WireError`` if there is none."""
    if (found := _MOMENT.fullmatch(line[-_TAIL:])) is None:
        raise WireError("a line does not end with its moment")
    return float(found[1])


# Built on first use: each decoder takes some milliseconds, and a lab decodes no events.
@cache
def _events() -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(reduce(or_, EVENTS))


@cache
def _commands() -> msgspec.json.Decoder[Command]:
    return msgspec.json.Decoder(AnyCommand | StartTogether[_STARTS] | TraceData)


_NOT_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions of msgspec's decoder; ``UnicodeError`` for text that is not UTF-8, ``RecursionError``
for deep nesting."""


def encode(record: Event | Command | UnknownEvent) -> bytes:
    """Return ``record`` as one JSON line, newline included."""
    if isinstance(record, UnknownEvent):
        return record.raw + b"\n"
    return _encoder.encode(record) + b"\n"


def decode_event(line: bytes) -> Event | UnknownEvent:
    """Return the event in one line of a lab's output or of a recording.

    An event of an unknown kind is kept as it is. Raises ``WireError`` for a line that is no event
    or would take too much memory.
    """
    _check_size(line)
    try:
        line = printable_json(line)
        event = _events().decode(line)
    except _NOT_JSON as error:
        try:
            envelope = _envelopes.decode(line)
        except _NOT_JSON:
            raise WireError(f"not an event: {_shorten(line)} ({error})") from None
        if envelope.event in _KNOWN_EVENTS:
            raise WireError(f"event {envelope.event!r}: {error}") from None
        return UnknownEvent(envelope.t, envelope.event, line.rstrip(b"\n"))
    if isinstance(event, Sweep):
        blocks.check_sweep(event)
    elif isinstance(event, Sweeps):
        blocks.check(event)
    elif isinstance(event, TraceSamples):
        blocks.check_trace(event)
    return event


def decode_command(line: bytes) -> Command:
    """Return the command in one line of a lab's input. Raises ``WireError`` for any other line."""
    if len(line) > LONGEST_COMMAND:
        raise WireError(f"a command has at most {LONGEST_COMMAND:,} bytes: {_shorten(line[:100])}")
    try:
        return _commands().decode(line)
    except _NOT_JSON as error:
        raise WireError(f"not a command: {_shorten(line)} ({error})") from None


def decode_hello(line: bytes, name: str) -> Hello:
    """Return the ``Hello`` in the first line of the recording ``name``.

    Raises ``RecordingError`` unless it opens a stream that this version understands.
    """
    ours = False
    with contextlib.suppress(*_NOT_JSON):
        # The rest of a newer hello may be unreadable.
        opening = _openings.decode(line)
        ours = True
        if opening.format > FORMAT:
            raise RecordingError(
                f"{name}: recorded by ccplay {printable(opening.version)} "
                f"in format {opening.format}; "
                f"this ccplay {__version__} reads up to {FORMAT}: update ccplay"
            )
    try:
        first = decode_event(line)
    except WireError as error:
        reason = f":1: {error}" if ours else ": not a ccplay recording"
        raise RecordingError(f"{name}{reason}") from None
    if not isinstance(first, Hello):
        raise RecordingError(f"{name}: not a ccplay recording: it does not begin with hello")
    return first


def _check_size(line: bytes) -> None:
    """Raise ``WireError`` for a line that is too long, or has too many parts for the memory."""
    if len(line) <= _MOST_PARTS:
        return
    sweeps = line.startswith(b'{"event":"sweep') and b"\\" not in line
    most = LONGEST_LINE if sweeps else _LONGEST_OTHER
    if len(line) > most:
        raise WireError(f"a line of {len(line):,} bytes; the limit is {most:,}")
    if (parts := line.count(b"[") + line.count(b"{")) > _MOST_PARTS:
        raise WireError(f"{parts:,} arrays and objects in a line; the limit is {_MOST_PARTS:,}")


def _shorten(line: bytes) -> str:
    text = printable(line.decode(errors="replace").strip())
    return text if len(text) <= 80 else text[:77] + "..."


_KNOWN_EVENTS = {str(getattr(kind, "__origin__", kind).__struct_config__.tag) for kind in EVENTS}
