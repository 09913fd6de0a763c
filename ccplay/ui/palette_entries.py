"""The palette's commands to the lab: entries ready to run, and queries that spell out a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ccplay.model.base import Option
from ccplay.model.commands import (
    AnyCommand,
    Mark,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.disciplines import DISCIPLINES, custom, validate
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.model.traffic_commands import StartFlow, StopFlow
from ccplay.model.values import Qdisc
from ccplay.model.wording import describe, describe_qdisc
from ccplay.state.lab_state import LabState
from ccplay.ui.actions import paths
from ccplay.ui.dialogs.captures import capture_choices
from ccplay.ui.dialogs.hosts import next_sender, running_flows
from ccplay.ui.view import tracing_problem
from ccplay.units import parse_rate, parse_ratio, parse_time_us

RATES = ("1 Mbit/s", "1.5 Mbit/s", "5 Mbit/s", "10 Mbit/s", "20 Mbit/s", "50 Mbit/s", "100 Mbit/s")
DELAYS = ("0 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms")
LOSSES = ("0 %", "0.1 %", "1 %", "5 %")
PACKETS = (10, 20, 50, 100, 200, 1000)


class Entry(msgspec.Struct, frozen=True):
    """A line of the palette and the command that it sends."""

    text: str
    help: str
    command: AnyCommand


def entries(state: LabState) -> list[Entry]:
    """Return the commands possible in this state, the most useful first."""
    if state.hello is None:
        return []
    return [
        *(*_flows(state), *_queues(state), *_links(), *_traffic(state)),
        *(*_paths(state), *_captures(state)),
    ]


def typed(query: str, state: LabState) -> Entry | None:
    """Return the entry that a query spells out, such as ``queue pfifo 37`` or ``rate 7 Mbit/s``.

    Numbers without a unit are in Mbit/s, ms or per cent, as in the entries.
    """
    word, rest = words(query)
    if state.hello is None or word not in READERS or not rest:
        return None
    if word in _UNITS and _is_number(rest):
        rest = f"{rest} {_UNITS[word]}"
    try:
        command = READERS[word](rest)
    except (ValueError, OverflowError):
        return None
    return Entry(f"{word}: {rest}", describe(command), command)


def words(query: str) -> tuple[str, str]:
    """Return the first word of a query, without a colon, and the rest."""
    word, _, rest = query.strip().partition(" ")
    return word.rstrip(":").lower(), rest.strip()


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _flows(state: LabState) -> Iterator[Entry]:
    algorithms = _available_algorithms(state)
    for name in running_flows(state):
        flow = state.flows[name]
        for cc in algorithms:
            if cc != flow.cc:
                command = SetCongestionControl(cc=cc, flow=name)
                yield Entry(
                    f"switch flow {name} to {cc}", f"from {flow.cc}, while it runs", command
                )
        if name in state.traced:
            yield Entry(f"stop tracing flow {name}", "sampling continues", UntraceFlow(flow=name))
        elif not tracing_problem(state):
            text = "cwnd, ssthresh and srtt at every ACK: zoom in to see them"
            yield Entry(f"trace flow {name}", text, TraceFlow(flow=name))
        path = f"{flow.src} → {flow.dst}"
        yield Entry(f"stop flow {name}", f"{flow.cc}, {path}", StopFlow(flow=name))


def _queues(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has checked
    kinds = {each.name: each.summary for each in state.hello.capabilities.qdiscs if each.available}
    sizes: list[Qdisc] = [Qdisc(kind="pfifo", options={"limit": packets}) for packets in PACKETS]
    own = [kind for kind in DISCIPLINES if kind not in ("pfifo", "tbf", "choke")]
    plain = [Qdisc(kind=kind) for kind in (*own, *custom)]
    for qdisc in (*sizes, *plain):
        if qdisc.kind in kinds:
            filled = validate(qdisc)
            limit = f" {qdisc.options['limit']}" if qdisc.options else ""
            text = f"queue: {qdisc.kind}{limit}"
            title = f"{describe_qdisc(filled)}: {kinds[qdisc.kind]}"
            yield Entry(text, title, SetQdisc(qdisc=filled))


def _links() -> Iterator[Entry]:
    for rate in RATES:
        yield Entry(f"rate: {rate}", "of the bottleneck", SetLink(rate=parse_rate(rate)))
    for delay in DELAYS:
        command = SetLink(delay_us=parse_time_us(delay))
        yield Entry(f"delay: {delay}", "added at the bottleneck, each way", command)
    for loss in LOSSES:
        yield Entry(f"loss: {loss}", "after the bottleneck", SetLink(loss=parse_ratio(loss)))


def _traffic(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has checked
    network = state.hello.network
    source = next_sender(state, network)
    sink = network.peer(source)
    for cc in _available_algorithms(state):
        command = StartFlow(src=source, dst=sink, cc=cc)
        yield Entry(f"start a {cc} flow", f"{source} → {sink}", command)
    for cc in _available_algorithms(state):
        for host in network.senders:
            if state.hosts.get(host) != cc:
                text = f"new connections of {host} use {cc}"
                yield Entry(text, "its default", SetCongestionControl(cc=cc, host=host))
    first = network.hosts[0]
    last = network.peer(first)
    monitor = any(each.available for each in state.hello.capabilities.monitors)
    for kind in TRAFFIC:
        if kind.offer:
            start = kind.starting(src=first, dst=last, monitor=monitor)
            path = f"{first} → {last}"
            about = ", ".join(filter(None, (kind.offer_gist(start), path)))
            yield Entry(kind.offer, about, start)
    for each in state.traffic.values():
        kind = KINDS[each.kind]
        # Entries of flows are listed with the other commands for each flow.
        if each.ended is None and kind.offer:
            text = f"stop {kind.word} {each.name}"
            yield Entry(text, f"{each.src} → {each.dst}", kind.stopping(each.name))


def _paths(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has checked
    for each in state.traffic.values():
        if each.ended is None:
            for way, command in paths.offers(state, each, state.hello.network):
                text = f"path of {KINDS[each.kind].word} {each.name} {way}"
                yield Entry(text, f"{each.src} → {each.dst}, while it runs", command)


def _captures(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has checked
    for link, where in capture_choices(state.hello.network):
        yield Entry(f"capture packets of {link}", where, StartCapture(link=link))
    for name, capture in state.captures.items():
        yield Entry(f"stop capture {name}", capture.link, StopCapture(capture=name))


def _available_algorithms(state: LabState) -> list[str]:
    if state.hello is None:
        return []
    return [each.name for each in state.hello.capabilities.congestion_controls if each.available]


def _read_queue(text: str) -> SetQdisc:
    kind, _, rest = text.partition(" ")
    options: dict[str, Option] = {}
    for part in filter(None, (each.strip() for each in rest.split(","))):
        name, _, value = part.partition(" ")
        # "pfifo 20 packets" names no parameter, so the value is the limit.
        options.update({name: value} if name.isidentifier() and value else {"limit": part})
    return SetQdisc(qdisc=validate(Qdisc(kind=kind, options=options)))


_UNITS = {"rate": "Mbit/s", "delay": "ms", "jitter": "ms", "loss": "%"}
"""Unit of a number typed without one, by the query's first word."""

READERS: dict[str, Callable[[str], AnyCommand]] = {
    "queue": _read_queue,
    "rate": lambda text: SetLink(rate=parse_rate(text)),
    "delay": lambda text: SetLink(delay_us=parse_time_us(text)),
    "jitter": lambda text: SetLink(jitter_us=parse_time_us(text)),
    "loss": lambda text: SetLink(loss=parse_ratio(text)),
    "mark": lambda text: Mark(text=text),
}
"""Function that reads the rest of a query as a command, by the query's first word."""
