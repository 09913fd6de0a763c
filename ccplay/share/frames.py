"""What a screen shows, and frames: the lines between presenter, server and spectators."""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from functools import cache
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.errors import WireError
from ccplay.model.base import Count, Moment, WallTime
from ccplay.visible import printable_json

Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=250)]

# --- the moment that the whole screen shows: live, frozen, scrolled back or replayed --------------

WIDTHS = (
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0),
    *(600.0, 1200.0, 3600.0, 7200.0, 21600.0),
)
"""Widths of the window in seconds; the smallest suit traces of every ACK."""

WINDOW_S = 30.0
"""Default width of the window in seconds."""

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Speeds of a replay: recorded seconds per second."""

_QUARTERS = 4


class Playhead(msgspec.Struct):
    """The moment shown, and the time window of the plots.

    While running, the playhead follows the session (live) or moves at ``speed`` (recorded);
    stopped, it stays where the keys put it. The window fills to the right and advances by a quarter
    when it is full, because a sliding window would repaint every cell at every step.
    """

    recorded: bool = False
    t: Moment = 0.0
    """The moment shown, in seconds since ``Hello``."""
    width: Annotated[float, msgspec.Meta(ge=0.01, le=1e6)] = WINDOW_S
    """Width of the window in seconds."""
    left: Moment = 0.0
    """Moment at the window's left edge, in seconds since ``Hello``."""
    seen: Moment = 0.0
    """Latest moment shown so far, in seconds since ``Hello``; later moments stay hidden."""
    running: bool = True
    speed: Annotated[float, msgspec.Meta(ge=0.01, le=1000)] = 1.0

    @property
    def right(self) -> float:
        """The moment at the window's right edge."""
        return self.left + self.width

    @property
    def until(self) -> float:
        """The moment up to which the plots have data."""
        return self.t if self.running else max(self.t, min(self.seen, self.right))

    def advance(self, now: float, elapsed: float, *, done: bool) -> None:
        """Advance by ``elapsed`` seconds of wall time; the session has reached ``now``.

        If ``done``, the session ends at ``now``, and the playhead stops there.
        """
        if not self.running or (self.t > now and not done):
            return
        self._go(min(self.t + elapsed * self.speed, now) if self.recorded else max(now, self.t))
        if done and self.t >= now:
            self.running = False

    def toggle(self, now: float) -> None:
        """Stop, or resume: a live session jumps to its newest moment, a recorded one continues."""
        self.running = not self.running
        if self.running:
            if self.recorded and self.t >= now:
                self._go(0.0)
            elif not self.recorded:
                self._go(now)

    def scrub(self, seconds: float, now: float) -> None:
        """Stop and move by ``seconds``, within the session."""
        self.jump(self.t + seconds, now)

    def jump(self, t: float, now: float) -> None:
        """Stop at ``t``, or the nearest moment of the session."""
        self.running = False
        self._go(min(max(t, 0.0), now))

    def look_back(self, t: float, now: float) -> None:
        """Stop at ``t``, or the nearest moment of the session, near the window's right edge."""
        self.jump(t, now)
        self.left = self._page(self.t)

    def zoom(self, steps: int, now: float) -> None:
        """Zoom in (positive ``steps``) or out, at most to the whole session."""
        at = min(range(len(WIDTHS)), key=lambda i: abs(WIDTHS[i] - self.width))
        whole = next((i for i, width in enumerate(WIDTHS) if width >= now), len(WIDTHS) - 1)
        share = (self.t - self.left) / self.width
        width = WIDTHS[min(max(at - steps, 0), max(whole, at))]
        if width == self.width:
            return
        self.width = width
        quarter = width / _QUARTERS
        if self.running:
            self.left = self._page(self.t)
        else:
            left = max(0.0, math.floor((self.t - share * width) / quarter + 0.5) * quarter)
            # At most a quarter of the window is empty, for moments not seen yet.
            self.left = min(left, self._page(self.seen))
            self._go(self.t)

    def change_speed(self, steps: int) -> None:
        """Play faster (positive ``steps``) or slower, by as many entries of ``SPEEDS``."""
        at = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - self.speed))
        self.speed = SPEEDS[min(max(at + steps, 0), len(SPEEDS) - 1)]

    def _go(self, t: float) -> None:
        self.t = t
        self.seen = max(self.seen, t)
        if t >= self.right or (self.running and t < self.left):
            self.left = self._page(t)
        elif t < self.left:
            quarter = self.width / _QUARTERS
            self.left = max(0.0, (math.floor(t / quarter) - 1) * quarter)

    def _page(self, t: float) -> float:
        """Return the left edge of the window that has ``t`` in its last quarter."""
        quarter = self.width / _QUARTERS
        return max(0, math.floor(t / quarter) - _QUARTERS + 1) * quarter


