"""How flows share a path and react to it: fairness, harm, starvation, settling and recovery.

RFC 5166 lists what a congestion control is measured by, and RFC 9743 asks for it; each function
names where its definition is from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from ccplay.model.series import Series
from ccplay.state.lab_state import LabState
from ccplay.traffic import KINDS
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.traffic.ping import Ping

# --- fairness of flows: Jain's index, and the time until they share fairly ------------------------

SHORTEST_S = 1.0
"""Shortest time in seconds for which flows must run together for meaningful shares."""
FAIR = 0.95
"""Jain's index from which on flows count as converged: of two flows neither has more than 61 %."""
_STEP_S = 0.1
_MOST_SHARES = 1_000_000
"""Largest number of shares computed; many long flows are sampled in longer steps."""


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index of two or more shares: 1 if they are equal, 1/n if one flow has all.

    Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
    Return None for fewer than two shares, or if all are zero.
    """
    squares = math.fsum(share * share for share in shares)
    if len(shares) < 2 or not squares:
        return None
    return math.fsum(shares) ** 2 / (len(shares) * squares)


def fairness(state: LabState) -> float | None:
    """Return Jain's index of the long-lived flows' goodput, over the time in which all of them ran.

    Flows that had ended before the last one began are left out. Return None for fewer than two
    flows, or for less than a second.
    """
    together = _together(state)
    if together is None:
        return None
    flows, start, end = together
    return _rounded(jain(_acked_between(flows, *_ticks(state, start, end))))


def converged_s(state: LabState) -> float | None:
    """Return the time from the last flow's start until flows first shared fairly; None if never.

    Flows share fairly if their index is ``FAIR`` over a window of a second, or of ten round trips
    if these are longer; after Bansal and others, "Dynamic Behavior of Slowly-Responsive Congestion
    Control Algorithms", SIGCOMM 2001, section 4.1.
    """
    together = _together(state)
    if together is None:
        return None
    flows, start, end = together
    trips = [flow.series["min_rtt_us"].last or 0.0 for streams in flows for flow in streams]
    window = max(SHORTEST_S, 10e-6 * max(trips))
    step_s = max(_STEP_S, (end - start) * sum(map(len, flows)) / _MOST_SHARES)
    before = None
    for step in range(max(0, math.floor((end - start - window) / step_s)) + 1):
        until = start + window + step * step_s
        ticks = _ticks(state, until - window, until)
        if ticks == before:
            continue
        before = ticks
        index = jain(_acked_between(flows, *ticks))
        if until <= end and index is not None and index >= FAIR:
            return round(until - start, 3)
    return None


def _together(state: LabState) -> tuple[list[list[Flow]], float, float] | None:
    """Return the long-lived flows, each as its streams, and the time in which all of them ran.

    Flows that had ended before the last one began are left out, because they never competed with
    it.
    """
    flows = _flows(state)
    start = max((streams[0].started for streams in flows), default=0.0)
    flows = [each for each in flows if (t := each[0].ended) is None or t > start]
    if len(flows) < 2:
        return None
    end = min(_end(state, streams) for streams in flows)
    return (flows, start, end) if end - start >= SHORTEST_S else None


def _ticks(state: LabState, start: float, end: float) -> tuple[int, int]:
    return state.sweeps.before_or_at(start), state.sweeps.before_or_at(end)


def _acked_between(flows: list[list[Flow]], first: int, last: int) -> list[float]:
    return [
        sum(_grown(flow.series["bytes_acked"], first, last) for flow in streams)
        for streams in flows
    ]


def _grown(counter: Series, first: int, last: int) -> float:
    return (counter.latest(last) or 0.0) - (counter.latest(first) or 0.0)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


# --- the reaction of a flow: to a competitor, to a change of the path, to a silence ---------------

STARVED = 0.1
"""Share of a flow's fair share below which it starves; ours, since no RFC gives one."""
_LEAST_LOSS = 0.01
"""Loss as which every lower one counts in a harm."""
_LEAST_ALONE_S = 2.0
"""Least seconds alone and together from which harm is computed."""
_SETTLED = 0.8
"""Share of its later goodput with which a flow counts as settled; RFC 5166 section 2.2.1
asks for the time, and leaves the bound open."""
_SETTLED_RTT = 1.2
_RTT_SLACK_US = 2_000.0
"""Microseconds by which srtt may exceed the bound: a frame or two at 10 Mbit/s."""
_RECOVERED = 0.5
"""Share of its goodput before a silence with which a flow counts as recovered."""
_BIN_S = 1.0
_MOST_MOMENTS = 20_000
"""Largest number of moments at which all flows are looked at: enough for half an hour at tenths of
a second, and a bound on the work of a stranger's recording."""


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """How a flow reacted to others and to its path.

    Harm is after Ware and others, "Beyond Jain's Fairness Index", HotNets 2019: of a flow's
    performance alone, x, and beside a competitor that starts later, y, it is (x - y) / x where more
    is better, and (y - x) / y where less is better. Below 0 the flow gained.
    """

    id: str
    """Name of the flow."""
    cc: str
    """Algorithm of the flow."""
    harm_rate: float | None = None
    """Share of its goodput that a flow lost to the first traffic that started beside it; goodput
    alone is that of the later half of the time before."""
    harm_delay: float | None = None
    """Share of a flow's mean srtt that the first traffic that started beside it caused."""
    harm_loss: float | None = None
    """Share of a flow's loss that the first traffic that started beside it caused; loss is
    retransmitted segments over all, and less than 1 % counts as 1 %: a second without a loss would
    turn the next one into a harm of 1."""
    starved: float | None = None
    """Share of the seconds beside other flows in which a flow had less than a tenth of an equal
    share of the goodput of all."""
    settling_s: float | None = None
    """Seconds from a change of a link's rate or delay until the flow settles: its goodput is 80 %,
    and its srtt 120 %, of those of the last quarter before the next change; the longest of
    all changes."""
    recovery_s: float | None = None
    """Seconds from the end of a silence, in which a link was down or lost all packets, until the
    flow has half its former goodput again; the longest of all, null if it never had."""
    silent_retransmits: int | None = None
    """Segments that the flow retransmitted in the longest silence."""


