"""Frames: lines between the presenter, the server and spectators that are no events of a lab."""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import cache
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ccplay.errors import WireError
from ccplay.model.base import Count, Moment, WallTime
from ccplay.visible import printable_value

PROTOCOL = 3
"""Version of these frames; a spectator joins only a server of its own version."""

LONGEST_FRAME = 1 << 16
"""Bytes of a frame."""

LONGEST_POINT = 120
"""Characters of the words with which the presenter points."""

PREFIX = b'{"share":"'
"""Start of the line of a frame; no line of an event begins so."""

_HELLO = struct.Struct("!7sBB7x")
_MAGIC = b"ccplay\0"

HELLO_BYTES = _HELLO.size
"""Bytes that a spectator sends, once, before its votes."""

_VOTE = struct.Struct("!4sHHd")
_VOTES = b"vote"

_CROWD = struct.Struct("!4sH10x")
_BROWSERS = b"seen"

REQUEST_BYTES = _VOTE.size
"""Bytes of a vote, or of a number of browsers: all that a spectator may send after its hello."""

MOST_SEATS = 1000
"""Browsers for which one connection may vote."""

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=500)]
_Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=250)]
_Lines: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4000)], ...], msgspec.Meta(max_length=200)
]


class Wants(IntEnum):
    """What a spectator asks for."""

    GREETING = 0
    """The greeting alone, to list sessions."""
    WHOLE = 1
    """Everything from the beginning."""
    NOW = 2
    """What is needed to understand the stream, then samples from now on."""
    BROWSERS = 3
    """Everything from the beginning, for the browsers that the spectator serves."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="share"):
    """A line that is no event."""


class Setup(Frame, frozen=True, tag="setup"):
    """The presenter's first line to its server."""

    title: _Text = ""
    recorded: bool = False
    """Whether a recording is shown, so that the presenter may be anywhere in it."""
    past_bytes: Count = 0
    """Bytes at the beginning of the recording that the server has received open."""
    spool_bytes: Count = 200_000_000
    """Bytes of the past that are kept for those who join later."""


class Watching(Frame, frozen=True, tag="watching"):
    """The server's lines to the presenter: how many spectators there are now."""

    count: Count


class Greeting(Frame, frozen=True, tag="greeting"):
    """The first line that a spectator receives."""

    protocol: Count
    title: _Text = ""
    recorded: bool = False
    began: WallTime = 0.0
    """Unix time at which sharing began."""
    now: Moment = 0.0
    """Seconds of the session so far."""
    watching: Count = 0
    """Other spectators."""
    seats: Count = 0
    """Browsers for which this connection may vote, and whose number it may report."""


class Pointer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the presenter points at: a moment, and a few words about it."""

    t: Moment
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_POINT)] = ""


class PresenterView(Frame, frozen=True, tag="view"):
    """What the presenter sees, for spectators who follow."""

    t: Moment
    left: Moment
    width: Annotated[float, msgspec.Meta(ge=0.01, le=1e6)]
    running: bool = False
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=1000)] = 1.0
    selected: _Word | None = None
    observed: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)] = 0
    variable: _Word | None = None
    plots: Annotated[tuple[_Word, ...], msgspec.Meta(max_length=50)] = ()
    large: _Word = ""
    logarithmic: bool = False
    held: bool = False
    receiver: bool = False
    map: bool = False
    """Whether the network is drawn in place of the plots."""
    column: _Word = ""
    reverse: bool = False
    filter: _Word = ""
    alone: bool = False
    grouped: bool = False
    stacked: bool = False
    pointer: Pointer | None = None


class Board(Frame, frozen=True, tag="board"):
    """The page of a lesson that the presenter shows; empty once the lesson is closed."""

    title: _Text = ""
    """Title of the lesson."""
    page: Count = 0
    """Number of the page, from 1."""
    pages: Count = 0
    heading: _Text = ""
    lines: _Lines = ()
    """The page in Markdown, line by line."""
    phase: _Word = ""
    """``lesson.course.Phase``."""
    until: Moment = 0.0
    """Moment of the session at which the run of the page is over; 0 where none is."""
    question: Count = 0
    """Number of the question that votes are for; 0 where nothing is asked."""
    ask: _Text = ""
    choices: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=9)] = ()
    """The answers; none where a number is asked for."""
    low: float = 0.0
    high: float = 0.0
    """Bounds of the number."""
    width: float = 0.0
    """Height of the region that is asked for; 0 for a number."""
    unit: _Word = ""
    plot: _Word = ""
    """The plot of the region."""
    open: bool = False
    """Whether votes count now."""
    counts: Annotated[tuple[Count, ...], msgspec.Meta(max_length=9)] = ()
    """Votes for each choice, or for each eighth of the bounds; empty while they are hidden."""
    right: float | None = None
    """Number of the right choice from 0, or the measured number; None before the reveal."""
    measured: Annotated[tuple[tuple[_Text, _Word], ...], msgspec.Meta(max_length=12)] = ()
    """What was measured, each with its value in words."""
    problem: _Text = ""
    """Reason for which nothing decides."""
    usual: bool = True
    """Whether ``why`` explains what was measured."""
    why: _Lines = ()
    """The explanation in Markdown, line by line."""


class Votes(Frame, frozen=True, tag="votes"):
    """The server's lines to the presenter: the votes on a question so far."""

    question: Count
    counts: Annotated[tuple[Count, ...], msgspec.Meta(max_length=9)] = ()
    voters: Count = 0


