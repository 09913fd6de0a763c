"""Explains in sentences what a flow is doing at one moment, and why, from measured values.

What the values do not show is left out, or stated to be unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from ccplay.model.network import Network
from ccplay.model.series import Series
from ccplay.state.lab_state import LabState, base_rtt, capacity_at, drain_at, mean_capacity
from ccplay.traffic import KINDS
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.units import format_clock, format_rate, format_ratio, format_time_us

# --- the values of one flow at one moment, as far as they were measured ---------------------------

_DISORDER, _CWR, _RECOVERY, _LOSS = 1, 2, 3, 4
"""Congestion states as numbered in include/uapi/linux/tcp.h: from CWR on cwnd is being reduced."""

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
    """Microseconds until the queue is sent; None if the link has no rate, or no capacity now."""
    moves: bool = False
    """Whether the link's rate is not its own: a trace or a model gives it."""
    in_flight: tuple[tuple[str, float], ...] = ()
    """Unacknowledged segments of each running flow on that link, most first."""


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """The RTT of a flow now, and what it would be without queueing."""

    srtt_us: float | None = None
    base_rtt_us: float | None = None
    """Sum of the delays set for the links of the flow's path, in µs."""
    min_rtt_us: float | None = None
    """Lowest RTT measured by the flow, in µs."""
    unsteady: bool = False
    """Whether a link moves that its packets or their ACKs cross."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The known values of a flow; None is unknown."""

    flow: str
    cc: str
    cwnd: float
    ca_state: int = 0
    ssthresh: float | None = None
    """ssthresh in segments; None while the kernel has set no bound."""
    unacked: float | None = None
    rtt: RoundTrip = RoundTrip()
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
    """Lowest rate on the flow's path in bits per second, or mean capacity of the last second."""
    moves: bool = False
    """Whether the link with that rate moves."""
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
        ((rate, link) for link in links if (rate := _rate(state, link, t)) is not None),
        default=(None, ""),
    )
    others = [each for each in state.flows.values() if each is not flow and _runs(each, t)]
    backs = [link.name for path in network.paths(flow.dst, flow.src) for link in path]
    return Evidence(
        flow=name,
        cc=cc,
        cwnd=cwnd,
        ca_state=int(values["ca_state"] or 0),
        ssthresh=values["ssthresh"],
        unacked=values["unacked"],
        rtt=RoundTrip(
            srtt_us=values["srtt_us"] or None,
            base_rtt_us=_base_us(state, network, flow, t),
            min_rtt_us=values["min_rtt_us"] or None,
            unsteady=any(
                bool(change.setting.trace)
                for link in [*links, *backs]
                if (change := state.link_at(link, t)) is not None
            ),
        ),
        pacing_bps=values["pacing_rate"] or None,
        goodput_bps=_rate_of(flow.series["bytes_acked"], t),
        mss=flow.mss,
        window_bytes=_window(flow, t),
        pacing_gain=None if gain is None or not cc.startswith("bbr") else gain / 256,
        cut=_last_cut(state, flow, links, tick),
        waiting=_waiting(state, network, links, t),
        rate_bps=narrow[0],
        moves=_moves(state, narrow[1], t),
        sharing=sum(narrow[1] in _path(network, each) for each in others) if narrow[1] else 0,
        beside=tuple(_beside(state, network, narrow[1], t)),
    )


def _runs(each: Traffic, t: float) -> bool:
    return each.started <= t and (each.ended is None or t < each.ended)


def _beside(state: LabState, network: Network, link: str, t: float) -> Iterable[str]:
    """Yield the traffic without a row among flows that can fill a link at ``t``, as words."""
    for each in state.traffic.values():
        kind = KINDS[each.kind]
        if each.name in state.flows or not kind.fills or not _runs(each, t):
            continue
        if link in _path(network, each):
            yield f"{kind.word} {each.name}"


def _path(network: Network, flow: Traffic) -> list[str]:
    """Return the links from the sender of traffic to its receiver."""
    if flow.paths:
        return list(flow.paths[-1].links)
    try:
        return [link.name for link in network.path(flow.src, flow.dst)]
    except (KeyError, ValueError):
        return []


def _rate(state: LabState, link: str, t: float) -> float | None:
    """Return the rate of a link, or while it moves its mean capacity over the last second."""
    if _moves(state, link, t):
        return mean_capacity(state, link, max(0.0, t - _OVER_S), t)
    return capacity_at(state, link, t)


