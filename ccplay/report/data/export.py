"""Tidy samples into files: CSV, or Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, TextIO

from ccplay.errors import RecordingError, UsageError
from ccplay.report.data.material import Material
from ccplay.report.data.samples import TABLES, Batch, Kind, Schema, batches, schemas
from ccplay.report.data.tables import harmless

FORMATS = ("csv", "parquet")


class _Sink(Protocol):
    def put(self, batch: Batch) -> None:
        """Take some rows."""

    def close(self) -> None:
        """Finish the file."""


def export(material: Material, to: Path, kind: str, tables: Sequence[str]) -> dict[Path, int]:
    """Write each table into a file of the directory ``to``; return the files with their rows.

    Tables without any row are left out. Raises ``UsageError`` where one of the files exists or
    pyarrow is missing, ``RecordingError`` for what can't be read or written.
    """
    if kind == "parquet":
        _pyarrow()
    for name in tables:
        _refuse_existing(to / f"{name}.{kind}")
    try:
        to.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".export-", dir=to) as made:
            rows = _write(material, Path(made), kind, tables)
            written = {}
            for name, count in rows.items():
                path = to / f"{name}.{kind}"
                (Path(made) / path.name).rename(path)
                written[path] = count
    except OSError as error:
        raise RecordingError(f"can't write to {to}: {error.strerror}") from None
    return written


def export_one(material: Material, to: Path, kind: str, table: str) -> int:
    """Write one table into the file ``to`` and return its rows; raises as ``export``."""
    _refuse_existing(to)
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=to.parent) as made:
            rows = _write(material, Path(made), kind, [table])
            if not rows:
                raise UsageError(f"there are no rows of {table} in these recordings")
            (Path(made) / f"{table}.{kind}").rename(to)
    except OSError as error:
        raise RecordingError(f"can't write {to}: {error.strerror}") from None
    return rows[table]


def print_table(material: Material, table: str) -> None:
    """Write one table to stdout, as CSV."""
    sink = _Csv(sys.stdout, schemas(material)[table])
    for _, batch in batches(material, [table]):
        sink.put(batch)


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already: name another place, or delete it")


def _write(material: Material, folder: Path, kind: str, tables: Sequence[str]) -> dict[str, int]:
    every = schemas(material)
    rows: dict[str, int] = {}
    with ExitStack() as opened:
        sinks: dict[str, _Sink] = {}
        for name, batch in batches(material, tables):
            if name not in sinks:
                path = folder / f"{name}.{kind}"
                if kind == "parquet":
                    sinks[name] = _parquet(path, every[name])
                else:
                    file = opened.enter_context(path.open("w", encoding="utf-8", newline=""))
                    sinks[name] = _Csv(file, every[name])
                opened.callback(sinks[name].close)
            sinks[name].put(batch)
            rows[name] = rows.get(name, 0) + len(batch["t_s"])
    return {name: rows[name] for name in TABLES if name in rows}


class _Csv:
    """CSV after RFC 4180; what is not known is an empty cell."""

    def __init__(self, file: TextIO, schema: Schema) -> None:
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
        """Do nothing: the file is closed by who opened it."""


def _parquet(path: Path, schema: Schema) -> _Sink:
    arrow, parquet = _pyarrow()
    types: dict[Kind, Any] = {
        "text": arrow.dictionary(arrow.int32(), arrow.string()),
        "whole": arrow.int64(),
        "real": arrow.float64(),
        "flag": arrow.bool_(),
    }
    columns = arrow.schema([(name, types[kind]) for name, kind in schema.columns.items()])
    return _Parquet(arrow, parquet.ParquetWriter(path, columns, compression="zstd"), columns)


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet. Raises ``UsageError`` where it is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - CSV must work without it
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow: pip install 'ccplay[report]'") from None
    return pyarrow, parquet


class _Parquet:
    """Parquet in groups of about a hundred thousand rows."""

    _GROUP = 100_000

    def __init__(self, arrow: Any, writer: Any, columns: Any) -> None:
        self._arrow = arrow
        self._writer = writer
        self._columns = columns
        self._waiting: dict[str, list[Any]] = {name: [] for name in columns.names}

    def put(self, batch: Batch) -> None:
        """Take some rows; they are written when they are many."""
        for name, values in batch.items():
            self._waiting[name] += values
        if len(self._waiting["t_s"]) >= self._GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting["t_s"]:
            self._writer.write_table(self._arrow.table(self._waiting, schema=self._columns))
        self._waiting = {name: [] for name in self._columns.names}
