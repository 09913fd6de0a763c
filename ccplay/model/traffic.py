"""The kinds of traffic, each described once: every stage of the program iterates over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ccplay.model.algorithms import DEFAULT
from ccplay.model.base import Command, Event
from ccplay.model.traffic_commands import (
    PING_PROTOCOLS,
    StartDownload,
    StartFlow,
    StartPing,
    StartShortFlows,
    StartTraffic,
    StartUdp,
    StopDownload,
    StopFlow,
    StopPing,
    StopShortFlows,
    StopTraffic,
    StopUdp,
)
from ccplay.model.traffic_events import (
    DownloadEnded,
    DownloadProgress,
    DownloadStarted,
    FlowEnded,
    FlowStarted,
    PingEnded,
    PingSample,
    PingStarted,
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
    UdpEnded,
    UdpSample,
    UdpStarted,
)
from ccplay.model.variables import (
    DOWNLOAD_VARIABLES,
    PING_VARIABLES,
    SHORT_FLOW_VARIABLES,
    Cells,
    columns,
)
from ccplay.units import format_rate, format_size


class Samples(msgspec.Struct, frozen=True, eq=False):
    """The measurements of a kind of traffic while it runs, and the table that exports them."""

    event: type[Event]
    columns: Mapping[str, tuple[str, Cells]]
    """Name and cell type of a column, by field of the event; a list field has one row per item."""
    about: str
    """Meaning of a row."""


class TrafficKind(msgspec.Struct, frozen=True, eq=False):
    """A kind of traffic: its names, its commands and events, and what ends it."""

    name: str
    """Name of the kind, such as ``flow``; with underscores it names the field of its commands."""
    plural: str
    """Name of all traffic of the kind in classes of links: ``flows``."""
    prefix: str
    """Prefix of the names that ccplay assigns: ``p`` yields ``p1``, ``p2`` …"""
    start: type[Command]
    stop: type[Command]
    started: type[Event]
    ended: type[Event]
    limits: tuple[str, ...] = ()
    """Fields of ``start`` any of which makes the traffic end by itself."""
    always_ends: bool = False
    """Whether the traffic ends by itself regardless of ``start``."""
    limit_words: str = ""
    """Settings that make the traffic end, as written in scenarios."""
    connection: bool = False
    """Whether the traffic is one set of TCP connections, which are sampled, traced and switched."""
    many_paths: bool = False
    """Whether the traffic consists of transfers that may take different paths."""
    fills: bool = True
    """Whether the traffic sends enough to fill a queue."""
    progress: tuple[type[Event], ...] = ()
    """Events sent while the traffic runs, at their own moments between the sweeps."""
    exported: Samples | None = None
    label: str = ""
    """Name of the kind on the screen; if empty, ``name``."""
    about: str = ""
    """Name of the kind in a sentence: ``cross traffic``; if empty, ``word``."""
    gist: Callable[[Any], str] = lambda _: ""
    """Function that returns the text that the event log shows of a start, apart from its path."""
    offer: str = ""
    """Line of the palette that starts the traffic; empty if there is none, or one per algorithm."""
    offer_gist: Callable[[Any], str] = lambda _: ""
    """Function that returns the text that the palette shows of a start, apart from its path."""

    @property
    def field(self) -> str:
        """Field of commands and events that holds the traffic's name: ``flow``, ``short_flows``."""
        return self.name.replace("-", "_")

    @property
    def group(self) -> str:
        """Key of the kind's results: ``flows``, ``short_flows``."""
        return self.plural.replace("-", "_")

    @property
    def meaning_of_name(self) -> str:
        """Meaning of the traffic's name in a scenario, in one line."""
        return f"The name of the {self.about or self.word}"

    @property
    def word(self) -> str:
        """Name of the kind for people: ``flow``, ``UDP``."""
        return self.label or self.name

    def name_of(self, subject: object) -> str | None:
        """Return the traffic's name in a command or event."""
        name: str | None = getattr(subject, self.field)
        return name

    def ends(self, start: object) -> bool:
        """Return whether the traffic started by a command ends by itself."""
        limits = (getattr(start, each) for each in self.limits)
        return self.always_ends or any(each is not None for each in limits)

    def stopping(self, name: str) -> StopTraffic:
        """Return the command that stops the traffic with this name."""
        command: StopTraffic = self.stop(**{self.field: name})  # type: ignore[assignment]
        return command

    def starting(self, **fields: Any) -> StartTraffic:
        """Return a command that starts traffic of this kind; ignore fields that it does not use."""
        known = {key: value for key, value in fields.items() if key in self.start.__struct_fields__}
        command: StartTraffic = self.start(**known)  # type: ignore[assignment]
        return command


def _marked(dscp: str) -> str:
    return "" if dscp == DEFAULT else f", {dscp}"


def _of_ping(command: StartPing) -> str:
    over = "" if command.protocol == PING_PROTOCOLS[0] else f"{command.protocol.upper()}"
    return f"{over}{_marked(command.dscp)}".removeprefix(", ")


