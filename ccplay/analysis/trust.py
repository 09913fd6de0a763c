"""Judges whether a run can be trusted: the timing of the lab, of steps, rates and delays."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ccplay.model.columns import COUNT, Column, Format, ResultTable
from ccplay.model.events import MOST_LATE_S, Applied, LinkChanged
from ccplay.model.values import MOST_SEGMENTS
from ccplay.state.lab_state import LabState
from ccplay.traffic import is_brief
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow

# --- checks the goodput of flows against what a link can carry with frame headers -----------------

_ETHERNET, _IP_AND_TCP, _TIMESTAMPS, _MOST_OPTIONS = 14, 40, 12, 40
"""Lengths of headers in bytes; HTB counts Ethernet's too, and most segments have no option but
timestamps."""

_USUAL_MTU = 1500
_LONGEST_PACKET = 1 << 16
"""Longest packet of a queue with offloads, in bytes; it is sent whole once its first bit is due."""

_EXACT_S = 0.001
"""Error of the start and end of flows, in seconds."""
_BURST_S = 0.001
"""Seconds of its rate that HTB lets pass at once after it was idle; at least two frames."""
_REPORTED_S = 0.1
"""Seconds by which a new rate may be in force before it is reported, as it is read back first."""


class _Transfer(NamedTuple):
    """The bytes of a flow, all its streams together."""

    name: str
    begin: float
    end: float
    bits: float
    """Number of bits of payload."""
    links: tuple[str, ...]
    share: float
    """Share of payload in the bits on the wire."""


def above_framing(state: LabState) -> str | None:
    """Return where flows, alone or together, exceeded a link's capacity; None if nowhere.

    The links' rates over time, their MTU and the headers count. Such a result can't be right.
    """
    transfers = sorted(_transfers(state), key=lambda each: each.begin)
    for name in dict.fromkeys(link for each in transfers for link in each.links):
        link = _Link(state.links.get(name, ()))
        over = [each for each in transfers if name in each.links]
        for group in [*([each] for each in over), *_together(over)] if link.has_rate else ():
            begin, end = group[0].begin, max(each.end for each in group)
            needed = sum(each.bits / each.share for each in group)
            carried = link.carried(begin, end)
            if end > begin and needed > carried + link.slack:
                had = sum(each.bits for each in group) / (end - begin)
                who = f"flow {group[0].name}" if len(group) == 1 else f"{len(group)} flows together"
                return (
                    f"{who} had {had / 1e6:,.5g} Mbit/s of payload over {name}, "
                    f"where framing allows {had * carried / needed / 1e6:,.5g} Mbit/s"
                )
    return None


def _transfers(state: LabState) -> Iterator[_Transfer]:
    if state.hello is None:
        return
    streams: dict[str, list[Flow]] = {}
    ways: dict[tuple[str, str], tuple[list[str], int]] = {}
    for flow in state.flows.values():
        if flow.mptcp or is_brief(flow):
            continue
        if flow.paths or flow.kind == "subflow":
            yield from _over_one_path(state, flow)
        else:
            streams.setdefault(flow.parent, []).append(flow)
    for name, members in streams.items():
        first = state.flows.get(name)
        if first is None:
            continue
        ended = first.ended is not None
        ends = (first.src, first.dst)
        if ends not in ways:
            way = [link.name for link in state.hello.network.path(*ends)]
            ways[ends] = (way, _mtu(state, way))
        links, mtu = ways[ends]
        yield _Transfer(
            name,
            first.started,
            first.started + first.duration_s if ended else state.now,
            8.0 * (first.bytes if ended else sum(each.acked for each in members)),
            tuple(links),
            _payload_share(mtu, first.mss),
        )


def _over_one_path(state: LabState, flow: Flow) -> Iterator[_Transfer]:
    """Yield the transfer of a connection over its path; nothing if it took several.

    In a recording from elsewhere a connection may have no path.
    """
    assert state.hello is not None  # noqa: S101 - ``_transfers`` has looked
    ways = state.hello.network.paths(flow.src, flow.dst)
    if flow.paths:
        links = flow.paths[0].links
    else:
        links = [link.name for link in ways[0]] if len(ways) == 1 else []
    if links and len(flow.paths) < 2:
        share = _payload_share(_mtu(state, links), flow.mss)
        end = state.now if flow.ended is None else flow.ended
        yield _Transfer(flow.name, flow.started, end, 8.0 * flow.acked, tuple(links), share)


def _mtu(state: LabState, links: Sequence[str]) -> int:
    settings = (each.setting for link in links for each in state.links.get(link, ()))
    return min((each.mtu for each in settings if each.mtu), default=_USUAL_MTU)


def _payload_share(mtu: int, mss: int) -> float:
    """Return the share of payload in the bits on the wire; ``mss`` is 0 if unknown."""
    mss = mss or max(mtu - _IP_AND_TCP - _TIMESTAMPS, 1)
    headers = mtu - mss
    if not _IP_AND_TCP <= headers <= _IP_AND_TCP + _MOST_OPTIONS:
        # Something else keeps segments short, but they have at least these headers.
        headers = _IP_AND_TCP
    return mss / (mss + headers + _ETHERNET)


def _together(transfers: Sequence[_Transfer]) -> Iterator[list[_Transfer]]:
    """Yield groups of transfers that overlap in time; ``transfers`` are ordered by start."""
    group: list[_Transfer] = []
    end = 0.0
    for each in transfers:
        if each.begin >= end:
            if len(group) > 1:
                yield group
            group = []
        group.append(each)
        end = max(end, each.end)
    if len(group) > 1:
        yield group


class _Link:
    """The capacity of one direction of a link."""

    def __init__(self, changes: Sequence[LinkChanged]) -> None:
        # A link that moves has no rate of its own.
        rates = [0 if each.setting.trace else each.setting.rate or 0 for each in changes]
        self.has_rate = bool(rates) and all(rates)
        before = [rates[0] if rates else 0, *rates]
        steps = sorted(
            (each.t - _REPORTED_S if rate > last else each.t, rate)
            for each, rate, last in zip(changes, rates, before, strict=False)
        )
        # The first setting was in force before its report, too.
        self._steps = [(0.0, before[0]), *((max(t, 0.0), rate) for t, rate in steps)]
        passed = ((until - since) * rate for (since, rate), (until, _) in pairwise(self._steps))
        self._passed = list(accumulate(passed, initial=0.0))
        packets = (_LONGEST_PACKET if c.offloads else c.setting.mtu or _USUAL_MTU for c in changes)
        packet = max(packets, default=_USUAL_MTU)
        burst = max(max(before) * _BURST_S, 2 * 8 * (_USUAL_MTU + _ETHERNET))
        self.slack = max(before) * _EXACT_S + burst + 8 * packet
        """Tolerance in bits: the precision of times, and the bits that may be sent at once."""

    def carried(self, begin: float, end: float) -> float:
        """Return the bits that the link can carry from ``begin`` to ``end``."""
        return self._until(end) - self._until(begin)

    def _until(self, t: float) -> float:
        at = bisect_right(self._steps, t, key=lambda step: step[0]) - 1
        since, rate = self._steps[max(at, 0)]
        return self._passed[max(at, 0)] + rate * (t - since)


# --- checks the network against its settings: measured RTTs against the links' delays -------------

MOST_DELAY_OFF = 0.05
"""Largest acceptable error of a base RTT, as a share of it."""
LEAST_DELAY_OFF_US = 3_000.0
"""Acceptable error of any base RTT in µs: a busy machine may delay each packet that long."""
_SMALL_PACKET_BITS = 8 * 98
"""Length in bits of the packets that measure the minimum RTT: a ping, or a SYN with its options."""


def delay_off(state: LabState) -> str | None:
    """Return where the minimum RTT of a run differs from the links' delays; None if nowhere.

    A lower RTT is always wrong. Of a higher RTT only the part counts that the shortest queue at the
    bottleneck does not explain.
    """
    worst: tuple[float, str] | None = None
    for name, least, base, slack in _round_trips(state):
        allowed = max(LEAST_DELAY_OFF_US, MOST_DELAY_OFF * base)
        off = max(least - base - slack - allowed, base - least - allowed)
        if off > 0 and (worst is None or off > worst[0]):
            verb = "never got below" if least > base else "got down to"
            text = f"{name} {verb} {least / 1000:.1f} ms; the links alone give {base / 1000:.1f} ms"
            worst = (off, text)
    return worst[1] if worst else None


def _round_trips(state: LabState) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, minimum RTT, base RTT, and the delay that a standing queue may add, in µs."""
    if state.hello is None:
        return
    network = state.hello.network
    seen: dict[tuple[str, ...], tuple[str, float, float]] = {}
    for each, taken, least in _least_rtts(state):
        there = taken or [link.name for link in network.path(each.src, each.dst)]
        # The path of ACKs is unknown if there are several: they may wait in the fullest queue.
        backs = [[link.name for link in path] for path in network.paths(each.dst, each.src)]
        if not there or not backs:
            continue
        links = (*there, *backs[0])
        if links not in seen or least < seen[links][1]:
            *waits, own = (
                sum(_shortest_wait_us(state, link, each) for link in path)
                for path in (*backs, there)
            )
            seen[links] = (f"{each.kind} {each.name}", least, own + max(waits))
    for links, (name, least, slack) in seen.items():
        # The delay of a link that moves is not that of its setting.
        moved = any(change.setting.trace for link in links for change in state.links.get(link, ()))
        if not moved and (base := _base_us(state, links)) is not None:
            yield name, least, base, slack


