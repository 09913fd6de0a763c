"""Computes a result from the state: the metrics of all traffic, queues and interfaces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import inf

import msgspec
from msgspec.structs import replace

from ccplay.analysis.results import (
    CaseResult,
    Checkpoint,
    DirectionResult,
    InterfaceResult,
    Machine,
    QueueResult,
    checkpoint,
    fixed_sizes,
)
from ccplay.analysis.sharing import (
    converged_s,
    fairness,
    loss_synchronisation,
    reactions,
    responsiveness,
)
from ccplay.analysis.trust import judge
from ccplay.model.columns import mean, percentile, percentiles_ms
from ccplay.model.events import Hello
from ccplay.model.variables import CAPACITY
from ccplay.state.lab_state import LabState, drain_at, mean_capacity
from ccplay.state.samples import Queue
from ccplay.traffic import KINDS, results
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.traffic.flow import FlowResult

# --- the effects of a queue on its link: queueing delay and utilisation ---------------------------


def filling(state: LabState) -> list[Traffic]:
    """Return the traffic that sends enough to fill a queue."""
    return [each for each in state.traffic.values() if KINDS[each.kind].fills]


def while_traffic_ran(state: LabState) -> tuple[float, float]:
    """Return the time from the first start to the last end; without traffic the whole session."""
    traffic = filling(state)
    start = min((each.started for each in traffic), default=0.0)
    ends = (state.now if each.ended is None else each.ended for each in traffic)
    return start, max(ends, default=state.now)


def occupancy(state: LabState, queue: Queue, name: str) -> list[float]:
    """Return ``qlen`` (packets) or ``backlog`` (bytes) in each sweep while traffic ran."""
    start, end = while_traffic_ran(state)
    ticks = state.sweeps.at_or_after(start), state.sweeps.before_or_at(end) + 1
    return queue.series[name].values(*ticks)


def queueing_delays_us(state: LabState, queue: Queue) -> list[float]:
    """Return the queueing delay, backlog over rate, in each sweep while traffic ran.

    While a link moves it is the time until its capacity had carried the backlog; what still waited
    at the end is left out. Empty if the link has no rate, and so no queue.
    """
    backlog, link = queue.series["backlog"], queue.link
    start, end = while_traffic_ran(state)
    first, last = state.sweeps.at_or_after(start), state.sweeps.before_or_at(end)
    moments = [state.sweeps.time(tick) for tick in range(first, last + 1)]
    rates = [drain_at(state, link, t) for t in moments]
    spans = zip(pairwise(moments), rates[1:], strict=False)
    carried = list(accumulate(((t - s) * (rate or 0.0) for (s, t), rate in spans), initial=0.0))
    delays = []
    for at, (t, rate) in enumerate(zip(moments, rates, strict=True)):
        waiting, change = backlog.at(first + at), state.link_at(link, t)
        if waiting is None or rate is None:
            continue
        if change is None or not change.setting.is_paced:
            delays.append(waiting * 8e6 / rate)
            continue
        target = carried[at] + waiting * 8
        left = bisect_left(carried, target, at)
        if left < len(carried):
            over = (carried[left] - target) / (rates[left] or inf)
            delays.append((moments[left] - over - t) * 1e6)
    return delays


def utilisation(state: LabState, queue: Queue) -> float | None:
    """Return the share of its rate, or of its capacity, that a link carried while traffic ran.

    It is the bytes that left the queue over those that could have left; both count Ethernet
    headers. None without a rate or without traffic.
    """
    start, end = while_traffic_ran(state)
    carried = queue.series["bytes"]
    first, last = state.sweeps.at_or_after(start), state.sweeps.before_or_at(end)
    since, until = carried.latest(first), carried.latest(last)
    if not filling(state) or since is None or until is None or last <= first:
        return None
    begin, stop = state.sweeps.time(first), state.sweeps.time(last)
    could = mean_capacity(state, queue.link, begin, stop)
    return round(8 * (until - since) / could / (stop - begin), 4) if could else None


def loss(queue: Queue) -> float | None:
    """Return the share of arriving packets that a queue dropped; None if none arrived."""
    drops, left = queue.series["drops"].last or 0.0, queue.series["packets"].last or 0.0
    return round(drops / (drops + left), 6) if drops + left else None


# --- computes a result from the state: the metrics of all traffic, queues and interfaces ----------


def summarise(
    state: LabState,
    name: str,
    *,
    interrupted: bool = False,
    errors: tuple[str, ...] = (),
    checkpoint: Checkpoint | None = None,
) -> CaseResult:
    """Return the result of a session so far, live or recorded."""
    start = state.ready_at or 0.0
    reacted = reactions(state)
    found = CaseResult(
        name=name,
        duration_s=round(state.now - start, 3),
        interrupted=interrupted,
        queues=[_queue(state, queue) for queue in _queues(state)],
        interfaces=_interfaces(state),
        checkpoint=checkpoint,
        jain=fairness(state),
        converged_s=converged_s(state),
        starvation=max(
            (each.starved for each in reacted if each.starved is not None), default=None
        ),
        loss_synchronisation=loss_synchronisation(state),
        rpm=responsiveness(state),
        reactions=reacted,
        health=judge(state),
        errors=[*(entry.text for entry in state.log if entry.kind == "error"), *errors],
    )
    measured = results(state)
    flows = measured["flows"]
    together = {"directions": _directions(flows), **_of_all(state, flows)}
    return replace(found, **measured, **together)


def _of_all(state: LabState, flows: Sequence[FlowResult]) -> dict[str, float | None]:
    """Return the sum of all goodput, and the completion times of the flows of a fixed size."""
    rates = [each.goodput_bps for each in flows if each.goodput_bps is not None]
    found: dict[str, float | None] = {"goodput_bps": round(sum(rates), 1) if rates else None}
    sized = [each for each in flows if each.id in state.sizes]
    times = [each.fct_s for each in sized if each.fct_s is not None]
    if sized and len(times) == len(sized):
        ends = [each.started_s + each.fct_s for each in sized if each.fct_s is not None]
        found["fct_mean_s"] = round(sum(times) / len(times), 4)
        found["fct_max_s"] = round(max(ends) - min(each.started_s for each in sized), 3)
    return found


def _directions(flows: Sequence[FlowResult]) -> list[DirectionResult]:
    """Return the sums of the flows of each direction; nothing if there is only one direction."""
    rates: dict[str, list[float]] = {}
    for each in flows:
        if each.goodput_bps is not None:
            rates.setdefault(f"{each.src}->{each.dst}", []).append(each.goodput_bps)
    if len(rates) < 2:
        return []
    return [
        DirectionResult(
            id=name, goodput_bps=round(sum(own), 1), goodput_mean_bps=round(sum(own) / len(own), 1)
        )
        for name, own in rates.items()
    ]


def machine(state: LabState) -> Machine | None:
    """Return the machine of a session's lab; None before its ``Hello``."""
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


