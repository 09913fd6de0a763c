"""Records as JSON lines; the sweeps of some seconds are packed into one event."""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate
from operator import sub
from typing import cast

import msgspec

from ccplay import __version__
from ccplay.errors import RecordingError, WireError
from ccplay.model.base import LAST_CA_STATE, Command, Event, Moment, Row, Value
from ccplay.model.commands import Order
from ccplay.model.events import AnyEvent, Hello
from ccplay.model.samples import (
    QdiscRows,
    QdiscSamples,
    Sweep,
    Sweeps,
    TcpRows,
    TcpSamples,
    TraceSamples,
)
from ccplay.model.values import MOST_VARIABLES
from ccplay.visible import printable as printable  # noqa: PLC0414 - others find it here
from ccplay.visible import printable_json

# --- packs the sweeps of some seconds into one event ----------------------------------------------
# Packs the sweeps of some seconds into one event, a block, which is ten times cheaper to read.

LONGEST = 1000
"""Greatest number of sweeps in a block, or of segments in an event of a trace; without it one
number per flow could stand for millions of values."""

_SELDOM = 5 / 6
"""Share of unchanged sweeps above which a row is shorter as an object of changes than an array."""

_TCP_FIELDS = tuple(each for each in TcpSamples.__struct_fields__ if each not in ("flow", "cc"))
_QDISC_FIELDS = tuple(
    each for each in QdiscSamples.__struct_fields__ if each not in ("link", "kind")
)

TRACE_FIELDS = ("cwnd", "ssthresh", "srtt_us", "snd_wnd")
"""Names of the fields of ``TraceSamples`` with a value per segment."""


def fits(sweep: Sweep, block: Sequence[Sweep]) -> bool:
    """Return whether ``sweep`` can follow in ``block``: same flows, algorithms and queues."""
    last = block[-1]
    return len(block) < LONGEST and sweep.t >= last.t and _shape(sweep) == _shape(last)


def pack(block: Sequence[Sweep]) -> Sweeps:
    """Return the block of sweeps that fit together; moments are rounded to microseconds."""
    moments = [round(sweep.t * 1e6) for sweep in block]
    return Sweeps(
        t=moments[0] / 1e6,
        after_us=list(map(sub, moments[1:], moments)),
        tcp=_tcp_rows([sweep.tcp for sweep in block if sweep.tcp is not None]),
        qdisc=_qdisc_rows([sweep.qdisc for sweep in block if sweep.qdisc is not None]),
        own=_own_rows([sweep.own for sweep in block]),
        queue_own=_own_rows([sweep.queue_own for sweep in block]),
    )


def check(block: Sweeps) -> None:
    """Raise ``WireError`` if the parts of a block do not fit together."""
    sweeps = len(block.after_us) + 1
    if sweeps > LONGEST:
        raise WireError(f"{sweeps} sweeps in a block; the limit is {LONGEST}")
    if block.tcp is not None:
        _check_rows(block.tcp.flow, block.tcp.cc, block.tcp.fields, sweeps)
        _check_states(block.tcp.fields.get("ca_state", ()))
    if block.qdisc is not None:
        _check_rows(block.qdisc.link, block.qdisc.kind, block.qdisc.fields, sweeps)
    flows = len(block.tcp.flow) if block.tcp else 0
    queues = len(block.qdisc.link) if block.qdisc else 0
    for own, members in ((block.own, flows), (block.queue_own, queues)):
        _check_fields(members, own, sweeps)
        _check_variables(own, members)


def check_sweep(sweep: Sweep) -> None:
    """Raise ``WireError`` if the parts of a sweep do not fit together."""
    for samples, names in (
        (sweep.tcp, sweep.tcp.flow if sweep.tcp else []),
        (sweep.qdisc, sweep.qdisc.link if sweep.qdisc else []),
    ):
        if samples is None:
            continue
        _check_names(names)
        for field in samples.__struct_fields__:
            if len(getattr(samples, field)) != len(names):
                raise WireError(f"{field}: not one for each of {len(names)} flows or links")
    flows = len(sweep.tcp.flow) if sweep.tcp else 0
    queues = len(sweep.qdisc.link) if sweep.qdisc else 0
    for own, members in ((sweep.own, flows), (sweep.queue_own, queues)):
        for name, values in own.items():
            if len(values) != members:
                raise WireError(f"{name}: not one for each of {members} flows or links")
        _check_variables(own, members)


