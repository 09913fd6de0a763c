"""Blocks: the sweeps of some seconds packed into one event, ten times cheaper to read."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate
from operator import sub
from typing import cast

from ccplay.errors import WireError
from ccplay.model.base import LAST_CA_STATE, Row, Value
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
            pack(*accumulate(row)) if isinstance(row, list) else _spread(row, sweeps)
            for row in rows
        ]
    except (TypeError, struct.error):
        # An array with unknown values is rare and may take longer.
        return [
            pack(*_with_gaps(row)) if isinstance(row, list) else _spread(row, sweeps)
            for row in rows
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


def _spread(row: dict[int, int | None] | int | None, sweeps: int) -> bytes:
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
