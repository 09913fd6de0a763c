"""Commands that start and stop traffic."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.algorithms import DEFAULT
from ccplay.model.base import FEW, Command
from ccplay.model.quantities import FLAG, INTERVAL, PACKET_SIZE, RATE, SIZE, WHOLE, Field
from ccplay.model.texts import NAME, choice

KERNEL_PATH_MANAGERS = ("kernel-signal", "kernel-subflow")
"""Path managers of the kernel itself, with endpoints at the receiver or at the sender."""

PATH_MANAGERS = ("ndiffports", "fullmesh", *KERNEL_PATH_MANAGERS)
"""Ways in which an MPTCP connection obtains its subflows; the first is the default."""

PING_PROTOCOLS = ("icmp", "udp")
"""Protocols of pings; the first is the default."""

_UDP = Field(NAME, "The name of the cross traffic")
_SHORT_FLOWS = Field(NAME, "The name of the short flows", key="short-flows")


class StartFlow(Command, frozen=True):
    """Start a long-lived iperf3 transfer from ``src`` to ``dst``."""

    flow: Annotated[str | None, settings.FLOW] = None
    """Name of the flow; None takes the next free number."""
    src: Annotated[str | None, settings.SRC] = None
    """Sending host; None takes the first sender."""
    dst: Annotated[str | None, settings.DST] = None
    """Receiving host; None takes the peer of ``src``."""
    cc: Annotated[str | None, settings.CC] = None
    """Congestion control; None takes the sending host's default."""
    streams: Annotated[
        int,
        # 128 is iperf3's own limit.
        Field(
            *(WHOLE, "Parallel connections", 1, 128), label="streams", hint="parallel connections"
        ),
    ] = 1
    bytes: Annotated[int | None, settings.PAYLOAD] = None
    duration_s: Annotated[
        float | None, replace(settings.DURATION, label="or after", unset="no limit")
    ] = None
    ecn: Annotated[
        bool,
        Field(FLAG, "Negotiate ECN, so that queues can mark its packets instead of dropping them"),
    ] = False
    """Whether to negotiate ECN (RFC 3168); some algorithms, such as DCTCP, always do."""
    l4s: Annotated[
        bool,
        Field(FLAG, "Send data as ECT(1), which L4S queues keep apart (RFC 9331); includes ecn"),
    ] = False
    """Whether to send ECT(1). The kernel's TCP sends ECT(0), which is rewritten as packets leave
    the host."""
    dscp: Annotated[str, settings.DSCP] = DEFAULT
    monitor: Annotated[bool, settings.MONITOR] = False
    via: Annotated[Annotated[list[str], FEW] | None, settings.VIA] = None
    bidir: Annotated[bool, settings.BIDIR] = False
    """Whether data flow both ways, as with iperf3's ``--bidir`` and iperf's ``-d``; the lab answers
    with two commands."""
    senders: Annotated[
        int,
        Field(
            *(WHOLE, "Number of hosts that each send such a flow, from src on: an incast"),
            *(1, 128),
        ),
    ] = 1
    """Number of hosts that send; the lab answers with a command for each, whose names end in
    ``-2``, ``-3`` …"""
    mptcp: Annotated[
        bool, Field(FLAG, "Use Multipath TCP: one connection of several subflows (RFC 8684)")
    ] = False
    subflows: Annotated[
        int, Field(*(WHOLE, "Subflows of a flow over MPTCP, 2 by default", 1, 8))
    ] = 2
    path_manager: Annotated[
        str,
        Field(
            choice("path manager", PATH_MANAGERS),
            "How MPTCP gets subflows: ndiffports varies the source port, fullmesh the addresses; "
            "kernel-signal and kernel-subflow leave it to the kernel's path manager",
            key="path-manager",
        ),
    ] = PATH_MANAGERS[0]
    scheduler: Annotated[
        str | None,
        Field(NAME, "The MPTCP scheduler of Linux that shares the data between subflows"),
    ] = None
    """Scheduler, one of the sysctl ``net.mptcp.available_schedulers``; None takes the host's
    default."""


def conflict(command: StartFlow) -> tuple[str, str]:
    """Return a field that does not go with the flow's ``mptcp``, and the reason.

    Both are empty if there is no such field.
    """
    if command.mptcp:
        if command.streams > 1:
            return "streams", "a flow over mptcp has one stream: give it more subflows"
        if command.monitor:
            return "monitor", "packets of a flow over mptcp can't be monitored"
        if command.via:
            return "via", "subflows take paths of their own, which the path manager chooses"
        if command.dscp != DEFAULT:
            return "dscp", "packets of a flow over mptcp can't be given a code point"
        if command.l4s:
            return "l4s", "packets of a flow over mptcp can't be made ECT(1)"
        return "", ""
    plain = StartFlow()
    for name in ("subflows", "path_manager", "scheduler"):
        if getattr(command, name) != getattr(plain, name):
            return name, "only a flow with mptcp = true has it"
    return "", ""


class StopFlow(Command, frozen=True):
    """End a flow."""

    flow: Annotated[str, settings.FLOW]


