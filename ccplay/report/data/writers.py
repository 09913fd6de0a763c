"""Writers of tables into files: CSV, Parquet, JSON and Markdown.

A column is its name, which has the unit, and the kind of its cells; how people read a column in a
terminal or on a page is described by ``ccplay.model.columns``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, TextIO, TypeAlias

import msgspec

from ccplay.errors import UsageError
from ccplay.model.variables import Cells

Batch: TypeAlias = dict[str, Sequence[Any]]
"""Rows of a table, column by column."""
Cell: TypeAlias = str | int | float | bool | None
_OBEYED = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets treat as formulas."""
MOST_IN_MARKDOWN = 2000
"""Largest number of rows of a table that is also written as Markdown, which people read."""


class CsvWriter:
    """Writes CSV (RFC 4180); unknown values are empty cells."""

    def __init__(self, file: TextIO, columns: Mapping[str, Cells]) -> None:
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

    def __init__(self, file: BinaryIO, columns: Mapping[str, Cells]) -> None:
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


class ReportTable(msgspec.Struct, frozen=True):
    """A table of cells."""

    name: str
    columns: list[str]
    rows: list[list[Cell]]

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Cell]]) -> ReportTable:
        """Return a table with the columns of all rows, in order of appearance."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        return cls(name, columns, [[row.get(key) for key in columns] for row in rows])

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the extension and the text of each of the table's files."""
        if len(self.rows) <= MOST_IN_MARKDOWN:
            yield "md", self.markdown()
        yield "csv", self.csv()
        yield "json", self.json()

    def csv(self) -> str:
        """Return the table as CSV (RFC 4180), with numbers in full; unknown values are empty."""
        text = io.StringIO(newline="")
        columns = [[row[at] for row in self.rows] for at in range(len(self.columns))]
        writer = CsvWriter(text, dict.fromkeys(self.columns, "text"))
        writer.put(dict(zip(self.columns, columns, strict=True)))
        return text.getvalue()

    def json(self) -> str:
        """Return the table as JSON: a list of objects, one per row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n"

    def markdown(self) -> str:
        """Return the table as Markdown, with fractions to six significant digits."""
        head = [_markdown(each) for each in self.columns]
        rule = [
            "---:" if all(_is_number(row[i]) for row in self.rows) else "---"
            for i in range(len(head))
        ]
        lines = [head, rule, *([_markdown(cell) for cell in row] for row in self.rows)]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def harmless(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet evaluates, because a name may look like a formula."""
    if isinstance(cell, str) and cell.startswith(_OBEYED):
        return f"'{cell}"
    return cell


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def _markdown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    text = str(cell).lower() if isinstance(cell, bool) else str(cell)
    if text.isalnum():
        return text
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