def _least_rtts(state: LabState) -> Iterator[tuple[Traffic, list[str], float]]:
    """Yield traffic, the links of its path from the sender, and the minimum RTT in µs.

    Traffic that took several paths is left out, because its minimum RTT belongs to an unknown one.
    """
    for flow in state.flows.values():
        if flow.mptcp or len(flow.paths) > 1:
            continue
        # The kernel's minimum never grows but over five minutes; the newest is the least.
        if least := flow.series["min_rtt_us"].last:
            taken = flow.paths[0].links if flow.paths else []
            yield flow, taken, least
    for each in state.traffic.values():
        rtt_us = each.series.get("rtt_us")
        if rtt_us is not None and (found := rtt_us.extremes(rtt_us.first, rtt_us.end)):
            yield each, [], found[0]


def _base_us(state: LabState, links: Sequence[str]) -> float | None:
    """Return the sum of the links' delays; None if they vary, are skipped by some, or changed."""
    base = 0.0
    for link in links:
        settings = [change.setting for change in state.links.get(link, ())]
        if len({each.delay_us or 0 for each in settings}) > 1 or any(
            s.jitter_us or s.reorder for s in settings
        ):
            return None
        for setting in settings[:1]:
            base += setting.delay_us or 0
    return base


def _shortest_wait_us(state: LabState, link: str, during: Traffic) -> float:
    """Return the shortest time in µs that a small packet waited in a link's queue.

    HTB passes a packet at once while it has tokens, so the true time may be shorter.
    """
    queue, now = state.queues.get(link), state.link_at(link, state.now)
    if now is None or not now.setting.rate:
        return 0.0
    alone = _SMALL_PACKET_BITS * 1e6 / now.setting.rate
    if queue is None or not state.flows:
        return alone
    end = state.now if during.ended is None else during.ended
    first, last = state.sweeps.at_or_after(during.started), state.sweeps.at_or_after(end)
    backlog = queue.series["backlog"]
    # Traffic that ends before the next sweep has none of its own: use those around it.
    extremes = backlog.extremes(first, last) or backlog.extremes(first - 1, last + 1)
    return alone + (0.0 if extremes is None else extremes[0] * 8e6 / now.setting.rate)