def _of_flow(command: StartFlow) -> str:
    over = ""
    ecn = " with L4S" if command.l4s else " with ECN" if command.ecn else ""
    if command.mptcp:
        over = f" over MPTCP, {command.path_manager} of {command.subflows}"
        over += f", scheduler {command.scheduler}" if command.scheduler else ""
    return f"{command.cc or 'default'}{ecn}{_marked(command.dscp)}{over}"


def _of_short_flows(command: StartShortFlows) -> str:
    size = format_size(command.bytes)
    return f"{format_rate(command.rate_bps)} of {size} ({command.sizes}), {command.cc or 'default'}"


TRAFFIC: tuple[TrafficKind, ...] = (
    TrafficKind(
        name="flow",
        plural="flows",
        prefix="",
        start=StartFlow,
        stop=StopFlow,
        started=FlowStarted,
        ended=FlowEnded,
        limits=("bytes", "duration_s"),
        limit_words="bytes, a duration",
        connection=True,
        gist=_of_flow,
    ),
    TrafficKind(
        name="download",
        plural="downloads",
        prefix="w",
        start=StartDownload,
        stop=StopDownload,
        started=DownloadStarted,
        ended=DownloadEnded,
        always_ends=True,
        connection=True,
        progress=(DownloadProgress,),
        exported=Samples(
            DownloadProgress,
            {"download": ("download", "text"), **columns(DOWNLOAD_VARIABLES)},
            "bytes received so far",
        ),
        gist=lambda command: format_size(command.bytes),
        offer="download",
        offer_gist=lambda command: f"{format_size(command.bytes)} with wget",
    ),
    TrafficKind(
        name="ping",
        plural="pings",
        prefix="p",
        start=StartPing,
        stop=StopPing,
        started=PingStarted,
        ended=PingEnded,
        limits=("count",),
        limit_words="a count",
        fills=False,
        progress=(PingSample,),
        exported=Samples(
            PingSample,
            {"ping": ("ping", "text"), "seq": ("seq", "whole"), **columns(PING_VARIABLES)},
            "every reply; rtt_us is empty if none arrived",
        ),
        gist=_of_ping,
        offer="ping",
    ),
    TrafficKind(
        name="udp",
        plural="udp",
        prefix="u",
        start=StartUdp,
        stop=StopUdp,
        started=UdpStarted,
        ended=UdpEnded,
        limits=("duration_s",),
        limit_words="a duration",
        progress=(UdpSample,),
        exported=Samples(
            UdpEnded,
            {
                "udp": ("udp", "text"),
                "sent": ("sent_packets", "whole"),
                "received": ("received_packets", "whole"),
                "under_way": ("under_way_packets", "whole"),
                "jitter_us": ("jitter_us", "real"),
                "duration_s": ("duration_s", "real"),
            },
            "packets sent and received by UDP cross traffic, at its end",
        ),
        label="UDP",
        about="cross traffic",
        gist=lambda command: format_rate(command.rate_bps),
        offer="cross traffic by UDP",
        offer_gist=lambda c: f"{format_rate(c.rate_bps)} in {c.packet_bytes} byte packets",
    ),
    TrafficKind(
        name="short-flows",
        plural="short-flows",
        prefix="x",
        start=StartShortFlows,
        stop=StopShortFlows,
        started=ShortFlowsStarted,
        ended=ShortFlowsEnded,
        limits=("duration_s", "count"),
        limit_words="a duration, a count",
        many_paths=True,
        progress=(ShortFlowsProgress,),
        exported=Samples(
            ShortFlowsProgress,
            {"short_flows": ("short_flows", "text"), **columns(SHORT_FLOW_VARIABLES)},
            "every transfer that finished: its size and its completion time",
        ),
        label="short flows",
        gist=_of_short_flows,
        offer="short flows",
        offer_gist=_of_short_flows,
    ),
)
"""Every kind of traffic, in the order of tables and results."""

KINDS = {kind.name: kind for kind in TRAFFIC}
"""Kinds of traffic by name."""

_STARTS: dict[type, TrafficKind] = {kind.start: kind for kind in TRAFFIC}
_STOPS: dict[type, TrafficKind] = {kind.stop: kind for kind in TRAFFIC}
STARTED = tuple(kind.started for kind in TRAFFIC)
"""Events that begin traffic."""
PROGRESS = tuple(event for kind in TRAFFIC for event in kind.progress)
"""Events sent while traffic runs."""


def started_by(command: object) -> TrafficKind | None:
    """Return the kind of traffic that a command starts; None if it starts none."""
    return _STARTS.get(type(command))


def stopped_by(command: object) -> TrafficKind | None:
    """Return the kind of traffic that a command stops; None if it stops none."""
    return _STOPS.get(type(command))


def is_limited(command: object) -> bool:
    """Return whether a command starts traffic that ends by itself."""
    kind = started_by(command)
    return kind is not None and kind.ends(command)
