"""The rules: each returns a sentence that the evidence supports, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.analysis.explain.evidence import Cut, Evidence, gather
from ccplay.state.lab_state import LabState
from ccplay.units import format_clock, format_rate, format_ratio, format_time_us

_DISORDER, _CWR, _RECOVERY, _LOSS = 1, 2, 3, 4

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


def explain(state: LabState, flow: str, t: float) -> list[str]:
    """Return a few sentences about a flow at ``t``; none if it was not sampled then."""
    evidence = gather(state, flow, t)
    if evidence is None:
        return []
    return [sentence for rule in RULES if (sentence := rule(evidence))]


def doing(e: Evidence) -> str:
    """Describe the flow's state."""
    window = f"cwnd is {_segments(e.cwnd)}"
    match e.ca_state:
        case 4:
            text = "a retransmission timeout has expired, and it starts again from a small cwnd"
            return f"Loss: {text}; {window}."
        case 3:
            return f"Recovery: it retransmits what was lost and reduces cwnd meanwhile; {window}."
        case 2:
            text = "congestion was reported without a loss, and it reduces cwnd"
            return f"CWR: {text}; {window}."
        case 1:
            text = (
                "duplicate or selective ACKs arrive; it is not known yet whether packets are lost"
            )
            return f"Disorder: {text}; {window}."
    return _open(e, window)


def _open(e: Evidence, window: str) -> str:
    name = e.cc.removesuffix(".bpf")
    if e.cc.startswith("bbr"):
        if e.pacing_gain is None:
            return f"{e.cc} follows its model of the path; {window}."
        means = next((m for low, high, m in _GAINS if low <= e.pacing_gain < high), "")
        return f"{e.cc}'s pacing gain is {e.pacing_gain:.2f}: {means}; {window}."
    if e.ssthresh is None:
        return f"Slow start: no loss has set ssthresh yet; {window}, and each ACK lets it grow."
    bound = f"ssthresh {e.ssthresh:.0f}"
    if e.cwnd < e.ssthresh:
        return f"Slow start: {window}, below {bound}: it doubles each round trip if data is there."
    grows = {
        "reno": ": it grows by one segment a round trip",
        "cubic": ": it grows along a cubic curve",
    }.get(name, "")
    return f"Congestion avoidance: {window}, {bound}{grows}."


def reduced(e: Evidence) -> str:
    """Describe the last reduction of cwnd."""
    cut = e.cut
    if cut is None:
        return ""
    share = cut.after / cut.before
    text = f"At {format_clock(cut.t)} cwnd fell from {cut.before:.0f} to {_segments(cut.after)}"
    beta, name = _BETA.get(cut.cc.removesuffix(".bpf"), (None, ""))
    if cut.ca_state == _LOSS:
        text += ", because of a retransmission timeout"
    elif cut.cc.startswith("bbr") and cut.ca_state < _CWR and cut.after <= _LEAST_OF_BBR:
        text += ", the least that BBR keeps: every 10 s it measures the minimum RTT that way"
    elif cut.steps > 1:
        text += f", in {cut.steps} reductions"
    elif beta is not None and abs(cut.after - beta * cut.before) <= max(1.0, _NEAR * cut.before):
        text += f", {share:.2f} of it: {name}"
    else:
        text += f", {share:.2f} of it"
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
    return f"In the round trip before, {queues}, of all traffic."


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
    if _is_paced(e):
        assert e.pacing_bps is not None  # noqa: S101 - _is_paced() has looked
        return f"Pacing limits it, at {format_rate(e.pacing_bps)}: {flight}."
    if e.ca_state >= _CWR:
        return ""
    if e.window_bytes is not None:
        return f"Neither cwnd nor the receiver's window limits it at this moment: {flight}."
    return f"cwnd does not limit it at this moment: {flight}."


def _is_paced(e: Evidence) -> bool:
    if e.pacing_bps is None or e.goodput_bps is None or not e.cc.startswith("bbr"):
        return False
    return abs(e.goodput_bps / e.pacing_bps - 1) <= 0.15


def delayed(e: Evidence) -> str:
    """Describe the share of queueing in the RTT."""
    least, whose = e.base_rtt_us, "with empty queues it would be"
    if least is None:
        least, whose = e.min_rtt_us, "the least that it has measured is"
    if e.srtt_us is None or least is None:
        return ""
    rtt, base = format_time_us(e.srtt_us), format_time_us(least)
    extra = e.srtt_us - least
    if extra < 0.05 * least:
        return f"Its RTT is {rtt}, hardly more than without queueing: {whose} {base}."
    share = extra / e.srtt_us
    return f"Its RTT is {rtt}, {share:.0%} of it queueing: {whose} {base}."


def held(e: Evidence) -> str:
    """Describe the flows that fill the queue, by their data in flight."""
    waiting = e.waiting
    if waiting is None or waiting.packets < 1:
        return "No packet waits in the queues on its path." if waiting is None else ""
    text = f"Queue {waiting.link} holds {_count(round(waiting.packets), 'packet')}"
    if waiting.delay_us is not None:
        text += f", {format_time_us(waiting.delay_us)} at its rate"
    total = sum(count for _, count in waiting.in_flight)
    if len(waiting.in_flight) > 1 and total:
        name, count = waiting.in_flight[0]
        who = "this flow" if name == e.flow else f"flow {name}"
        text += f"; of the segments in flight over it {who} has most, {count / total:.0%}"
    return f"{text}."


def gets(e: Evidence) -> str:
    """Describe the flow's share of the lowest rate on its path."""
    if e.goodput_bps is None or not e.rate_bps:
        return ""
    share = f"{e.goodput_bps / e.rate_bps:.0%} of {format_rate(e.rate_bps)}"
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
    held,
    gets,
)
"""Rules in the order of their sentences."""


def _segments(count: float) -> str:
    return _count(round(count), "segment")


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
