"""The catalogue of queue disciplines: what each is, and the parameters that it takes.

Names and defaults are those of ``tc-KIND(8)`` and of net/sched/sch_KIND.c. Which of them *this*
kernel has is another matter: ``Capabilities.qdiscs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ccplay.model.base import Option
from ccplay.model.values import Qdisc
from ccplay.units import (
    format_rate,
    format_size,
    format_time_us,
    parse_rate,
    parse_size,
    parse_time_us,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a discipline, its value in the ``unit`` that ``model.Qdisc`` carries."""

    name: str
    unit: str
    """``packets``, ``bytes``, ``us``, ``bit/s``, ``s``, ``number``, ``flag`` or ``choice``."""
    meaning: str
    default: Option | None = None
    """What holds where nothing is said; None where the kernel works it out."""
    low: int = 0
    high: int = 2**31 - 1
    choices: tuple[str, ...] = ()
    unset: str = "worked out"
    """What holds where nothing is said and there is no ``default``."""
    required: bool = False
    """The kernel takes no request without it, so ``validate`` fills the default in."""

    def read(self, text: str) -> Option:
        """Read a value as a person writes it: ``100``, ``5 ms``, ``on``.

        Raises ``ValueError`` saying what would fit.
        """
        match self.unit:
            case "us":
                value: Option = parse_time_us(text)
            case "bytes":
                value = int(text) if text.strip().isdigit() else parse_size(text)
            case "bit/s":
                value = parse_rate(text)
            case "flag":
                value = _read_flag(text)
            case "choice":
                value = text.strip()
            case _:
                value = _read_count(text, self.unit)
        return self.check(value)

    def write(self, value: Option) -> str:
        """Write a value so that a person and ``read`` understand it: ``100 packets``, ``5 ms``."""
        match self.unit:
            case "us":
                return format_time_us(float(value))
            case "bytes":
                return _write_size(int(value))
            case "bit/s":
                return format_rate(float(value))
            case "flag":
                return "on" if value else "off"
            case "packets" | "s":
                return f"{value} {self.unit}"
        return str(value)

    def check(self, value: Option) -> Option:
        """Return ``value`` in the type that the unit asks for.

        Raises ``ValueError`` where it is of another kind or out of range.
        """
        if self.unit == "flag":
            if isinstance(value, bool):
                return value
            raise ValueError(f"{self.name} is on or off, not {value!r}")
        if self.unit == "choice":
            if value in self.choices:
                return value
            raise ValueError(
                f"unknown {self.name} {str(value)!r}{did_you_mean(str(value), self.choices)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError(f"{self.name} is {_KINDS_OF_NUMBER[self.unit]}, not {value!r}")
        if not self.low <= value <= self.high:
            raise ValueError(
                f"{self.name} goes from {self.write(self.low)} to {self.write(self.high)}, "
                f"not {self.write(int(value))}"
            )
        return int(value)


@dataclass(frozen=True, slots=True)
class Discipline:
    """A queue discipline."""

    kind: str
    summary: str
    """One line of what it does to packets."""
    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> list[str]:
        """Those of its parameters."""
        return [each.name for each in self.parameters]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name. Raises ``ValueError`` for one that there is not."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ValueError(f"{self.kind} has no parameter {name!r}{did_you_mean(name, self.names)}")


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with its values in the kernel's units and the required ones filled in.

    A value may be text as people write it (``"5 ms"``). Raises ``ValueError`` for an unknown kind
    or parameter and for a value that does not fit, with what was probably meant.
    """
    discipline = DISCIPLINES.get(qdisc.kind)
    if discipline is None:
        raise ValueError(
            f"unknown queue discipline {qdisc.kind!r}{did_you_mean(qdisc.kind, list(DISCIPLINES))}"
        )
    options: dict[str, Option] = {}
    for name, value in qdisc.options.items():
        parameter = discipline.parameter(name)
        try:
            options[name] = (
                parameter.read(value) if isinstance(value, str) else parameter.check(value)
            )
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {error}") from None
    for parameter in discipline.parameters:
        if parameter.required and parameter.name not in options:
            if parameter.default is None:
                raise ValueError(f"{qdisc.kind} needs {parameter.name}: {parameter.meaning}")
            options[parameter.name] = parameter.default
    if "min" in discipline.names:
        try:
            thresholds(options)
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {error}") from None
    return Qdisc(kind=qdisc.kind, options=options)


def thresholds(options: Mapping[str, Option]) -> tuple[int, int]:
    """Return the averages between which RED and its like drop more and more, as tc-red(8) has them.

    Raises ``ValueError`` where they don't fit into the limit.
    """
    limit = int(options["limit"])
    most = int(options.get("max", limit // 4))
    least = int(options.get("min", most // 3))
    if not 0 < least < most:
        raise ValueError(f"min must be smaller than max, {least} is not smaller than {most}")
    if most > limit:
        raise ValueError(f"max must not be larger than the limit, {most} is larger than {limit}")
    return least, most


def did_you_mean(word: str, known: list[str] | tuple[str, ...]) -> str:
    """Return ``; did you mean 'pfifo'?``, or what is known where nothing is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - labs start without it

    if near := get_close_matches(word.lower(), known, n=1):
        return f"; did you mean {near[0]!r}?"
    return f" (known: {', '.join(known)})"


def _write_size(size: int) -> str:
    """Write a size without losing a byte: ``150 kB``, ``32 MiB``, ``1514 bytes``."""
    if size and size % 2**20 == 0:
        return f"{size // 2**20} MiB"
    exact = parse_size(format_size(size)) == size
    return format_size(size) if exact else f"{size} bytes"


def _read_flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _FLAGS:
        raise ValueError(f"{text!r} is neither on nor off")
    return _FLAGS[word]


def _read_count(text: str, unit: str) -> int:
    word = text.strip().lower()
    for ending in ("packets", "packet", "pkts", "pkt", "p", "s"):
        if word.endswith(ending):
            word = word.removesuffix(ending).strip()
            break
    if not word.isdigit():
        raise ValueError(f"{text!r} is not {_KINDS_OF_NUMBER[unit]}")
    return int(word)


_FLAGS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}