def _moves(state: LabState, link: str, t: float) -> bool:
    change = state.link_at(link, t)
    return change is not None and change.setting.is_paced


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
        # What moves a link may have a loss of its own.
        if change is not None and change.setting.loss and not change.setting.trace:
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
    rate = drain_at(state, fullest.link, t)
    in_flight = [
        (each.name, count)
        for each in state.flows.values()
        if _runs(each, t)
        and fullest.link in _path(network, each)
        and (count := each.series["unacked"].latest(tick)) is not None
    ]
    return Waiting(
        link=fullest.link,
        packets=fullest.series["qlen"].latest(tick) or 0.0,
        delay_us=most * 8e6 / rate if rate else None,
        moves=_moves(state, fullest.link, t),
        in_flight=tuple(sorted(in_flight, key=lambda each: -each[1])),
    )


# --- the rules: each returns a sentence that the evidence supports, or nothing --------------------

_DOING = {
    _LOSS: "Loss: a retransmission timeout has expired, and it starts again from a small cwnd",
    _RECOVERY: "Recovery: it retransmits what was lost and reduces cwnd meanwhile",
    _CWR: "CWR: congestion was reported without a loss, and it reduces cwnd",
    _DISORDER: "Disorder: duplicate or selective ACKs arrive; it is not known yet whether packets "
    "are lost",
}
"""What a flow does in each congestion state but Open."""

_FULL = 0.95
"""Share of a limit from which on it counts as reached: a sweep sees some segments in transit."""

_NEAR = 0.06
"""Share of cwnd by which a reduction may differ from a rule, if that is more than a segment."""

_LEAST_OF_BBR = 4
"""Smallest cwnd of BBR in segments."""

_BETA = {"reno": (0.5, "Reno's half (RFC 5681)"), "cubic": (0.7, "CUBIC's 0.7 (RFC 9438)")}
"""Factor of cwnd at a reduction, by algorithm."""

_GAINS = (
    (2.0, 9.9, "it is in startup, which sends more than twice what was delivered"),
    (1.1, 2.0, "it probes for more bandwidth"),
    (0.0, 0.95, "it sends less than was delivered, to drain the queue"),
    (0.95, 1.1, "it cruises at the bandwidth that it has measured"),
)
"""Ranges of BBR's pacing gain, each with its meaning."""


def explain_flow(state: LabState, flow: str, t: float) -> list[str]:
    """Return a few sentences about a flow at ``t``; none if it was not sampled then."""
    evidence = gather(state, flow, t)
    if evidence is None:
        return []
    return [sentence for rule in RULES if (sentence := rule(evidence))]


def doing(e: Evidence) -> str:
    """Describe the flow's state."""
    window = f"cwnd is {_segments(e.cwnd)}"
    if e.ca_state in _DOING:
        return f"{_DOING[e.ca_state]}; {window}."
    if e.cc.startswith("bbr"):
        if e.pacing_gain is None:
            return f"{e.cc} follows its model of the path; {window}."
        means = next((m for low, high, m in _GAINS if low <= e.pacing_gain < high), "")
        return f"{e.cc}'s pacing gain is {e.pacing_gain:.2f}: {means}; {window}."
    if e.ssthresh is None:
        return f"Slow start: no loss has set ssthresh yet; {window}, and each ACK lets it grow."
    bound = f"ssthresh {e.ssthresh:.0f}"
    if e.cwnd < e.ssthresh:
        return (
            f"Slow start: {window}, below {bound}: "
            "it doubles each round trip while there is data to send."
        )
    grows = {
        "reno": ": it grows by one segment a round trip",
        "cubic": ": it grows along a cubic curve",
    }.get(e.cc.removesuffix(".bpf"), "")
    return f"Congestion avoidance: {window}, {bound}{grows}."


def reduced(e: Evidence) -> str:
    """Describe the last reduction of cwnd."""
    cut = e.cut
    if cut is None:
        return ""
    text = f"At {format_clock(cut.t)} cwnd fell from {cut.before:.0f} to {_segments(cut.after)}"
    beta, name = _BETA.get(cut.cc.removesuffix(".bpf"), (None, ""))
    if cut.ca_state == _LOSS:
        text += ", because of a retransmission timeout"
    elif cut.cc.startswith("bbr") and cut.ca_state < _CWR and cut.after <= _LEAST_OF_BBR:
        text += ", BBR's minimum: every 10 s BBR goes down to it to measure the minimum RTT"
    elif cut.steps > 1:
        text += f", in {cut.steps} reductions"
    else:
        text += f", {cut.after / cut.before:.2f} of it"
        if beta is not None and abs(cut.after - beta * cut.before) <= max(1.0, _NEAR * cut.before):
            text += f": {name}"
    if cut.retransmitted:
        text += f"; {_count(cut.retransmitted, 'segment')} retransmitted"
    return f"{text}."


def cause(e: Evidence) -> str:
    """Describe the counts before the reduction."""
    cut = e.cut
    if cut is None or cut.ca_state < _CWR:
        return ""
    if cut.dropped:
        return _at_queues("dropped", cut.dropped)
    if cut.marked and cut.ca_state == _CWR:
        return _at_queues("marked", cut.marked)
    return _elsewhere(cut)


