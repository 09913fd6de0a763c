"""The samples of recordings as tidy rows, one per sample, with units in the names of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from ccplay.model.base import Event, Row
from ccplay.model.events import Health, InterfaceCounters, Ready, SojournTimes
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.model.traffic import TRAFFIC, TrafficKind
from ccplay.model.values import Monitored
from ccplay.model.variables import Cells, variable
from ccplay.model.wording import CA_STATES
from ccplay.report.data.intervals import INTERVAL_S, moved
from ccplay.report.data.material import Material, Run
from ccplay.report.data.sample_tables import (
    COLUMNS,
    HEALTH,
    QDISC,
    TABLES,
    TCP,
    Batch,
    axis_column,
    cell,
    schemas,
)
from ccplay.session.recorded import read_recording
from ccplay.state.lab_state import LabState
from ccplay.state.traffic import Seen
from ccplay.stream import sweep_codec
from ccplay.stream.sources import recorded_events

_EXPORTED: dict[type, tuple[str, Mapping[str, tuple[str, Cells]]]] = {
    kind.exported.event: (kind.plural, kind.exported.columns)
    for kind in TRAFFIC
    if kind.exported is not None
}

_TRAFFIC: dict[type, TrafficKind] = {
    event: kind for kind in TRAFFIC for event in (*kind.progress, kind.ended)
}


def batches(
    material: Material, tables: Sequence[str] = TABLES, interval_s: float = INTERVAL_S
) -> Iterator[tuple[str, Batch]]:
    """Yield rows of tables as they are read, run by run, each table in chronological order.

    ``interval_s`` is the length in seconds of the intervals in the table ``intervals``. ``t_s``
    counts from the moment when the network was ready, as in figures; earlier samples are omitted.
    Raises ``RecordingError`` for a recording that can't be read.
    """
    every = schemas(material)
    for run in material.runs:
        if run.recording is None:
            continue
        for name, batch in _read(run, tables, interval_s):
            schema = every[name]
            rows = len(batch["t_s"])
            fixed = {
                "run": run.slug,
                "case": run.result.name,
                "repeat": run.result.repeat,
                **{axis_column(key): value for key, value in run.result.parameters.items()},
            }
            whole: Batch = {}
            for column, kind in schema.columns.items():
                if column in batch:
                    whole[column] = batch[column]
                else:
                    whole[column] = [cell(fixed.get(column), kind)] * rows
            yield name, whole


def _read(run: Run, tables: Sequence[str], interval_s: float) -> Iterator[tuple[str, Batch]]:
    # All events except samples go through the state, which writes the texts of the event log.
    state = LabState()
    before, start = 0, None
    if run.recording is None:
        return
    for event in recorded_events(run.recording):
        if isinstance(event, Ready):
            start = event.t
        if isinstance(event, Sweeps | Sweep):
            if start is not None:
                yield from (each for each in _sweeps(event, start) if each[0] in tables)
            continue
        state.apply(event)
        if start is None:
            before = len(state.log)
            continue
        rows = _rows(event, start, state)
        yield from (item for item in rows.items() if item[0] in tables)
    if start is not None and "intervals" in tables:
        found = _intervals(run.recording, interval_s)
        if found["t_s"]:
            yield "intervals", found
    # Entries follow at the end, because marks may move until then.
    if start is not None and "events" in tables:
        entries = sorted(state.log[before:], key=lambda entry: entry.t)
        yield (
            "events",
            {
                "t_s": [round(each.t - start, 6) for each in entries],
                "kind": [each.kind for each in entries],
                "text": [each.text for each in entries],
            },
        )


def _intervals(recording: Path, interval_s: float) -> Batch:
    """Return a row per interval and flow, download or UDP; ``t_s`` is the interval's beginning."""
    state = read_recording(recording)
    rows = [
        (place * interval_s, each.kind, each.name, interval_s, round(size), size * 8 / interval_s)
        for each in moved(state, state.ready_at or 0.0, state.now, interval_s)
        for place, size in enumerate(each.bytes, each.first)
    ]
    rows.sort(key=itemgetter(0))
    names = ("t_s", *COLUMNS["intervals"])
    return {column: [_short(row[at]) for row in rows] for at, column in enumerate(names)}


def _short(cell: Any) -> Any:
    return round(cell, 6) if isinstance(cell, float) else cell


def _rows(event: object, start: float, state: LabState) -> dict[str, Batch]:
    """Return the rows of an event by table; empty if it has none.

    ``state`` is the state after the event.
    """
    match event:
        case TraceSamples():
            rows = {"trace": _traced(event, start)}
        case CaStateChanged():
            rows = {"ca-states": _row("ca-states", event.flow, _state(event.ca_state))}
        case Health():
            rows = {"health": _row("health", *(getattr(event, field) for field in HEALTH))}
        case InterfaceCounters():
            columns = [
                getattr(event, each.removesuffix("_packets")) for each in COLUMNS["interfaces"]
            ]
            # Columns of a faulty recording may differ in length.
            whole = zip(*zip(*columns, strict=False), strict=True)
            rows = {"interfaces": dict(zip(COLUMNS["interfaces"], map(list, whole), strict=False))}
        case SojournTimes():
            rows = {"sojourn-times": _sojourns(event)}
        case _:
            rows = _of_monitor(event, state)
    if type(event) in _EXPORTED:
        table, fields = _EXPORTED[type(event)]
        rows[table] = _of_traffic(event, fields)
    if not rows or not isinstance(event, Event):
        return {}
    rows = {name: row for name, row in rows.items() if row}
    t = round(event.t - start, 6)
    return {
        name: {"t_s": [t] * len(next(iter(rows[name].values()))), **rows[name]} for name in rows
    }


