"""Tables of runs on a report's page: flows, queues, pings, downloads, UDP, interfaces, health."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ccplay.analysis.results import (
    CaseResult,
    DownloadResult,
    FlowResult,
    InterfaceResult,
    PingResult,
    QueueResult,
    Result,
    UdpResult,
)
from ccplay.report.data.naming import in_order
from ccplay.units import format_rate, format_size

MOST_ROWS = 60
"""Rows of a table on the page; its file has all."""
UNKNOWN = "–"
Head: TypeAlias = tuple[str, str]
"""A column's name and its unit."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text."""

    title: str
    heads: list[Head]
    rows: list[list[str]]
    left: list[bool]
    """Which columns are words rather than numbers."""
    left_out: int = 0


_Say: TypeAlias = Callable[[float], str]


def grids(result: Result) -> list[Grid]:
    """Return the tables of flows, queues, pings, downloads and UDP; empty ones are left out."""
    several = len(result.cases) > 1
    made = [
        _grid(
            "Flows", _FLOW, [(r, _flow(f)) for r in result.cases for f in _sorted(r.flows)], several
        ),
        _grid(
            "Packets of flows, from host to host",
            _MONITOR,
            [(r, _monitored(f)) for r in result.cases for f in _sorted(r.flows) if f.packets],
            several,
        ),
        _grid("Queues", _QUEUE, [(r, _queue(q)) for r in result.cases for q in _busy(r)], several),
        _grid("Pings", _PING, [(r, _ping(p)) for r in result.cases for p in r.pings], several),
        _grid(
            "Downloads",
            _DOWNLOAD,
            [(r, _download(d)) for r in result.cases for d in r.downloads],
            several,
        ),
        _grid("Cross traffic", _UDP, [(r, _udp(u)) for r in result.cases for u in r.udp], several),
        _grid(
            "Interfaces",
            _INTERFACE,
            [
                (r, _interface(i))
                for r in result.cases
                for i in r.interfaces
                if i.sent or i.received
            ],
            several,
        ),
    ]
    return [each for each in made if each.rows]


def _grid(
    title: str, heads: Sequence[Head], rows: Sequence[tuple[CaseResult, list[str]]], several: bool
) -> Grid:
    extra: list[Head] = [("case", ""), ("run", "")] if several else []
    table = [
        ([run.name, str(run.repeat)] if several else []) + cells for run, cells in rows[:MOST_ROWS]
    ]
    every = [*extra, *heads]
    plain = {
        "case",
        "flow",
        "algorithm",
        "queue",
        "kind",
        "ping",
        "download",
        "udp",
        "path",
        "node",
        "link",
    }
    return Grid(
        title,
        every,
        table,
        [head[0] in plain for head in every],
        max(len(rows) - MOST_ROWS, 0),
    )


def _sorted(flows: Sequence[FlowResult]) -> list[FlowResult]:
    """Return flows by name: which of them started first differs from run to run."""
    names = in_order(flow.id for flow in flows)
    return sorted(flows, key=lambda flow: names.index(flow.id))


_FLOW: tuple[Head, ...] = (
    ("flow", ""),
    ("algorithm", ""),
    ("path", ""),
    ("goodput", ""),
    ("payload", ""),
    ("time", "s"),
    ("retransmits", "segments"),
    ("cwnd", "p50 / p99 / max"),
    ("srtt", "p50 / p95 / p99, ms"),
    ("least RTT", "ms"),
)


def _flow(flow: FlowResult) -> list[str]:
    return [
        flow.id,
        " → ".join([flow.cc, *(switch.cc for switch in flow.switches)]),
        f"{flow.src} → {flow.dst}",
        _or(flow.goodput_bps, format_rate),
        format_size(flow.bytes),
        f"{flow.duration_s:.2f}",
        f"{flow.retransmits:,}",
        _list((flow.cwnd_p50, flow.cwnd_p99, flow.cwnd_max), _count),
        _list((flow.srtt_p50_ms, flow.srtt_p95_ms, flow.srtt_p99_ms), _ms),
        _or(flow.min_rtt_ms, _ms),
    ]


_MONITOR: tuple[Head, ...] = (
    ("flow", ""),
    ("path", ""),
    ("rate", "sent / received"),
    ("packets", "sent"),
    ("lost", "%"),
    ("one-way delay", "mean / min / max, ms"),
)


def _monitored(flow: FlowResult) -> list[str]:
    return [
        flow.id,
        f"{flow.src} → {flow.dst}",
        _list((flow.tx_bps, flow.rx_bps), format_rate),
        _or(flow.packets, lambda packets: f"{packets:,.0f}"),
        _or(flow.packet_loss, lambda share: f"{share * 100:.2f}"),
        _delays(flow),
    ]


def _delays(one: FlowResult | UdpResult) -> str:
    return _list((one.delay_mean_ms, one.delay_min_ms, one.delay_max_ms), _ms)