def _queues(state: LabState) -> list[Queue]:
    """Return the queues, the link under study first; classes follow their link."""
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
    marks = queue.series["ecn_marks"].newest
    delays = queueing_delays_us(state, queue)
    delay_p50, delay_p95, delay_p99 = percentiles_ms(delays, 50, 95, 99)
    sojourns_us = state.interfaces.sojourn_us.get(queue.link, []) if state.interfaces else []
    sojourn = [round(each / 1e3, 4) for each in sojourns_us] if len(sojourns_us) > 2 else [None] * 3
    return QueueResult(
        link=queue.link,
        kind=kinds[0],
        kinds=kinds,
        qlen_p50=percentile(qlen, 50),
        qlen_p99=percentile(qlen, 99),
        qlen_max=percentile(qlen, 100),
        qlen_mean=mean(qlen),
        backlog_p50=percentile(backlog, 50),
        backlog_p99=percentile(backlog, 99),
        backlog_mean=mean(backlog),
        delay_p50_ms=delay_p50,
        delay_p95_ms=delay_p95,
        delay_p99_ms=delay_p99,
        sojourn_p50_ms=sojourn[0],
        sojourn_p95_ms=sojourn[1],
        sojourn_p99_ms=sojourn[2],
        self_inflicted_delay_ms=sojourn[1] if CAPACITY.name in queue.own else None,
        utilisation=utilisation(state, queue),
        loss=loss(queue),
        drops=round(queue.series["drops"].newest or 0),
        marks=None if marks is None else round(marks),
        bytes=round(queue.series["bytes"].newest or 0),
    )


