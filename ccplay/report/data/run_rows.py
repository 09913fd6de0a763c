"""The export's table of runs: a row for each run, with all metrics that it measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ccplay.analysis.metrics import identity_of, metrics_of
from ccplay.analysis.results import CaseResult
from ccplay.model.variables import Cells
from ccplay.report.data.material import Material
from ccplay.report.data.sample_tables import Batch, Schema, axis_column, cell, first_columns

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
    own = {name: kind for name, kind in metrics.items() if name not in first}
    return Schema(NAME, first | own)


def batches(material: Material, columns: Schema) -> Iterator[Batch]:
    """Yield the rows, a few hundred runs at a time; a metric that a run lacks is None."""
    for start in range(0, len(material.runs), _AT_ONCE):
        rows = [
            {"run": run.slug, **_row(run.result)} for run in material.runs[start : start + _AT_ONCE]
        ]
        yield {
            name: [_cell(row.get(name), kind) for row in rows]
            for name, kind in columns.columns.items()
        }


def _cell(value: Any, kind: Cells) -> object:
    return float(value) if kind == "real" and value is not None else cell(value, kind)


def _row(run: CaseResult) -> dict[str, Any]:
    return {
        **metrics_of(run),
        **{axis_column(name): value for name, value in run.parameters.items()},
        **identity_of(run),
    }