# --- checks whether the steps of a timeline took effect on time -----------------------------------


def late_steps(state: LabState) -> list[Applied]:
    """Return the steps that took effect too late, the latest first."""
    late = [step for step in state.applied if step.late_s > MOST_LATE_S]
    return sorted(late, key=lambda step: step.late_s, reverse=True)


def lateness_text(state: LabState) -> str | None:
    """Return a description of the latest step; None if all were on time."""
    late = late_steps(state)
    if not late:
        return None
    worst, start = late[0], state.ready_at or 0.0
    due, applied = ((worst.due or 0.0) - start, worst.t - start)
    text = (
        f"the step due at {due:.1f} s ({worst.command.describe()}) took effect at {applied:.1f} s, "
        f"more than {MOST_LATE_S} s late"
    )
    others = len(late) - 1
    if others:
        text += f", as {others} other step{'s were' if others > 1 else ' was'}"
    return text


# --- judges whether a run can be trusted: the timing of the lab, of steps, rates and delays -------

MOST_MISSED = 0.01
"""Largest acceptable share of missed sweeps; percentiles would omit the busiest moments."""
MOST_STEAL = 0.05
"""Largest acceptable mean share of stolen CPU time; at 17 % goodput fell by a tenth of the rate."""
MOST_HOST_CPU = 0.95
"""Largest acceptable mean share of all cores in use; beyond it packets wait for a core."""
MOST_DELAY_LATE_US = 5_000.0
"""Largest acceptable p99 in µs of the delay line's lateness in the median second; beyond it the RTT
is the machine's."""
MOST_RATE_OFF = 0.03
"""Largest acceptable error of the rate in the median second; HTB itself is within 1 %."""


