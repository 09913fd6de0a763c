"""Exports runs as tidy tables: every sample, or a row for each run."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias

from ccplay.analysis.metrics import identity_of, metrics_of
from ccplay.analysis.results import CaseResult
from ccplay.errors import RecordingError, UsageError
from ccplay.files import writing
from ccplay.model import blocks
from ccplay.model.base import Event, Row
from ccplay.model.events import Health, InterfaceCounters, Ready, SojournTimes
from ccplay.model.samples import CaStateChanged, Sweep, Sweeps, TraceSamples
from ccplay.model.values import Monitored
from ccplay.model.variables import FLOW_VARIABLES, QUEUE_VARIABLES, Cells, columns, variable
from ccplay.model.wording import CA_STATES
from ccplay.report.data.curves import INTERVAL_S, moved
from ccplay.report.data.material import Material, Run
from ccplay.report.data.report_tables import harmless
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import recorded_events
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import Traffic, TrafficKind

# --- the tables of an export: their columns, with units in the names, and their content -----------

Schema: TypeAlias = dict[str, Cells]
"""Columns of a table in order, and their content.

A column is its name, which has the unit, and the kind of its cells; how people read a column in a
terminal or on a page is described by ``ccplay.model.columns``.
"""
Batch: TypeAlias = dict[str, Sequence[Any]]
"""Rows of a table, column by column."""

TCP: dict[str, tuple[str, Cells]] = {
    "flow": ("flow", "text"),
    "cc": ("cc", "text"),
    **columns(FLOW_VARIABLES),
    "ca_state": ("ca_state", "text"),
}
"""Columns of fields of ``TcpSamples``, named as in the kernel, with units."""
QDISC: dict[str, tuple[str, Cells]] = {
    "link": ("link", "text"),
    "kind": ("qdisc", "text"),
    **columns(QUEUE_VARIABLES),
}
"""Columns of fields of ``QdiscSamples``, named as in the kernel, with units."""
HEALTH: Schema = {
    "ticks": "whole",
    "missed": "whole",
    "late_p50_us": "real",
    "late_p99_us": "real",
    "sweep_p50_us": "real",
    "lab_cpu": "real",
    "host_cpu": "real",
    "steal": "real",
    "delay_late_p50_us": "real",
    "delay_late_p99_us": "real",
    "events_dropped": "whole",
}
COLUMNS: dict[str, Schema] = {
    "tcp": dict(TCP.values()),
    "queues": dict(QDISC.values()),
    "trace": {
        "flow": "text",
        "cwnd_segments": "whole",
        "ssthresh_segments": "whole",
        "srtt_us": "whole",
        "snd_wnd_bytes": "whole",
    },
    "ca-states": {"flow": "text", "ca_state": "text"},
    **{
        kind.plural: dict(kind.exported.columns.values())
        for kind in TRAFFIC
        if kind.exported is not None
    },
    "monitor": {
        "flow": "text",
        "sent_packets": "whole",
        "received_packets": "whole",
        "received_bytes": "whole",
        "delay_mean_us": "real",
        "delay_min_us": "real",
        "delay_max_us": "real",
    },
    "intervals": {
        "kind": "text",
        "traffic": "text",
        "interval_s": "real",
        "bytes": "whole",
        "rate_bps": "real",
    },
    "interfaces": {
        "interface": "text",
        "node": "text",
        "link": "text",
        "sent_packets": "whole",
        "sent_bytes": "whole",
        "received_packets": "whole",
        "received_bytes": "whole",
        "dropped_packets": "whole",
        "lost_packets": "whole",
    },
    "sojourn-times": {"link": "text", "qdisc": "text", "upto_us": "whole", "packets": "whole"},
    "events": {"kind": "text", "text": "text"},
    "variables": {"flow": "text", "cc": "text", "variable": "text", "value": "real"},
    "queue-variables": {"link": "text", "qdisc": "text", "variable": "text", "value": "real"},
    "health": HEALTH,
}
TABLES = tuple(COLUMNS)
"""Names of the tables that samples are exported to."""
_RUN: Schema = {"run": "text", "case": "text", "repeat": "whole"}


def schemas(material: Material) -> dict[str, Schema]:
    """Return the tables' columns: the run and its parameters, ``t_s``, then the table's own."""
    first = first_columns(material)
    return {
        name: {**first, "t_s": "real", **{name: own[name] for name in own if name not in first}}
        for name, own in COLUMNS.items()
    }


def first_columns(material: Material) -> Schema:
    """Return the columns that every table begins with: the run and the axes of the matrix.

    An axis has a type that fits all its values.
    """
    values: dict[str, list[object]] = {}
    for run in material.runs:
        for name, value in run.result.parameters.items():
            values.setdefault(axis_column(name), []).append(value)
    return _RUN | {name: _kind(found) for name, found in values.items()}


def cell(value: object, kind: Cells) -> object:
    """Return a value as a cell of a column."""
    if value is None or kind != "text":
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def axis_column(name: str) -> str:
    """Return the name of an axis's column; a name that another column has gets a prefix."""
    taken = {*_RUN, "t_s", *(column for own in COLUMNS.values() for column in own)}
    return f"parameter {name}" if name in taken else name


