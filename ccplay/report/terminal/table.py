"""The result as tables without empty columns, at 80 columns or 120."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.results import (
    CaseResult,
    DownloadResult,
    FlowResult,
    Machine,
    PingResult,
    QueueResult,
    Result,
    UdpResult,
)
from ccplay.model.traffic import TRAFFIC
from ccplay.report.data.verdicts import misbehaviours
from ccplay.report.terminal.repeats_table import check_lines, family_tables, in_families
from ccplay.state.traffic import Tabled
from ccplay.units import format_rate, format_ratio, format_size

_UNKNOWN = "–"


def show(result: Result, console: Console) -> None:
    """Print a whole result."""
    if result.machine is not None:
        console.print(Text(_machine_line(result.machine), style="dim"))
    together = {case.name for case in in_families(result)}
    for case in result.cases:
        if case.name not in together:
            console.print()
            console.print(case_table(case))
    for family in family_tables(result, console.width):
        console.print()
        console.print(family)


def case_table(case: CaseResult) -> RenderableType:
    """Return one case: a heading, a table for each kind of traffic, and remarks."""
    head = Text(case.name, style="bold")
    head.append(f"  {case.duration_s:.1f} s", style="dim")
    if case.interrupted:
        head.append("  interrupted: figures until then", style="bold yellow")
    tables: Iterable[Table | None] = (
        _flows(case.flows),
        _monitored(case),
        _queues(case.queues),
        _pings(case.pings),
        _downloads(case.downloads),
        _udp(case.udp),
        *(
            _table(results[0].heads, [row for each in results for row in each.rows()])
            for results in tabled(case)
        ),
    )
    body = [Padding(table, (1, 0, 0, 2)) for table in tables if table is not None]
    race = [] if case.checkpoint is None else [_checkpoint(case.checkpoint)]
    return Group(head, *body, *race, *_remarks(case))


def tabled(case: CaseResult) -> list[list[Tabled]]:
    """Return the results of the kinds of traffic that tell their own rows, kind by kind."""
    groups = (getattr(case, kind.group) for kind in TRAFFIC)
    return [group for group in groups if group and hasattr(group[0], "rows")]


def _checkpoint(at: Checkpoint) -> Padding:
    """Tell how far every flow was when the first was done."""
    words = [f"{name} has {size:,} bytes" for name, size in at.bytes.items()]
    line = Text(f"checkpoint at {at.elapsed_s:.2f} s: flow {', flow '.join(words)}")
    if at.ratio is not None:
        line.append(f"; ratio {at.ratio:.2f}")
    return Padding(line, (1, 0, 0, 2))


def _remarks(case: CaseResult) -> list[Text]:
    """Say what went wrong, and why the figures may be off; nothing where all is well."""
    remarks = [Text(f"  {line}", style=style) for line, style in check_lines([case])]
    remarks += [Text(f"  error: {error}", style="red") for error in case.errors]
    remarks += [Text(f"  warning: {each}", style="yellow") for each in misbehaviours(case)]
    remarks += [Text(f"  warning: {reason}", style="yellow") for reason in case.health.reasons]
    return remarks


def _flows(flows: Sequence[FlowResult]) -> Table | None:
    columns = ("flow", "cc", "goodput", "bytes", "time", "retr", "cwnd p50/p99", "srtt p50/p99")
    rows = [
        (
            flow.id,
            " → ".join([flow.cc, *(switch.cc for switch in flow.switches)]),
            _or(flow.goodput_bps, format_rate),
            format_size(flow.bytes),
            f"{flow.duration_s:.1f} s",
            str(flow.retransmits),
            _pair(flow.cwnd_p50, flow.cwnd_p99, _count),
            _pair(flow.srtt_p50_ms, flow.srtt_p99_ms, _milliseconds),
        )
        for flow in flows
    ]
    return _table(columns, rows)


def _monitored(case: CaseResult) -> Table | None:
    """Show what was seen of the packets of flows and cross traffic that were followed."""
    every: list[FlowResult | UdpResult] = [*case.flows, *case.udp]
    columns = ("packets of", "path", "rate out", "rate in", "lost", "delay mean", "min", "max")
    rows = [
        (
            each.id,
            f"{each.src} → {each.dst}",
            _or(each.tx_bps, format_rate),
            _or(each.rx_bps, format_rate),
            _or(each.packet_loss if isinstance(each, FlowResult) else each.loss, format_ratio),
            _or(each.delay_mean_ms, _milliseconds),
            _or(each.delay_min_ms, _milliseconds),
            _or(each.delay_max_ms, _milliseconds),
        )
        for each in every
        if each.delay_mean_ms is not None
    ]
    return _table(columns, rows)


def _queues(queues: Sequence[QueueResult]) -> Table | None:
    """Show the queues in which packets waited; an idle return path is left out."""
    shown = [q for q in queues if q.drops or (q.qlen_p99 or 0) >= 1] or list(queues[:1])
    marking = any(queue.marks is not None for queue in shown)
    columns = ["queue", "kind", "packets p50/p99/max", "backlog p50/p99", "drops"]
    columns += ["marks"] if marking else []
    rows = []
    for queue in shown:
        row = [
            queue.link,
            " → ".join(queue.kinds),
            " / ".join(_or(v, _count) for v in (queue.qlen_p50, queue.qlen_p99, queue.qlen_max)),
            _pair(queue.backlog_p50, queue.backlog_p99, format_size),
            str(queue.drops),
        ]
        if marking:
            row.append(_or(queue.marks, _count))
        rows.append(row)
    return _table(columns, rows)


def _pings(pings: Sequence[PingResult]) -> Table | None:
    columns = ("ping", "path", "sent", "lost", "min", "p50", "p95", "max")
    rows = [
        (
            ping.id,
            f"{ping.src} → {ping.dst}",
            str(ping.sent),
            str(ping.lost),
            *(
                _or(value, _milliseconds)
                for value in (ping.min_ms, ping.p50_ms, ping.p95_ms, ping.max_ms)
            ),
        )
        for ping in pings
    ]
    return _table(columns, rows)


def _downloads(downloads: Sequence[DownloadResult]) -> Table | None:
    columns = ("download", "path", "bytes", "time", "rate", "cwnd max")
    rows = [
        (
            download.id,
            f"{download.src} → {download.dst}",
            f"{download.bytes:,}"
            if download.bytes == download.total
            else f"{download.bytes:,} of {download.total:,}",
            "unfinished" if download.seconds is None else f"{download.seconds:.2f} s",
            _or(download.rate_bps, format_rate),
            _or(download.cwnd_max, _count),
        )
        for download in downloads
    ]
    return _table(columns, rows)


def _udp(udp: Sequence[UdpResult]) -> Table | None:
    columns = ("udp", "path", "sent", "lost", "rate out", "rate in", "jitter")
    rows = [
        (
            each.id,
            f"{each.src} → {each.dst}",
            _or(each.sent, _count),
            _or(each.loss, format_ratio),
            _or(each.tx_bps, format_rate),
            _or(each.rx_bps, format_rate),
            _or(each.jitter_ms, _milliseconds),
        )
        for each in udp
    ]
    return _table(columns, rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table whose second column wraps where space is short, and no other."""
    if not rows:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < 2 else "right", no_wrap=index != 1)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def _machine_line(machine: Machine) -> str:
    words = [f"Linux {machine.kernel}"]
    if machine.cpus:
        words.append(f"{machine.cpus} cores")
    words += [machine.privilege, *(f"delay by {engine}" for engine in machine.delay_engines)]
    words.append(f"offloads {'on' if machine.offloads else 'off'}")
    return " · ".join(words)


def _or(value: float | None, write: Callable[[float], str]) -> str:
    return _UNKNOWN if value is None else write(value)


def _pair(one: float | None, other: float | None, write: Callable[[float], str]) -> str:
    """Write two values of one unit, the unit once: ``20.5 / 800 ms``."""
    first, second = _or(one, write), _or(other, write)
    number, _, unit = first.partition(" ")
    return (
        f"{number} / {second}"
        if unit and unit == second.partition(" ")[2]
        else f"{first} / {second}"
    )


def _count(value: float) -> str:
    return f"{value:.0f}"


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"
