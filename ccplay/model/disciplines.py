"""The catalogue of queue disciplines: what each is, and the parameters that it takes.

Names and defaults are those of ``tc-KIND(8)`` and of net/sched/sch_KIND.c. Which of them *this*
kernel has is another matter: ``Capabilities.qdiscs``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ccplay.model.base import Option
from ccplay.model.discipline import Discipline, classes, codel, fair, parameter, pie
from ccplay.model.quantities import COUNT, PACKETS, QUEUE_SIZE, RATE, SWITCH, TIME_US, WHOLE_SECONDS
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import choice
from ccplay.model.values import Qdisc

SUFFIX = ".py"
"""Ending of the kinds of ccplay's own disciplines, whether or not the kernel has them too."""

MOST_RATE = 100_000_000
"""Bits per second of full packets up to which a discipline in software keeps up."""


custom: dict[str, Discipline] = {}
"""Disciplines of the user's own by name, which only the command line can add."""


def described(kind: str) -> Discipline | None:
    """Return the discipline of a kind, ``codel`` or ``codel.py``; None: there is none."""
    name = kind.removesuffix(SUFFIX)
    found = DISCIPLINES.get(name) or custom.get(name)
    return None if found is None or (is_software(kind) and not found.software) else found


def is_software(kind: str) -> bool:
    """Return whether a kind asks for ccplay's own discipline and not for the kernel's."""
    return kind.endswith(SUFFIX)


def kinds() -> list[str]:
    """Return all kinds: those that kernels have, then the user's, then ccplay's own."""
    own = [f"{each.kind}{SUFFIX}" for each in DISCIPLINES.values() if each.software]
    return [*DISCIPLINES, *custom, *own, *(f"{each}{SUFFIX}" for each in custom)]