def _kind(values: Sequence[object]) -> Cells:
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if any(isinstance(value, bool | str) for value in values):
        return "text"
    return "whole" if all(isinstance(value, int) for value in values) else "real"


# --- the samples of recordings as tidy rows, one per sample, with units in the names of columns ---

_EXPORTED: dict[type, tuple[str, Mapping[str, tuple[str, Cells]]]] = {
    kind.exported.event: (kind.plural, kind.exported.columns)
    for kind in TRAFFIC
    if kind.exported is not None
}

_TRAFFIC: dict[type, TrafficKind] = {
    event: kind for kind in TRAFFIC for event in (*kind.samples, kind.ended)
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
            rows = len(batch["t_s"])
            fixed = {
                "run": run.slug,
                "case": run.result.name,
                "repeat": run.result.repeat,
                **{axis_column(key): value for key, value in run.result.parameters.items()},
            }
            yield (
                name,
                {
                    column: batch[column]
                    if column in batch
                    else [cell(fixed.get(column), kind)] * rows
                    for column, kind in every[name].items()
                },
            )


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
    rounded = [[round(cell, 6) if isinstance(cell, float) else cell for cell in r] for r in rows]
    return _batch(("t_s", *COLUMNS["intervals"]), rounded)


def _batch(columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> Batch:
    """Return rows column by column."""
    return {column: [row[at] for row in rows] for at, column in enumerate(columns)}


def _rows(event: object, start: float, state: LabState) -> dict[str, Batch]:
    """Return the rows of an event by table; empty if it has none.

    ``state`` is the state after the event.
    """
    rows: dict[str, Batch] = {}
    match event:
        case TraceSamples():
            rows = {"trace": _traced(event, start)}
        case CaStateChanged():
            cells = (event.flow, _state(event.ca_state))
            rows = {"ca-states": _batch(COLUMNS["ca-states"], [cells])}
        case Health():
            rows = {"health": {field: [getattr(event, field)] for field in HEALTH}}
        case InterfaceCounters():
            names = COLUMNS["interfaces"]
            counters = (getattr(event, each.removesuffix("_packets")) for each in names)
            # Columns of a faulty recording may differ in length.
            if whole := list(zip(*counters, strict=False)):
                rows = {"interfaces": _batch(names, whole)}
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


def _traced(event: TraceSamples, start: float) -> Batch:
    """Return a row for each traced segment, with its own moment."""
    times = [round(t - start, 6) for t in blocks.moments(event)]
    batch: Batch = {"t_s": times, "flow": [event.flow] * len(times)}
    for field, column in zip(blocks.TRACE_FIELDS, list(COLUMNS["trace"])[1:], strict=True):
        batch[column] = blocks.counts(getattr(event, field), len(times))
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
        return {"monitor": _batch(COLUMNS["monitor"], [cells])}
    found = state.find_of(kind.name, name)
    return {} if found is None else {"variables": _newest(found, kind)}


def _newest(traffic: Traffic, kind: TrafficKind) -> Batch:
    """Return a row for each variable in a monitor's newest sample."""
    series = {each.name: traffic.series.get(each.name) for each in kind.variables}
    known = {name: each.last for name, each in series.items() if each is not None}
    rows = [(traffic.name, None, name, last) for name, last in known.items() if last is not None]
    return _batch(COLUMNS["variables"], rows) if rows else {}


def _sweeps(event: Sweeps | Sweep, start: float) -> Iterator[tuple[str, Batch]]:
    block = event if isinstance(event, Sweeps) else blocks.pack([event])
    times = [round(t - start, 6) for t in blocks.moments(block)]
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
        for t, value in zip(times, blocks.counts(row, len(times)), strict=True)
        if value is not None
    ]
    found.sort(key=itemgetter(0))
    return _batch(("t_s", *COLUMNS[table]), found)


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
            values += blocks.counts(row, rows)
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


# --- the export's table of runs: a row for each run, with all metrics that it measured ------------

NAME = "runs"
"""Name of the exported table of runs."""
_AT_ONCE = 500
_TRUST: dict[str, Cells] = {
    "attempt": "whole",
    "machine": "text",
    "trustworthy": "flag",
    "errors": "whole",
}


def schema(material: Material) -> Schema:
    """Return the columns: the run, its parameters, its trustworthiness, and all metrics."""
    metrics: dict[str, Cells] = {}
    for run in material.runs:
        for name, value in metrics_of(run.result).items():
            if isinstance(value, float):
                metrics[name] = "real"
            else:
                metrics.setdefault(name, "whole")
    # A parameter takes precedence over a metric of the same name: it identifies the run.
    first = first_columns(material) | _TRUST
    return first | {name: kind for name, kind in metrics.items() if name not in first}


def run_batches(material: Material, columns: Schema) -> Iterator[Batch]:
    """Yield the rows, a few hundred runs at a time; a metric that a run lacks is None."""
    for start in range(0, len(material.runs), _AT_ONCE):
        rows = [
            {"run": run.slug, **_run_row(run.result)}
            for run in material.runs[start : start + _AT_ONCE]
        ]
        yield {name: [_cell(row.get(name), kind) for row in rows] for name, kind in columns.items()}


def _cell(value: Any, kind: Cells) -> object:
    return float(value) if kind == "real" and value is not None else cell(value, kind)


def _run_row(run: CaseResult) -> dict[str, Any]:
    return {
        **metrics_of(run),
        **{axis_column(name): value for name, value in run.parameters.items()},
        **identity_of(run),
    }


# --- writers of rows into files: CSV, or Parquet if pyarrow is installed --------------------------


class CsvWriter:
    """Writes CSV (RFC 4180); unknown values are empty cells."""

    def __init__(self, file: TextIO, columns: Schema) -> None:
        self._file = file
        self._writer = csv.writer(file, lineterminator="\r\n")
        self._texts = {name for name, kind in columns.items() if kind == "text"}
        self._columns = list(columns)
        self._writer.writerow([harmless(name) for name in self._columns])

    def put(self, batch: Batch) -> None:
        """Write some rows."""
        columns = [
            [harmless(cell) for cell in batch[name]] if name in self._texts else batch[name]
            for name in self._columns
        ]
        self._writer.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        """Write the remaining rows; the caller closes the file."""
        self._file.flush()

    def abandon(self) -> None:
        """Do nothing: the caller discards the file."""


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module. Raises ``UsageError`` if it is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - CSV must work without it
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow: pip install 'ccplay[report]'") from None
    return pyarrow, parquet


class ParquetWriter:
    """Writes Parquet in row groups of about a hundred thousand rows."""

    _GROUP = 100_000

    def __init__(self, file: BinaryIO, columns: Schema) -> None:
        """Write to an open file. Raises ``UsageError`` if pyarrow is not installed."""
        self._arrow, parquet = import_pyarrow()
        types: dict[Cells, Any] = {
            "text": self._arrow.dictionary(self._arrow.int32(), self._arrow.string()),
            "whole": self._arrow.int64(),
            "real": self._arrow.float64(),
            "flag": self._arrow.bool_(),
        }
        self._columns = self._arrow.schema([(name, types[kind]) for name, kind in columns.items()])
        self._writer = parquet.ParquetWriter(file, self._columns, compression="zstd")
        self._waiting: dict[str, list[Any]] = {name: [] for name in columns}

    def put(self, batch: Batch) -> None:
        """Accept some rows, which are written once there are enough for a row group."""
        for name, values in batch.items():
            self._waiting[name] += values
        if len(self._waiting["case"]) >= self._GROUP:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Write nothing more."""
        # Otherwise the writer, when deleted, would write its footer to a closed file.
        self._writer.is_open = False

    def _flush(self) -> None:
        if self._waiting["case"]:
            self._writer.write_table(self._arrow.table(self._waiting, schema=self._columns))
        self._waiting = {name: [] for name in self._columns.names}


# --- exports tidy samples to files: each table is written whole -----------------------------------

FORMATS = ("csv", "parquet")


def export(
    material: Material, to: Path, kind: str, tables: Sequence[str], interval_s: float = INTERVAL_S
) -> dict[Path, int]:
    """Write each table to a file in the directory ``to``; return the number of rows by file.

    ``interval_s`` is the length in seconds of the intervals in the table ``intervals``. Omits
    tables without rows. Raises ``UsageError`` if one of the files exists or pyarrow is
    missing, ``RecordingError`` for files that can't be read or written.
    """
    if kind == "parquet":
        import_pyarrow()
    for name in tables:
        _refuse_existing(to / f"{name}.{kind}")
    with writing.explained(to, RecordingError):
        writing.make_directory(to)
    paths = {name: to / f"{name}.{kind}" for name in tables}
    rows = _write(material, paths, kind, interval_s)
    return {paths[name]: count for name, count in rows.items()}


def export_one(
    material: Material, to: Path, kind: str, table: str, interval_s: float = INTERVAL_S
) -> int:
    """Write one table to the file ``to`` and return its number of rows.

    Raises what ``export`` does, and ``UsageError`` if the table has no rows.
    """
    _refuse_existing(to)
    rows = _write(material, {table: to}, kind, interval_s)
    if not rows:
        raise UsageError(f"these runs have no rows for the table {table}")
    return rows[table]


def print_table(material: Material, table: str, interval_s: float = INTERVAL_S) -> None:
    """Write one table to stdout, as CSV."""
    columns = _schemas(material, [table])
    sink = CsvWriter(sys.stdout, columns[table])
    for _, batch in _batches(material, [table], columns, interval_s):
        sink.put(batch)


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} already exists: choose another name, or delete it")


def _write(
    material: Material, paths: Mapping[str, Path], kind: str, interval_s: float
) -> dict[str, int]:
    """Write each table completely or not at all, and return the number of rows by table."""
    every = _schemas(material, list(paths))
    rows: dict[str, int] = {}
    with ExitStack() as opened:
        sinks: dict[str, CsvWriter | ParquetWriter] = {}
        for name, batch in _batches(material, list(paths), every, interval_s):
            with writing.explained(paths[name], RecordingError):
                if name not in sinks:
                    file = opened.enter_context(_whole(paths[name]))
                    columns = every[name]
                    sinks[name] = (
                        ParquetWriter(file, columns)
                        if kind == "parquet"
                        else CsvWriter(TextIOWrapper(file, encoding="utf-8", newline=""), columns)
                    )
                    opened.callback(sinks[name].abandon)
                sinks[name].put(batch)
            rows[name] = rows.get(name, 0) + len(batch["case"])
        for name, sink in sinks.items():
            with writing.explained(paths[name], RecordingError):
                sink.close()
    return {name: rows[name] for name in paths if name in rows}


def _schemas(material: Material, tables: Sequence[str]) -> dict[str, Schema]:
    every = schemas(material)
    return every | {NAME: schema(material)} if NAME in tables else every


def _batches(
    material: Material, tables: Sequence[str], every: Mapping[str, Schema], interval_s: float
) -> Iterator[tuple[str, Batch]]:
    """Yield the rows of the table of runs first, then those of samples, read from recordings."""
    if NAME in tables:
        for batch in run_batches(material, every[NAME]):
            yield NAME, batch
    if samples := [name for name in tables if name != NAME]:
        yield from batches(material, samples, interval_s)


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    with writing.explained(path, RecordingError), writing.written(path) as file:
        yield file
