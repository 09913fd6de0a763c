"""Records as JSON lines: those on the lab's pipe and in a recording."""

from __future__ import annotations

import contextlib
from functools import cache

import msgspec

from ccplay import __version__
from ccplay.errors import RecordingError, WireError
from ccplay.model.base import Command, Event, Moment
from ccplay.model.commands import Order
from ccplay.model.events import AnyEvent, Hello
from ccplay.model.samples import Sweep, Sweeps, TraceSamples
from ccplay.stream import sweep_codec
from ccplay.visible import printable as printable  # noqa: PLC0414 - others find it here
from ccplay.visible import printable_value as printable_value  # noqa: PLC0414 - the same

FORMAT = 2
"""Version of the stream's format, given in ``Hello``. A reader takes its own and older ones.

2: recordings keep sweeps in blocks (``Sweeps``), and ``Hello`` has the requested network.
"""

LONGEST_LINE = 1 << 24
"""Bytes of a line: two seconds of a thousand flows at 50 Hz take a third of it."""

_LONGEST_OTHER = 1 << 20
"""Bytes of a line with no sweeps in it, which is read with more care and more memory."""

_MOST_PARTS = 1 << 18
"""Arrays and objects of a line: each takes up to thirty times its bytes. A row of sweeps is one."""
LONGEST_COMMAND = 4 << 20
"""Bytes of a command's line: a network with ten thousand names reserved takes half of it."""

LAB_SAYS = "ccplay lab: "
"""Prefix of the line on stderr in which a lab reports why it ends."""


GUEST_RUNS = "ccplay guest: the kernel runs"
"""Line that a guest writes to stderr before it starts the lab."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a kind that this version does not know, kept as it came."""

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
_envelopes = msgspec.json.Decoder(_Envelope)
_openings = msgspec.json.Decoder(_Opening)


# Each takes some milliseconds to build, and a lab reads no events.
@cache
def _events() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)


@cache
def _commands() -> msgspec.json.Decoder[Order]:
    return msgspec.json.Decoder(Order)


_NOT_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions of the decoder; the last two for text that is not UTF-8 and for deep nesting."""


def encode(record: Event | Command | UnknownEvent) -> bytes:
    """Return ``record`` as one JSON line, newline included."""
    if isinstance(record, UnknownEvent):
        return record.raw + b"\n"
    return _encoder.encode(record) + b"\n"


def decode_event(line: bytes) -> AnyEvent | UnknownEvent:
    """Read one line of a lab's output or of a recording.

    Raises ``WireError`` for a line that is no event or would take too much memory; an event of an
    unknown kind is kept.
    """
    _check_size(line)
    try:
        if not is_printable(line):
            # A stranger's recording must not send control characters to the terminal.
            line = _encoder.encode(printable_value(msgspec.json.decode(line)))
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
        sweep_codec.check_sweep(event)
    elif isinstance(event, Sweeps):
        sweep_codec.check(event)
    elif isinstance(event, TraceSamples):
        sweep_codec.check_trace(event)
    return event


def decode_command(line: bytes) -> Order:
    """Read one line of a lab's input. Raises ``WireError`` for anything but a command."""
    if len(line) > LONGEST_COMMAND:
        raise WireError(f"a command has at most {LONGEST_COMMAND:,} bytes: {_shorten(line[:100])}")
    try:
        return _commands().decode(line)
    except _NOT_JSON as error:
        raise WireError(f"not a command: {_shorten(line)} ({error})") from None


def decode_hello(line: bytes, name: str) -> Hello:
    """Read the first line of the recording ``name``.

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


def encode_value(value: msgspec.Struct) -> bytes:
    """Return any of ccplay's structs as one line of JSON, without a newline."""
    return _encoder.encode(value)


def _check_size(line: bytes) -> None:
    """Raise ``WireError`` for a line that would take much more memory than bytes in the file."""
    if len(line) <= _MOST_PARTS:
        return
    sweeps = line.startswith(b'{"event":"sweep') and b"\\" not in line
    most = LONGEST_LINE if sweeps else _LONGEST_OTHER
    if len(line) > most:
        raise WireError(f"a line of {len(line):,} bytes; the limit is {most:,}")
    if (parts := line.count(b"[") + line.count(b"{")) > _MOST_PARTS:
        raise WireError(f"{parts:,} arrays and objects in a line; the limit is {_MOST_PARTS:,}")


def is_printable(line: bytes) -> bool:
    """Return whether all text in a line of JSON is printable, without decoding it."""
    return b"\\" not in line and (line.isascii() or line.rstrip(b"\n").decode().isprintable())


def _shorten(line: bytes) -> str:
    text = printable(line.decode(errors="replace").strip())
    return text if len(text) <= 80 else text[:77] + "..."


_KNOWN_EVENTS = {str(kind.__struct_config__.tag) for kind in AnyEvent.__args__}