# --- how the user lists the flows: sorted, filtered, grouped, stacked, or one alone ---------------

COLUMNS = ("", "flow", "cc", "cwnd", "rtt", "goodput", "retr", "path")
"""Columns to sort by; the empty name stands for the order in which flows started."""

_WORDS = ("", "flow", "cc", "path")
"""Columns in ascending order by default; columns of numbers are in descending order."""

_LONGEST = 40
"""Longest filter in characters."""


class Listing(msgspec.Struct, frozen=True):
    """Which flows table and plots show, and in which order."""

    column: Word = ""
    """Column that the table is sorted by, one of ``COLUMNS``."""
    reverse: bool = False
    """Whether the order of the table is reversed."""
    text: Word = ""
    """Text that the name, algorithm or a host of a listed flow contains; empty lists all flows."""
    typing: bool = False
    """Whether typed keys extend the filter."""
    alone: bool = False
    """Whether plots draw the selected flow alone."""
    grouped: bool = False
    """Whether all flows of an algorithm share one line."""
    stacked: bool = False
    """Whether plots of rates and queues stack values that add up."""

    @property
    def descending(self) -> bool:
        """Whether the greatest value is listed first."""
        return (self.column not in _WORDS) != self.reverse

    def next_column(self) -> Listing:
        """Return this listing sorted by the next column, in that column's default order."""
        at = COLUMNS.index(self.column) + 1
        return replace(self, column=COLUMNS[at % len(COLUMNS)], reverse=False)

    def typed(self, key: str, character: str | None) -> Listing:
        """Return this listing after a key typed into the filter."""
        if key == "escape":
            return replace(self, text="", typing=False)
        if key == "enter":
            return replace(self, typing=False)
        if key == "backspace":
            return replace(self, text=self.text[:-1])
        if character and character.isprintable() and len(self.text) < _LONGEST:
            return replace(self, text=self.text + character)
        return self


# --- what a screen shows --------------------------------------------------------------------------

LONGEST_POINT = 120
"""Greatest number of characters of the presenter's words about a moment."""


class Pointer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A moment that the presenter points at, with a few words about it."""

    t: Moment
    text: Annotated[str, msgspec.Meta(max_length=LONGEST_POINT)] = ""


class Shown(msgspec.Struct, omit_defaults=True, tag_field="share", tag="view"):
    """What a screen shows: the user's keys change it, the presenter's reaches all spectators."""

    playhead: Playhead
    """The moment shown, and the window of the plots."""
    selected: Word | None = None
    """Name of the traffic that keys act on; None if nothing is selected."""
    observed: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)] = 0
    """Index of the observed queue shown, modulo the number of observed queues."""
    variable: Word | None = None
    """Variable drawn in place of RTT; None for RTT itself."""
    plots: Annotated[tuple[Word, ...], msgspec.Meta(max_length=50)] = ()
    """Names of the chosen plots from left to right; empty if none were chosen."""
    large: Word = ""
    """Name of the plot that fills the whole band; empty if several share it."""
    logarithmic: bool = False
    """Whether the value axes are logarithmic."""
    held: bool = False
    """Whether the value axes are fixed."""
    receiver: bool = False
    """Whether the receiver's table replaces the events."""
    map: bool = False
    """Whether the network is drawn in place of the plots."""
    listing: Listing = Listing()
    """Filter, order and grouping of the flows shown."""
    pointer: Pointer | None = None
    """Moment that the presenter points at; None if there is none."""


# --- frames: lines that are not events of a lab ---------------------------------------------------

PROTOCOL = 4
"""Version of the frames; a spectator can join only a server of the same version."""

LONGEST_FRAME = 1 << 16
"""Greatest number of bytes of a frame's line."""

PREFIX = b'{"share":"'
"""First bytes of a frame's line; no line of an event begins with them."""