_KINDS_OF_NUMBER = {
    "packets": "a number of packets such as '100'",
    "bytes": "a size such as '150 kB'",
    "us": "a time such as '5 ms'",
    "bit/s": "a rate such as '10 Mbit/s'",
    "s": "a whole number of seconds",
    "number": "a whole number",
}


def _codel(limit: int, *, ecn: bool) -> tuple[Parameter, ...]:
    return (
        Parameter("limit", "packets", "most packets that wait", limit, low=1),
        Parameter("target", "us", "delay that may stand", 5_000, low=1),
        Parameter("interval", "us", "for how long: about the worst RTT", 100_000, low=1),
        Parameter("ecn", "flag", "mark ECN packets, not drop them", ecn),
        Parameter("ce_threshold", "us", "mark what waited longer", None, low=1, unset="off"),
    )


def _pie(limit: int) -> tuple[Parameter, ...]:
    return (
        Parameter("limit", "packets", "most packets that wait", limit, low=1),
        Parameter("target", "us", "delay that may stand", 15_000, low=1),
        Parameter("alpha", "number", "weight of the delay's distance", 2, high=32),
        Parameter("beta", "number", "weight of the delay's change", 20, high=32),
        Parameter("ecn", "flag", "mark ECN packets, not drop them", default=False),
    )