class StartDownload(Command, frozen=True):
    """Fetch ``bytes`` from a web server on ``src`` with wget on ``dst``."""

    download: Annotated[str | None, settings.DOWNLOAD] = None
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    cc: Annotated[str | None, settings.CC] = None
    bytes: Annotated[
        int, replace(settings.PAYLOAD, label="size", hint="50 MB, 178 kB", unset="")
    ] = 177_669
    via: Annotated[Annotated[list[str], FEW] | None, settings.VIA] = None


class StopDownload(Command, frozen=True):
    """End a download."""

    download: Annotated[str, settings.DOWNLOAD]


class StartPing(Command, frozen=True):
    """Ping ``dst`` from ``src``."""

    ping: Annotated[str | None, settings.PING] = None
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    interval_s: Annotated[
        float,
        Field(
            INTERVAL,
            "Time between two pings, 200 ms by default",
            # ping(8) refuses much shorter intervals, and faster pings cost more than they reveal.
            *(0.01, 60),
            key="interval",
            label="every",
            hint="200 ms, 1 s",
        ),
    ] = 0.2
    count: Annotated[
        int | None,
        Field(
            *(WHOLE, "How many pings", 1, 1_000_000),
            label="how many",
            hint="pings",
            unset="until stopped",
        ),
    ] = None
    protocol: Annotated[
        str,
        Field(
            choice("protocol", PING_PROTOCOLS),
            "The protocol: icmp, by ping(8), or udp, datagrams that the receiver returns",
        ),
    ] = PING_PROTOCOLS[0]
    dscp: Annotated[str, settings.DSCP] = DEFAULT


class StopPing(Command, frozen=True):
    """End a ping."""

    ping: Annotated[str, settings.PING]


class StartUdp(Command, frozen=True):
    """Send UDP packets from ``src`` to ``dst`` at a constant rate: cross traffic."""

    udp: Annotated[str | None, _UDP] = None
    """Name of the UDP traffic; None takes the next free one: ``u1``, ``u2`` …"""
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "Rate of payload",
            *(1_000, 1_000_000_000),
            key="rate",
            label="rate",
            hint="of payload: 1 kbit/s to 1 Gbit/s",
        ),
    ] = 1_000_000
    packet_bytes: Annotated[
        int,
        Field(
            PACKET_SIZE,
            "Payload of each packet, 1024 bytes by default",
            # iperf3 numbers its packets in the first 16 bytes; UDP over IPv4 carries 65507 at most.
            *(16, 65_507),
            key="packet",
            label="packets of",
            hint="payload: 16 to 65507 bytes",
        ),
    ] = 1024
    """Payload of each packet in bytes; one that exceeds the links' MTU is fragmented."""
    duration_s: Annotated[float | None, settings.DURATION] = None
    monitor: Annotated[bool, settings.MONITOR] = False
    via: Annotated[Annotated[list[str], FEW] | None, settings.VIA] = None
    bidir: Annotated[bool, settings.BIDIR] = False
    """Whether data flow both ways, as with iperf3's ``--bidir`` and iperf's ``-d``; the lab answers
    with two commands."""


class StopUdp(Command, frozen=True):
    """End cross traffic."""

    udp: Annotated[str, _UDP]


class StartShortFlows(Command, frozen=True):
    """Start TCP transfers that arrive at random, each over a connection of its own."""

    short_flows: Annotated[str | None, _SHORT_FLOWS] = None
    """Name that all these short flows share; None takes the next free one: ``x1``, ``x2`` …"""
    src: Annotated[str | None, settings.SRC] = None
    dst: Annotated[str | None, settings.DST] = None
    cc: Annotated[str | None, settings.CC] = None
    rate_bps: Annotated[
        int,
        Field(
            RATE,
            "The mean load: payload of the transfers that start",
            *(1_000, 1_000_000_000),
            key="rate",
            label="load",
            hint="mean payload: 1 kbit/s to 1 Gbit/s",
        ),
    ] = 2_000_000
    bytes: Annotated[
        int,
        Field(
            *(SIZE, "Mean payload of a transfer", 1_000, 1_000_000_000),
            label="mean size",
            hint="of a transfer: 1 kB to 1 GB",
        ),
    ] = 100_000
    sizes: Annotated[
        str,
        Field(
            choice("distribution of sizes", ("fixed", "pareto")),
            "Sizes: all fixed, or heavy-tailed (bounded Pareto, shape 1.2)",
        ),
    ] = "pareto"
    seed: Annotated[
        int,
        Field(
            *(WHOLE, "The same seed gives the same transfers", 0, 1_000_000),
            label="seed",
            hint="the same gives the same transfers",
        ),
    ] = 1
    """Seed of the transfers' moments and sizes."""
    duration_s: Annotated[
        float | None,
        replace(
            settings.DURATION, meaning="Time after the first start within which transfers start"
        ),
    ] = None
    count: Annotated[
        int | None,
        Field(
            *(WHOLE, "How many transfers start", 1, 1_000_000),
            label="or after",
            hint="transfers",
            unset="no limit",
        ),
    ] = None
    via: Annotated[Annotated[list[str], FEW] | None, settings.VIA] = None


class StopShortFlows(Command, frozen=True):
    """End short flows; unfinished transfers are aborted."""

    short_flows: Annotated[str, _SHORT_FLOWS]


StartTraffic: TypeAlias = StartFlow | StartDownload | StartPing | StartUdp | StartShortFlows
StopTraffic: TypeAlias = StopFlow | StopDownload | StopPing | StopUdp | StopShortFlows