def _interfaces(state: LabState) -> list[InterfaceResult]:
    found = state.interfaces
    if found is None:
        return []
    fields = [each for each in InterfaceResult.__struct_fields__ if each != "id"]
    # A stranger's recording may have columns of any length.
    rows = zip(found.interface, *(getattr(found, each) for each in fields), strict=False)
    return [InterfaceResult(**dict(zip(("id", *fields), row, strict=True))) for row in rows]


# --- the receiver's table -------------------------------------------------------------------------
# The receiver's table: bytes delivered by every flow at each whole second, and the checkpoint.

_TINY_S = 1e-6
"""Tolerance in seconds for moments as floats: 3 s after 0.1 s may be slightly above 3.1 s."""


class Second(msgspec.Struct, frozen=True):
    """All flows at one whole second, as of the last sweep before it."""

    elapsed_s: int
    """Seconds since the first flow opened its connection."""
    bytes: tuple[int | None, ...]
    """Acknowledged payload in bytes, in the order of the flows; None before a flow's start."""
    rates_bps: tuple[float | None, ...]
    """Rates over the previous second in bits per second, in the order of the flows."""


class Receiver:
    """The table at one moment of a session; rows are computed on demand."""

    def __init__(self, state: LabState, until: float) -> None:
        """Read ``state`` as of ``until``."""
        self._state, self._until = state, until
        self._streams: dict[str, list[Flow]] = {}
        for flow in state.flows.values():
            if flow.kind == "flow":
                self._streams.setdefault(flow.parent, []).append(flow)
        self.sizes = fixed_sizes(state)
        """Flows of a fixed size with their bytes, in the order of the scenario."""
        self.flows = self._started(until)
        """The flows started so far; flows of a fixed size come first."""

    def rows(self, most: int | None = None, *, after: int = 0) -> list[Second]:
        """Return the rows of all whole seconds ``after`` one, or the last ``most`` of them."""
        if not self.flows:
            return []
        start = self._start(self.flows)
        ended = [self._state.flows[name].ended for name in self.flows]
        over = max((inf if each is None else each) for each in ended)
        seconds = int(min(self._until, over) - start + _TINY_S)
        first = after + 1 if most is None else max(seconds - most, after) + 1
        rows = (self._row(start, second) for second in range(first, seconds + 1))
        return [row for row in rows if row is not None]

    def checkpoint(self) -> Checkpoint | None:
        """Return the race's checkpoint; None before it."""
        found = checkpoint(self._state)
        return None if found is None or found.t > self._until + _TINY_S else found

    def _started(self, t: float) -> tuple[str, ...]:
        started = [name for name in self._streams if self._state.flows[name].started <= t]
        fixed = [name for name in self.sizes if name in started]
        return (*fixed, *(name for name in started if name not in self.sizes))

    def _start(self, names: Sequence[str]) -> float:
        fixed = [name for name in names if name in self.sizes]
        return min(self._state.flows[name].started for name in fixed or names)

    def _row(self, start: float, second: int) -> Second | None:
        sweeps = self._state.sweeps
        t = start + second
        tick, before = sweeps.before_or_at(t + _TINY_S), sweeps.before_or_at(t - 1 + _TINY_S)
        if tick < sweeps.first:
            return None
        acked = tuple(self._acked(name, tick, t) for name in self.flows)
        rates: tuple[float | None, ...] = (None,) * len(acked)
        if sweeps.first <= before < tick:
            took_s = sweeps.time(tick) - sweeps.time(before)
            earlier = (self._acked(name, before, t - 1) or 0 for name in self.flows)
            rates = tuple(
                None if now is None else (now - then) * 8 / took_s
                for now, then in zip(acked, earlier, strict=True)
            )
        return Second(second, acked, rates)

    def _acked(self, name: str, tick: int, t: float) -> int | None:
        """Return a flow's delivered bytes at a moment, and the sweep."""
        flow = self._state.flows[name]
        if flow.started > t:
            return None
        seen = sum(_bytes(each, tick) for each in self._streams[name])
        return max(seen, flow.bytes) if flow.ended is not None and flow.ended <= t else seen


def _bytes(flow: Flow, tick: int) -> int:
    """Return a stream's delivered bytes at a tick."""
    acked = flow.series["bytes_acked"]
    for at in range(min(tick, acked.end - 1), acked.first - 1, -1):
        # A sweep that missed a flow leaves a gap. tcp_info counts the SYN too.
        if (value := acked.at(at)) is not None:
            return max(int(value) - 1, 0)
    return 0