class Packed(Frame, frozen=True, tag="packed"):
    """Precedes a number of bytes of compressed lines; see ``packing``."""

    bytes: Count
    begins: bool = False
    """Whether a context begins: nothing before is needed to read them."""


class Gap(Frame, frozen=True, tag="gap"):
    """What a spectator was too slow to receive; its stream continues after it."""

    since: Moment
    until: Moment


class Present(Frame, frozen=True, tag="present"):
    """The past is complete: what follows happens now."""


class Over(Frame, frozen=True, tag="over"):
    """The presenter has stopped sharing; the last line of a stream."""

    reason: _Text = ""


AnyFrame: TypeAlias = (
    Setup | Watching | Greeting | PresenterView | Board | Votes | Packed | Gap | Present | Over
)

_encoder = msgspec.json.Encoder()


# It takes some milliseconds to build, and most sessions are not shared.
@cache
def _decoder() -> msgspec.json.Decoder[AnyFrame]:
    return msgspec.json.Decoder(AnyFrame)


def encode(frame: AnyFrame) -> bytes:
    """Return a frame as a line."""
    return _encoder.encode(frame) + b"\n"


def decode(line: bytes) -> AnyFrame:
    """Read a line that begins with ``PREFIX``. Raises ``WireError``; all text is printable."""
    if len(line) > LONGEST_FRAME:
        raise WireError(f"a frame of {len(line):,} bytes; the limit is {LONGEST_FRAME:,}")
    try:
        return _decoder().decode(_encoder.encode(printable_value(msgspec.json.decode(line))))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise WireError(f"not a frame of this version: {error}") from None


def encode_hello(wants: Wants) -> bytes:
    """Return the bytes with which a spectator asks to join."""
    return _HELLO.pack(_MAGIC, PROTOCOL, wants)


def decode_hello(hello: bytes) -> Wants:
    """Read what a spectator asks for. Raises ``WireError`` for anything but a hello."""
    try:
        magic, protocol, wants = _HELLO.unpack(hello)
        asked = Wants(wants)
    except (struct.error, ValueError):
        raise WireError("not a hello of a spectator") from None
    if magic != _MAGIC or protocol != PROTOCOL or hello != encode_hello(asked):
        raise WireError("not a hello of a spectator of this version")
    return asked


class Vote(NamedTuple):
    """A vote, which the ballot judges."""

    question: int
    choice: float
    """The number of a choice, or a number."""
    seat: int = 0
    """Number of the connection's browser that votes, from 1; 0 for the spectator itself."""


class Browsers(NamedTuple):
    """How many browsers watch by this connection."""

    number: int


def encode_vote(question: int, choice: float, seat: int = 0) -> bytes:
    """Return the bytes of a ``Vote``."""
    return _VOTE.pack(_VOTES, question, seat, choice)


def encode_browsers(count: int) -> bytes:
    """Return the bytes of ``Browsers``."""
    return _CROWD.pack(_BROWSERS, min(count, MOST_SEATS))


def decode_request(request: bytes) -> Vote | Browsers:
    """Read what a spectator sends after its hello. Raises ``WireError``."""
    try:
        magic, question, seat, choice = _VOTE.unpack(request)
    except struct.error:
        raise WireError("not a vote") from None
    if magic == _VOTES and seat <= MOST_SEATS:
        return Vote(question, choice, seat)
    if magic == _BROWSERS and question <= MOST_SEATS and request == encode_browsers(question):
        return Browsers(question)
    raise WireError("not a vote of this version")
