"""Disciplines that keep no state of flows or delays: FIFOs, priority bands, the token bucket.

tc-pfifo(8), tc-pfifo_fast(8), tc-prio(8), tc-tbf(8); net/sched/sch_{fifo,generic,prio,tbf}.c.
"""

from __future__ import annotations

from ccplay.model.discipline import KERNEL, SOFTWARE, Discipline, classes, parameter
from ccplay.model.quantities import COUNT, PACKETS, QUEUE_SIZE, RATE
from ccplay.model.texts import numbers

PFIFO = Discipline(
    "pfifo",
    "first in, first out; drops at the tail beyond a limit in packets",
    (parameter("limit", PACKETS, "maximum queue length", 100, low=1, required=True),),
    software=False,
)
BFIFO = Discipline(
    "bfifo",
    "first in, first out; drops at the tail beyond a limit in bytes",
    (parameter("limit", QUEUE_SIZE, "maximum queue length", 150_000, low=1514, required=True),),
    software=False,
)
PFIFO_FAST = Discipline(
    "pfifo_fast",
    "three FIFOs by the type of service, each with the interface's 1000 packets; Linux's own",
    (),
    software=False,
)
TBF = Discipline(
    "tbf",
    "token bucket: holds a rate, lets a burst through",
    (
        parameter("rate", RATE, "rate of tokens", None, low=8_000, required=True),
        parameter("burst", QUEUE_SIZE, "size of the bucket", 15_000, low=1514, required=True),
        parameter("limit", QUEUE_SIZE, "maximum queue length", 150_000, low=1514, required=True),
        parameter(
            "peakrate", RATE, "rate that no burst exceeds", None, low=8_000, unset="unlimited"
        ),
        parameter(
            *("mtu", QUEUE_SIZE, "size of the peak rate's bucket", None),
            low=1514,
            unset="needed with peakrate",
        ),
    ),
    software=False,
)
PRIO = Discipline(
    "prio",
    "strict priority between bands, by the type of service, each with its discipline",
    (
        parameter("limit", PACKETS, "maximum queue length of a band", 1000, low=1, only=SOFTWARE),
        parameter("bands", COUNT, "number of bands", 3, low=2, high=16),
        parameter(
            "priomap",
            numbers(16, 15),
            "the band of each of 16 priorities, from 0",
            "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            only=KERNEL,
        ),
        *classes("tos"),
    ),
)
