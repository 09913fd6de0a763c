"""The race of a session: flows of a fixed size, and every flow's bytes when the first was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate

import msgspec

from ccplay.model import blocks
from ccplay.model.base import Row
from ccplay.model.events import Applied
from ccplay.model.samples import Sweep, Sweeps
from ccplay.traffic.base import Handlers
from ccplay.traffic.connections import Connections
from ccplay.traffic.flow import FlowEnded, StartFlow

_NOTHING: Mapping[str, int] = {}


class Finish(msgspec.Struct, frozen=True):
    """The moment at which the first flow of a fixed size was seen to be done."""

    t: float
    """Seconds since the start of the stream, of a sweep or of a flow's end."""
    first: str
    """Name of the flow that was done."""
    bytes: Mapping[str, int]
    """Exact acknowledged payload in bytes at that moment, by flow, its streams together."""


class Racing(Connections):
    """All connections, and the race between those of a fixed size."""

    def __init__(self) -> None:
        super().__init__()
        self.finish: Finish | None = None
        """Finish of the first flow; None until then. Series can't provide it, because they are
        floats of 24 bits."""


def _applied(state: Racing, event: Applied) -> None:
    command = event.command
    if not isinstance(command, StartFlow) or command.flow is None:
        return
    # A stranger's recording may have any number.
    if command.bytes is not None and command.bytes > 0:
        state.sizes[command.flow] = command.bytes
        if state.finish is None:
            # A small one may be done before its start is confirmed.
            _look(state, event.t, [command.flow], {})


def _sweep(state: Racing, event: Sweep) -> None:
    if runs(state) and event.tcp is not None:
        acked = dict(zip(event.tcp.flow, event.tcp.bytes_acked, strict=True))
        _look(state, event.t, state.sizes, acked)


def _sweeps(state: Racing, event: Sweeps) -> None:
    """Find the finish in a block of sweeps, which is read only if a flow is done at its end."""
    if not runs(state) or event.tcp is None or "bytes_acked" not in event.tcp.fields:
        return
    rows = dict(zip(event.tcp.flow, event.tcp.fields["bytes_acked"], strict=True))
    streams = [each for name in state.sizes for each in state.streams.get(name, ()) if each in rows]
    moments = blocks.moments(event)
    ends = {name: blocks.last(rows[name]) for name in streams}
    # One that a gap hides at the end may have been done before it.
    if None not in ends.values() and not _done(state, moments[-1], state.sizes, ends):
        return
    columns = {name: _fill_gaps(rows[name], len(moments)) for name in streams}
    for at, t in enumerate(moments):
        acked = {name: column[at] for name, column in columns.items()}
        if _done(state, t, state.sizes, acked):
            every = {name: _fill_gaps(row, len(moments))[at] for name, row in rows.items()}
            _look(state, t, state.sizes, every)
            return


def _fill_gaps(row: Row, sweeps: int) -> list[int | None]:
    """Return the counts in a block's row, each repeated until the next known one."""
    return list(accumulate(blocks.counts(row, sweeps), _newer))


def _newer(before: int | None, now: int | None) -> int | None:
    return before if now is None else now


def _flow_ended(state: Racing, event: FlowEnded) -> None:
    # Its end may report more than the last sweep saw.
    if state.finish is None and event.flow in state.sizes:
        _look(state, event.t, [event.flow], {}, {event.flow: event.bytes})


def runs(state: Racing) -> bool:
    """Return whether a race is undecided: there are flows of a fixed size, and none is done."""
    return bool(state.sizes) and state.finish is None


def _look(
    state: Racing,
    t: float,
    names: Iterable[str],
    acked: Mapping[str, int | None],
    ended: Mapping[str, int] = _NOTHING,
) -> None:
    """Record the finish if one of ``names`` is done at ``t``.

    ``acked`` has each stream's acknowledged bytes in a sweep, ``ended`` the payload of a flow that
    ends.
    """
    if done := _done(state, t, names, acked, ended):
        # Two flows may end within a sweep; the one further beyond its size was first.
        first = max(done, key=lambda name: done[name] / state.sizes[name])
        every = ((name, _payload(state, t, name, acked, ended)) for name in state.streams)
        state.finish = Finish(t, first, {name: size for name, size in every if size is not None})


def _done(
    state: Racing,
    t: float,
    names: Iterable[str],
    acked: Mapping[str, int | None],
    ended: Mapping[str, int] = _NOTHING,
) -> dict[str, int]:
    """Return the payload of the flows that have all their bytes."""
    found = ((name, _payload(state, t, name, acked, ended)) for name in names)
    return {name: size for name, size in found if size is not None and size >= state.sizes[name]}


def _payload(
    state: Racing, t: float, name: str, acked: Mapping[str, int | None], ended: Mapping[str, int]
) -> int | None:
    """Return the payload of a flow, its streams together; None if it had not started by ``t``."""
    first = state.flows.get(name)
    if first is None or first.kind != "flow" or first.started > t:
        return None
    total = 0
    for stream in state.streams[name].values():
        count = acked.get(stream.name)
        # A sweep may miss a stream. tcp_info counts the SYN too.
        total += stream.acked if count is None else max(count - 1, 0)
    return max(total, first.bytes, ended.get(name, 0))


HANDLERS: Handlers = {Applied: _applied, Sweep: _sweep, Sweeps: _sweeps, FlowEnded: _flow_ended}
"""Handlers to call before those of samples and flows, so that earlier counts are still known."""
