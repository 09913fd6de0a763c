"""Values in commands and events, with their bounds: settings of links, features, capabilities."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.algorithms import UNIFORM
from ccplay.model.base import FEW, MANY, Count, Duration, Option, Value
from ccplay.model.moving import Trace
from ccplay.model.quantities import OCTETS, SHARE, Field
from ccplay.model.texts import NAME

_PACKAGES = re.compile(r"apt install ([a-z0-9][a-z0-9.+-]*(?: [a-z0-9][a-z0-9.+-]*)*)")

MOST_VARIABLES = 48
"""Largest number of variables of a flow or a queue."""

INFINITE_SSTHRESH = 0x7FFFFFFF
"""ssthresh without a limit, ``TCP_INFINITE_SSTHRESH`` of include/net/tcp.h; None in events."""

MOST_SEGMENTS = 1 << 24
"""Largest credible cwnd or ssthresh in segments: three minutes of data at 1 Gbit/s."""


class Qdisc(Value, frozen=True):
    """A queue discipline and its parameters, named as in ``tc-KIND(8)``.

    ``limit`` is in packets for pfifo, in bytes for bfifo and tbf; times are in microseconds.
    """

    kind: str
    options: Annotated[dict[str, Option], FEW] = {}


class TrafficClass(Value, frozen=True):
    """A queue of its own for some of a link's traffic, with a share of the rate; tc-htb(8)."""

    name: Annotated[str, Field(NAME, "Name of the class")]
    share: Annotated[float, Field(SHARE, "Guaranteed share of the link's rate", 0.01, 1)]
    """Guaranteed share of the link's rate; the class also borrows what the others leave."""
    traffic: Annotated[list[str], MANY] = []
    """Names of traffic, or of whole kinds by their plural in ``traffic.TRAFFIC``: ``flows``."""
    qdisc: Qdisc | None = None
    """Queue of the class; None takes the link's own."""


class LinkFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a link that commands change while packets flow. None leaves one as it is."""

    rate: Annotated[int | None, settings.LINK_RATE] = None
    delay_us: Annotated[int | None, settings.DELAY] = None
    jitter_us: Annotated[int | None, settings.JITTER] = None
    loss: Annotated[float | None, settings.LOSS] = None
    mark: Annotated[int | None, settings.MARK] = None
    """Queue length, in full packets, from which on arriving packets are marked with CE.

    A full packet is the MTU and its Ethernet header. With offloads, one packet in the queue may
    become up to 45 on the wire. Disciplines may mark packets too."""
    down: Annotated[bool | None, settings.DOWN] = None
    """Whether both directions are down. Rate and queue are kept; waiting packets are lost."""
    distribution: Annotated[str | None, settings.DISTRIBUTION] = None
    gemodel: Annotated[Annotated[list[float], FEW] | None, settings.BURST_LOSS] = None
    reorder: Annotated[float | None, settings.REORDER] = None
    duplicate: Annotated[float | None, settings.DUPLICATE] = None
    corrupt: Annotated[float | None, settings.CORRUPT] = None

    trace: Annotated[Trace | None, settings.TRACE] = None
    """What moves rate, delay and loss over time. Packets then wait in ccplay's own discipline."""

    @property
    def is_paced(self) -> bool:
        """Whether what moves the link gives its rate; the link's own then waits for its end."""
        return self.trace is not None and self.trace.has_rate

    def changes(self) -> dict[str, Any]:
        """Return the settings that are not None by field."""
        found = ((name, getattr(self, name)) for name in LINK_FIELDS)
        return {name: value for name, value in found if value is not None}

    def restored(self, field: str) -> Any:
        """Return the value of a field with which a command restores this setting.

        A setting that was never made is None here; its value turns it off.
        """
        return getattr(self, field) or LINK_OFF.get(field, 0)


LINK_FIELDS = LinkFields.__struct_fields__
"""Names of the settings of a link that commands change."""


