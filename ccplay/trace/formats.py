"""Files of traces, read into a ``Content`` and written from one.

mahimahi's format: a line is the time of an opportunity in whole milliseconds; no line is empty,
times do not decrease, and the trace repeats from its last time (src/frontend/link_queue.cc). Beside
it may be a file of delays with one one-way delay in milliseconds a line, every 10 ms.

Our own format is CSV, or Parquet with the same columns: ``time_s`` and any of ``rate_bps``,
``delay_us`` and ``loss`` (0 to 1). A row holds until the next; the last one holds as long as the
one before it. Lines that begin with ``#`` are remarks.

A file is read in pieces into arrays of numbers, never more of it than ``LARGEST_FILE``. What is
wrong is refused with the file's name and line; its text is not repeated, as it may be any file.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ccplay.files.reading import open_regular
from ccplay.trace.content import LONGEST_US, MOST_ENTRIES, MOST_RATE, Content, Steps, TraceError

LARGEST_FILE = 256 << 20
"""Largest file in bytes."""

_PIECE = 1 << 20
_LONGEST_LINE = 200
_MOST_ROWS = 8_000_000
"""Most rows of our own format: two days by steps of 20 ms, as numbers of 100 MB."""

DELAY_EVERY_US = 10_000
"""Microseconds between two lines of a file of delays."""

_LONGEST_DELAY_US = 10_000_000

COLUMNS = {"rate_bps": MOST_RATE, "delay_us": _LONGEST_DELAY_US, "loss": 1.0}
"""Columns of our own format beside ``time_s``, each with its greatest value."""

_TIMES = re.compile(rb"(?:[0-9]{1,9}\n)*")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?|\.[0-9]{1,12}")


def read(path: Path) -> Content:
    """Return the content of a file, whose format its name and first line tell.

    Raises ``TraceError`` with the line of the first mistake.
    """
    if path.suffix == ".parquet":
        return read_parquet(path)
    with opened(path) as file:
        begins = file.read(_LONGEST_LINE)
    if path.suffix == ".csv" or begins.startswith((b"time_s", b"#")):
        return read_csv(path)
    return read_mahimahi(path)


def opened(path: Path) -> BinaryIO:
    """Return a file open for reading. Raises ``TraceError`` if it can't be read."""
    try:
        return open_regular(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TraceError(f"{path.name}: can't be read: {reason}") from None


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines of a file in pieces, each with the number of its first line."""
    line, taken, rest = 1, 0, b""
    with opened(path) as file:
        try:
            while more := file.read(_PIECE):
                taken += len(more)
                if taken > LARGEST_FILE:
                    raise _mistake(path, line, f"the file is larger than {LARGEST_FILE:,} bytes")
                whole, end, rest = (rest + more).rpartition(b"\n")
                if len(rest) > _LONGEST_LINE:
                    last = line + whole.count(b"\n") + 1
                    raise _mistake(path, last, f"longer than {_LONGEST_LINE} characters")
                if end:
                    yield line, whole + end
                    line += whole.count(b"\n") + 1
        except OSError as error:
            raise TraceError(f"{path.name}: can't be read: {error.strerror}") from None
    if rest:
        yield line, rest + b"\n"


def _mistake(path: Path, line: int, text: str) -> TraceError:
    return TraceError(f"{path.name}:{line}: {text}")


# --- mahimahi's format ----------------------------------------------------------------------------


def read_mahimahi(path: Path) -> Content:
    """Return the opportunities of a file. Raises ``TraceError``."""
    times, last = array("I"), 0
    for line, piece in _pieces(path):
        if _TIMES.fullmatch(piece) is None:
            raise _wrong_time(path, line, piece)
        some = array("I", map(int, piece.split()))
        if len(times) + len(some) > MOST_ENTRIES:
            raise _mistake(path, line, f"more than {MOST_ENTRIES:,} opportunities")
        for offset, each in enumerate(some):
            if each < last:
                raise _mistake(path, line + offset, f"{each} comes after {last}: times decrease")
            last = each
        times.extend(some)
    if not times:
        raise _mistake(path, 1, "no opportunity: a line is a time in ms")
    if not last:
        raise _mistake(path, len(times), "all times are 0, so the trace has no length")
    if last > LONGEST_US // 1000:
        raise _mistake(path, len(times), "longer than two days")
    return Content(opportunities=times, period_ms=last)


def _wrong_time(path: Path, line: int, piece: bytes) -> TraceError:
    for offset, each in enumerate(piece.split(b"\n")[:-1]):
        if not each:
            return _mistake(path, line + offset, "an empty line")
        if re.fullmatch(rb"[0-9]{1,9}", each) is None:
            return _mistake(path, line + offset, "not a whole number of milliseconds")
    return _mistake(path, line, "not a whole number of milliseconds")


def write_mahimahi(content: Content) -> Iterator[str]:
    """Yield the lines of a file with the opportunities of a content."""
    return (f"{each}\n" for each in content.opportunities)


def read_delays(path: Path) -> Steps:
    """Return the delays of a file with one in ms a line, every 10 ms. Raises ``TraceError``."""
    delays = array("d")
    for line, piece in _pieces(path):
        for offset, each in enumerate(piece.decode("ascii", "replace").split("\n")[:-1]):
            delay_us = _number(each) * 1e3
            if not 0 <= delay_us <= _LONGEST_DELAY_US:
                text = "an empty line" if not each else "not a delay in ms from 0 to 10000"
                raise _mistake(path, line + offset, text)
            delays.append(delay_us)
        if len(delays) * DELAY_EVERY_US > LONGEST_US:
            raise _mistake(path, line, "longer than two days")
    if not delays:
        raise _mistake(path, 1, "no delay: a line is a one-way delay in ms")
    times = array("Q", range(0, len(delays) * DELAY_EVERY_US, DELAY_EVERY_US))
    return Steps(times, delays, len(delays) * DELAY_EVERY_US)


def _number(text: str) -> float:
    """Return a plain number that is not negative; NaN for anything else."""
    text = text.strip(" \r")
    return float(text) if _NUMBER.fullmatch(text) else math.nan


# --- our own format -------------------------------------------------------------------------------


class _Rows:
    """The rows of our own format as they are read: an array for each column."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.times = array("Q")
        self.values = {name: array("d") for name in columns if name != "time_s"}

    def add(self, cells: Sequence[float]) -> str:
        """Add a row; return what is wrong with it, or an empty text."""
        for name, value in zip(self.columns, cells, strict=True):
            if name == "time_s":
                time_us = value * 1e6
                if not 0 <= time_us < LONGEST_US:
                    return "time_s is not a number of seconds up to two days"
                if self.times and round(time_us) <= self.times[-1]:
                    return "time_s does not increase"
                self.times.append(round(time_us))
            elif 0 <= value <= COLUMNS[name]:
                self.values[name].append(value)
            else:
                return f"{name} is not a number from 0 to {COLUMNS[name]:,g}"
        return "" if len(self.times) <= _MOST_ROWS else f"more than {_MOST_ROWS:,} rows"

    def content(self) -> Content:
        """Return what the rows say; the first holds from the beginning."""
        times = self.times
        last = times[-1] - times[-2] if len(times) > 1 else 1_000_000
        period_us = times[-1] + last
        times[0] = 0

        def of(name: str) -> Steps:
            if name not in self.values:
                return Steps(array("Q"), array("d"), 0)
            return Steps(times, self.values[name], period_us)

        return Content(rates=of("rate_bps"), delays=of("delay_us"), losses=of("loss"))


def _columns(names: Sequence[str], fail: Callable[[str], TraceError]) -> _Rows:
    known = ("time_s", *COLUMNS)
    if "time_s" not in names or len(names) < 2 or len({*names}) < len(names):
        raise fail(f"must name its columns: time_s and some of {', '.join(COLUMNS)}")
    if any(each not in known for each in names):
        raise fail(f"names an unknown column; there are {', '.join(known)}")
    return _Rows(names)


def read_csv(path: Path) -> Content:
    """Return the content of a CSV file of our own format. Raises ``TraceError``."""
    rows: _Rows | None = None
    number = 1
    for line, piece in _pieces(path):
        texts = piece.decode("utf-8-sig" if line == 1 else "utf-8", "replace").split("\n")[:-1]
        for number, text in enumerate(texts, line):
            if text.startswith("#"):
                continue
            cells = text.split(",")
            if rows is None:
                names = [each.strip(' \r"') for each in cells]
                rows = _columns(names, partial(_mistake, path, number))
                continue
            if len(cells) != len(rows.columns):
                wrong = f"{len(cells)} values, not {len(rows.columns)}" if text else "an empty line"
                raise _mistake(path, number, wrong)
            if why := rows.add([_number(each) for each in cells]):
                raise _mistake(path, number, why)
    return _finished(path, number, rows)


def read_parquet(path: Path) -> Content:
    """Return the content of a Parquet file of our own format. Raises ``TraceError``."""
    try:
        from pyarrow import parquet  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise TraceError(
            f"{path.name}: Parquet needs pyarrow: pip install 'ccplay[report]', or use CSV"
        ) from None
    rows: _Rows | None = None
    number = 0
    with opened(path) as file:
        try:
            table = parquet.ParquetFile(file)
            names = table.schema_arrow.names
            rows = _columns(names, lambda why: TraceError(f"{path.name}: {why}"))
            for batch in table.iter_batches(batch_size=1 << 16):
                columns = [batch.column(name).to_pylist() for name in names]
                for cells in zip(*columns, strict=True):
                    number += 1
                    numbers = [
                        float(each) if isinstance(each, int | float) else math.nan for each in cells
                    ]
                    if why := rows.add(numbers):
                        raise TraceError(f"{path.name}: row {number}: {why}")
        except (OSError, ValueError, NotImplementedError) as error:
            first = str(error).partition("\n")[0][:_LONGEST_LINE]
            raise TraceError(f"{path.name}: not a Parquet file: {first}") from None
    return _finished(path, number, rows)


def _finished(path: Path, line: int, rows: _Rows | None) -> Content:
    if rows is None or not rows.times:
        raise _mistake(path, line, "no rows")
    if "rate_bps" in rows.values and not any(rows.values["rate_bps"]):
        raise _mistake(path, line, "rate_bps is 0 everywhere: nothing could ever leave")
    return rows.content()


def write_csv(content: Content, remarks: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a CSV file of our own format, with a row wherever a value changes."""
    yield from (f"# {each}\n" for each in remarks)
    columns = {
        name: part
        for name, part in zip(COLUMNS, (content.rates, content.delays, content.losses), strict=True)
        if len(part)
    }
    yield ",".join(["time_s", *columns]) + "\n"
    moments = sorted({moment for part in columns.values() for moment in part.times_us})
    places = dict.fromkeys(columns, 0)
    for moment in moments:
        cells = [f"{moment / 1e6:.6f}".rstrip("0").rstrip(".")]
        for name, part in columns.items():
            place = places[name]
            while place + 1 < len(part) and part.times_us[place + 1] <= moment:
                place += 1
            places[name] = place
            cells.append(f"{part.values[place]:.9g}")
        yield ",".join(cells) + "\n"


def with_delays(content: Content | None, delays: Steps) -> Content:
    """Return a content with other delays; None stands for one with delays alone."""
    found = content or Content()
    found.delays = delays
    return found