_QUEUE: tuple[Head, ...] = (
    ("queue", ""),
    ("kind", ""),
    ("length", "p50 / p99 / max, packets"),
    ("delay", "p50 / p95 / p99, ms"),
    ("utilisation", "%"),
    ("drops", "packets"),
    ("ECN marks", "packets"),
)


def _queue(queue: QueueResult) -> list[str]:
    return [
        queue.link.replace("->", " → "),
        " → ".join(queue.kinds),
        _list((queue.qlen_p50, queue.qlen_p99, queue.qlen_max), _count),
        _list((queue.delay_p50_ms, queue.delay_p95_ms, queue.delay_p99_ms), _ms),
        _or(queue.utilisation, lambda share: f"{share * 100:.1f}"),
        f"{queue.drops:,}",
        _or(queue.marks, lambda marks: f"{marks:,.0f}"),
    ]


def _busy(run: CaseResult) -> list[QueueResult]:
    """Return the queues in which packets waited; an idle return path is left out."""
    return [q for q in run.queues if q.drops or (q.qlen_p99 or 0) >= 2] or run.queues[:1]


_PING: tuple[Head, ...] = (
    ("ping", ""),
    ("path", ""),
    ("sent", ""),
    ("lost", ""),
    ("RTT", "min / p50 / p95 / max, ms"),
)


def _ping(ping: PingResult) -> list[str]:
    return [
        ping.id,
        f"{ping.src} → {ping.dst}",
        str(ping.sent),
        str(ping.lost),
        _list((ping.min_ms, ping.p50_ms, ping.p95_ms, ping.max_ms), _ms),
    ]


_DOWNLOAD: tuple[Head, ...] = (
    ("download", ""),
    ("path", ""),
    ("size", ""),
    ("time", "s"),
    ("rate", ""),
    ("cwnd", "max"),
)


def _download(download: DownloadResult) -> list[str]:
    return [
        download.id,
        f"{download.src} → {download.dst}",
        format_size(download.bytes)
        + ("" if download.bytes == download.total else f" of {format_size(download.total)}"),
        "unfinished" if download.seconds is None else f"{download.seconds:.2f}",
        _or(download.rate_bps, format_rate),
        _or(download.cwnd_max, _count),
    ]


_UDP: tuple[Head, ...] = (
    ("udp", ""),
    ("path", ""),
    ("packets", "of bytes"),
    ("sent", "packets"),
    ("received", "packets"),
    ("lost", "%"),
    ("rate", "sent / received"),
    ("jitter", "ms"),
    ("one-way delay", "mean / min / max, ms"),
)


def _udp(udp: UdpResult) -> list[str]:
    return [
        udp.id,
        f"{udp.src} → {udp.dst}",
        f"{udp.packet_bytes:,}",
        _or(udp.sent, _count),
        _or(udp.received, _count),
        _or(udp.loss, _percent),
        _list((udp.tx_bps, udp.rx_bps), format_rate),
        _or(udp.jitter_ms, _ms),
        _delays(udp),
    ]


_INTERFACE: tuple[Head, ...] = (
    ("node", ""),
    ("link", ""),
    ("sent", "packets"),
    ("sent", "bytes"),
    ("received", "packets"),
    ("received", "bytes"),
    ("dropped", "packets, by the queue"),
    ("lost", "packets, on purpose"),
)


def _interface(counted: InterfaceResult) -> list[str]:
    return [
        counted.node,
        counted.link.replace("->", " → "),
        f"{counted.sent:,}",
        format_size(counted.sent_bytes),
        f"{counted.received:,}",
        format_size(counted.received_bytes),
        f"{counted.dropped:,}",
        _or(counted.lost, _count),
    ]


def health(result: Result) -> Grid:
    """Return the timing of each run's lab."""
    heads: list[Head] = [
        ("case", ""),
        ("run", ""),
        ("lab", ""),
        ("sweeps", ""),
        ("missed", ""),
        ("late", "worst p99, ms"),
        ("cores busy", "%"),
        ("steal", "%"),
        ("delay late", "p99, ms"),
    ]
    rows = []
    for run in [*result.cases, *result.discarded][: 4 * MOST_ROWS]:
        found = run.health
        again = f" (attempt {run.attempt})" if run in result.discarded else ""
        rows.append(
            [
                run.name,
                f"{run.repeat}{again}",
                "kept time" if found.trustworthy else "; ".join(found.reasons),
                f"{found.ticks:,}",
                f"{found.missed:,}",
                _or(found.late_p99_us, lambda us: f"{us / 1000:.1f}"),
                _or(found.host_cpu, _percent),
                _or(found.steal, _percent),
                _or(found.delay_late_p99_us, lambda us: f"{us / 1000:.2f}"),
            ]
        )
    return Grid("", heads, rows, [])


def _or(value: float | None, write: _Say) -> str:
    return UNKNOWN if value is None else write(value)


def _list(values: Iterable[float | None], write: _Say) -> str:
    return " / ".join(_or(value, write) for value in values)


def _count(value: float) -> str:
    return f"{value:.0f}"


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f}"
