"""Reading a result off the state: figures of every flow, queue, ping and download."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.fairness import converged_s, fairness
from ccplay.analysis.queueing import loss, occupancy, queueing_delays_us, utilisation
from ccplay.analysis.results import (
    CaseResult,
    DownloadResult,
    FlowResult,
    InterfaceResult,
    Machine,
    Misbehaviour,
    PingResult,
    QueueResult,
    Switch,
    UdpResult,
)
from ccplay.analysis.trust import judge
from ccplay.model.events import Hello
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.model.traffic_commands import StartFlow
from ccplay.model.values import Monitored
from ccplay.state.lab_state import Download, Flow, LabState, Ping, Queue, Traffic, Udp
from ccplay.state.percentiles import percentile
from ccplay.state.series import Series
from ccplay.state.traffic import Measured


def summarise(
    state: LabState,
    name: str,
    *,
    interrupted: bool = False,
    errors: tuple[str, ...] = (),
    checkpoint: Checkpoint | None = None,
) -> CaseResult:
    """Return what a session, live or recorded, has measured until now."""
    start = state.ready_at or 0.0
    sizes = _sizes(state)
    traffic: dict[str, Any] = {kind.group: [] for kind in TRAFFIC}
    for each in state.traffic.values():
        traffic[KINDS[each.kind].group].append(_traffic(state, each, sizes))
    return CaseResult(
        name=name,
        duration_s=round(state.now - start, 3),
        interrupted=interrupted,
        queues=[_queue(state, queue) for queue in _queues(state)],
        **traffic,
        interfaces=_interfaces(state),
        checkpoint=checkpoint,
        jain=fairness(state),
        converged_s=converged_s(state),
        health=judge(state),
        errors=[*(entry.text for entry in state.log if entry.kind == "error"), *errors],
    )


def _traffic(state: LabState, each: Traffic, sizes: Mapping[str | None, int | None]) -> object:
    """Return the result of one flow, download, ping …; a kind may give its own."""
    match each:
        case Flow():
            streams = list(state.streams[each.name].values())
            return _flow(state, sizes.get(each.name), streams)
        case Download():
            return _download(state, each)
        case Ping():
            return _ping(each)
        case Udp():
            return _udp(each)
        case Measured():
            return each.result()
    raise TypeError(f"nothing sums up a {each.kind}")


def machine(state: LabState) -> Machine | None:
    """Return where the lab of a session ran; None before its ``Hello``."""
    hello: Hello | None = state.hello
    if hello is None:
        return None
    links = [change for changes in state.links.values() for change in changes]
    return Machine(
        kernel=hello.capabilities.kernel,
        cpus=hello.capabilities.cpus,
        python=hello.capabilities.python,
        ccplay=hello.version,
        privilege=hello.capabilities.privilege,
        delay_engines=sorted({link.delay_engine for link in links} - {"none"}),
        offloads=any(link.offloads for link in links),
        sample_hz=hello.sample_hz,
    )


def _flow(state: LabState, size: int | None, streams: list[Flow]) -> FlowResult:
    first = streams[0]
    sent = first.bytes if first.ended is not None else _sum_of_last(streams, "bytes_acked")
    retransmits = (
        first.retransmits if first.ended is not None else _sum_of_last(streams, "total_retrans")
    )
    # Where it has ended, the first stream has the sum of all.
    total = first.sent if first.ended is not None else sum(each.sent for each in streams)
    duration = first.duration_s if first.ended is not None else state.now - first.started
    cwnd, srtt, least = (_values(streams, name) for name in ("cwnd", "srtt_us", "min_rtt_us"))
    slow_start_s, slow_start_cwnd = _slow_start(state, first)
    changes = first.cc_changes or [(first.started, first.cc)]
    return FlowResult(
        id=first.name,
        cc=changes[0][1],
        switches=[Switch(round(t, 3), cc) for t, cc in changes[1:]],
        src=first.src,
        dst=first.dst,
        streams=len(streams),
        started_s=round(first.started, 3),
        goodput_bps=_rate(sent, duration),
        bytes=sent,
        duration_s=round(duration, 3),
        fct_s=_completion_time(size, first),
        retransmits=retransmits,
        tx_bps=_rate(total, duration) if total else None,
        ecn=first.ecn,
        srtt_mean_ms=_ms(_mean(srtt)),
        loss=_lost_share(retransmits, sent, first.mss),
        cwnd_p50=percentile(cwnd, 50),
        cwnd_p99=percentile(cwnd, 99),
        cwnd_max=percentile(cwnd, 100),
        slow_start_s=slow_start_s,
        slow_start_cwnd=slow_start_cwnd,
        srtt_p50_ms=_ms(percentile(srtt, 50)),
        srtt_p95_ms=_ms(percentile(srtt, 95)),
        srtt_p99_ms=_ms(percentile(srtt, 99)),
        min_rtt_ms=_ms(min((each for each in least if each > 0), default=None)),
        **_delays(first.monitored),
        **_arrivals(first.monitored, duration),
        misbehaved=[each for stream in streams for each in _misbehaved(stream)],
        error=first.error,
    )


def _misbehaved(flow: Flow) -> list[Misbehaviour]:
    """Return what a connection's algorithms did wrong, from when to when."""
    ends = [*(round(each.t, 3) for each in flow.misbehaved[1:]), None]
    return [
        Misbehaviour(round(each.t, 3), until, each.cc, each.wrong)
        for each, until in zip(flow.misbehaved, ends, strict=False)
        if each.wrong
    ]