_HELLO = struct.Struct("!7sBB7x")
_MAGIC = b"ccplay\0"

HELLO_BYTES = _HELLO.size
"""Bytes of the hello that a spectator sends once, before its votes."""

_VOTE = struct.Struct("!4sHHd")
_VOTES = b"vote"

_CROWD = struct.Struct("!4sH10x")
_BROWSERS = b"seen"

REQUEST_BYTES = _VOTE.size
"""Bytes of a vote or of a number of browsers, all that a spectator may send after its hello."""

MOST_SLOTS = 1000
"""Greatest number of browsers for which one connection may vote."""

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=500)]
_Lines: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4000)], ...], msgspec.Meta(max_length=200)
]

_Bounded: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]


class Wants(IntEnum):
    """What a spectator asks for in its hello."""

    GREETING = 0
    """The greeting only, to list sessions."""
    WHOLE = 1
    """Everything from the beginning."""
    NOW = 2
    """The events that explain the stream, without past samples; then everything from now on."""
    BROWSERS = 3
    """Everything from the beginning, for the browsers that the spectator serves."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="share"):
    """A line that is not an event."""


class Setup(Frame, frozen=True, tag="setup"):
    """The presenter's first line to its server."""

    title: _Text = ""
    recorded: bool = False
    """Whether a recording is shown, in which the presenter may be at any moment."""
    past_bytes: Count = 0
    """Bytes to read from the beginning of the recording that the server has inherited open."""


class Watching(Frame, frozen=True, tag="watching"):
    """The server's report to the presenter of the number of spectators now."""

    count: Count


class Greeting(Frame, frozen=True, tag="greeting"):
    """The first line that a spectator receives."""

    protocol: Count
    title: _Text = ""
    recorded: bool = False
    began: WallTime = 0.0
    """Unix time at which sharing began."""
    now: Moment = 0.0
    """Moment of the session now, in seconds."""
    watching: Count = 0
    """Number of other spectators."""
    seats: Count = 0
    """Number of browsers for which this connection may vote and that it may report."""


class Board(Frame, frozen=True, tag="board"):
    """The page of a lesson that the presenter shows; empty once the lesson is closed."""

    title: _Text = ""
    """Title of the lesson."""
    page: Count = 0
    """Number of the lesson's page, from 1."""
    pages: Count = 0
    heading: _Text = ""
    lines: _Lines = ()
    """Text of the lesson's page in Markdown, line by line."""
    phase: Word = ""
    """Name of the page's ``lesson.course.Phase``."""
    until: Moment = 0.0
    """Moment of the session at which the page's run ends; 0 if none is running."""
    question: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Number of the question that is voted on; 0 if the page asks nothing."""
    ask: _Text = ""
    choices: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=9)] = ()
    """Answers to choose from; empty if a number is asked for."""
    low: _Bounded = 0.0
    high: _Bounded = 0.0
    """Upper bound of the number that is asked for; ``low`` is the lower one."""
    width: Annotated[float, msgspec.Meta(ge=0, le=1e15)] = 0.0
    """Height of the region that is asked for, in ``unit``; 0 for a number."""
    unit: Word = ""
    plot: Word = ""
    """Name of the plot of the region that is asked for."""
    open: bool = False
    """Whether answers count now, which they do until the page's run starts."""
    counts: Annotated[tuple[Count, ...], msgspec.Meta(max_length=9)] = ()
    """Votes for each choice, or for each eighth of the range of numbers; empty while hidden."""
    voted_right: Count | None = None
    """Number of right votes; None if it is unknown or hidden."""
    answers: tuple[_Bounded, _Bounded] | None = None
    """Least and greatest right answer, of a region the lower end; None before the reveal, or if
    the run decides nothing."""
    right: _Bounded | None = None
    """Number of the right choice from 0, or the measured number; None before the reveal."""
    measured: Annotated[tuple[tuple[_Text, Word], ...], msgspec.Meta(max_length=12)] = ()
    """Descriptions of what was measured, each with its value in words."""
    problem: _Text = ""
    """Reason why the measurements decide nothing; empty if they do."""
    usual: bool = True
    """Whether ``why`` explains the measured result."""
    why: _Lines = ()
    """Explanation of the usual result in Markdown, line by line."""

    def __post_init__(self) -> None:
        """Check that bounds and answers fit together. Raises ``ValueError``."""
        if self.width > self.high - self.low or self.low > self.high:
            raise ValueError("the answers' upper bound is too low")
        if self.choices and self.right is not None and self.right not in range(len(self.choices)):
            raise ValueError("the right answer is none of the choices")


