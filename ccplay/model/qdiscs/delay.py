"""Disciplines that control queueing delay: CoDel, PIE, and those based on them.

tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8), tc-dualpi2(8); net/sched/sch_KIND.c.
"""

from __future__ import annotations

from ccplay.model.discipline import KERNEL, Discipline, Parameter, parameter
from ccplay.model.quantities import COUNT, PACKETS, QUEUE_SIZE, SWITCH, TIME_US

_ECN = "mark ECN packets instead of dropping"


def _codel(limit: int, *, ecn: bool) -> tuple[Parameter, ...]:
    """Return the parameters of CoDel, whose defaults depend on the discipline."""
    return (
        parameter("limit", PACKETS, "maximum queue length", limit, low=1),
        parameter("target", TIME_US, "acceptable standing delay", 5_000, low=1),
        parameter("interval", TIME_US, "allowed time above target", 100_000, low=1),
        parameter("ecn", SWITCH, _ECN, ecn, tc="ecn|noecn"),
        parameter(
            "ce_threshold", TIME_US, "mark packets that waited longer", None, low=1, unset="off"
        ),
    )


def _pie(limit: int) -> tuple[Parameter, ...]:
    """Return the parameters of PIE."""
    return (
        parameter("limit", PACKETS, "maximum queue length", limit, low=1),
        parameter("target", TIME_US, "acceptable standing delay", 15_000, low=1),
        parameter("alpha", COUNT, "weight of the delay's distance from target", 2, high=32),
        parameter("beta", COUNT, "weight of the delay's change", 20, high=32),
        parameter("ecn", SWITCH, _ECN, default=False, tc="ecn|noecn"),
        parameter(
            *("tupdate", TIME_US, "time between updates, in ticks of the kernel", 15_000),
            low=4_000,
            only=KERNEL,
        ),
        parameter(
            *("bytemode", SWITCH, "drop large packets rather than small ones"),
            default=False,
            only=KERNEL,
            tc="bytemode|nobytemode",
        ),
        parameter(
            *("dq_rate_estimator", SWITCH, "estimate the delay from the rate of departures"),
            default=False,
            only=KERNEL,
            tc="dq_rate_estimator|no_dq_rate_estimator",
        ),
    )


def _fair() -> tuple[Parameter, ...]:
    """Return the parameters of FQ-CoDel and FQ-PIE for fair queueing, with a limit on memory."""
    return (
        parameter("flows", COUNT, "number of queues", 1024, low=1, high=65_536),
        parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
        parameter("memory_limit", QUEUE_SIZE, "maximum memory", 33_554_432),
    )


CODEL = Discipline(
    "codel",
    "controls the time that packets wait, not their number (RFC 8289)",
    _codel(1000, ecn=False),
)
FQ_CODEL = Discipline(
    "fq_codel",
    "a fair queue for each flow, CoDel on each (RFC 8290)",
    (
        *_codel(10_240, ecn=True),
        *_fair(),
        parameter(
            "drop_batch",
            PACKETS,
            "packets dropped at once when full",
            64,
            low=1,
            only=KERNEL,
        ),
        parameter(
            *("ce_threshold_selector", COUNT, "ce_threshold is for these DSCP and ECN bits", None),
            high=255,
            unset="all packets",
            only=KERNEL,
        ),
        parameter(
            *("ce_threshold_mask", COUNT, "bits that the selector compares", None),
            high=255,
            unset="all packets",
            only=KERNEL,
        ),
    ),
)
PIE = Discipline(
    "pie",
    "drops at random so that the queueing delay stays at a target (RFC 8033)",
    _pie(1000),
)
FQ_PIE = Discipline(
    "fq_pie",
    "a fair queue for each flow, PIE on each",
    (
        *_pie(10_240),
        *_fair(),
        parameter(
            *("ecn_prob", COUNT, "percent of drops above which ECN packets are dropped too", 10),
            high=100,
            only=KERNEL,
        ),
    ),
)
DUALPI2 = Discipline(
    "dualpi2",
    "a queue for L4S flows beside a classic one, marks and drops coupled (RFC 9332)",
    (
        parameter("limit", PACKETS, "maximum queue length", 10_000, low=1),
        parameter("target", TIME_US, "delay of the classic queue", 15_000, low=1),
        parameter("tupdate", TIME_US, "time between updates", 16_000, low=1_000),
        parameter("max_rtt", TIME_US, "longest RTT of its flows", 100_000, low=1_000),
        parameter("step_thresh", TIME_US, "mark L4S packets that waited longer", 1_000, low=1),
        parameter("coupling_factor", COUNT, "L4S marks per classic one", 2, low=1, high=16),
        parameter(
            *("classic_protection", COUNT, "percent of the link reserved for classic", 10),
            high=100,
            tc="classic_protection {}%",
        ),
        parameter("memlimit", QUEUE_SIZE, "maximum memory", None, low=1514, only=KERNEL),
        parameter(
            *("min_qlen_step", PACKETS, "L4S packets that must wait before the step marks", 0),
            only=KERNEL,
        ),
        parameter(
            *("drop_on_overload", SWITCH, "drop on overload instead of letting the queue grow"),
            default=True,
            only=KERNEL,
            tc="drop_on_overload|overflow",
        ),
        parameter(
            *("drop_enqueue", SWITCH, "drop as packets arrive instead of as they leave"),
            default=False,
            only=KERNEL,
            tc="drop_enqueue|drop_dequeue",
        ),
        parameter(
            *("any_ect", SWITCH, "all ECN packets use the L4S queue, not those of ECT(1) alone"),
            default=False,
            only=KERNEL,
            tc="any_ect|l4s_ect",
        ),
        parameter(
            *("split_gso", SWITCH, "split long packets before they wait"),
            default=True,
            only=KERNEL,
            tc="split_gso|no_split_gso",
        ),
    ),
)
