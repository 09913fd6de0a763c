"""Facts of a session that change rarely: plots, flows, links, network and events, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from ccplay.model.layout import layout
from ccplay.model.traffic import KINDS
from ccplay.model.wording import describe_link
from ccplay.plots.plot import Line, Plot, Scope
from ccplay.plots.settings import counts_bytes
from ccplay.state.lab_state import Flow, LabState
from ccplay.state.traffic import Listed
from ccplay.units import format_size
from ccplay.web.lines import MOST_FLOWS, MOST_QUEUES, Drawn, flows_with_lines, plots, quantum

Facts: TypeAlias = dict[str, Any]
"""Facts for a page, by name."""

MOST_LOGGED = 500
"""Number of lines of the event log that a page receives, the newest ones."""

MOST_NODES = 300
"""Largest number of nodes in a network that is drawn."""

_MOST_ENDS = 12
"""Largest number of host pairs whose base RTT is drawn."""

_MOST_CHANGES = 500
"""Number of changes of a setting that a page receives, the newest ones."""


def facts(state: LabState) -> Facts:
    """Return everything that a page receives except the values of lines."""
    return {name: describe(state) for name, describe in _FACTS.items()}


def described(line: Drawn) -> list[Any]:
    """Return a line for a page: plot, role, subject, axis value of number 1, style, colour."""
    factor = line.variable.axis()[1]
    return [line.plot, line.role, line.subject, line.quantum * factor, line.style, line.ink]


def _phase(state: LabState) -> Facts:
    building = state.building
    return {
        "phase": state.phase,
        "step": building.step if building else "",
        "reason": state.end_reason or "",
        "interval": 1 / state.hello.sample_hz if state.hello else 0.02,
    }


def _plots(state: LabState) -> list[Facts]:
    return [_plot(plot) for plot in plots(state).values()]


def _plot(plot: Plot) -> Facts:
    unit, factor = plot.variable.axis()
    return {
        "name": plot.name,
        "title": plot.full or plot.about or plot.title,
        "short": plot.title,
        "help": plot.help,
        "missing": f"no {plot.missing[0]} at this time" if plot.missing else "",
        "least": plot.least,
        "subject": plot.variable.subject,
        "axis": {"unit": unit, **_writing(plot.lines[-1])},
        "bytes": _axis(plot.in_bytes) if plot.in_bytes else None,
        "counts": [{"ink": each.ink, "short": each.short} for each in plot.counts],
        "companions": [each.variable.words for each in plot.companions],
        "factor": factor,
    }


def _axis(line: Line) -> Facts:
    return {"unit": line.variable.axis()[0], **_writing(line)}


def _writing(line: Line) -> Facts:
    """Return the format of values on the axis, the same as in ``Variable.write``."""
    variable = line.variable
    fraction = 2 if variable.one is not None else variable.digits
    scaled = bool(variable.scale) or variable.unit in ("us", "bps", "share")
    return {"digits": fraction, "scaled": scaled, "per": quantum(variable) * variable.axis()[1]}


def _settings_of(state: LabState) -> list[list[Any]]:
    """Return plot, subject, colour, name and changes of each setting that plots draw."""
    found: list[list[Any]] = []
    network = state.hello.network if state.hello else None
    links = network.observed[:MOST_QUEUES] if network else []
    ends = {f"{flow.src} {flow.dst}": (flow.src, flow.dst) for flow in flows_with_lines(state)}
    if network and network.senders and not ends:
        first = network.senders[0]
        ends[""] = first, network.peer(first)
    for plot in plots(state).values():
        for setting in plot.settings:
            for subject, scope in _scopes(state, plot, links, ends):
                line = plot.drawn(in_bytes=scope.in_bytes)[-1]
                factor = line.variable.axis()[1]
                changes = setting.changes(scope)[-_MOST_CHANGES:]
                steps = [[t, value and round(value * factor, 4)] for t, value in changes]
                if any(value is not None for _, value in steps):
                    found.append([plot.name, subject, setting.ink, setting.word, steps])
    return found


def _scopes(
    state: LabState, plot: Plot, links: list[str], ends: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, Scope]]:
    if plot.variable.subject == "queue":
        for link in links:
            yield link, Scope(state, link, in_bytes=_in_bytes(state, link), converts=True)
    elif plot.variable.subject == "flow":
        for name, pair in islice(ends.items(), _MOST_ENDS):
            yield name, Scope(state, ends=pair)
    else:
        yield "", Scope(state)


def _in_bytes(state: LabState, link: str) -> bool:
    change = state.link_at(link, state.now)
    return counts_bytes(change.setting.qdisc if change else None)


def _flow_facts(state: LabState) -> list[Facts]:
    senders = state.hello.network.senders if state.hello else []
    return [_flow(state, flow, senders) for flow in flows_with_lines(state)]


def _flow(state: LabState, flow: Flow, senders: list[str]) -> Facts:
    back = flow.dst in senders and flow.src not in senders
    path = f"{flow.dst} ← {flow.src}" if back else f"{flow.src} → {flow.dst}"
    over = flow.error or f"ended, {format_size(flow.bytes)}"
    return {
        "name": flow.name,
        "kind": flow.kind,
        "number": state.places.get(flow.name, 0),
        "ends": [flow.src, flow.dst],
        "path": path,
        "cc": [[t, cc] for t, cc in flow.cc_changes[-50:]] or [[flow.started, flow.cc]],
        "from": flow.started,
        "until": flow.ended,
        "over": over if flow.ended is not None else "",
        "wrong": flow.wrong_at(state.now),
    }


def _others(state: LabState) -> list[list[Any]]:
    """Return name, description, start and end of traffic without a connection."""
    found = [each for each in state.traffic.values() if not KINDS[each.kind].connection]
    return [
        [each.name, each.lines(state.now)[0], each.started, each.ended]
        for each in found[-MOST_FLOWS:]
        if isinstance(each, Listed)
    ]


def _network(state: LabState) -> Facts:
    network = state.hello.network if state.hello else None
    if network is None or len(network.nodes) > MOST_NODES:
        return {"nodes": [], "cables": [], "observed": network.observed if network else []}
    drawn = layout(network)
    observed = network.observed[:MOST_QUEUES]
    return {
        "nodes": [
            [node.name, *drawn.places[node.name], node.role]
            for node in network.nodes
            if node.name in drawn.places
        ],
        "cables": [
            [there.src, there.dst, *(each.name for each in (there, back) if each.name in observed)]
            for there, back in network.cables
        ],
        "observed": observed,
        "chain": drawn.is_chain,
    }


def _links(state: LabState) -> dict[str, list[list[Any]]]:
    """Return each observed link's settings: start, text, rate, limit, whether that is in bytes."""
    network = state.hello.network if state.hello else None
    found: dict[str, list[list[Any]]] = {}
    for link in network.observed[:MOST_QUEUES] if network else []:
        changes = state.links.get(link, [])[-_MOST_CHANGES:]
        found[link] = [
            [
                each.t,
                describe_link(each.setting),
                each.setting.rate,
                _limit(each.setting.qdisc.options.get("limit") if each.setting.qdisc else None),
                counts_bytes(each.setting.qdisc),
            ]
            for each in changes
        ]
    return found


def _limit(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) or None


def _counts(state: LabState) -> list[int]:
    """Return the number of flows, and the number of those with lines."""
    return [len(state.flows), len(flows_with_lines(state))]


def log(state: LabState) -> list[list[Any]]:
    """Return number, moment, kind and text of the newest events, and whether each is a mark."""
    first = max(len(state.log) - MOST_LOGGED, 0)
    return [
        [number, round(each.t, 3), each.kind, each.text, int(each.is_mark)]
        for number, each in enumerate(state.log[first:], first)
    ]


_FACTS: dict[str, Callable[[LabState], Any]] = {
    "phase": _phase,
    "plots": _plots,
    "settings": _settings_of,
    "flows": _flow_facts,
    "others": _others,
    "network": _network,
    "links": _links,
    "counts": _counts,
}
"""Functions that make the facts, by name."""
