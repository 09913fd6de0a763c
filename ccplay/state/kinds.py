"""What a session keeps of each kind of traffic: one entry for each kind in ``TRAFFIC``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ccplay.model.columns import Table
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.state import connections, downloads, flow_result, pings, short_flows, udp
from ccplay.state.downloads import DownloadResult
from ccplay.state.flow_result import FlowResult
from ccplay.state.pings import PingResult
from ccplay.state.samples import Sampled
from ccplay.state.short_flows import ShortFlowsResult
from ccplay.state.traffic import Handlers, Traffic
from ccplay.state.udp import UdpResult


class Kept(msgspec.Struct, frozen=True, eq=False):
    """The state and the results of a kind of traffic."""

    handlers: Handlers
    """Functions that apply the kind's events to the state."""
    result: Callable[[Any, Any], msgspec.Struct]
    """Function that returns a result from the state and the traffic in it."""
    tables: tuple[Table, ...]
    """Tables of the results, for a terminal and a page."""
    metrics: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names of those metrics of the result that mean something else than in other results."""


KEPT: Mapping[str, Kept] = {
    "flow": Kept(connections.HANDLERS, flow_result.result, flow_result.TABLES, flow_result.METRICS),
    "download": Kept(downloads.HANDLERS, downloads.result, downloads.TABLES, downloads.METRICS),
    "ping": Kept(pings.HANDLERS, pings.result, pings.TABLES, pings.METRICS),
    "udp": Kept(udp.HANDLERS, udp.result, udp.TABLES, udp.METRICS),
    "short-flows": Kept(
        short_flows.HANDLERS, short_flows.result, short_flows.TABLES, short_flows.METRICS
    ),
}
"""State and results of each kind by its name."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a run: the first fields of every result."""

    name: str
    parameters: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    """Point of the case in the file's matrix, by axis."""
    repeat: int = 1
    attempt: int = 1
    """Number of the attempt; more than 1 if earlier ones could not be trusted, see
    ``Result.discarded``."""
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


def results(state: Sampled) -> dict[str, list[Any]]:
    """Return the results of all traffic by ``TrafficKind.group``, in the order of the starts."""
    found: dict[str, list[Any]] = {kind.group: [] for kind in TRAFFIC}
    for each in state.traffic.values():
        found[KINDS[each.kind].group].append(_result(state, each))
    return found


def _result(state: Sampled, each: Traffic) -> msgspec.Struct:
    return KEPT[each.kind].result(state, each)
