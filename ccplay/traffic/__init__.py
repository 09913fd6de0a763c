"""The kinds of traffic: a package each, and one table of them.

A kind's package holds its commands and events, its state and how events change it, its result with
its columns, its plots and its words; its module ``run`` starts the programs that send and receive,
and only the lab imports it. Every stage of the program iterates over ``TRAFFIC``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command, StartTraffic
from ccplay.model.network import Network
from ccplay.model.variables import QUEUE_VARIABLES, Subject, Variable, by_name
from ccplay.traffic import call, download, flow, ping, short_flows, udp
from ccplay.traffic.base import TrafficKind, TrafficState
from ccplay.traffic.call import CallResult
from ccplay.traffic.connections import Flow
from ccplay.traffic.download import DownloadResult
from ccplay.traffic.flow import FlowResult
from ccplay.traffic.ping import PingResult
from ccplay.traffic.short_flows import ShortFlowsResult
from ccplay.traffic.udp import UdpResult

TRAFFIC: tuple[TrafficKind, ...] = (
    flow.KIND,
    download.KIND,
    ping.KIND,
    udp.KIND,
    short_flows.KIND,
    call.KIND,
)
"""Every kind of traffic, in the order of tables and results."""

KINDS = {kind.name: kind for kind in TRAFFIC}
"""Kinds of traffic by name."""

VARIABLES: dict[Subject, dict[str, Variable]] = {
    "queue": by_name(QUEUE_VARIABLES),
    **{kind.name: by_name(kind.variables) for kind in TRAFFIC},
}
"""Variables of every session, whatever its algorithms, by subject and name."""

_STARTS: dict[type, TrafficKind] = {kind.start: kind for kind in TRAFFIC}
_STOPS: dict[type, TrafficKind] = {kind.stop: kind for kind in TRAFFIC}


def started_by(command: object) -> TrafficKind | None:
    """Return the kind of traffic that a command starts; None if it starts none."""
    return _STARTS.get(type(command))


def stopped_by(command: object) -> TrafficKind | None:
    """Return the kind of traffic that a command stops; None if it stops none."""
    return _STOPS.get(type(command))


def is_brief(flow: Flow) -> bool:
    """Return whether a connection is a short transfer, which reports draw together with others."""
    return flow.kind in KINDS and KINDS[flow.kind].brief


# --- results of all kinds -------------------------------------------------------------------------


class CaseIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a case: its name, and its point in the file's matrix."""

    name: str
    parameters: Mapping[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    """Point of the case in the file's matrix: values as written in the file, by axis."""


class RunResult(CaseIdentity, frozen=True, kw_only=True):
    """The identity of a run: the first fields of every result."""

    repeat: int = 1
    attempt: int = 1
    """Number of the attempt; more than 1 if earlier ones could not be trusted: the result has them
    under ``discarded``."""
    recording: str | None = None
    """Path of the recording, relative to the result's file."""
    machine: str | None = None
    """Name of the machine that made the run; null if one machine made all."""
    duration_s: float
    """Seconds from when the network was ready to the last event."""
    interrupted: bool


class TrafficResults(RunResult, frozen=True, kw_only=True):
    """The results of a run's traffic: a list for each kind, named as ``TrafficKind.group``."""

    flows: list[FlowResult] = msgspec.field(default_factory=list)
    pings: list[PingResult] = msgspec.field(default_factory=list)
    downloads: list[DownloadResult] = msgspec.field(default_factory=list)
    udp: list[UdpResult] = msgspec.field(default_factory=list)
    short_flows: list[ShortFlowsResult] = msgspec.field(default_factory=list)
    calls: list[CallResult] = msgspec.field(default_factory=list)


def results(state: TrafficState) -> dict[str, list[Any]]:
    """Return the results of all traffic by ``TrafficKind.group``, in the order of the starts."""
    found: dict[str, list[Any]] = {kind.group: [] for kind in TRAFFIC}
    for each in state.traffic.values():
        kind = KINDS[each.kind]
        found[kind.group].append(kind.result(state, each))
    return found


# --- a command that starts traffic from several senders or in both directions ---------------------

C = TypeVar("C", bound=Command)


def split_starts(command: C, network: Network | None) -> tuple[C, ...]:
    """Return a command for each sender and, if traffic is bidirectional, for each direction.

    The traffic from ``dst`` to ``src`` is named ``NAME-back``, or has no name yet if ``command``
    has none. Raises ``CommandError`` if there are too few hosts.
    """
    return tuple(
        each for one in split_senders(command, network) for each in _directions(one, network)
    )


def split_senders(command: C, network: Network | None) -> tuple[C, ...]:
    """Return a command for each sender of a start: the hosts in order, beginning with ``src``.

    Raises ``CommandError`` if there are too few hosts.
    """
    start: Any = command
    count = getattr(start, "senders", 1)
    if count == 1 or network is None:
        return (command,)
    src, dst = ends_of(start, network)
    hosts = [each for each in network.hosts if each != dst]
    if src in hosts:
        first = hosts.index(src)
        hosts = [*hosts[first:], *hosts[:first]]
    if count > len(hosts):
        raise CommandError(f"{count} senders to {dst}: the network has {len(hosts)} other hosts")
    name = start.flow
    names = [name, *(name and f"{name}-{number}" for number in range(2, count + 1))]
    return tuple(
        replace(start, src=host, dst=dst, senders=1, flow=each)
        for host, each in zip(hosts[:count], names, strict=True)
    )


def _directions(command: C, network: Network | None) -> tuple[C, ...]:
    if not isinstance(command, StartTraffic) or not getattr(command, "bidir", False):
        return (command,)
    start: Any = command
    name = start.name
    src, dst = (start.src, start.dst) if network is None else ends_of(start, network)
    there = replace(start, src=src, dst=dst, bidir=False)
    via = None if there.via is None else there.via[::-1]
    back = replace(there, src=dst, dst=src, via=via, **{start.name_field: name and f"{name}-back"})
    return (there, back)


def ends_of(start: Any, network: Network) -> tuple[str | None, str | None]:
    """Return the source and destination of a start, with the defaults that a lab fills in."""
    src, dst = start.src, start.dst
    if src is None and network.senders:
        src = network.senders[0]
        if src == dst:
            src = next((each for each in network.hosts if each != dst), None)
    if dst is None and src in network.hosts:
        dst = network.peer(src)
    return src, dst
