"""The values of one flow at one moment, as far as they were measured."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ccplay.model.network import Network
from ccplay.model.traffic import KINDS
from ccplay.state.base_rtt import base_rtt
from ccplay.state.lab_state import Flow, LabState
from ccplay.state.series import Series
from ccplay.state.traffic import Routed, Traffic

_CWR = 2
"""First congestion state, by number, in which cwnd is being reduced; include/uapi/linux/tcp.h."""

_LOSS = 4

_CUT = 0.9
"""Factor of cwnd between two sweeps below which it counts as reduced."""

_AGO_S = 30.0
"""Seconds for which a reduction is explained."""

_SETTLES_S = 1.0
"""Seconds within which cwnd reaches its lowest value after a reduction begins."""

_OVER_S = 1.0
"""Seconds over which rates are averaged."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A reduction of cwnd, and the counts in the round trip before it."""

    t: float
    before: float
    """cwnd in segments before the reduction."""
    after: float
    """cwnd in segments after the reduction, or ssthresh if cwnd ended there."""
    cc: str
    ca_state: int = 0
    """Worst congestion state during the reduction."""
    steps: int = 1
    """Number of values of ssthresh during the reduction, one for each step."""
    retransmitted: int = 0
    """Segments retransmitted."""
    dropped: tuple[tuple[str, int], ...] = ()
    """Packets of all traffic dropped by queues on the flow's path, by link."""
    marked: tuple[tuple[str, int], ...] = ()
    """Packets marked by queues on the flow's path."""
    lossy: tuple[tuple[str, float], ...] = ()
    """Links on the flow's path that are set to lose packets."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """The longest queue on a flow's path."""

    link: str
    packets: float
    delay_us: float | None
    """Microseconds until the queue is sent; None if the link has no rate."""
    in_flight: tuple[tuple[str, float], ...] = ()
    """Unacknowledged segments of each running flow on that link, most first."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The known values of a flow; None is unknown."""

    flow: str
    cc: str
    t: float
    cwnd: float
    ca_state: int = 0
    ssthresh: float | None = None
    """ssthresh in segments; None while the kernel has set no bound."""
    unacked: float | None = None
    srtt_us: float | None = None
    base_rtt_us: float | None = None
    """Sum of the delays set for the links of the flow's path, in µs."""
    min_rtt_us: float | None = None
    """Lowest RTT measured by the flow, in µs."""
    pacing_bps: float | None = None
    goodput_bps: float | None = None
    mss: int = 0
    window_bytes: float | None = None
    """Receiver's window in bytes; known of traced flows only."""
    pacing_gain: float | None = None
    """Pacing gain of BBR."""
    cut: Cut | None = None
    waiting: Waiting | None = None
    rate_bps: float | None = None
    """Lowest rate on the flow's path in bits per second."""
    sharing: int = 0
    """Other flows over the link with that rate."""
    beside: tuple[str, ...] = ()
    """Other traffic that fills that link, in words: ``UDP u1``."""


def gather(state: LabState, name: str, t: float) -> Evidence | None:
    """Return the known values of a flow at ``t``; None if it was not sampled then."""
    flow, hello = state.flows.get(name), state.hello
    if flow is None or hello is None or (flow.ended is not None and t > flow.ended):
        return None
    tick = state.sweeps.before_or_at(t)
    cwnd = flow.series["cwnd"].latest(tick)
    if cwnd is None:
        return None
    network = hello.network
    values = {key: each.latest(tick) for key, each in flow.series.items()}
    links = _path(network, flow)
    gain = flow.own["bbr_pacing_gain"].latest(tick) if "bbr_pacing_gain" in flow.own else None
    cc = state.cc_at(flow, t)
    narrow = min(
        ((rate, link) for link in links if (rate := _rate(state, link, t))), default=(None, "")
    )
    others = [each for each in _running(state, t) if each is not flow]
    return Evidence(
        flow=name,
        cc=cc,
        t=t,
        cwnd=cwnd,
        ca_state=int(values["ca_state"] or 0),
        ssthresh=values["ssthresh"],
        unacked=values["unacked"],
        srtt_us=values["srtt_us"] or None,
        base_rtt_us=_base_us(state, network, flow, t),
        min_rtt_us=values["min_rtt_us"] or None,
        pacing_bps=values["pacing_rate"] or None,
        goodput_bps=_rate_of(flow.series["bytes_acked"], t),
        mss=flow.mss,
        window_bytes=_window(flow, t),
        pacing_gain=None if gain is None or not cc.startswith("bbr") else gain / 256,
        cut=_last_cut(state, flow, links, tick),
        waiting=_waiting(state, network, links, t),
        rate_bps=narrow[0],
        sharing=sum(narrow[1] in _path(network, each) for each in others) if narrow[1] else 0,
        beside=tuple(_beside(state, network, narrow[1], t)),
    )


def _running(state: LabState, t: float) -> list[Flow]:
    return [
        each
        for each in state.flows.values()
        if each.started <= t and (each.ended is None or t < each.ended)
    ]


def _beside(state: LabState, network: Network, link: str, t: float) -> Iterable[str]:
    """Yield the traffic without a row among flows that can fill a link at ``t``, as words."""
    for each in state.traffic.values():
        runs = each.started <= t and (each.ended is None or t < each.ended)
        if not runs or each.name in state.flows or not KINDS[each.kind].fills:
            continue
        if link in _path(network, each):
            yield f"{KINDS[each.kind].word} {each.name}"