def reactions(state: LabState) -> list[Reaction]:
    """Return how each long-lived flow reacted, in the order of their starts."""
    flows = _flows(state)
    changed, silences = _changes(state), _silences(state)
    starved, joined = _starved(state, flows), _joined(state)
    most = max(1, _MOST_MOMENTS // max(len(flows), 1))
    found = []
    for streams in flows:
        first = streams[0]
        found.append(
            Reaction(
                id=first.parent,
                cc=first.cc,
                starved=starved.get(first.parent),
                settling_s=_settling_s(state, streams, changed, most),
                recovery_s=_recovery_s(state, streams, silences, most),
                silent_retransmits=_silent_retransmits(state, streams, silences),
                **_harm(state, streams, joined.get(first.parent)),
            )
        )
    return found


def _flows(state: LabState) -> list[list[Flow]]:
    """Return the long-lived flows, each as its streams."""
    return [
        list(state.streams[first.name].values())
        for first in state.flows.values()
        if first.kind == "flow" and first.parent == first.name
    ]


def _end(state: LabState, streams: Sequence[Flow]) -> float:
    """Return the end of a flow, or the present moment while it runs."""
    return state.now if streams[0].ended is None else streams[0].ended


def _goodput(state: LabState, streams: Sequence[Flow], start: float, end: float) -> float:
    """Return the acknowledged bytes per second between two moments."""
    (acked,) = _acked_between([list(streams)], *_ticks(state, start, end))
    return acked / (end - start)


def _srtt_us(streams: Sequence[Flow], start: float, end: float) -> float | None:
    """Return the mean srtt over the sweeps between two moments; None without a sample."""
    found = [each for flow in streams for each in _between(flow.series["srtt_us"], start, end)]
    return math.fsum(found) / len(found) if found else None


def _between(series: Series, start: float, end: float) -> list[float]:
    """Return the known values between two moments."""
    timeline = series.timeline
    return series.values(timeline.at_or_after(start), timeline.before_or_at(end) + 1)


def _loss_share(state: LabState, streams: Sequence[Flow], start: float, end: float) -> float:
    """Return the retransmitted share of the segments sent between two moments."""
    retransmitted, acked = 0.0, 0.0
    first, last = _ticks(state, start, end)
    for flow in streams:
        retransmitted += _grown(flow.series["total_retrans"], first, last)
        acked += _grown(flow.series["bytes_acked"], first, last) / max(flow.mss, 1)
    return retransmitted / (retransmitted + acked) if retransmitted else 0.0


def _joined(state: LabState) -> dict[str, Traffic]:
    """Return the first traffic that started beside each that was alone until then, by its name."""
    filling = [each for each in state.traffic.values() if KINDS[each.kind].fills]
    filling.sort(key=lambda each: each.started)
    found: dict[str, Traffic] = {}
    busy_until = -math.inf
    for each, later in pairwise(filling):
        end = math.inf if each.ended is None else each.ended
        if each.started >= busy_until and later.started < end:
            found[each.name] = later
        busy_until = max(busy_until, end)
    return found


def _harm(
    state: LabState, streams: Sequence[Flow], joined: Traffic | None
) -> dict[str, float | None]:
    """Return the harm to goodput, delay and loss; nothing for a flow that had no time alone."""
    if joined is None:
        return {}
    start, end = streams[0].started, _end(state, streams)
    until = min(end, state.now if joined.ended is None else joined.ended)
    if joined.started - start < _LEAST_ALONE_S or until - joined.started < _LEAST_ALONE_S:
        return {}
    alone, beside = ((start + joined.started) / 2, joined.started), (joined.started, until)
    rate, rate_beside = (_goodput(state, streams, *each) for each in (alone, beside))
    rtt, rtt_beside = (_srtt_us(streams, *each) for each in (alone, beside))
    loss, loss_beside = (_loss_share(state, streams, *each) for each in (alone, beside))
    return {
        "harm_rate": _rounded(1 - rate_beside / rate) if rate else None,
        "harm_delay": _rounded(1 - rtt / rtt_beside) if rtt and rtt_beside else None,
        "harm_loss": _rounded(1 - max(loss, _LEAST_LOSS) / max(loss_beside, _LEAST_LOSS)),
    }


def _starved(state: LabState, flows: Sequence[list[Flow]]) -> dict[str, float]:
    """Return the share of seconds in which each flow starved; flows that never met are left out.

    A second counts if all of it belongs to two flows or more, and if it has samples; in a run of
    days it is longer than a second, so that the work is bounded.
    """
    spans = [(streams, streams[0].started, _end(state, streams)) for streams in flows]
    start = min((begun for _, begun, _ in spans), default=0.0)
    end = max((ended for _, _, ended in spans), default=0.0)
    width = max(_BIN_S, (end - start) * len(flows) / _MOST_SHARES)
    met: dict[str, list[bool]] = {}
    for second in range(math.floor((end - start) / width)):
        since, until = start + second * width, start + (second + 1) * width
        ticks = _ticks(state, since, until)
        if ticks[0] == ticks[1]:
            continue
        running = [each for each, begun, ended in spans if begun <= since and ended >= until]
        if len(running) < 2:
            continue
        acked = _acked_between(running, *ticks)
        fair = math.fsum(acked) / len(acked)
        for streams, each in zip(running, acked, strict=True):
            met.setdefault(streams[0].parent, []).append(each < STARVED * fair)
    return {name: round(sum(each) / len(each), 4) for name, each in met.items()}


def _changes(state: LabState) -> list[float]:
    """Return the moments at which the rate or the delay of a link changed, once it was built."""
    found = set()
    for changes in state.links.values():
        for before, now in pairwise(changes):
            one, other = before.setting, now.setting
            if (one.rate, one.delay_us) != (other.rate, other.delay_us):
                found.add(round(now.t, 1))
    return sorted(found)


def _silences(state: LabState) -> list[tuple[float, float]]:
    """Return the times in which a link was down or lost all packets."""
    found = []
    for changes in state.links.values():
        since: float | None = None
        for change in changes:
            silent = bool(change.setting.down) or change.setting.loss == 1
            if silent and since is None:
                since = change.t
            elif not silent and since is not None:
                found.append((since, change.t))
                since = None
    return sorted(set(found))


def _window_s(streams: Sequence[Flow]) -> float:
    """Return the seconds over which goodput is averaged: half a second, or two round trips."""
    least = max((flow.series["min_rtt_us"].last or 0.0 for flow in streams), default=0.0)
    return max(0.5, 2e-6 * least)


def _settling_s(
    state: LabState, streams: Sequence[Flow], changed: Sequence[float], most: int
) -> float | None:
    """Return the longest time until a flow settled after a change; None without a change.

    ``most`` is the number of moments that are looked at in all.
    """
    start, end = streams[0].started, _end(state, streams)
    inside = [t for t in changed if start < t < end]
    window = _window_s(streams)
    spans = [each for each in pairwise([*inside, end]) if each[1] - each[0] >= 4 * window][:most]
    worst: float | None = None
    for since, until in spans:
        quarter = until - (until - since) / 4
        rate = _SETTLED * _goodput(state, streams, quarter, until)
        rtt = _srtt_us(streams, quarter, until) or math.inf
        for at in _steps(since, until - window, most // len(spans)):
            srtt = _srtt_us(streams, at, at + window)
            fast = _goodput(state, streams, at, at + window) >= rate
            if fast and srtt is not None and srtt <= _SETTLED_RTT * rtt + _RTT_SLACK_US:
                break
        else:
            at = until
        worst = max(worst or 0.0, at - since)
    return None if worst is None else round(worst, 2)


def _steps(start: float, end: float, most: int) -> Iterator[float]:
    """Yield moments a tenth of a second apart, or further if there would be more than ``most``."""
    step = max(_STEP_S, (end - start) / most)
    return (start + n * step for n in range(math.floor((end - start) / step) + 1))


def _recovery_s(
    state: LabState, streams: Sequence[Flow], silences: Sequence[tuple[float, float]], most: int
) -> float | None:
    """Return the longest time until a flow recovered; None if it never did, or without silence.

    ``most`` is the number of moments that are looked at in all.
    """
    start, end = streams[0].started, _end(state, streams)
    window = _window_s(streams)
    inside = [each for each in silences if start + window < each[0] < each[1] < end - window]
    worst: float | None = None
    for since, until in inside[:most]:
        before = _RECOVERED * _goodput(state, streams, max(start, since - 4 * window), since)
        steps = _steps(until, end - window, max(1, most // len(inside)))
        took = (at - until for at in steps if _goodput(state, streams, at, at + window) >= before)
        if (first := next(took, None)) is None:
            return None
        worst = max(worst or 0.0, first)
    return None if worst is None else round(worst, 2)


def _silent_retransmits(
    state: LabState, streams: Sequence[Flow], silences: Sequence[tuple[float, float]]
) -> int | None:
    """Return the segments retransmitted in the longest silence; None without silence."""
    start, end = streams[0].started, _end(state, streams)
    inside = [each for each in silences if start < each[0] < each[1] < end]
    if not inside:
        return None
    first, last = _ticks(state, *max(inside, key=lambda each: each[1] - each[0]))
    return round(sum(_grown(flow.series["total_retrans"], first, last) for flow in streams))


# --- all flows together: synchronised losses, and responsiveness under load -----------------------


def loss_synchronisation(state: LabState) -> float | None:
    """Return the share of the flows that lose in a congestion event, as the mean over all events.

    An event begins with a retransmission and lasts a round trip, the longest srtt of the flows. It
    is 1 if all flows lose together, and 1/n if each loses alone; after Hassayoun and Ros, "Loss
    synchronization and router buffer sizing with high-speed versions of TCP", 2008. None for fewer
    than two flows, or without a loss.
    """
    found = _together(state)
    if found is None:
        return None
    flows, start, end = found
    first, last = _ticks(state, start, end)
    losing = [_losses(streams, max(first, 0), last) for streams in flows]
    events: list[set[int]] = []
    until = -1.0
    for tick, number in sorted((t, n) for n, ticks in enumerate(losing) for t in ticks):
        t = state.sweeps.time(tick)
        if t > until:
            events.append(set())
            rtts = [flow.series["srtt_us"].latest(tick) or 0.0 for each in flows for flow in each]
            until = t + max(rtts) * 1e-6
        events[-1].add(number)
    if not events:
        return None
    return round(math.fsum(map(len, events)) / len(events) / len(flows), 4)


def _losses(streams: Sequence[Flow], first: int, last: int) -> set[int]:
    """Return the ticks at which a flow had retransmitted more than at the one before."""
    found = set()
    for flow in streams:
        series = flow.series["total_retrans"]
        before = series.latest(first) or 0.0
        for tick in range(first + 1, min(last + 1, series.end)):
            now = series.at(tick)
            if now is not None and now > before:
                found.add(tick)
            before = before if now is None else now
    return found


def responsiveness(state: LabState) -> float | None:
    """Return the round trips per minute under load (RPM); None without pings beside flows.

    draft-ietf-ippm-responsiveness: 60000 over the mean, in ms, of probes over connections of their
    own and of those on the loaded ones, each without its slowest 5 %. Our probes are pings and the
    kernel's srtt, so the handshakes of TCP, TLS and HTTP, which it also times, are not in it.
    """
    flows = _flows(state)
    if not flows:
        return None
    start, end = min(each[0].started for each in flows), max(_end(state, each) for each in flows)
    probes = [ping.series["rtt_us"] for ping in state.of(Ping).values()]
    connections = [flow.series["srtt_us"] for streams in flows for flow in streams]
    pings, loaded = (
        [rtt for series in every for rtt in _between(series, start, end)]
        for every in (probes, connections)
    )
    if not pings or not loaded:
        return None
    return round(60e6 / ((_trimmed(pings) + _trimmed(loaded)) / 2), 1)


def _trimmed(values: Sequence[float]) -> float:
    """Return the mean without the greatest 5 % of the values."""
    kept = sorted(values)[: max(1, math.ceil(0.95 * len(values)))]
    return math.fsum(kept) / len(kept)
