"""The index of a run directory: a row for each run, its metrics as columns, as Parquet."""

from __future__ import annotations

import io
from typing import Any

from ccplay.analysis.metrics import identity_of, metrics_of
from ccplay.analysis.results import CaseResult, Result


def indexed(result: Result) -> bytes | None:
    """Return the index as a Parquet file; None if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - results must be kept without it
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    rows = [_row(run) for run in result.cases]
    columns: dict[str, list[Any]] = {name: [] for row in rows for name in row}
    for row in rows:
        for name, values in columns.items():
            values.append(row.get(name))
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


def _row(run: CaseResult) -> dict[str, Any]:
    """Return the row of a run: its identity, whether to trust it, and every metric."""
    return {
        **identity_of(run),
        "recording": run.recording,
        **{f"parameter.{name}": str(value) for name, value in run.parameters.items()},
        **metrics_of(run),
    }
