"""Descriptions of variables: the quantities measured over time of flows, queues and other traffic.

``FLOW_VARIABLES`` and ``QUEUE_VARIABLES`` are those of every session; kinds of traffic have their
own. Own values of algorithms and disciplines
(``Sweep.own``, ``Sweep.queue_own``) are described by their names: the algorithm or discipline, the
quantity, and the unit: ``_us``, ``_bps``, ``_segments``, ``_packets``, ``_bytes``, or the number
that stands for 1 in a fraction, as in ``htcp_beta_1000``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from ccplay.units import format_rate

Subject: TypeAlias = str
"""Owner of a variable: ``queue``, or the name of a kind of traffic."""

Combined: TypeAlias = Literal["sum", "mean", "greatest", ""]
"""How values of several subjects are combined, such as those of a flow's parallel streams."""

Cells: TypeAlias = Literal["text", "whole", "real", "flag"]
"""Types of the cells in a column of samples."""

_KERNELS = {"bbr_pacing_gain": 256, "bbr_cwnd_gain": 256, "dctcp_alpha": 1024}
"""Numbers that stand for 1 in fractions of the kernel whose names do not contain the number."""

_UNITS = ("us", "bps", "segments", "packets", "bytes")
_ONE = re.compile(r"[1-9]\d{2,}")

_FACTORS = {"ms": 1e-3, "kbit/s": 1e-3, "Mbit/s": 1e-6, "kB": 1e-3, "MB": 1e-6, "%": 1e2}
"""Factors from a variable's unit to the unit of an axis."""

_WHOLE_FROM = 100
"""Smallest value in an axis's unit that is shown without decimals."""


class Rate(msgspec.Struct, frozen=True):
    """A derived variable: the rate at which a counter grew, averaged over some time."""

    counter: str
    """Variable that only grows."""
    over_s: float = 1.0
    """Seconds over which the screen averages; a report may average over other periods."""


class Variable(msgspec.Struct, frozen=True):
    """A quantity measured over time, and how it is shown and exported."""

    name: str
    """Name in the kernel's words, as in the stream."""
    words: str = ""
    """Name for people, also in legends."""
    unit: str = ""
    """Unit: ``us``, ``bps``, ``segments``, ``packets``, ``bytes``, ``share`` or none."""
    subject: Subject | None = None
    """Kind of subject that has the variable; None if any may report it, and its name describes
    it."""
    algorithm: str = ""
    """First word of names reported by algorithms or disciplines; empty for other variables."""
    one: int | None = None
    """Number that stands for 1 in a fraction; None if the variable is not a fraction."""
    scale: str = ""
    """Unit used in all plots; if empty, the unit depends on the greatest value."""
    digits: int | None = None
    """Digits after the point; None: one for values below 100 in a scaled unit (ms), else none."""
    combined: Combined = ""
    """How values of several subjects are combined; empty if they can't be."""
    kept: bool = False
    """Whether the state keeps the variable over time rather than only exporting it."""
    named: str = ""
    """Name of the column in exports, if it is not ``name`` followed by the unit."""
    cells: Cells = "whole"
    """Type of the cells in the column."""
    rate: Rate | None = None
    """Derivation from another variable, which is kept; None if the variable itself is sampled."""
    wire: str = ""
    """Name in the stream, if it contains ``one``: ``htcp_beta_1000``."""
    about: str = ""
    """Title of a figure's panel, if ``title`` is too short for it."""
    label: str = ""
    """Label of a figure's axis, if it is not ``words``."""

    @property
    def title(self) -> str:
        """Name for people with the algorithm: ``bbr min rtt``."""
        return f"{self.algorithm} {self.words}".lstrip()

    @property
    def column(self) -> str:
        """Name of the column in exports, which ends in the unit."""
        if self.named or not self.unit or self.name.endswith(f"_{self.unit}"):
            return self.named or self.name
        return f"{self.name}_{self.unit}"

    @property
    def series(self) -> str:
        """Name of the series with the values: its own, or that of the counter behind a rate."""
        return self.rate.counter if self.rate else self.wire or self.name

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers of things."""
        return self.subject is not None and self.unit in ("segments", "packets")

    def real(self, value: float) -> float:
        """Return a number in the variable's unit; fractions are resolved: a gain of 320 is 1.25."""
        return float(value) / (self.one or 1)

    def axis(self, peak: float = math.inf) -> tuple[str, float]:
        """Return the unit for a plot with values up to ``peak``, and the factor to it."""
        unit = self.scale
        if not unit:
            match self.unit:
                case "us":
                    unit = "ms"
                case "bps":
                    unit = "Mbit/s" if peak >= 1e6 else "kbit/s"
                case "share":
                    unit = "%"
                case _:
                    return self.unit, 1 / (self.one or 1)
        return unit, _FACTORS[unit]

    def write(self, value: float) -> str:
        """Return a number, already scaled by the factor of ``axis``, as text without its unit."""
        if self.one is not None:
            return f"{value:.2f}"
        digits = self.digits
        if digits is None:
            scaled = bool(self.scale) or self.unit in ("us", "bps", "share")
            digits = 1 if scaled and value < _WHOLE_FROM else 0
        return f"{value:.{digits}f}"

    def format(self, value: float) -> str:
        """Return a number as text with its unit: ``20.1 ms``."""
        if self.unit == "bps":
            return format_rate(value)
        unit, factor = self.axis(value)
        return self.write(value * factor) + (f" {unit}" if factor != 1 and unit else "")