class Votes(Frame, frozen=True, tag="votes"):
    """The server's report to the presenter of the votes on a question so far."""

    question: Count
    counts: Annotated[tuple[Count, ...], msgspec.Meta(max_length=9)] = ()
    voters: Count = 0
    right: Count | None = None
    """Number of right votes; None before the reveal."""


class Packed(Frame, frozen=True, tag="packed"):
    """Precedes compressed lines, of which it has the number of bytes; see ``packing``."""

    bytes: Count
    begins: bool = False
    """Whether a context begins, so the lines can be read without any before them."""


class Gap(Frame, frozen=True, tag="gap"):
    """The time span that a spectator was too slow to receive; its stream continues after that."""

    since: Moment
    until: Moment


class Present(Frame, frozen=True, tag="present"):
    """Marks the end of the past: what follows happens now."""


class Over(Frame, frozen=True, tag="over"):
    """Reports that the presenter has stopped sharing; the last line of a stream."""

    reason: _Text = ""
    another: bool = False
    """Whether the presenter will share another network under the same name."""


AnyFrame: TypeAlias = (
    Setup | Watching | Greeting | Shown | Board | Votes | Packed | Gap | Present | Over
)

_encoder = msgspec.json.Encoder()


# Built on first use: it takes some milliseconds, and most sessions are not shared.
@cache
def _decoder() -> msgspec.json.Decoder[AnyFrame]:
    return msgspec.json.Decoder(AnyFrame)


def encode(frame: AnyFrame) -> bytes:
    """Return a frame as a line."""
    return _encoder.encode(frame) + b"\n"


def decode(line: bytes) -> AnyFrame:
    """Return the frame of a line that begins with ``PREFIX``, all its text printable.

    Raises ``WireError``.
    """
    if len(line) > LONGEST_FRAME:
        raise WireError(f"a frame of {len(line):,} bytes; the limit is {LONGEST_FRAME:,}")
    try:
        return _decoder().decode(printable_json(line))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise WireError(f"not a frame of this version: {error}") from None


def encode_hello(wants: Wants) -> bytes:
    """Return the bytes with which a spectator asks to join."""
    return _HELLO.pack(_MAGIC, PROTOCOL, wants)


def decode_hello(hello: bytes) -> Wants:
    """Return what a spectator's hello asks for. Raises ``WireError`` for anything but a hello."""
    try:
        magic, protocol, wants = _HELLO.unpack(hello)
        asked = Wants(wants)
    except (struct.error, ValueError):
        raise WireError("not a hello of a spectator") from None
    if magic != _MAGIC or protocol != PROTOCOL or hello != encode_hello(asked):
        raise WireError("not a hello of a spectator of this version")
    return asked


class Vote(NamedTuple):
    """A vote as sent, not yet checked by the ballot."""

    question: int
    choice: float
    """Number of the choice from 0, or the number that is asked for."""
    slot: int = 0
    """Number of the browser that votes over the connection, from 1; 0 for the spectator itself."""


class BrowserCount(NamedTuple):
    """The number of browsers that watch over a connection."""

    number: int


def encode_vote(question: int, choice: float, slot: int = 0) -> bytes:
    """Return the bytes of a ``Vote``."""
    return _VOTE.pack(_VOTES, question, slot, choice)


def encode_browsers(count: int) -> bytes:
    """Return the bytes of ``BrowserCount``."""
    return _CROWD.pack(_BROWSERS, min(count, MOST_SLOTS))


def decode_request(request: bytes) -> Vote | BrowserCount:
    """Return what a spectator sent after its hello. Raises ``WireError``."""
    try:
        magic, question, slot, choice = _VOTE.unpack(request)
    except struct.error:
        raise WireError("not a vote") from None
    if magic == _VOTES and slot <= MOST_SLOTS:
        return Vote(question, choice, slot)
    if magic == _BROWSERS and question <= MOST_SLOTS and request == encode_browsers(question):
        return BrowserCount(question)
    raise WireError("not a vote of this version")