def check_trace(samples: TraceSamples) -> None:
    """Raise ``WireError`` if the fields of a trace do not fit together."""
    segments = len(samples.after_us) + 1
    if segments > LONGEST:
        raise WireError(f"{segments} segments at once; the limit is {LONGEST}")
    fields = {name: [getattr(samples, name)] for name in TRACE_FIELDS}
    _check_rows([samples.flow], [""], fields, segments)


def moments(block: Sweeps | TraceSamples) -> list[float]:
    """Return the moment of each sweep of a block, or of each segment of a trace."""
    return [us / 1e6 for us in accumulate(block.after_us, initial=round(block.t * 1e6))]


def floats(rows: Sequence[Row], sweeps: int) -> list[bytes]:
    """Return the values of each row over its ``sweeps`` as C floats, NaN if unknown."""
    pack = _packer(sweeps)
    try:
        return [
            pack(*accumulate(row)) if isinstance(row, list) else _held(row, sweeps) for row in rows
        ]
    except (TypeError, struct.error):
        # An array with unknown values is rare and may take longer.
        return [
            pack(*_with_gaps(row)) if isinstance(row, list) else _held(row, sweeps) for row in rows
        ]


def last(row: Row) -> int | None:
    """Return the last value of a row, exactly; None if it is unknown."""
    if isinstance(row, list):
        return None if row[-1] is None else sum(filter(None, row))
    if isinstance(row, dict):
        return row[max(row)]
    return row


def counts(row: Row, sweeps: int) -> list[int | None]:
    """Return the value of a row at each of its ``sweeps``, exactly; None if unknown."""
    if isinstance(row, dict):
        ends = (*row, sweeps)[1:]
        spans = zip(row.items(), ends, strict=True)
        return [value for (start, value), end in spans for _ in range(end - start)]
    if not isinstance(row, list):
        return [row] * sweeps
    if None not in row:
        return list(accumulate(row))
    found: list[int | None] = []
    known = 0
    for step in row:
        known += step or 0
        found.append(None if step is None else known)
    return found


_float = struct.Struct("f").pack


@cache
def _packer(sweeps: int) -> Callable[..., bytes]:
    return struct.Struct(f"{sweeps}f").pack


def _held(row: dict[int, int | None] | int | None, sweeps: int) -> bytes:
    """Return the C floats of a row that is an object of changes, or one value for all sweeps."""
    if not isinstance(row, dict):
        return _float(math.nan if row is None else row) * sweeps
    ends = (*row, sweeps)[1:]
    return b"".join(
        [
            _float(math.nan if value is None else value) * (end - start)
            for (start, value), end in zip(row.items(), ends, strict=True)
        ]
    )


def _shape(sweep: Sweep) -> tuple[Collection[str] | None, ...]:
    return (
        sweep.tcp.flow if sweep.tcp else None,
        sweep.tcp.cc if sweep.tcp else None,
        sweep.qdisc.link if sweep.qdisc else None,
        sweep.qdisc.kind if sweep.qdisc else None,
        sweep.own.keys(),
        sweep.queue_own.keys(),
    )


def _tcp_rows(samples: Sequence[TcpSamples]) -> TcpRows | None:
    if not samples:
        return None
    first = samples[0]
    return TcpRows(flow=first.flow, cc=first.cc, fields=_fields(samples, _TCP_FIELDS))


def _qdisc_rows(samples: Sequence[QdiscSamples]) -> QdiscRows | None:
    if not samples:
        return None
    first = samples[0]
    return QdiscRows(link=first.link, kind=first.kind, fields=_fields(samples, _QDISC_FIELDS))


def _own_rows(samples: Sequence[dict[str, list[int | None]]]) -> dict[str, list[Row]]:
    return {
        name: [row(each) for each in zip(*(own[name] for own in samples), strict=True)]
        for name in samples[0]
    }


def _fields(samples: Sequence[Value], names: Sequence[str]) -> dict[str, list[Row]]:
    return {
        name: [row(each) for each in zip(*(getattr(each, name) for each in samples), strict=True)]
        for name in names
    }