class LinkSetting(Value, LinkFields, frozen=True):
    """The settings of one direction of a link. None leaves a setting as it is."""

    qdisc: Qdisc | None = None
    """Queue in front of the link, if it has no classes."""
    classes: Annotated[list[TrafficClass], FEW] | None = None
    """Queues that share the rate; the last one serves all traffic that no class names. An empty
    list is a single queue."""
    mtu: Annotated[
        int | None,
        Field(
            OCTETS,
            "Bytes of the largest IP packet, of both directions at once; 1500 by default",
            # Below 296, Linux does not advertise a segment that fits (route.min_adv_mss, 256).
            *(296, 1500),
        ),
    ] = None

    def queue_of(self, name: str | None) -> Qdisc | None:
        """Return the queue of a class, or of the link itself if ``name`` is None."""
        if name is None:
            return self.qdisc
        return next((each.qdisc for each in self.classes or () if each.name == name), None)

    def changed_by(self, other: msgspec.Struct) -> LinkSetting:
        """Return this setting with every field set by ``other``: a setting, or a link's command."""
        wanted = {name: getattr(other, name, None) for name in self.__struct_fields__}
        changes = {name: value for name, value in wanted.items() if value is not None}
        return replace(self, **changes)


LINK_OFF: dict[str, Any] = {"gemodel": [], "distribution": UNIFORM, "down": False, "trace": Trace()}
"""Values that turn off the fields of ``LinkFields`` that are not numbers; 0 turns off numbers."""


class Feature(Value, frozen=True):
    """A feature that this machine has or lacks: an algorithm, a discipline, a tool."""

    name: str
    available: bool
    summary: str = ""
    """Description in one line."""
    reason: str = ""
    """Reason why the feature is missing."""
    remedy: str = ""
    """Remedy if the feature is missing."""
    required: bool = False
    """Whether a lab can't run without the feature."""

    @property
    def packages(self) -> list[str]:
        """The packages of Debian that bring the missing feature, as its remedy names them."""
        found = _PACKAGES.search(self.remedy)
        return [] if self.available or found is None else found[1].split()


def install_line(features: Iterable[Feature]) -> str:
    """Return one command that installs the packages of all missing features; empty for none."""
    packages = {package for feature in features for package in feature.packages}
    return f"apt install {' '.join(sorted(packages))}" if packages else ""


class Monitored(Value, frozen=True):
    """Counts of a flow's packets between IP in the sending and IP in the receiving host.

    Fragments are counted as the one packet that they form, and a long packet of an offload as its
    segments. A retransmission is another packet; packets without payload do not count.
    """

    sent: Count
    """Number of packets sent; while some are in flight, up to the newest that arrived."""
    received: Count
    received_bytes: Count
    """Payload received in bytes."""
    delay_mean_us: Duration | None
    """Mean one-way delay in µs of the packets that arrived, queues included; None if none did."""
    delay_min_us: Duration | None
    delay_max_us: Duration | None


class Capabilities(Value, frozen=True):
    """The features of the lab's kernel and machine; missing ones have a reason and a remedy."""

    kernel: str
    privilege: str
    """Privilege of the lab: ``root`` or ``rootless``."""
    congestion_controls: Annotated[list[Feature], FEW]
    qdiscs: Annotated[list[Feature], FEW]
    delay_engines: Annotated[list[Feature], FEW]
    tools: Annotated[list[Feature], FEW]
    classifiers: Annotated[list[Feature], FEW] = []
    """Features that assign packets to classes."""
    markers: Annotated[list[Feature], FEW] = []
    """Features that mark packets with CE in front of any discipline."""
    monitors: Annotated[list[Feature], FEW] = []
    """Features that follow packets from host to host."""
    tracepoints: Annotated[list[Feature], FEW] = []
    """Tracepoints that report every acknowledgement of a flow."""
    mptcp: Annotated[list[Feature], FEW] = []
    """Features that give flows several paths; empty if the lab did not report them."""
    schedulers: Annotated[list[Feature], FEW] = []
    """Schedulers that distribute the data of an MPTCP connection over its subflows."""
    cpus: int = 0
    """Number of CPUs that the lab may use; 0 if it did not report it."""
    python: str = ""
    """Version of Python that runs the lab."""
