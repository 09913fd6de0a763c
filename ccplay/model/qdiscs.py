"""The queue disciplines with their parameters, as ``tc`` has them.

Plain data; ``model.disciplines`` has their table and the functions that read it.
"""

from __future__ import annotations

import msgspec

from ccplay.model.base import Option
from ccplay.model.quantities import (
    COUNT,
    PACKETS,
    QUEUE_SIZE,
    RATE,
    SHARE,
    SWITCH,
    TIME_US,
    WHOLE_SECONDS,
    Field,
    Quantity,
    did_you_mean,
    quote,
)
from ccplay.model.texts import choice, numbers

# --- the description of a queue discipline: its name, its effect, and its parameters as fields ----

KERNEL, SOFTWARE = "kernel", "software"
"""Implementations of a discipline, which may differ in parameters: the kernel's, and ccplay's in
software."""


class Parameter(Field, frozen=True):
    """A parameter of a discipline: a field, and its spelling for ``tc``."""

    only: str = ""
    """Implementation that has the parameter, ``KERNEL`` or ``SOFTWARE``; empty if both have it."""
    tc: str = ""
    """Words for tc(8) with ``{}`` for the value; if empty, the name and the value.

    For a switch, the word for on and the word for off, separated by ``|``."""


class DisciplineKind(msgspec.Struct, frozen=True):
    """A queue discipline."""

    kind: str
    summary: str
    """Effect on packets, in one line."""
    parameters: tuple[Parameter, ...]
    software: bool = True
    """Whether ccplay has the discipline in software, in ``lab/disciplines``."""
    in_kernel: bool = True
    """Whether ccplay can request the discipline from a kernel."""
    open: bool = False
    """Whether the model accepts any parameter, as only the discipline's file defines them."""

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [each.name for each in self.parameters]

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by name. Raises ``ValueError`` for an unknown one."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise ValueError(
            f"{self.kind} has no parameter {quote(name)}{did_you_mean(name, self.names)}"
        )

    def of(self, who: str) -> tuple[Parameter, ...]:
        """Return the parameters of one implementation, ``KERNEL`` or ``SOFTWARE``."""
        return tuple(each for each in self.parameters if each.only in ("", who))


def parameter(
    name: str,
    quantity: Quantity,
    meaning: str,
    default: Option | None = None,
    *,
    low: int = 0,
    high: int = 2**31 - 1,
    required: bool = False,
    unset: str = "computed",
    only: str = "",
    tc: str = "",
) -> Parameter:
    """Return a parameter; ``default`` is None if the kernel computes it.

    The kernel refuses a request without a ``required`` parameter.
    """
    bounded = quantity.type is int
    return Parameter(
        *(quantity, meaning, low if bounded else None, high if bounded else None),
        default=default,
        required=required,
        key=name,
        unset=unset,
        name=name,
        only=only,
        tc=tc,
    )


def _switch(name: str, meaning: str, words: str = "", *, default: bool = False) -> Parameter:
    """Return a switch that only the kernel's discipline has; ``words`` are those for tc(8)."""
    return parameter(name, SWITCH, meaning, default, only=KERNEL, tc=words)


def classes(by: str) -> tuple[Parameter, ...]:
    """Return the parameters of a discipline with classes; ``by`` is how packets select one."""
    ways = ("tos", "dscp", "flow", "source", "destination")
    inner = ("pfifo", "codel", "pie", "fq_codel", "fq_pie", "fq", "sfq")
    return (
        parameter(
            "by", choice("by", ways), "part of a packet that selects its class", by, only=SOFTWARE
        ),
        parameter(
            "inner", choice("inner", inner), "the discipline in each class", "pfifo", only=SOFTWARE
        ),
    )


# --- FIFOs, priority bands, the token bucket: no state of flows or delays -------------------------
# tc-pfifo(8), tc-pfifo_fast(8), tc-prio(8), tc-tbf(8); net/sched/sch_{fifo,generic,prio,tbf}.c.

