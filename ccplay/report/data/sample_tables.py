"""The tables of an export: their columns, with units in the names, and their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from ccplay.model.traffic import TRAFFIC
from ccplay.model.variables import FLOW_VARIABLES, QUEUE_VARIABLES, Cells, columns
from ccplay.report.data.material import Material

Batch: TypeAlias = dict[str, Sequence[Any]]
"""Rows of a table, column by column."""


class Schema(msgspec.Struct, frozen=True):
    """A table: its columns in order, and their content."""

    name: str
    columns: Mapping[str, Cells]


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
HEALTH: dict[str, Cells] = {
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
COLUMNS: dict[str, dict[str, Cells]] = {
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
    "sojourn-times": {
        "link": "text",
        "qdisc": "text",
        "upto_us": "whole",
        "packets": "whole",
    },
    "events": {"kind": "text", "text": "text"},
    "variables": {"flow": "text", "cc": "text", "variable": "text", "value": "real"},
    "queue-variables": {"link": "text", "qdisc": "text", "variable": "text", "value": "real"},
    "health": HEALTH,
}
TABLES = tuple(COLUMNS)
"""Names of the tables that samples are exported to."""
_RUN: dict[str, Cells] = {"run": "text", "case": "text", "repeat": "whole"}


def schemas(material: Material) -> dict[str, Schema]:
    """Return the tables' columns: the run and its parameters, ``t_s``, then the table's own."""
    first = first_columns(material)
    return {
        name: Schema(name, {**first, "t_s": "real", **_apart(own, first)})
        for name, own in COLUMNS.items()
    }


def first_columns(material: Material) -> dict[str, Cells]:
    """Return the columns that every table begins with: the run and its parameters."""
    return _RUN | _parameters(material)


def cell(value: object, kind: Cells) -> object:
    """Return a value as a cell of a column."""
    if value is None or kind != "text":
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameters(material: Material) -> dict[str, Cells]:
    """Return the columns of the matrix's axes, each with a type that fits all its values."""
    values: dict[str, list[object]] = {}
    for run in material.runs:
        for name, value in run.result.parameters.items():
            values.setdefault(axis_column(name), []).append(value)
    return {name: _kind(found) for name, found in values.items()}


def axis_column(name: str) -> str:
    """Return the name of an axis's column; a name that another column has gets a prefix."""
    taken = {*_RUN, "t_s", *(column for own in COLUMNS.values() for column in own)}
    return f"parameter {name}" if name in taken else name


def _apart(own: dict[str, Cells], first: dict[str, Cells]) -> dict[str, Cells]:
    return {name: kind for name, kind in own.items() if name not in first}


def _kind(values: Sequence[object]) -> Cells:
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if any(isinstance(value, bool | str) for value in values):
        return "text"
    return "whole" if all(isinstance(value, int) for value in values) else "real"