FLOW_VARIABLES = (
    Variable("ca_state", "congestion state", "", "flow", combined="greatest", kept=True),
    Variable("cwnd", "cwnd", "segments", "flow", combined="sum", kept=True),
    Variable("ssthresh", "ssthresh", "segments", "flow", combined="sum", kept=True),
    Variable("srtt_us", "RTT", "us", "flow", digits=0, combined="mean", kept=True),
    Variable("rttvar_us", "RTT variation", "us", "flow", combined="mean"),
    Variable("min_rtt_us", "minimum RTT", "us", "flow", combined="mean", kept=True),
    Variable("mss", "segment size", "bytes", "flow"),
    Variable("unacked", "unacknowledged", "segments", "flow", combined="sum", kept=True),
    Variable("lost", "lost", "segments", "flow", combined="sum"),
    Variable("retrans", "being retransmitted", "segments", "flow", combined="sum"),
    Variable("total_retrans", "retransmitted", "segments", "flow", combined="sum", kept=True),
    Variable(
        "pacing_rate", "pacing rate", "bps", "flow", scale="Mbit/s", combined="sum", kept=True
    ),
    Variable(
        "delivery_rate", "delivery rate", "bps", "flow", scale="Mbit/s", combined="sum", kept=True
    ),
    Variable(
        "bytes_acked",
        "acknowledged",
        "bytes",
        "flow",
        scale="MB",
        combined="sum",
        kept=True,
        named="bytes_acked",
    ),
    Variable("bytes_sent", "sent", "bytes", "flow", combined="sum", named="bytes_sent"),
    Variable("delivered_ce", "delivered with CE", "segments", "flow", combined="sum"),
)
"""Fields of ``TcpSamples`` except names, in the order of exports."""

QUEUE_VARIABLES = (
    Variable(
        "backlog",
        "bytes waiting",
        "bytes",
        "queue",
        scale="kB",
        digits=1,
        combined="sum",
        kept=True,
    ),
    Variable("qlen", "packets waiting", "packets", "queue", combined="sum", kept=True),
    Variable("drops", "drops", "packets", "queue", combined="sum", kept=True),
    Variable("ecn_marks", "ECN marks", "packets", "queue", combined="sum", kept=True),
    Variable("overlimits", "times over the rate", "", "queue", combined="sum"),
    Variable("requeues", "requeued", "", "queue", combined="sum"),
    Variable("bytes", "sent", "bytes", "queue", combined="sum", kept=True, named="sent_bytes"),
    Variable(
        "packets", "sent", "packets", "queue", combined="sum", kept=True, named="sent_packets"
    ),
)
"""Fields of ``QdiscSamples`` except names, in the order of exports."""

RECEIVED = Variable(
    "monitor_received_bps",
    "received",
    "bps",
    algorithm="monitor",
    scale="Mbit/s",
    combined="sum",
    kept=True,
)
"""Rate in bits per second at which packets arrived since the last sample, IP headers included."""
LOSS = Variable("monitor_loss", "loss", "share", algorithm="monitor", combined="mean", kept=True)
"""Share of the packets lost since the last sample."""
DELAY = Variable(
    "monitor_one_way_delay_us",
    "one way delay",
    "us",
    algorithm="monitor",
    combined="mean",
    kept=True,
    about="one-way delay of the flow's packets",
    label="delay",
)
"""Mean one-way delay in µs of the packets that arrived since the last sample."""
CAPACITY = Variable(
    "trace_capacity_bps",
    "capacity",
    "bps",
    algorithm="trace",
    scale="Mbit/s",
    kept=True,
    about="capacity of the link that moves",
)
"""Capacity in bits per second of a link that moves, as a mean of the last 100 ms."""
MOVED_DELAY = Variable(
    "trace_delay_us", "one way delay", "us", algorithm="trace", kept=True, label="delay"
)
"""One-way delay in µs of a link that moves."""
_MOVING = {each.name: each for each in (CAPACITY, MOVED_DELAY)}
MONITORED = {each.name: each for each in (RECEIVED, LOSS, DELAY)}
"""Variables of traffic whose packets are counted, each computed from two consecutive samples; of
monitored flows they stand beside their algorithm's own values."""


def by_name(variables: Sequence[Variable]) -> dict[str, Variable]:
    """Return variables by name."""
    return {each.name: each for each in variables}


def kept(variables: Sequence[Variable]) -> tuple[str, ...]:
    """Return the names of the variables that the state keeps over time."""
    return tuple(each.name for each in variables if each.kept)


def columns(variables: Sequence[Variable]) -> dict[str, tuple[str, Cells]]:
    """Return the column in exports and its type of cells, by the variable's name."""
    return {each.name: (each.column, each.cells) for each in variables}


def combine(how: Combined, values: Sequence[float]) -> float | None:
    """Return the combined value of several subjects; None without any, or if it has no meaning."""
    if not values or not how:
        return values[0] if len(values) == 1 else None
    match how:
        case "sum":
            return sum(values)
        case "mean":
            return sum(values) / len(values)
    return max(values)


@lru_cache
def variable(name: str) -> Variable:
    """Return the variable with the name that an algorithm, a discipline or a monitor uses."""
    if (known := MONITORED.get(name) or _MOVING.get(name)) is not None:
        return known
    wire, words, one = name, name.split("_"), _KERNELS.get(name)
    if len(words) > 2 and _ONE.fullmatch(words[-1]):
        one = int(words.pop())
        name = "_".join(words)
    algorithm = words.pop(0) if len(words) > 1 else ""
    unit = words.pop() if len(words) > 1 and words[-1] in _UNITS else ""
    return Variable(name, " ".join(words), unit, algorithm=algorithm, one=one, wire=wire)


def describe(name: str, value: float) -> str:
    """Return a variable as text: ``min rtt 20.1 ms`` for ``bbr_min_rtt_us`` and 20100."""
    # Not the title: callers show the algorithm's name next to this text.
    known = variable(name)
    return f"{known.words} {known.format(value)}"
