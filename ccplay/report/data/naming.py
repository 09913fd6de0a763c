"""Names of runs, cases and metrics in a report, and amounts with their units."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ccplay.analysis.results import CaseStatistics
from ccplay.analysis.statistics import Statistic
from ccplay.traffic import KINDS, TRAFFIC

# --- families of cases: the points of one matrix, which share a name and axes ---------------------

_MOST_NAMED = 3
"""Largest number of cases that a list names; the others are counted."""


def by_family(
    cases: Iterable[CaseStatistics],
) -> dict[tuple[str, tuple[str, ...]], list[CaseStatistics]]:
    """Return cases grouped by the common part of their names and by their axes."""
    families: dict[tuple[str, tuple[str, ...]], list[CaseStatistics]] = {}
    for case in cases:
        families.setdefault((family_of(case), tuple(case.parameters)), []).append(case)
    return families


def family_of(case: CaseStatistics) -> str:
    """Return the name of a case without its point in the matrix; empty if nothing is left."""
    if not case.parameters:
        return ""
    # The point is the end of the name: ``CASE, delay 50 ms, limit 10``; of several experiments
    # that are one report ``EXPERIMENT: delay 50 ms, limit 10``.
    words = case.name.split(", ")
    family = ", ".join(words[: max(len(words) - len(case.parameters), 0)])
    return family or words[0].rpartition(": ")[0]


def some_of(names: Sequence[str], cases: Sequence[CaseStatistics]) -> str:
    """Return the names of some cases as text, whole families by one name; empty for all cases."""
    if {case.name for case in cases} <= set(names):
        return ""
    shown: list[str] = []
    for (family, _), members in by_family(cases).items():
        inside = [case.name for case in members if case.name in names]
        shown += [family] if family and len(inside) == len(members) else inside
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return ", ".join(shown[:_MOST_NAMED]) + more


# --- metrics as text: the name determines the unit, and the uncertainty the number of digits ------

_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNTED = frozenset(("retransmit", "packet", "drop", "mark", "sent", "received", "lost"))
_SAMPLED = ("cwnd", "qlen", "slow_start_cwnd")
_DIGITS = 4
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")


class Unit(msgspec.Struct, frozen=True):
    """The unit in which values of a metric are written."""

    scale: float
    """Size of the unit in the base unit of results, such as bit/s."""
    name: str
    """Name of the unit; empty for counts and ratios."""
    counts: bool = False
    """Whether values are whole numbers, except means and medians."""

    def write(self, value: float) -> str:
        """Return a value with three significant digits, without its unit; whole counts in full."""
        if self.counts and value == round(value):
            return f"{value:.0f}"
        scaled = value / self.scale
        return f"{scaled:.{_decimals(scaled, 2)}f}"

    def write_range(self, values: Sequence[float]) -> str:
        """Return the least and the greatest of some values, or a single one; empty for none."""
        ends = dict.fromkeys(self.write(each(values)) for each in (min, max) if values)
        return " to ".join(ends)

    def write_statistic(self, found: Statistic) -> str:
        """Return a mean and half of its confidence interval without the unit: ``0.716 ± 0.021``.

        The half has two significant digits; without an interval only the mean is returned.
        """
        half = found.half_width
        return self.write(found.mean) if half is None else self.write_interval(found.mean, half)

    def write_interval(self, mean: float, half: float) -> str:
        """Return a mean and half of an interval without the unit, both with the same decimals."""
        mean, half = mean / self.scale, half / self.scale
        # If repeats hardly differ, more digits than the mean has would be noise.
        decimals = min(_decimals(half, 1), _decimals(mean, _DIGITS - 1)) if half else 2
        return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def unit(metric: str, values: Iterable[float] = ()) -> Unit:
    """Return the unit of a metric according to its name, scaled to the largest of its values."""
    largest = max((abs(value) for value in values), default=0.0)
    name = metric.rpartition(".")[2]
    if name.endswith("_bps"):
        return _fit(_RATES, largest)
    if name == "bytes" or ".bytes." in f".{metric}" or name.startswith("backlog"):
        return _fit(_SIZES, largest)
    if name.endswith("_ms"):
        return Unit(1.0, "ms")
    if name.endswith("_s") or name == "seconds":
        return Unit(1.0, "s")
    return Unit(1.0, "", counts=name.removesuffix("s") in _COUNTED or name.startswith(_SAMPLED))


def write(metric: str, value: float) -> str:
    """Return one value with its unit: ``4.25 Mbit/s``."""
    found = unit(metric, (value,))
    return f"{found.write(value)} {found.name}".rstrip()


def write_bounds(metric: str, text: str) -> str:
    """Return the text of an expectation with the unit of its metric.

    ``at least 946,800,000`` becomes ``at least 946.8 Mbit/s`` for a goodput.
    """
    bounds, sign, tolerance = text.partition(" ± ")
    if not tolerance.endswith("%"):
        # This tolerance has the unit of the value.
        bounds, sign, tolerance = text, "", ""
    found = unit(metric, [_read(number) for number in _NUMBER.findall(bounds)])
    scaled = _NUMBER.sub(lambda number: f"{_read(number[0]) / found.scale:,.10g}", bounds)
    return f"{f'{scaled} {found.name}'.rstrip()}{sign}{tolerance}"


def _read(number: str) -> float:
    return float(number.replace(",", ""))


def _fit(units: tuple[tuple[float, str], ...], largest: float) -> Unit:
    return next((Unit(*each) for each in units if largest >= each[0]), Unit(*units[-1]))


def _decimals(value: float, after_first: int) -> int:
    """Return the number of decimals, at most 6, for ``after_first`` digits after the first."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(max(after_first - math.floor(math.log10(abs(value))), 0), 6)