def _delays(seen: Monitored | None) -> dict[str, Any]:
    """Return the one-way delays of a flow or of cross traffic, where they were measured."""
    if seen is None:
        return {}
    return {
        "delay_mean_ms": _ms(seen.delay_mean_us),
        "delay_min_ms": _ms(seen.delay_min_us),
        "delay_max_ms": _ms(seen.delay_max_us),
    }


def _arrivals(seen: Monitored | None, duration: float) -> dict[str, Any]:
    """Return what has become of a flow's packets, where they were followed."""
    if seen is None:
        return {}
    return {
        "rx_bps": _rate(seen.received_bytes, duration),
        "packets": seen.sent,
        "packet_loss": round(1 - seen.received / seen.sent, 6) if seen.sent else None,
    }


def _queues(state: LabState) -> list[Queue]:
    """Return the queues, that of the link under study first; its classes stand behind a link."""
    observed = state.hello.network.observed if state.hello else []
    order = {link: place for place, link in enumerate(observed)}
    return sorted(
        state.queues.values(), key=lambda queue: order.get(queue.link.split(" ")[0], len(order))
    )


def _queue(state: LabState, queue: Queue) -> QueueResult:
    qlen, backlog = (occupancy(state, queue, name) for name in ("qlen", "backlog"))
    kinds: list[str] = []
    for change in state.links.get(queue.link, ()):
        kind = change.setting.qdisc.kind if change.setting.qdisc else None
        if kind is not None and kinds[-1:] != [kind]:
            kinds.append(kind)
    kinds = kinds or [queue.kind]
    marks = _last(queue.series["ecn_marks"])
    delays = queueing_delays_us(state, queue)
    return QueueResult(
        link=queue.link,
        kind=kinds[0],
        kinds=kinds,
        qlen_p50=percentile(qlen, 50),
        qlen_p99=percentile(qlen, 99),
        qlen_max=percentile(qlen, 100),
        qlen_mean=_mean(qlen),
        backlog_p50=percentile(backlog, 50),
        backlog_p99=percentile(backlog, 99),
        backlog_mean=_mean(backlog),
        delay_p50_ms=_ms(percentile(delays, 50)),
        delay_p95_ms=_ms(percentile(delays, 95)),
        delay_p99_ms=_ms(percentile(delays, 99)),
        utilisation=utilisation(state, queue),
        loss=loss(queue),
        drops=round(_last(queue.series["drops"]) or 0),
        marks=None if marks is None else round(marks),
        bytes=round(_last(queue.series["bytes"]) or 0),
    )


def _mean(values: list[float]) -> float | None:
    return round(fmean(values), 3) if values else None