DISCIPLINES: dict[str, Discipline] = {
    each.kind: each
    for each in (
        Discipline(
            "pfifo",
            "first in, first out; drops at the tail beyond so many packets",
            (Parameter("limit", "packets", "most packets that wait", 100, low=1, required=True),),
        ),
        Discipline(
            "bfifo",
            "first in, first out; drops at the tail beyond so many bytes",
            (
                Parameter(
                    "limit", "bytes", "most bytes that wait", 150_000, low=1514, required=True
                ),
            ),
        ),
        Discipline(
            "tbf",
            "token bucket: holds a rate, lets a burst through",
            (
                Parameter("rate", "bit/s", "how fast tokens come", None, low=8_000, required=True),
                Parameter("burst", "bytes", "size of the bucket", 15_000, low=1514, required=True),
                Parameter(
                    "limit", "bytes", "most bytes that wait", 150_000, low=1514, required=True
                ),
            ),
        ),
        Discipline(
            "codel",
            "controls the time that packets wait, not their number (RFC 8289)",
            _codel(1000, ecn=False),
        ),
        Discipline(
            "fq_codel",
            "a fair queue for each flow, CoDel on each (RFC 8290)",
            (
                *_codel(10_240, ecn=True),
                Parameter("flows", "number", "how many queues", 1024, low=1, high=65_536),
                Parameter("quantum", "bytes", "bytes a queue sends in turn", 1514, low=256),
                Parameter("memory_limit", "bytes", "most memory that packets take", 33_554_432),
            ),
        ),
        Discipline(
            "red",
            "drops early and at random as the average queue grows (Floyd, Jacobson 1993)",
            (
                Parameter(
                    "limit", "bytes", "most bytes that wait", 150_000, low=15_140, required=True
                ),
                Parameter(
                    "min", "bytes", "average where drops start", None, low=1514, unset="max / 3"
                ),
                Parameter(
                    "max",
                    "bytes",
                    "average from which all drops",
                    None,
                    low=3028,
                    unset="limit / 4",
                ),
                Parameter(
                    "bandwidth", "bit/s", "the link's rate", 10_000_000, low=8_000, required=True
                ),
                Parameter("ecn", "flag", "mark ECN packets, not drop them", default=False),
                Parameter("adaptive", "flag", "find out how often to drop", default=False),
            ),
        ),
        Discipline(
            "pie",
            "drops at random so that the queueing delay stays at a target (RFC 8033)",
            _pie(1000),
        ),
        Discipline(
            "fq_pie",
            "a fair queue for each flow, PIE on each",
            (
                *_pie(10_240),
                Parameter("flows", "number", "how many queues", 1024, low=1, high=65_536),
                Parameter("quantum", "bytes", "bytes a queue sends in turn", 1514, low=256),
                Parameter("memory_limit", "bytes", "most memory that packets take", 33_554_432),
            ),
        ),
        Discipline(
            "fq",
            "a fair queue for each flow, sent at the flow's own pace",
            (
                Parameter("limit", "packets", "most packets that wait", 10_000, low=1),
                Parameter("flow_limit", "packets", "most packets of a flow", 100, low=1),
                Parameter("quantum", "bytes", "bytes a flow sends in turn", 3028, low=256),
                Parameter("ce_threshold", "us", "mark what waited longer", None, unset="off"),
            ),
        ),
        Discipline(
            "cake",
            "shaper, fair queues and CoDel in one, for home links",
            (
                Parameter(
                    "bandwidth",
                    "bit/s",
                    "shape to this rate too",
                    None,
                    low=8_000,
                    unset="unlimited",
                ),
                Parameter("rtt", "us", "RTT that it is tuned for", 100_000, low=100),
                Parameter(
                    "flow_mode",
                    "choice",
                    "what shares fairly: hosts, flows or both",
                    "triple-isolate",
                    choices=(
                        "triple-isolate",
                        "dual-srchost",
                        "dual-dsthost",
                        "flows",
                        "hosts",
                        "srchost",
                        "dsthost",
                    ),
                ),
                Parameter(
                    "diffserv_mode",
                    "choice",
                    "how many classes of priority",
                    "diffserv3",
                    choices=("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"),
                ),
                Parameter("ack_filter", "flag", "drop ACKs that later ones repeat", default=False),
                Parameter("memlimit", "bytes", "most memory that packets take", None, low=1514),
            ),
        ),
        Discipline(
            "sfq",
            "stochastic fair queueing: flows hashed to queues served in turn",
            (
                Parameter("limit", "packets", "most packets that wait", 127, low=2, high=65_536),
                Parameter("flows", "number", "how many queues", 127, low=1, high=65_408),
                Parameter("quantum", "bytes", "bytes a queue sends in turn", 1514, low=256),
                Parameter("perturb", "s", "change the hash so often; 0 is never", 0, high=3600),
            ),
        ),
        Discipline(
            "choke",
            "RED that punishes flows which fill the queue, without state",
            (
                Parameter(
                    "limit",
                    "packets",
                    "most packets that wait",
                    100,
                    low=16,
                    high=131_071,
                    required=True,
                ),
                Parameter("bandwidth", "bit/s", "the link's rate", None, low=8_000, required=True),
                Parameter("min", "packets", "average queue where drops start", None, low=1),
                Parameter("max", "packets", "average queue at which all drops", None, low=2),
                Parameter("ecn", "flag", "mark ECN packets, not drop them", default=False),
            ),
        ),
    )
}
"""By kind, the plainest first."""
