"""Computes a result from the state: the metrics of all traffic, queues and interfaces."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.analysis.checkpoint import Checkpoint
from ccplay.analysis.fairness import converged_s, fairness
from ccplay.analysis.queueing import loss, occupancy, queueing_delays_us, utilisation
from ccplay.analysis.results import (
    CaseResult,
    DirectionResult,
    InterfaceResult,
    Machine,
    QueueResult,
)
from ccplay.analysis.trust import judge
from ccplay.model.events import Hello
from ccplay.state.flow_result import FlowResult
from ccplay.state.kinds import results
from ccplay.state.lab_state import LabState, Queue
from ccplay.state.rounding import mean, percentile, percentiles_ms


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
    found = CaseResult(
        name=name,
        duration_s=round(state.now - start, 3),
        interrupted=interrupted,
        queues=[_queue(state, queue) for queue in _queues(state)],
        interfaces=_interfaces(state),
        checkpoint=checkpoint,
        jain=fairness(state),
        converged_s=converged_s(state),
        health=judge(state),
        errors=[*(entry.text for entry in state.log if entry.kind == "error"), *errors],
    )
    measured = results(state)
    flows = measured["flows"]
    together = {"directions": _directions(flows), **_of_all(state, flows)}
    return msgspec.structs.replace(found, **measured, **together)


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
            id=name,
            goodput_bps=round(sum(own), 1),
            goodput_mean_bps=round(sum(own) / len(own), 1),
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
