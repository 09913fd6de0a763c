"""The units of a lesson's measures, and the factors to them from the units of metrics."""

from __future__ import annotations

from ccplay.model.variables import VARIABLES, Variable
from ccplay.scenario.lesson.values import Measure

FACTORS: dict[str, dict[str, float]] = {
    "": {"": 1.0, "segments": 1.0, "packets": 1.0},
    "ms": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "s": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "kbit/s": {"bps": 1e-3},
    "Mbit/s": {"bps": 1e-6},
    "%": {"": 100.0, "share": 100.0},
    "times": {"": 1.0},
    "segments": {"": 1.0, "segments": 1.0},
    "packets": {"": 1.0, "packets": 1.0},
    "kB": {"bytes": 1e-3, "": 1e-3},
    "MB": {"bytes": 1e-6, "": 1e-6},
}
"""Factors from the units that a metric may have, by the unit of the measure."""

_SUBJECTS = {"flows": "flow", "downloads": "flow", "queues": "queue", "pings": "ping"}
"""Subjects of variables by the key of a result's members."""

GOODPUT = "goodput_bps"
UTILISATION = "utilisation"
DELAY = "delay_ms"
"""Name of the variable for a queue's delay in ms, which is computed rather than sampled."""

_DERIVED = {
    ("flow", GOODPUT): "bps",
    ("queue", UTILISATION): "",
    ("queue", DELAY): "ms",
}


def subject_of(group: str) -> str | None:
    """Return the subject of the variables in a result's group; None if it has no samples."""
    return _SUBJECTS.get(group)


def variables_of(subject: str) -> list[str]:
    """Return the names of the variables whose samples a measure may use."""
    known: dict[str, Variable] = VARIABLES[subject]  # type: ignore[index]
    names = [name for name, each in known.items() if each.kept]
    return [*names, *(name for kind, name in _DERIVED if kind == subject)]


def base_unit(measure: Measure) -> str:
    """Return the unit of a measure's metric in the result or the state."""
    if measure.relative_to:
        return ""
    group, _, rest = measure.metric.partition(".")
    name = rest.rpartition(".")[2] or group
    if measure.take:
        subject = _SUBJECTS.get(group, "")
        if (subject, name) in _DERIVED:
            return _DERIVED[subject, name]
        found = VARIABLES[subject].get(name) if subject else None  # type: ignore[index]
        return found.unit if found is not None else _suffix(name)
    return _suffix(name)


def _suffix(name: str) -> str:
    if name == "seconds":
        return "s"
    if name == "bytes":
        return "bytes"
    return next((unit for unit in ("us", "ms", "bps", "s") if name.endswith(f"_{unit}")), "")


def factor(measure: Measure) -> float | None:
    """Return the factor from a measure's metric to its unit; None if the units don't match."""
    return FACTORS[measure.unit].get(base_unit(measure))


def format_value(measure: Measure, value: float | None) -> str:
    """Return a measured value in the unit of its measure: ``486 ms``."""
    return "not measured" if value is None else in_unit(value, measure.unit)


def in_unit(value: float, unit: str) -> str:
    """Return a value with its unit, with as many digits as tell it from others: ``486 ms``."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    gap = "" if not unit else " "
    return f"{value:,.{digits}f}{gap}{unit}"