def row(counts: Sequence[int | None]) -> Row:
    """Return the row that encodes the values of one field over time, in its shortest form."""
    first = counts[0]
    if counts.count(first) == len(counts):
        return first
    try:
        steps = [first, *map(sub, counts[1:], counts)]
    except TypeError:
        return _without_gaps(counts)
    if steps.count(0) > len(steps) * _SELDOM:
        return {at: counts[at] for at, step in enumerate(steps) if step or not at}
    return steps


def _without_gaps(counts: Sequence[int | None]) -> list[int | None]:
    steps: list[int | None] = []
    known = 0
    for count in counts:
        steps.append(None if count is None else count - known)
        known = known if count is None else count
    return steps


def _with_gaps(row: Sequence[int | None]) -> list[float]:
    found: list[float] = []
    known = 0
    for step in row:
        known += step or 0
        found.append(math.nan if step is None else known)
    return found


def _check_rows(
    names: list[str], kinds: list[str], fields: dict[str, list[Row]], sweeps: int
) -> None:
    _check_names(names)
    if len(kinds) != len(names):
        raise WireError(f"not one cc or kind for each of {len(names)} flows or links")
    _check_fields(len(names), fields, sweeps)


def _check_fields(members: int, fields: dict[str, list[Row]], sweeps: int) -> None:
    for field, rows in fields.items():
        if len(rows) != members:
            raise WireError(f"{field}: not one for each of {members} flows or links")
        for row in rows:
            if isinstance(row, list):
                if len(row) != sweeps:
                    raise WireError(f"{field}: not a value for each of {sweeps} sweeps")
                # The kernel's counts are never negative, and some serve as an index of a table.
                if min(_counts(row)) < 0:
                    raise WireError(f"{field}: a count below 0")
            elif isinstance(row, dict):
                at = list(row)
                if not at or at[0] != 0 or at[-1] >= sweeps or at != sorted(at):
                    raise WireError(f"{field}: changes at {at[:9]} of {sweeps} sweeps")


def _check_states(rows: Sequence[Row]) -> None:
    for row in rows:
        if isinstance(row, list):
            state = max(_counts(row))
        else:
            known = row.values() if isinstance(row, dict) else (row,)
            state = max((each for each in known if each is not None), default=0)
        if state > LAST_CA_STATE:
            raise WireError(f"ca_state {state} is not 0 to {LAST_CA_STATE}")


def _counts(row: Sequence[int | None]) -> Iterable[int]:
    """Return 0 and the known counts of a row that is an array of steps."""
    steps = cast("Iterable[int]", filter(None, row) if None in row else row)
    return accumulate(steps, initial=0)


def _check_variables(own: Collection[str], members: int) -> None:
    # Labs of 0.1 named the variables of monitors even before there were flows.
    if len(own) > (most := MOST_VARIABLES * max(members, 1)):
        raise WireError(f"{len(own)} variables of algorithms or disciplines; the limit is {most}")


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise WireError("one flow or link twice in a sweep")


# --- encodes and decodes records as JSON lines, on the lab's pipe and in recordings ---------------

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
_envelopes = msgspec.json.Decoder(_Envelope)
_openings = msgspec.json.Decoder(_Opening)


# Built on first use: each decoder takes some milliseconds, and a lab decodes no events.
@cache
def _events() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)


@cache
def _commands() -> msgspec.json.Decoder[Order]:
    return msgspec.json.Decoder(Order)


_NOT_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Exceptions of msgspec's decoder; ``UnicodeError`` for text that is not UTF-8, ``RecursionError``
for deep nesting."""


def encode(record: Event | Command | UnknownEvent) -> bytes:
    """Return ``record`` as one JSON line, newline included."""
    if isinstance(record, UnknownEvent):
        return record.raw + b"\n"
    return _encoder.encode(record) + b"\n"


def decode_event(line: bytes) -> AnyEvent | UnknownEvent:
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
        check_sweep(event)
    elif isinstance(event, Sweeps):
        check(event)
    elif isinstance(event, TraceSamples):
        check_trace(event)
    return event


def decode_command(line: bytes) -> Order:
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


def encode_value(value: msgspec.Struct) -> bytes:
    """Return any of ccplay's structs as one line of JSON, without a newline."""
    return _encoder.encode(value)


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


_KNOWN_EVENTS = {str(kind.__struct_config__.tag) for kind in AnyEvent.__args__}