PFIFO = DisciplineKind(
    "pfifo",
    "first in, first out; drops at the tail beyond a limit in packets",
    (parameter("limit", PACKETS, "maximum queue length", 100, low=1, required=True),),
)
BFIFO = DisciplineKind(
    "bfifo",
    "first in, first out; drops at the tail beyond a limit in bytes",
    (parameter("limit", QUEUE_SIZE, "maximum queue length", 150_000, low=1514, required=True),),
)
PFIFO_FAST = DisciplineKind(
    "pfifo_fast",
    "three FIFOs by the type of service, each with the interface's 1000 packets; Linux's own",
    (),
    software=False,
)
TBF = DisciplineKind(
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
PRIO = DisciplineKind(
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


# --- disciplines that drop early, depending on the queue's length: RED, CHOKe, SFB ----------------
# tc-red(8), tc-choke(8), tc-sfb(8); net/sched/sch_KIND.c.

_ECN = "mark ECN packets instead of dropping"
_START, _END = "average queue where drops start", "average queue where all drop"


def _averaging() -> tuple[Parameter, ...]:
    """Return the parameters of RED and CHOKe for averaging, which only the kernel has."""
    return (
        parameter("burst", PACKETS, "packets that may arrive at once", None, low=1, only=KERNEL),
        parameter("probability", SHARE, "drop probability at max", 0.02, only=KERNEL),
    )


RED = DisciplineKind(
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
        _switch("harddrop", "drop ECN packets, too, above max"),
        _switch("nodrop", "with ecn: never drop other packets"),
    ),
)
CHOKE = DisciplineKind(
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
SFB = DisciplineKind(
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


# --- disciplines that control queueing delay: CoDel, PIE, and those based on them -----------------
# tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8), tc-dualpi2(8); net/sched/sch_KIND.c.


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
        _switch("bytemode", "drop large packets rather than small ones", "bytemode|nobytemode"),
        _switch(
            *("dq_rate_estimator", "estimate the delay from the rate of departures"),
            "dq_rate_estimator|no_dq_rate_estimator",
        ),
    )


def _fair() -> tuple[Parameter, ...]:
    """Return the parameters of FQ-CoDel and FQ-PIE for fair queueing, with a limit on memory."""
    return (
        parameter("flows", COUNT, "number of queues", 1024, low=1, high=65_536),
        parameter("quantum", QUEUE_SIZE, "bytes a queue sends in turn", 1514, low=256),
        parameter("memory_limit", QUEUE_SIZE, "maximum memory", 33_554_432),
    )


CODEL = DisciplineKind(
    "codel",
    "controls the time that packets wait, not their number (RFC 8289)",
    _codel(1000, ecn=False),
)
FQ_CODEL = DisciplineKind(
    "fq_codel",
    "a fair queue for each flow, CoDel on each (RFC 8290)",
    (
        *_codel(10_240, ecn=True),
        *_fair(),
        parameter(
            "drop_batch", PACKETS, "packets dropped at once when full", 64, low=1, only=KERNEL
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
PIE = DisciplineKind(
    "pie", "drops at random so that the queueing delay stays at a target (RFC 8033)", _pie(1000)
)
FQ_PIE = DisciplineKind(
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
DUALPI2 = DisciplineKind(
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
        _switch(
            *("drop_on_overload", "drop on overload instead of letting the queue grow"),
            "drop_on_overload|overflow",
            default=True,
        ),
        _switch(
            *("drop_enqueue", "drop as packets arrive instead of as they leave"),
            "drop_enqueue|drop_dequeue",
        ),
        _switch(
            *("any_ect", "all ECN packets use the L4S queue, not those of ECT(1) alone"),
            "any_ect|l4s_ect",
        ),
        _switch(
            *("split_gso", "split long packets before they wait"),
            "split_gso|no_split_gso",
            default=True,
        ),
    ),
)


# --- fair queueing: FQ, CAKE, SFQ, DRR, HHF -------------------------------------------------------
# tc-fq(8), tc-cake(8), tc-sfq(8), tc-drr(8); net/sched/sch_KIND.c.

FLOW_MODES = (
    *("triple-isolate", "dual-srchost", "dual-dsthost", "flows", "hosts", "srchost", "dsthost"),
)
DIFFSERV_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
FRAMINGS = ("noatm", "atm", "ptm")
"""Values of cake's ``atm``: the framing of the link."""

FQ = DisciplineKind(
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
CAKE = DisciplineKind(
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
SFQ = DisciplineKind(
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
        _switch("headdrop", "drop the oldest packet of a full queue"),
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
        _switch("ecn", "RED: mark ECN packets instead of dropping"),
        _switch("harddrop", "RED: drop ECN packets too, above max"),
    ),
)
DRR = DisciplineKind(
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
HHF = DisciplineKind(
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