class HealthResult(msgspec.Struct, frozen=True, kw_only=True):
    """The lab's own timing over a case. Means and worst values are over its seconds."""

    ticks: int
    """Number of sweeps made."""
    missed: int
    """Number of sweeps that were skipped."""
    late_p50_us: float | None
    """Microseconds by which sweeps began late: the median of the median second."""
    late_p99_us: float | None
    """Microseconds by which sweeps began late: the p99 of the worst second."""
    sweep_p50_us: float | None
    """Duration of sweeps in µs, median."""
    lab_cpu: float | None
    """Cores used by the lab, mean."""
    host_cpu: float | None
    """Share of all cores in use, mean."""
    steal: float | None
    """Share of all cores taken by the hypervisor, mean."""
    steal_max: float | None
    delay_late_p50_us: float | None
    """Microseconds by which packets left the delay line late: the median; null if netem delays."""
    delay_late_p99_us: float | None
    """Microseconds by which packets left the delay line late: the p99 of the median second."""
    rate_accuracy: float | None = None
    """Traffic that left a busy link over what its rate allows, in the median second; null if no
    link was busy for long."""
    events_dropped: int
    impossible_windows: int = 0
    """Flows with a cwnd or ssthresh that no path can hold."""
    late_steps: int = 0
    """Number of timeline steps that took effect more than ``MOST_LATE_S`` after their moment."""
    trustworthy: bool
    reasons: list[str]
    """Reasons not to trust the run."""

    @property
    def kept_time(self) -> str:
        """Whether the lab kept time, in words; otherwise the reasons not to trust the run."""
        return "kept time" if self.trustworthy else "; ".join(self.reasons)


_MS = Format(lambda us: f"{us / 1000:.1f} ms", lambda us: f"{us / 1000:.1f}", "ms")
_FINE_MS = Format(lambda us: f"{us / 1000:.2f} ms", lambda us: f"{us / 1000:.2f}", "ms")
_PERCENT = Format(lambda share: f"{share:.0%}", lambda share: f"{share * 100:.0f}", "%")

HEALTH = ResultTable(
    "Timing of the labs",
    (
        Column("lab", ("kept_time",)),
        Column("samples", ("ticks",), COUNT),
        Column("missed", ("missed",), COUNT),
        Column("late", ("late_p99_us",), _MS, ("worst p99",)),
        Column("cores busy", ("host_cpu",), _PERCENT),
        Column("steal", ("steal",), _PERCENT),
        Column("delay late", ("delay_late_p99_us",), _FINE_MS, ("p99",)),
    ),
    in_brief=False,
)
"""Columns of the lab's timing."""


