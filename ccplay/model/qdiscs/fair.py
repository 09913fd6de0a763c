"""Fair queueing: FQ, CAKE, SFQ, DRR, HHF.

tc-fq(8), tc-cake(8), tc-sfq(8), tc-drr(8); net/sched/sch_KIND.c.
"""

from __future__ import annotations

from ccplay.model.discipline import KERNEL, Discipline, Parameter, classes, parameter
from ccplay.model.quantities import (
    COUNT,
    PACKETS,
    QUEUE_SIZE,
    RATE,
    SHARE,
    SWITCH,
    TIME_US,
    WHOLE_SECONDS,
)
from ccplay.model.texts import choice

FLOW_MODES = (
    *("triple-isolate", "dual-srchost", "dual-dsthost", "flows", "hosts", "srchost", "dsthost"),
)
DIFFSERV_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
FRAMINGS = ("noatm", "atm", "ptm")
"""Values of cake's ``atm``: the framing of the link."""


def _switch(name: str, meaning: str, words: str, *, default: bool = False) -> Parameter:
    return parameter(name, SWITCH, meaning, default, only=KERNEL, tc=words)


FQ = Discipline(
    "fq",
    "a fair queue for each flow; the kernel's also keeps the pace that TCP set",
    (
        parameter("limit", PACKETS, "maximum queue length", 10_000, low=1),
        parameter("flow_limit", PACKETS, "maximum queue length of a flow", 100, low=1),
        parameter("quantum", QUEUE_SIZE, "bytes a flow sends in turn", 3028, low=256),
        parameter("ce_threshold", TIME_US, "mark packets that waited longer", None, unset="off"),
        parameter(
            "initial_quantum", QUEUE_SIZE, "bytes a new flow sends", 15_140, low=256, only=KERNEL
        ),
        parameter(
            *("maxrate", RATE, "maximum rate of a flow", None),
            low=8_000,
            unset="unlimited",
            only=KERNEL,
        ),
        _switch("pacing", "keep the pace of each socket", "pacing|nopacing", default=True),
        parameter(
            "buckets", COUNT, "buckets of the hash, a power of two", 1024, low=2, only=KERNEL
        ),
        parameter(
            *("refill_delay", TIME_US, "idle time that refills a flow's credit", 40_000),
            low=4_000,
            only=KERNEL,
        ),
        parameter(
            *("low_rate_threshold", RATE, "rate below which packets are paced one by one", 550_000),
            low=8_000,
            only=KERNEL,
        ),
        parameter(
            "orphan_mask", COUNT, "mask of the hash for packets without a socket", 1023, only=KERNEL
        ),
        parameter("timer_slack", TIME_US, "acceptable lateness of timers", 10, only=KERNEL),
        parameter(
            "horizon",
            TIME_US,
            "time ahead beyond which packets are refused",
            10_000_000,
            only=KERNEL,
        ),
        _switch(
            *("horizon_drop", "drop packets due later instead of sending them at the horizon"),
            "horizon_drop|horizon_cap",
            default=True,
        ),
    ),
)
CAKE = Discipline(
    "cake",
    "shaper, fair queues and CoDel in one, for home links",
    (
        parameter("bandwidth", RATE, "shape to this rate too", None, low=8_000, unset="unlimited"),
        parameter("rtt", TIME_US, "RTT that it is tuned for", 100_000, low=100),
        parameter(
            "flow_mode",
            choice("flow_mode", FLOW_MODES),
            "fairness between hosts, flows or both",
            "triple-isolate",
            tc="{}",
        ),
        parameter(
            *("diffserv_mode", choice("diffserv_mode", DIFFSERV_MODES)),
            *("priority classes", "diffserv3"),
            tc="{}",
        ),
        parameter(
            *("ack_filter", SWITCH, "drop ACKs that later ones replace"),
            default=False,
            tc="ack-filter|no-ack-filter",
        ),
        _switch(
            "ack_filter_aggressive", "keep one ACK of those that wait", "ack-filter-aggressive|"
        ),
        parameter("memlimit", QUEUE_SIZE, "maximum memory", None, low=1514),
        _switch("nat", "identify hosts behind NAT", "nat|nonat"),
        _switch("wash", "clear DSCP after use", "wash|nowash"),
        _switch("ingress", "shape incoming traffic: dropped packets count", "ingress|egress"),
        _switch("autorate_ingress", "estimate the rate from arrivals", "autorate-ingress|"),
        _switch("split_gso", "split long packets", "split-gso|no-split-gso", default=True),
        parameter(
            "overhead", COUNT, "bytes that the link adds to a packet", None, high=256, only=KERNEL
        ),
        parameter(
            "mpu", COUNT, "smallest packet on the link, in bytes", None, high=256, only=KERNEL
        ),
        parameter(
            *("atm", choice("framing", FRAMINGS), "framing of the link", "noatm"),
            only=KERNEL,
            tc="{}",
        ),
        parameter("fwmark", COUNT, "bits of firewall marks that choose a tin", 0, only=KERNEL),
    ),
)
SFQ = Discipline(
    "sfq",
    "stochastic fair queueing: flows hashed to queues served in turn",
    (
        parameter("limit", PACKETS, "maximum queue length", 127, low=2, high=65_536),
        parameter("flows", COUNT, "number of queues", 127, low=1, high=65_408),
        parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
        parameter(
            "perturb", WHOLE_SECONDS, "time between changes of the hash; 0: never", 0, high=3600
        ),
        parameter(
            *("divisor", COUNT, "size of the hash, a power of two", 1024),
            low=1,
            high=65_536,
            only=KERNEL,
        ),
        parameter(
            "depth", PACKETS, "maximum queue length of a flow", 127, low=1, high=127, only=KERNEL
        ),
        _switch("headdrop", "drop the oldest packet of a full queue", "headdrop|"),
        parameter(
            *("redflowlimit", QUEUE_SIZE, "RED on each queue: maximum queue length", None),
            low=3028,
            unset="no RED",
            only=KERNEL,
        ),
        parameter(
            *("min", QUEUE_SIZE, "RED: average queue where drops start", None),
            low=1,
            unset="max / 3",
            only=KERNEL,
        ),
        parameter(
            *("max", QUEUE_SIZE, "RED: average queue where all drop", None),
            low=2,
            unset="redflowlimit / 4",
            only=KERNEL,
        ),
        parameter("probability", SHARE, "RED: drop probability at max", 0.02, only=KERNEL),
        parameter(
            "avpkt", QUEUE_SIZE, "RED: bytes of an average packet", 1000, low=64, only=KERNEL
        ),
        parameter(
            "burst", PACKETS, "RED: packets that may arrive at once", None, low=1, only=KERNEL
        ),
        _switch("ecn", "RED: mark ECN packets instead of dropping", "ecn|"),
        _switch("harddrop", "RED: drop ECN packets too, above max", "harddrop|"),
    ),
)
DRR = Discipline(
    "drr",
    "deficit round robin: flows hashed to queues with equal shares in bytes",
    (
        parameter("limit", PACKETS, "maximum queue length", 1000, low=1),
        parameter("flows", COUNT, "number of queues", 1024, low=1, high=65_536),
        parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
        *classes("flow"),
    ),
    # The kernel's drr drops packets that no user-defined filter assigns to a class.
    in_kernel=False,
)
HHF = Discipline(
    "hhf",
    "heavy-hitter filter: flows that send much wait behind those that don't",
    (
        parameter("limit", PACKETS, "maximum queue length", 1000, low=1),
        parameter("quantum", QUEUE_SIZE, "bytes a bucket sends in turn", 1514, low=256),
        parameter("hh_limit", COUNT, "maximum number of heavy hitters", 2048, low=1),
        parameter(
            "reset_timeout", TIME_US, "time between resets of the counters", 40_000, low=4_000
        ),
        parameter("admit_bytes", QUEUE_SIZE, "bytes that make a heavy hitter", 131_072, low=1),
        parameter(
            "evict_timeout",
            TIME_US,
            "idle time after which a flow is no heavy hitter",
            1_000_000,
            low=4_000,
        ),
        parameter(
            "non_hh_weight",
            COUNT,
            "turns of other flows per turn of heavy hitters",
            2,
            low=1,
            high=100,
        ),
    ),
    software=False,
)