def _of_traffic(event: object, columns: Mapping[str, tuple[str, Cells]]) -> Batch:
    """Return the rows of an event about traffic: one, or one for each item of its lists."""
    cells = {column: getattr(event, field) for field, (column, _) in columns.items()}
    lists = [cell for cell in cells.values() if isinstance(cell, list)]
    rows = min(map(len, lists)) if lists else 1
    return {
        column: cell[:rows] if isinstance(cell, list) else [cell] * rows
        for column, cell in cells.items()
    }


def _sojourns(event: SojournTimes) -> Batch:
    """Return a row for each class of sojourn times."""
    pairs = [*zip(event.upto_us, event.packets, strict=False)]
    return {
        "link": [event.link] * len(pairs),
        "qdisc": [event.kind] * len(pairs),
        "upto_us": [upto_us for upto_us, _ in pairs],
        "packets": [packets for _, packets in pairs],
    }


def _row(table: str, *cells: Any) -> Batch:
    return {column: [cell] for column, cell in zip(COLUMNS[table], cells, strict=True)}


def _traced(event: TraceSamples, start: float) -> Batch:
    """Return a row for each traced segment, with its own moment."""
    times = [round(t - start, 6) for t in sweep_codec.moments(event)]
    batch: Batch = {"t_s": times, "flow": [event.flow] * len(times)}
    for field, column in zip(sweep_codec.TRACE_FIELDS, list(COLUMNS["trace"])[1:], strict=True):
        batch[column] = sweep_codec.counts(getattr(event, field), len(times))
    return batch


def _of_monitor(event: object, state: LabState) -> dict[str, Batch]:
    """Return a monitor's values in its newest sample, or its totals if the traffic has ended."""
    kind = _TRAFFIC.get(type(event))
    seen: Monitored | None = getattr(event, "monitored", None)
    if kind is None or seen is None:
        return {}
    name = kind.name_of(event) or ""
    if type(event) is kind.ended:
        delays = (seen.delay_mean_us, seen.delay_min_us, seen.delay_max_us)
        cells = (name, seen.sent, seen.received, seen.received_bytes, *delays)
        return {"monitor": _row("monitor", *cells)}
    found = state.find_of(kind.name, name)
    return {"variables": _seen(found)} if isinstance(found, Seen) else {}


def _seen(traffic: Seen) -> Batch:
    """Return a row for each variable in a monitor's newest sample."""
    known = {name: each.last for name, each in traffic.seen.items() if each.last is not None}
    rows = [(traffic.name, None, name, value) for name, value in known.items()]
    return dict(zip(COLUMNS["variables"], map(list, zip(*rows, strict=True)), strict=False))


def _sweeps(event: Sweeps | Sweep, start: float) -> Iterator[tuple[str, Batch]]:
    block = event if isinstance(event, Sweeps) else sweep_codec.pack([event])
    times = [round(t - start, 6) for t in sweep_codec.moments(block)]
    if block.tcp is not None:
        own = {"flow": block.tcp.flow, "cc": block.tcp.cc}
        yield "tcp", _unpacked(times, own, block.tcp.fields, TCP)
    if block.qdisc is not None:
        own = {"link": block.qdisc.link, "kind": block.qdisc.kind}
        yield "queues", _unpacked(times, own, block.qdisc.fields, QDISC)
    if block.tcp is not None and block.own:
        members = list(zip(block.tcp.flow, block.tcp.cc, strict=True))
        yield "variables", _variables("variables", times, members, block.own)
    if block.qdisc is not None and block.queue_own:
        members = list(zip(block.qdisc.link, block.qdisc.kind, strict=True))
        yield "queue-variables", _variables("queue-variables", times, members, block.queue_own)


def _variables(
    table: str,
    times: Sequence[float],
    members: Sequence[tuple[str, str]],
    own: Mapping[str, Sequence[Row]],
) -> Batch:
    """Return a row for each known variable of a flow or queue in each sweep."""
    found = [
        (t, *member, what.name, what.real(value))
        for name, rows in own.items()
        for what in (variable(name),)
        for member, row in zip(members, rows, strict=True)
        for t, value in zip(times, sweep_codec.counts(row, len(times)), strict=True)
        if value is not None
    ]
    found.sort(key=itemgetter(0))
    names = ("t_s", *COLUMNS[table])
    return {column: [row[at] for row in found] for at, column in enumerate(names)}


def _unpacked(
    times: Sequence[float],
    names: Mapping[str, Sequence[str]],
    fields: Mapping[str, Sequence[Any]],
    columns: Mapping[str, tuple[str, Cells]],
) -> Batch:
    """Return the rows of a block, sweep by sweep."""
    members = len(next(iter(names.values())))
    rows = len(times)
    batch: Batch = {"t_s": list(times) * members}
    for field, (column, _) in columns.items():
        if field in names:
            batch[column] = [name for name in names[field] for _ in range(rows)]
            continue
        values: list[Any] = []
        for row in fields.get(field, [None] * members):
            values += sweep_codec.counts(row, rows)
        if field == "ca_state":
            values = [_state(value) for value in values]
        elif field == "min_rtt_us":
            values = [value or None for value in values]
        batch[column] = values
    if members > 1:
        order = [member * rows + sweep for sweep in range(rows) for member in range(members)]
        batch = {column: [values[at] for at in order] for column, values in batch.items()}
    return batch


def _state(value: int | None) -> str | None:
    if value is None:
        return None
    return CA_STATES[value] if value < len(CA_STATES) else str(value)