def _at_queues(what: str, counts: tuple[tuple[str, int], ...]) -> str:
    queues = " and ".join(f"queue {link} {what} {_count(n, 'packet')}" for link, n in counts)
    return f"In the round trip before it, {queues}, counting all traffic."


def _elsewhere(cut: Cut) -> str:
    if cut.ca_state == _CWR:
        return ""
    if cut.lossy:
        links = ", ".join(f"{link} loses {format_ratio(share)}" for link, share in cut.lossy)
        return (
            f"No queue on its path dropped a packet in the round trip before; {links} on purpose."
        )
    return "No observed queue on its path dropped a packet in the round trip before."


def limited(e: Evidence) -> str:
    """Describe what keeps the flow from sending more."""
    if e.unacked is None or not e.cwnd or e.ca_state >= _RECOVERY:
        # Then lost segments count as unacknowledged, too.
        return ""
    flight = f"{e.unacked:.0f} of {e.cwnd:.0f} segments of cwnd are in flight"
    if e.unacked >= e.cwnd * _FULL:
        return f"cwnd limits it: {flight}."
    if e.window_bytes is not None and e.mss and e.unacked * e.mss >= e.window_bytes * _FULL:
        return f"The receiver's window limits it: {flight}, and no more fits in its window."
    paced = e.pacing_bps if e.cc.startswith("bbr") else None
    if paced and e.goodput_bps is not None and abs(e.goodput_bps / paced - 1) <= 0.15:
        return f"Pacing limits it, at {format_rate(paced)}: {flight}."
    if e.ca_state >= _CWR:
        return ""
    if e.window_bytes is not None:
        return f"Neither cwnd nor the receiver's window limits it at this moment: {flight}."
    return f"cwnd does not limit it at this moment: {flight}."


def delayed(e: Evidence) -> str:
    """Describe the share of queueing in the RTT."""
    known = e.rtt
    least, whose = known.base_rtt_us, "with empty queues it would be"
    if least is None:
        least, whose = known.min_rtt_us, "the lowest that it has measured is"
    if known.srtt_us is None or least is None:
        return ""
    rtt, base = format_time_us(known.srtt_us), format_time_us(least)
    extra = known.srtt_us - least
    if known.unsteady and extra < -0.05 * least:
        # The mean of its RTTs follows a step of the delay by some round trips.
        return ""
    if extra < 0.05 * least:
        return f"Its RTT is {rtt}, hardly more than without queueing: {whose} {base}."
    share = extra / known.srtt_us
    if known.unsteady and known.base_rtt_us is not None:
        # With an empty queue, a packet may still wait for such a link.
        return f"Its RTT is {rtt}, {share:.0%} of it waiting: the links' delays are {base}."
    return f"Its RTT is {rtt}, {share:.0%} of it queueing: {whose} {base}."


def queued(e: Evidence) -> str:
    """Describe the flows that fill the queue, by their data in flight."""
    waiting = e.waiting
    if waiting is None or waiting.packets < 1:
        return "No packet waits in the queues on its path." if waiting is None else ""
    text = f"Queue {waiting.link} holds {_count(round(waiting.packets), 'packet')}"
    if waiting.delay_us is not None:
        now = "the capacity of this moment" if waiting.moves else "its rate"
        text += f", {format_time_us(waiting.delay_us)} at {now}"
    elif waiting.moves:
        text += ", and its link lets nothing pass at this moment"
    total = sum(count for _, count in waiting.in_flight)
    if len(waiting.in_flight) > 1 and total:
        name, count = waiting.in_flight[0]
        who = "this flow" if name == e.flow else f"flow {name}"
        text += f"; of the segments in flight over it {who} has the most, {count / total:.0%}"
    return f"{text}."


def gets(e: Evidence) -> str:
    """Describe the flow's share of the lowest rate on its path."""
    if e.goodput_bps is None or e.rate_bps is None:
        return ""
    if not e.rate_bps:
        return "Over the last second a link on its path let nothing pass."
    whole = format_rate(e.rate_bps)
    whole = f"the {whole} that could pass" if e.moves else whole
    share = f"{e.goodput_bps / e.rate_bps:.0%} of {whole}"
    others = {0: "alone on that link", 1: "with one other flow"}.get(
        e.sharing, f"with {e.sharing} other flows"
    )
    if e.beside:
        beside = f"beside {' and '.join(e.beside)}"
        others = f"{others}, {beside}" if e.sharing else f"{beside} on that link"
    return f"Over the last second it delivered {format_rate(e.goodput_bps)}, {share}, {others}."


RULES: tuple[Callable[[Evidence], str], ...] = (
    doing,
    reduced,
    cause,
    limited,
    delayed,
    queued,
    gets,
)
"""Rules in the order of their sentences."""


def _segments(count: float) -> str:
    return _count(round(count), "segment")


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