# --- the printed name of a metric, from its path in a run's result --------------------------------

_QUANTITIES = {
    "goodput_bps": "goodput",
    "goodput_mean_bps": "mean goodput",
    "bytes": "acknowledged payload",
    "duration_s": "duration",
    "fct_s": "flow completion time",
    "fct_mean_s": "mean flow completion time",
    "fct_max_s": "completion time of all flows",
    "elapsed_s": "time to the checkpoint",
    "converged_s": "time to converge",
    "slow_start_s": "time in slow start",
    "slow_start_cwnd": "cwnd after slow start",
    "retransmits": "retransmits",
    "loss": "loss",
    "packet_loss": "packet loss",
    "packets": "packets sent",
    "tx_bps": "rate sent",
    "rx_bps": "rate received",
    "jitter_ms": "jitter",
    "utilisation": "utilisation",
    "drops": "drops",
    "marks": "ECN marks",
    "ratio": "checkpoint ratio",
    "jain": "Jain's index",
    "starvation": "starved time of the worst flow",
    "starved": "starved time",
    "loss_synchronisation": "loss synchronisation",
    "rpm": "responsiveness (RPM)",
    "harm_rate": "harm to goodput",
    "harm_delay": "harm to delay",
    "harm_loss": "harm by loss",
    "self_inflicted_delay_ms": "self-inflicted delay",
    "settling_s": "settling time",
    "recovery_s": "recovery time",
    "silent_retransmits": "retransmissions in silence",
    "min_rtt_ms": "minimum RTT",
    "srtt_mean_ms": "mean srtt",
    "sent_bytes": "bytes sent",
    "received_bytes": "bytes received",
    "dropped": "packets dropped",
}
_STEMS = {
    "cwnd": "cwnd",
    "srtt": "srtt",
    "qlen": "queue length",
    "backlog": "backlog",
    "delay": "queueing delay",
}
_ORDERS = {
    "min": "least",
    "max": "greatest",
    "p50": "median",
    "p95": "95th percentile of",
    "p99": "99th percentile of",
}
_NAMING_COUNTED = {
    "cwnd": "segments",
    "slow_start_cwnd": "segments",
    "retransmits": "segments",
    "qlen": "packets",
    "drops": "packets",
    "marks": "packets",
}
_GROUPS = {
    "queues": "queue",
    "interfaces": "interface",
    "directions": "direction",
    "reactions": "flow",
    **{kind.group: kind.word for kind in TRAFFIC},
}
_OWN: dict[str, Mapping[str, str]] = {
    "queues": {"bytes": "bytes carried"},
    "directions": {},
    "reactions": {},
    "interfaces": {each: f"packets {each}" for each in ("sent", "received", "lost")},
    **{kind.group: KINDS[kind.name].metrics for kind in TRAFFIC},
}
"""Words for metrics whose name has a special meaning in one group of results, by group."""


class Words(msgspec.Struct, frozen=True):
    """The printed name of a metric."""

    quantity: str
    """Name of the quantity: ``goodput``, ``median RTT``."""
    subject: str
    """Name of the subject: ``flow 1``, ``ping p1``, ``queue r → h2``; empty for the whole run."""
    counts: str
    """Name of what a metric without a unit counts, such as ``packets``; else empty."""
    kind: str
    """Name shared by metrics that belong in one chart: ``flows.goodput_bps``."""
    name: str
    """Name of the flow, ping, download or queue; empty for metrics of the whole run."""

    @property
    def text(self) -> str:
        """The whole name: ``goodput of flow 1``."""
        return f"{self.quantity} of {self.subject}" if self.subject else self.quantity


def words(metric: str) -> Words:
    """Return the printed name of a metric; an unknown metric keeps its path."""
    group, _, rest = metric.partition(".")
    name, _, field = rest.rpartition(".")
    if group == "checkpoint":
        if name == "bytes":
            return Words(
                "payload at the checkpoint", f"flow {field}", "", "checkpoint.bytes", field
            )
        return Words(_quantity(rest), "", "", metric, "")
    if group not in _GROUPS or not name:
        return Words(_quantity(metric), "", "", metric, "")
    subject = f"{_GROUPS[group]} {name.replace('->', ' → ')}"
    if group == "flows" and "." in name and (within := name.partition(".subflows."))[2]:
        subject, name = f"subflow {within[2]}", within[2]
    quantity = _OWN[group].get(field) or _quantity(field)
    if "queue" in quantity:
        # "queue length of queue r → h2" would repeat the word.
        subject = subject.removeprefix("queue ")
    counted = _NAMING_COUNTED.get(field, _NAMING_COUNTED.get(field.partition("_")[0], ""))
    return Words(quantity, subject, counted, f"{group}.{field}", name)


def _quantity(field: str) -> str:
    if field in _QUANTITIES:
        return _QUANTITIES[field]
    stem, _, order = field.removesuffix("_ms").partition("_")
    if stem in _STEMS and order:
        return f"{_ORDERS.get(order, order)} {_STEMS[stem]}"
    return field.replace("_", " ")


def in_order(names: Iterable[str]) -> list[str]:
    """Return names sorted with their numbers in numeric order: 2 before 10."""
    return sorted(names, key=lambda name: (name.strip("0123456789"), len(name), name))