def _path(network: Network, flow: Traffic) -> list[str]:
    """Return the links from the sender of traffic to its receiver."""
    if isinstance(flow, Routed) and flow.paths:
        return list(flow.paths[-1].links)
    try:
        return [link.name for link in network.path(flow.src, flow.dst)]
    except (KeyError, ValueError):
        return []


def _rate(state: LabState, link: str, t: float) -> int | None:
    change = state.link_at(link, t)
    return (change.setting.rate or None) if change else None


def _base_us(state: LabState, network: Network, flow: Flow, t: float) -> float | None:
    known = [ms for since, ms in base_rtt(state, network, flow.src, flow.dst) if since <= t]
    return known[-1] * 1e3 if known and known[-1] else None


def _rate_of(counter: Series, t: float) -> float | None:
    """Return the growth of a counter of bytes over the last second, in bits per second."""
    timeline = counter.timeline
    end = timeline.before_or_at(t)
    start = max(timeline.at_or_after(t - _OVER_S), counter.first)
    if end <= start or start < timeline.first:
        return None
    first, last = counter.latest(start), counter.latest(end)
    seconds = timeline.time(end) - timeline.time(start)
    if first is None or last is None or seconds <= 0:
        return None
    return (last - first) * 8 / seconds


def _window(flow: Flow, t: float) -> float | None:
    if flow.trace is None or not flow.trace.covers(t):
        return None
    return flow.trace.series["snd_wnd"].latest(flow.trace.moments.before_or_at(t))


def _last_cut(state: LabState, flow: Flow, links: Iterable[str], tick: int) -> Cut | None:
    """Return the last reduction of cwnd before then, if it is recent."""
    timeline, cwnd, states = state.sweeps, flow.series["cwnd"], flow.series["ca_state"]
    now = timeline.time(tick)
    switched = [t for t, _ in flow.cc_changes if t <= now]
    since = max(now - _AGO_S, switched[-1] if switched else 0.0)
    first = max(timeline.at_or_after(since), cwnd.first, timeline.first)
    for at in range(tick, first, -1):
        before, after = cwnd.at(at - 1), cwnd.at(at)
        if before is not None and after is not None and after < before * _CUT:
            break
    else:
        return None
    # Recovery lowers cwnd ACK by ACK: the reduction began where the state left Open.
    start = at
    while start > first and (states.at(start - 1) or 0) >= _CWR:
        start -= 1
    top = max(filter(None, (cwnd.at(start - 1), cwnd.at(start))), default=None)
    stop = min(timeline.before_or_at(timeline.time(at) + _SETTLES_S), tick)
    worst = max(int(each) for each in states.values(start - 1, at + 1) or [0])
    least = cwnd.extremes(at, stop + 1)
    if top is None or least is None:
        return None
    bound = flow.series["ssthresh"]
    threshold, cc = bound.latest(at), state.cc_at(flow, timeline.time(start))
    follows = worst != _LOSS and not cc.startswith("bbr")
    reduced = threshold if follows and threshold and threshold < top else least[0]
    steps = len({each for each in bound.values(start, at + 1) if each < top})
    return _with_causes(
        state,
        flow,
        links,
        Cut(
            t=timeline.time(start),
            before=top,
            after=reduced,
            cc=cc,
            ca_state=worst,
            steps=max(steps, 1) if follows else 1,
        ),
        stop,
    )


def _with_causes(state: LabState, flow: Flow, links: Iterable[str], cut: Cut, stop: int) -> Cut:
    """Add the counts in the round trip before a reduction."""
    timeline = state.sweeps
    at = timeline.at_or_after(cut.t)
    rtt_us = flow.series["srtt_us"].latest(at) or flow.series["min_rtt_us"].latest(at) or 0.0
    # Two intervals more: a sweep sees what came since the one before.
    interval = 2 / state.hello.sample_hz if state.hello else 0.0
    since = max(timeline.before_or_at(cut.t - rtt_us * 1e-6 - interval), timeline.first)
    dropped, marked, lossy = [], [], []
    for link in links:
        change = state.link_at(link, cut.t)
        if change is not None and change.setting.loss:
            lossy.append((link, change.setting.loss))
        if (queue := state.queues.get(link)) is not None:
            if count := _grown(queue.series["drops"], since, at):
                dropped.append((link, count))
            if count := _grown(queue.series["ecn_marks"], since, at):
                marked.append((link, count))
    return replace(
        cut,
        retransmitted=_grown(flow.series["total_retrans"], at - 1, stop),
        dropped=tuple(dropped),
        marked=tuple(marked),
        lossy=tuple(lossy),
    )


def _grown(counter: Series, start: int, end: int) -> int:
    first, last = counter.latest(start), counter.latest(end)
    return round((last or 0.0) - (first or 0.0))


def _waiting(state: LabState, network: Network, links: Iterable[str], t: float) -> Waiting | None:
    """Return the queue with the most bytes on the flow's path; None if all are empty."""
    tick = state.sweeps.before_or_at(t)
    fullest, most = None, 0.0
    for link in links:
        queue = state.queues.get(link)
        held = queue.series["backlog"].latest(tick) if queue else None
        if queue is not None and held and held > most:
            fullest, most = queue, held
    if fullest is None:
        return None
    rate = _rate(state, fullest.link, t)
    in_flight = [
        (each.name, count)
        for each in _running(state, t)
        if fullest.link in _path(network, each)
        and (count := each.series["unacked"].latest(tick)) is not None
    ]
    return Waiting(
        link=fullest.link,
        packets=fullest.series["qlen"].latest(tick) or 0.0,
        delay_us=most * 8e6 / rate if rate else None,
        in_flight=tuple(sorted(in_flight, key=lambda each: -each[1])),
    )