def _slow_start(state: LabState, flow: Flow) -> tuple[float | None, float | None]:
    """Return how long the first slow start lasted, and its cwnd: until ssthresh was finite."""
    ssthresh, cwnd = flow.series["ssthresh"], flow.series["cwnd"]
    ticks = range(max(ssthresh.first, state.sweeps.first, 0), ssthresh.end)
    left = next((tick for tick in ticks if ssthresh.at(tick) is not None), None)
    if left is None:
        return None, None
    reached = cwnd.extremes(cwnd.first, left + 1)
    took = round(state.sweeps.time(left) - flow.started, 3)
    return took, None if reached is None else reached[1]


def _sizes(state: LabState) -> dict[str | None, int | None]:
    """Return the bytes that each flow was first asked for, None where it has no end of its own."""
    found: dict[str | None, int | None] = {}
    for each in state.applied:
        if isinstance(each.command, StartFlow):
            found.setdefault(each.command.flow, each.command.bytes)
    return found


def _completion_time(size: int | None, flow: Flow) -> float | None:
    """Return how long a flow of a fixed size took, None where it has no end of its own."""
    done = size is not None and flow.ended is not None and flow.bytes >= size
    return round(flow.duration_s, 3) if done else None


def _lost_share(retransmits: int, sent: int, mss: int) -> float | None:
    segments = math.ceil(sent / mss) + retransmits if mss else 0
    return round(retransmits / segments, 6) if segments else None


def _ping(ping: Ping) -> PingResult:
    times = _all(ping.rtt_us)
    return PingResult(
        id=ping.name,
        src=ping.src,
        dst=ping.dst,
        sent=ping.sent,
        lost=ping.lost,
        min_ms=_ms(percentile(times, 0)),
        p50_ms=_ms(percentile(times, 50)),
        p95_ms=_ms(percentile(times, 95)),
        max_ms=_ms(percentile(times, 100)),
        error=ping.error,
    )


def _download(state: LabState, download: Download) -> DownloadResult:
    finished = download.ended is not None and download.error is None
    seconds = download.duration_s if finished else None
    flow = state.flows.get(download.name)
    return DownloadResult(
        id=download.name,
        src=download.src,
        dst=download.dst,
        bytes=download.bytes,
        total=download.total,
        seconds=None if seconds is None else round(seconds, 6),
        rate_bps=None if seconds is None else _rate(download.bytes, seconds),
        cwnd_max=percentile(_values([flow], "cwnd"), 100) if flow else None,
        error=download.error,
    )


def _udp(udp: Udp) -> UdpResult:
    told = udp.ended is not None and udp.sent > 0
    seconds, size = udp.duration_s, udp.packet_bytes
    return UdpResult(
        id=udp.name,
        src=udp.src,
        dst=udp.dst,
        packet_bytes=size,
        started_s=round(udp.started, 3),
        duration_s=None if seconds is None else round(seconds, 3),
        sent=udp.sent if told else None,
        received=udp.received if told else None,
        tx_bps=_rate(udp.sent * size, seconds or 0) if told else None,
        rx_bps=_rate(udp.received * size, seconds or 0) if told else None,
        loss=None if udp.loss is None else round(udp.loss, 6),
        jitter_ms=_ms(udp.jitter_us),
        **_delays(udp.monitored),
        error=udp.error,
    )


def _interfaces(state: LabState) -> list[InterfaceResult]:
    found = state.interfaces
    if found is None:
        return []
    fields = [each for each in InterfaceResult.__struct_fields__ if each != "id"]
    # A stranger's recording may have columns of any length.
    rows = zip(found.interface, *(getattr(found, each) for each in fields), strict=False)
    return [InterfaceResult(**dict(zip(("id", *fields), row, strict=True))) for row in rows]


def _all(series: Series) -> list[float]:
    return series.values(series.first, series.end)


def _values(streams: list[Flow], name: str) -> list[float]:
    return [value for flow in streams for value in _all(flow.series[name])]


def _last(series: Series) -> float | None:
    return next(reversed(_all(series)), None)


def _sum_of_last(streams: list[Flow], name: str) -> int:
    """Add up the newest values of a counter; exact to a ten-millionth (series are floats)."""
    return round(sum(_last(flow.series[name]) or 0 for flow in streams))


def _rate(size: int, seconds: float) -> float | None:
    return round(size * 8 / seconds, 1) if seconds > 0 and math.isfinite(seconds) else None


def _ms(microseconds: float | None) -> float | None:
    return None if microseconds is None else round(microseconds / 1000, 3)
