"""The catalogue of queue disciplines: what each is, and the parameters that it takes.

Names and defaults are those of ``tc-KIND(8)`` and of net/sched/sch_KIND.c. Which of them *this*
kernel has is another matter: ``Capabilities.qdiscs``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.model.base import Option
from ccplay.model.fields import Field
from ccplay.model.quantities import (
    COUNT,
    PACKETS,
    QUEUE_SIZE,
    RATE,
    SWITCH,
    TIME_US,
    WHOLE_SECONDS,
    Quantity,
)
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import choice
from ccplay.model.values import Qdisc


class Discipline(msgspec.Struct, frozen=True):
    """A queue discipline."""

    kind: str
    summary: str
    """Its effect on packets, in one line."""
    parameters: tuple[Field, ...]

    @property
    def names(self) -> list[str]:
        """Names of its parameters."""
        return [each.name for each in self.parameters]

    def parameter(self, name: str) -> Field:
        """Return a parameter by name. Raises ``ValueError`` for an unknown one."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ValueError(
            f"{self.kind} has no parameter {quote(name)}{did_you_mean(name, self.names)}"
        )


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with its values in the kernel's units and the required ones filled in.

    A value may be text as people write it (``"5 ms"``). Raises ``ValueError`` for an unknown kind
    or parameter and for a value that does not fit, with what was probably meant.
    """
    discipline = DISCIPLINES.get(qdisc.kind)
    if discipline is None:
        meant = did_you_mean(qdisc.kind, DISCIPLINES)
        raise ValueError(f"unknown queue discipline {quote(qdisc.kind)}{meant}")
    options: dict[str, Option] = {}
    for name, value in qdisc.options.items():
        parameter = discipline.parameter(name)
        try:
            options[name] = (
                parameter.parse(value) if isinstance(value, str) else parameter.check(value)
            )
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {name}: {error}") from None
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

    Raises ``ValueError`` if they don't fit into the limit.
    """
    limit = int(options["limit"])
    most = int(options.get("max", limit // 4))
    least = int(options.get("min", most // 3))
    if not 0 < least < most:
        raise ValueError(f"min must be smaller than max, {least} is not smaller than {most}")
    if most > limit:
        raise ValueError(f"max must not be larger than the limit, {most} is larger than {limit}")
    return least, most


def _parameter(
    name: str,
    quantity: Quantity,
    meaning: str,
    default: Option | None = None,
    *,
    low: int = 0,
    high: int = 2**31 - 1,
    required: bool = False,
    unset: str = "computed",
) -> Field:
    """Return a parameter; ``default`` is None if the kernel computes it.

    The kernel refuses a request without a ``required`` one.
    """
    bounded = quantity.type is int
    return Field(
        *(quantity, meaning, low if bounded else None, high if bounded else None),
        *(default, required),
        key=name,
        unset=unset,
        name=name,
    )


def _codel(limit: int, *, ecn: bool) -> tuple[Field, ...]:
    return (
        _parameter("limit", PACKETS, "most packets that wait", limit, low=1),
        _parameter("target", TIME_US, "acceptable standing delay", 5_000, low=1),
        _parameter("interval", TIME_US, "and for how long: about the worst RTT", 100_000, low=1),
        _parameter("ecn", SWITCH, "mark ECN packets instead of dropping", ecn),
        _parameter(
            "ce_threshold", TIME_US, "mark packets that waited longer", None, low=1, unset="off"
        ),
    )


def _pie(limit: int) -> tuple[Field, ...]:
    return (
        _parameter("limit", PACKETS, "most packets that wait", limit, low=1),
        _parameter("target", TIME_US, "acceptable standing delay", 15_000, low=1),
        _parameter("alpha", COUNT, "weight of the delay's distance", 2, high=32),
        _parameter("beta", COUNT, "weight of the delay's change", 20, high=32),
        _parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
    )


DISCIPLINES: dict[str, Discipline] = {
    each.kind: each
    for each in (
        Discipline(
            "pfifo",
            "first in, first out; drops at the tail beyond a limit in packets",
            (_parameter("limit", PACKETS, "most packets that wait", 100, low=1, required=True),),
        ),
        Discipline(
            "bfifo",
            "first in, first out; drops at the tail beyond a limit in bytes",
            (
                _parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=1514, required=True
                ),
            ),
        ),
        Discipline(
            "tbf",
            "token bucket: holds a rate, lets a burst through",
            (
                _parameter("rate", RATE, "rate of tokens", None, low=8_000, required=True),
                _parameter(
                    "burst", QUEUE_SIZE, "size of the bucket", 15_000, low=1514, required=True
                ),
                _parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=1514, required=True
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
                _parameter("flows", COUNT, "how many queues", 1024, low=1, high=65_536),
                _parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
                _parameter("memory_limit", QUEUE_SIZE, "most memory that packets take", 33_554_432),
            ),
        ),
        Discipline(
            "red",
            "drops early and at random as the average queue grows (Floyd, Jacobson 1993)",
            (
                _parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=15_140, required=True
                ),
                _parameter(
                    "min",
                    QUEUE_SIZE,
                    "average queue where drops start",
                    None,
                    low=1514,
                    unset="max / 3",
                ),
                _parameter(
                    "max",
                    QUEUE_SIZE,
                    "average queue where all drop",
                    None,
                    low=3028,
                    unset="limit / 4",
                ),
                _parameter(
                    "bandwidth", RATE, "the link's rate", 10_000_000, low=8_000, required=True
                ),
                _parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
                _parameter("adaptive", SWITCH, "adapt the drop probability", default=False),
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
                _parameter("flows", COUNT, "how many queues", 1024, low=1, high=65_536),
                _parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
                _parameter("memory_limit", QUEUE_SIZE, "most memory that packets take", 33_554_432),
            ),
        ),
        Discipline(
            "fq",
            "a fair queue for each flow, sent at the flow's own pace",
            (
                _parameter("limit", PACKETS, "most packets that wait", 10_000, low=1),
                _parameter("flow_limit", PACKETS, "most packets of a flow", 100, low=1),
                _parameter("quantum", QUEUE_SIZE, "bytes a flow sends in turn", 3028, low=256),
                _parameter(
                    "ce_threshold", TIME_US, "mark packets that waited longer", None, unset="off"
                ),
            ),
        ),
        Discipline(
            "cake",
            "shaper, fair queues and CoDel in one, for home links",
            (
                _parameter(
                    "bandwidth",
                    RATE,
                    "shape to this rate too",
                    None,
                    low=8_000,
                    unset="unlimited",
                ),
                _parameter("rtt", TIME_US, "RTT that it is tuned for", 100_000, low=100),
                _parameter(
                    "flow_mode",
                    choice(
                        "flow_mode",
                        (
                            "triple-isolate",
                            "dual-srchost",
                            "dual-dsthost",
                            "flows",
                            "hosts",
                            "srchost",
                            "dsthost",
                        ),
                    ),
                    "fairness between hosts, flows or both",
                    "triple-isolate",
                ),
                _parameter(
                    "diffserv_mode",
                    choice(
                        "diffserv_mode",
                        ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"),
                    ),
                    "classes of priority",
                    "diffserv3",
                ),
                _parameter(
                    "ack_filter", SWITCH, "drop ACKs that later ones replace", default=False
                ),
                _parameter("memlimit", QUEUE_SIZE, "most memory that packets take", None, low=1514),
            ),
        ),
        Discipline(
            "sfq",
            "stochastic fair queueing: flows hashed to queues served in turn",
            (
                _parameter("limit", PACKETS, "most packets that wait", 127, low=2, high=65_536),
                _parameter("flows", COUNT, "how many queues", 127, low=1, high=65_408),
                _parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
                _parameter(
                    "perturb",
                    WHOLE_SECONDS,
                    "time between changes of the hash; 0: never",
                    0,
                    high=3600,
                ),
            ),
        ),
        Discipline(
            "choke",
            "RED that penalises flows that fill the queue, without state",
            (
                _parameter(
                    "limit",
                    PACKETS,
                    "most packets that wait",
                    100,
                    low=16,
                    high=131_071,
                    required=True,
                ),
                _parameter("bandwidth", RATE, "the link's rate", None, low=8_000, required=True),
                _parameter("min", PACKETS, "average queue where drops start", None, low=1),
                _parameter("max", PACKETS, "average queue where all drop", None, low=2),
                _parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
            ),
        ),
    )
}
"""By kind, the plainest first."""