def judge(state: LabState) -> HealthResult:
    """Summarise every ``Health`` of a session, with the reasons not to trust it."""
    healths = state.healths
    steal = [each.steal for each in healths]
    delay_p50 = [e.delay_late_p50_us for e in healths if e.delay_late_p50_us is not None]
    delay_p99 = [e.delay_late_p99_us for e in healths if e.delay_late_p99_us is not None]
    rates = [each.rate_accuracy for each in healths if each.rate_accuracy is not None]
    windows = impossible_windows(state)
    found = HealthResult(
        ticks=sum(each.ticks for each in healths),
        missed=sum(each.missed for each in healths),
        late_p50_us=_middle([each.late_p50_us for each in healths]),
        late_p99_us=max((each.late_p99_us for each in healths), default=None),
        sweep_p50_us=_middle([each.sweep_p50_us for each in healths]),
        lab_cpu=_mean([each.lab_cpu for each in healths]),
        host_cpu=_mean([each.host_cpu for each in healths]),
        steal=_mean(steal),
        steal_max=max(steal, default=None),
        delay_late_p50_us=_middle(delay_p50),
        delay_late_p99_us=_middle(delay_p99),
        rate_accuracy=_middle(rates),
        events_dropped=max((each.events_dropped for each in healths), default=0),
        impossible_windows=len(windows),
        late_steps=len(late_steps(state)),
        trustworthy=True,
        reasons=[],
    )
    reasons = _reasons(found)
    if (off := delay_off(state)) is not None:
        reasons.append(off)
    if (late := lateness_text(state)) is not None:
        reasons.append(late)
    reasons += state.spoiled
    if (above := above_framing(state)) is not None:
        reasons.append(above)
    reasons += [
        f"flow {name} had a window of {most:,} segments: its algorithm was skipped, or is wrong"
        for name, most in windows.items()
    ]
    return replace(found, trustworthy=not reasons, reasons=reasons)


def was_judged(health: HealthResult) -> bool:
    """Return whether a lab ran long enough to report its health."""
    return health.late_p50_us is not None


def for_want_of_cpu(health: HealthResult) -> bool:
    """Return whether fewer parallel labs could have helped; they can't against a hypervisor."""
    return (
        health.missed > MOST_MISSED * (health.ticks + health.missed)
        or (health.host_cpu or 0) > MOST_HOST_CPU
        or (health.delay_late_p99_us or 0) > MOST_DELAY_LATE_US
        or (health.rate_accuracy or 1) < 1 - MOST_RATE_OFF
        or health.events_dropped > 0
    )


def _reasons(health: HealthResult) -> list[str]:
    """Return the reasons to doubt a lab by its own timing."""
    if not was_judged(health):
        return ["ended before the lab had checked its own health (1 s)"]
    reasons = []
    due = health.ticks + health.missed
    if health.missed > MOST_MISSED * due:
        reasons.append(f"{health.missed} of {due} samples were missed")
    if (steal := health.steal or 0) > MOST_STEAL:
        reasons.append(f"the hypervisor took {steal:.0%} of the time")
    if (busy := health.host_cpu or 0) > MOST_HOST_CPU:
        reasons.append(f"the machine was {busy:.0%} busy")
    if (late_us := health.delay_late_p99_us or 0) > MOST_DELAY_LATE_US:
        reasons.append(f"the delay line was {late_us / 1000:.1f} ms late (p99)")
    if health.events_dropped:
        reasons.append(f"{health.events_dropped} samples were lost on a slow pipe")
    accuracy = health.rate_accuracy
    if accuracy is not None and abs(accuracy - 1) > MOST_RATE_OFF:
        reasons.append(f"a busy link carried {accuracy:.0%} of its rate")
    return reasons


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _middle(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None


def credible(field: str) -> float:
    """Return the greatest possible value of a flow's series."""
    return MOST_SEGMENTS if field in ("cwnd", "ssthresh") else math.inf


def impossible_windows(state: LabState) -> dict[str, int]:
    """Return the greatest impossible cwnd or ssthresh of each flow.

    Some kernels skip a BPF program when an interrupt finds process 1 running. The result of a
    program such as ``ssthresh`` is then whatever the register contained.
    """
    found: dict[str, int] = {}
    for name, flow in state.flows.items():
        both = (flow.series["cwnd"], flow.series["ssthresh"])
        spans = (each.extremes(each.first, each.end) for each in both)
        most = max((int(span[1]) for span in spans if span is not None), default=0)
        if most > MOST_SEGMENTS:
            found[name] = most
    return found