def complete(kind: str, options: Mapping[str, Option]) -> dict[str, Option | None]:
    """Return every parameter of a kind: those in ``options``, and the defaults of the others."""
    defaults = {each.name: each.default for each in DISCIPLINES[kind].parameters}
    filled: dict[str, Option | None] = {**defaults, **options}
    if "min" in filled:
        filled["min"], filled["max"] = thresholds(
            {name: value for name, value in filled.items() if value is not None}
        )
    return filled


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with its values in the kernel's units and the required ones filled in.

    A value may be text as people write it (``"5 ms"``). Raises ``ValueError`` for an unknown kind
    or parameter and for a value that does not fit, with what was probably meant.
    """
    discipline = described(qdisc.kind)
    if discipline is None:
        meant = did_you_mean(qdisc.kind, kinds() if is_software(qdisc.kind) else DISCIPLINES)
        raise ValueError(f"unknown queue discipline {quote(qdisc.kind)}{meant}")
    options: dict[str, Option] = {}
    for name, value in qdisc.options.items():
        if discipline.open:
            options[name] = value
            continue
        known = discipline.parameter(name)
        try:
            options[name] = known.parse(value) if isinstance(value, str) else known.check(value)
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {name}: {error}") from None
    for each in discipline.parameters:
        if each.required and each.name not in options:
            if each.default is None:
                raise ValueError(f"{qdisc.kind} needs {each.name}: {each.meaning}")
            options[each.name] = each.default
    if "min" in discipline.names and discipline.kind not in custom:
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


DISCIPLINES: dict[str, Discipline] = {
    each.kind: each
    for each in (
        Discipline(
            "pfifo",
            "first in, first out; drops at the tail beyond a limit in packets",
            (parameter("limit", PACKETS, "most packets that wait", 100, low=1, required=True),),
            software=False,
        ),
        Discipline(
            "bfifo",
            "first in, first out; drops at the tail beyond a limit in bytes",
            (
                parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=1514, required=True
                ),
            ),
            software=False,
        ),
        Discipline(
            "tbf",
            "token bucket: holds a rate, lets a burst through",
            (
                parameter("rate", RATE, "rate of tokens", None, low=8_000, required=True),
                parameter(
                    "burst", QUEUE_SIZE, "size of the bucket", 15_000, low=1514, required=True
                ),
                parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=1514, required=True
                ),
            ),
            software=False,
        ),
        Discipline(
            "codel",
            "controls the time that packets wait, not their number (RFC 8289)",
            codel(1000, ecn=False),
        ),
        Discipline(
            "fq_codel",
            "a fair queue for each flow, CoDel on each (RFC 8290)",
            (
                *codel(10_240, ecn=True),
                *fair(),
            ),
        ),
        Discipline(
            "red",
            "drops early and at random as the average queue grows (Floyd, Jacobson 1993)",
            (
                parameter(
                    "limit", QUEUE_SIZE, "most bytes that wait", 150_000, low=15_140, required=True
                ),
                parameter(
                    "min",
                    QUEUE_SIZE,
                    "average queue where drops start",
                    None,
                    low=1514,
                    unset="max / 3",
                ),
                parameter(
                    "max",
                    QUEUE_SIZE,
                    "average queue where all drop",
                    None,
                    low=3028,
                    unset="limit / 4",
                ),
                parameter(
                    "bandwidth", RATE, "the link's rate", 10_000_000, low=8_000, required=True
                ),
                parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
                parameter("adaptive", SWITCH, "adapt the drop probability", default=False),
            ),
        ),
        Discipline(
            "pie",
            "drops at random so that the queueing delay stays at a target (RFC 8033)",
            pie(1000),
        ),
        Discipline(
            "fq_pie",
            "a fair queue for each flow, PIE on each",
            (
                *pie(10_240),
                *fair(),
            ),
        ),
        Discipline(
            "fq",
            "a fair queue for each flow; the kernel's also keeps the pace that TCP set",
            (
                parameter("limit", PACKETS, "most packets that wait", 10_000, low=1),
                parameter("flow_limit", PACKETS, "most packets of a flow", 100, low=1),
                parameter("quantum", QUEUE_SIZE, "bytes a flow sends in turn", 3028, low=256),
                parameter(
                    "ce_threshold", TIME_US, "mark packets that waited longer", None, unset="off"
                ),
            ),
        ),
        Discipline(
            "cake",
            "shaper, fair queues and CoDel in one, for home links",
            (
                parameter(
                    "bandwidth",
                    RATE,
                    "shape to this rate too",
                    None,
                    low=8_000,
                    unset="unlimited",
                ),
                parameter("rtt", TIME_US, "RTT that it is tuned for", 100_000, low=100),
                parameter(
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
                parameter(
                    "diffserv_mode",
                    choice(
                        "diffserv_mode",
                        ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"),
                    ),
                    "classes of priority",
                    "diffserv3",
                ),
                parameter("ack_filter", SWITCH, "drop ACKs that later ones replace", default=False),
                parameter("memlimit", QUEUE_SIZE, "most memory that packets take", None, low=1514),
            ),
        ),
        Discipline(
            "sfq",
            "stochastic fair queueing: flows hashed to queues served in turn",
            (
                parameter("limit", PACKETS, "most packets that wait", 127, low=2, high=65_536),
                parameter("flows", COUNT, "how many queues", 127, low=1, high=65_408),
                parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
                parameter(
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
                parameter(
                    "limit",
                    PACKETS,
                    "most packets that wait",
                    100,
                    low=16,
                    high=131_071,
                    required=True,
                ),
                parameter("bandwidth", RATE, "the link's rate", None, low=8_000, required=True),
                parameter("min", PACKETS, "average queue where drops start", None, low=1),
                parameter("max", PACKETS, "average queue where all drop", None, low=2),
                parameter("ecn", SWITCH, "mark ECN packets instead of dropping", default=False),
            ),
        ),
        Discipline(
            "dualpi2",
            "a queue for L4S flows beside a classic one, marks and drops coupled (RFC 9332)",
            (
                parameter("limit", PACKETS, "most packets that wait", 10_000, low=1),
                parameter("target", TIME_US, "delay of the classic queue", 15_000, low=1),
                parameter("tupdate", TIME_US, "time between two computations", 16_000, low=1_000),
                parameter("max_rtt", TIME_US, "longest RTT of its flows", 100_000, low=1_000),
                parameter(
                    "step_thresh", TIME_US, "mark L4S packets that waited longer", 1_000, low=1
                ),
                parameter(
                    "coupling_factor", COUNT, "L4S marks for a classic one", 2, low=1, high=16
                ),
                parameter(
                    "classic_protection", COUNT, "percent of the link for classic", 10, high=100
                ),
            ),
            in_kernel=False,
        ),
        Discipline(
            "prio",
            "strict priority between bands, by the type of service, each with its discipline",
            (
                parameter("limit", PACKETS, "most packets that wait in a band", 1000, low=1),
                parameter("bands", COUNT, "how many bands", 3, low=2, high=16),
                *classes("tos"),
            ),
            in_kernel=False,
        ),
        Discipline(
            "drr",
            "deficit round robin: flows hashed to queues with equal shares in bytes",
            (
                parameter("limit", PACKETS, "most packets that wait", 1000, low=1),
                parameter("flows", COUNT, "how many queues", 1024, low=1, high=65_536),
                parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
                *classes("flow"),
            ),
            in_kernel=False,
        ),
    )
}
"""By kind, the plainest first."""
