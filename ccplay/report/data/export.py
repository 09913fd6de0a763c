"""Exports tidy samples to files: CSV, or Parquet if pyarrow is installed."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from ccplay.errors import RecordingError, UsageError
from ccplay.files import writing
from ccplay.model.variables import Cells
from ccplay.report.data import run_rows
from ccplay.report.data.intervals import INTERVAL_S
from ccplay.report.data.material import Material
from ccplay.report.data.sample_tables import Batch, Schema, schemas
from ccplay.report.data.samples import batches
from ccplay.report.data.tables import harmless

FORMATS = ("csv", "parquet")


class _Sink(Protocol):
    def put(self, batch: Batch) -> None:
        """Accept some rows."""

    def close(self) -> None:
        """Write the remaining rows."""

    def abandon(self) -> None:
        """Write nothing more; does nothing after ``close``."""


def export(
    material: Material, to: Path, kind: str, tables: Sequence[str], interval_s: float = INTERVAL_S
) -> dict[Path, int]:
    """Write each table to a file in the directory ``to``; return the number of rows by file.

    ``interval_s`` is the length in seconds of the intervals in the table ``intervals``. Omits
    tables without rows. Raises ``UsageError`` if one of the files exists or pyarrow is
    missing, ``RecordingError`` for files that can't be read or written.
    """
    if kind == "parquet":
        _pyarrow()
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
    sink = _Csv(sys.stdout, columns[table])
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
        sinks: dict[str, _Sink] = {}
        for name, batch in _batches(material, list(paths), every, interval_s):
            with writing.explained(paths[name], RecordingError):
                if name not in sinks:
                    file = opened.enter_context(_whole(paths[name]))
                    sinks[name] = _opened(file, every[name], kind)
                    opened.callback(sinks[name].abandon)
                sinks[name].put(batch)
            rows[name] = rows.get(name, 0) + len(batch["case"])
        for name, sink in sinks.items():
            with writing.explained(paths[name], RecordingError):
                sink.close()
    return {name: rows[name] for name in paths if name in rows}


def _schemas(material: Material, tables: Sequence[str]) -> dict[str, Schema]:
    every = schemas(material)
    return every | {run_rows.NAME: run_rows.schema(material)} if run_rows.NAME in tables else every


def _batches(
    material: Material, tables: Sequence[str], every: Mapping[str, Schema], interval_s: float
) -> Iterator[tuple[str, Batch]]:
    """Yield the rows of the table of runs first, then those of samples, read from recordings."""
    if run_rows.NAME in tables:
        for batch in run_rows.batches(material, every[run_rows.NAME]):
            yield run_rows.NAME, batch
    if samples := [name for name in tables if name != run_rows.NAME]:
        yield from batches(material, samples, interval_s)


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    with writing.explained(path, RecordingError), writing.written(path) as file:
        yield file


def _opened(file: BinaryIO, schema: Schema, kind: str) -> _Sink:
    if kind == "parquet":
        return _parquet(file, schema)
    return _Csv(TextIOWrapper(file, encoding="utf-8", newline=""), schema)


class _Csv:
    """Writes CSV (RFC 4180); unknown values are empty cells."""

    def __init__(self, file: TextIO, schema: Schema) -> None:
        self._file = file
        self._writer = csv.writer(file, lineterminator="\r\n")
        self._texts = [name for name, kind in schema.columns.items() if kind == "text"]
        self._columns = list(schema.columns)
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


def _parquet(file: BinaryIO, schema: Schema) -> _Sink:
    arrow, parquet = _pyarrow()
    types: dict[Cells, Any] = {
        "text": arrow.dictionary(arrow.int32(), arrow.string()),
        "whole": arrow.int64(),
        "real": arrow.float64(),
        "flag": arrow.bool_(),
    }
    columns = arrow.schema([(name, types[kind]) for name, kind in schema.columns.items()])
    return _Parquet(arrow, parquet.ParquetWriter(file, columns, compression="zstd"), columns)


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module. Raises ``UsageError`` if it is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - CSV must work without it
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow: pip install 'ccplay[report]'") from None
    return pyarrow, parquet


class _Parquet:
    """Writes Parquet in row groups of about a hundred thousand rows."""

    _GROUP = 100_000

    def __init__(self, arrow: Any, writer: Any, columns: Any) -> None:
        self._arrow = arrow
        self._writer = writer
        self._columns = columns
        self._waiting: dict[str, list[Any]] = {name: [] for name in columns.names}

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
