"""What commands and events carry: settings of links, features; and the bounds of settings."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ccplay.model import settings
from ccplay.model.base import FEW, MANY, Count, Duration, Option, Value
from ccplay.model.distributions import UNIFORM
from ccplay.model.fields import Field
from ccplay.model.quantities import OCTETS, SHARE
from ccplay.model.texts import NAME

MOST_VARIABLES = 48
"""Most variables of a flow or a queue."""

INFINITE_SSTHRESH = 0x7FFFFFFF
"""``TCP_INFINITE_SSTHRESH`` of include/net/tcp.h; it travels as None."""

MOST_SEGMENTS = 1 << 24
"""Greatest cwnd or ssthresh that a path can hold, in segments: three minutes of 1 Gbit/s."""


class Qdisc(Value, frozen=True):
    """A queue discipline and its parameters, as ``tc-KIND(8)`` names them.

    ``limit`` is in packets for pfifo, in bytes for bfifo and tbf; times are in microseconds.
    """

    kind: str
    options: Annotated[dict[str, Option], FEW] = {}


class TrafficClass(Value, frozen=True):
    """A queue of its own for some of a link's traffic, with a share of the rate; tc-htb(8)."""

    name: Annotated[str, Field(NAME, "What it is called")]
    share: Annotated[float, Field(SHARE, "The part of the link's rate that it is sure of", 0.01, 1)]
    """Share of the link's rate that the class is sure of; it borrows what the others leave."""
    traffic: Annotated[list[str], MANY] = []
    """Names of traffic, or all of a kind: the plural of one of ``traffic.TRAFFIC``."""
    qdisc: Qdisc | None = None
    """Queue of the class; None takes the link's own."""


class LinkSetting(Value, frozen=True):
    """What one direction of a link does to packets. None leaves a field as it is."""

    rate: Annotated[int | None, settings.LINK_RATE] = None
    delay_us: Annotated[int | None, settings.DELAY] = None
    jitter_us: Annotated[int | None, settings.JITTER] = None
    loss: Annotated[float | None, settings.LOSS] = None
    qdisc: Qdisc | None = None
    """The queue in front of the link, where it has no classes."""
    classes: Annotated[list[TrafficClass], FEW] | None = None
    """Several queues that share the rate; the last takes what no class names. Empty: one queue."""
    mtu: Annotated[
        int | None,
        Field(
            OCTETS,
            "Bytes of the largest IP packet, of both directions at once; 1500 by default",
            # Below 296, Linux does not advertise a segment that fits (route.min_adv_mss, 256).
            *(296, 1500),
        ),
    ] = None
    mark: Annotated[int | None, settings.MARK] = None
    """Packets are counted as bytes, each of them as the MTU and its Ethernet header.

    With offloads one packet of the queue is up to 45 of the wire. Disciplines mark besides.
    """
    down: Annotated[bool | None, settings.DOWN] = None
    """Whether both directions are down. Rate and queue are kept, what waits in the queue is
    lost."""
    distribution: Annotated[str | None, settings.DISTRIBUTION] = None
    gemodel: Annotated[Annotated[list[float], FEW] | None, settings.BURST_LOSS] = None
    reorder: Annotated[float | None, settings.REORDER] = None
    duplicate: Annotated[float | None, settings.DUPLICATE] = None
    corrupt: Annotated[float | None, settings.CORRUPT] = None

    def changed_by(self, other: object) -> LinkSetting:
        """Return this setting with every field that ``other`` sets: a setting, or a ``SetLink``."""
        wanted = {name: getattr(other, name, None) for name in self.__struct_fields__}
        changes = {name: value for name, value in wanted.items() if value is not None}
        return msgspec.structs.replace(self, **changes)


LINK_OFF: dict[str, Any] = {"gemodel": [], "distribution": UNIFORM}
"""Values of ``LinkSetting``'s fields that are no numbers where they are off; the others are 0."""


class Feature(Value, frozen=True):
    """Something that this machine has or lacks: an algorithm, a discipline, a tool."""

    name: str
    available: bool
    summary: str = ""
    """Description in one line."""
    reason: str = ""
    """Reason for which it is missing."""
    remedy: str = ""
    """What to do about it."""
    required: bool = False
    """A lab can't run without it."""


class Monitored(Value, frozen=True):
    """What was seen of a flow's packets between IP in its sending and IP in its receiving host.

    A packet is a whole one: put together from its fragments, with offloads each segment of a long
    one; one sent again is another. Those without payload do not count.
    """

    sent: Count
    """Number of packets sent; while some are under way, until the newest that arrived."""
    received: Count
    received_bytes: Count
    """Bytes of payload received."""
    delay_mean_us: Duration | None
    """Mean one-way delay of the packets that arrived, queues included; None where none did."""
    delay_min_us: Duration | None
    delay_max_us: Duration | None


class Capabilities(Value, frozen=True):
    """What the lab's kernel and machine offer, and what they lack with reason and remedy."""

    kernel: str
    privilege: str
    """``root`` or ``rootless``."""
    congestion_controls: Annotated[list[Feature], FEW]
    qdiscs: Annotated[list[Feature], FEW]
    delay_engines: Annotated[list[Feature], FEW]
    tools: Annotated[list[Feature], FEW]
    classifiers: Annotated[list[Feature], FEW] = []
    """What puts packets into classes."""
    markers: Annotated[list[Feature], FEW] = []
    """What marks packets with CE in front of any discipline."""
    monitors: Annotated[list[Feature], FEW] = []
    """What follows packets from host to host."""
    tracepoints: Annotated[list[Feature], FEW] = []
    """Tracepoints that report every acknowledgement of a flow."""
    mptcp: Annotated[list[Feature], FEW] = []
    """What gives flows several paths; empty where the lab did not say."""
    schedulers: Annotated[list[Feature], FEW] = []
    """What shares the data of an MPTCP connection between its subflows."""
    cpus: int = 0
    """Number of CPUs that the lab may use; 0 where it did not report it."""
    python: str = ""
    """The version that the lab runs on."""
