"""Disciplines that drop early, depending on the queue's length: RED, CHOKe, SFB.

tc-red(8), tc-choke(8), tc-sfb(8); net/sched/sch_KIND.c.
"""

from __future__ import annotations

from ccplay.model.discipline import KERNEL, Discipline, Parameter, parameter
from ccplay.model.quantities import COUNT, PACKETS, QUEUE_SIZE, RATE, SHARE, SWITCH, TIME_US

_ECN = "mark ECN packets instead of dropping"
_START, _END = "average queue where drops start", "average queue where all drop"


def _averaging() -> tuple[Parameter, ...]:
    """Return the parameters of RED and CHOKe for averaging, which only the kernel has."""
    return (
        parameter("burst", PACKETS, "packets that may arrive at once", None, low=1, only=KERNEL),
        parameter("probability", SHARE, "drop probability at max", 0.02, only=KERNEL),
    )


RED = Discipline(
    "red",
    "drops early and at random as the average queue grows (Floyd, Jacobson 1993)",
    (
        parameter("limit", QUEUE_SIZE, "maximum queue length", 150_000, low=15_140, required=True),
        parameter("min", QUEUE_SIZE, _START, None, low=1514, unset="max / 3"),
        parameter("max", QUEUE_SIZE, _END, None, low=3028, unset="limit / 4"),
        parameter("bandwidth", RATE, "the link's rate", 10_000_000, low=8_000, required=True),
        parameter("ecn", SWITCH, _ECN, default=False),
        parameter("adaptive", SWITCH, "adapt the drop probability", default=False),
        *_averaging(),
        parameter(
            "avpkt", QUEUE_SIZE, "bytes of an average packet", 1000, low=64, high=9000, only=KERNEL
        ),
        parameter(
            "harddrop", SWITCH, "drop ECN packets, too, above max", default=False, only=KERNEL
        ),
        parameter(
            "nodrop", SWITCH, "with ecn: never drop other packets", default=False, only=KERNEL
        ),
    ),
)
CHOKE = Discipline(
    "choke",
    "RED that penalises flows that fill the queue, without state",
    (
        parameter(
            *("limit", PACKETS, "maximum queue length", 100), low=16, high=131_071, required=True
        ),
        parameter("bandwidth", RATE, "the link's rate", None, low=8_000, required=True),
        parameter("min", PACKETS, _START, None, low=1),
        parameter("max", PACKETS, _END, None, low=2),
        parameter("ecn", SWITCH, _ECN, default=False),
        *_averaging(),
    ),
)
SFB = Discipline(
    "sfb",
    "stochastic fair BLUE: a drop probability for each bin of flows",
    (
        parameter("limit", PACKETS, "maximum queue length", 1000, low=1, unset="the interface's"),
        parameter("max", PACKETS, "maximum queue length of a bin", 25, low=1, high=65_535),
        parameter(
            *("target", PACKETS, "packets of a bin above which more are dropped", 20),
            low=1,
            high=65_535,
        ),
        parameter("increment", SHARE, "step up of a bin's probability", 0.0005),
        parameter("decrement", SHARE, "step down of a bin's probability", 0.00005),
        parameter("penalty_rate", COUNT, "packets per second of flows that don't respond", 10),
        parameter("penalty_burst", PACKETS, "burst of packets of such flows", 20),
        parameter("rehash", TIME_US, "time between changes of the hash", 600_000_000, low=1_000),
        parameter("db", TIME_US, "warm-up of the next hash", 60_000_000, low=1_000),
    ),
    software=False,
)
