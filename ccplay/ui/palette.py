"""The command palette: all that the lab can do, by name, ready to run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.markup import escape
from textual.widget import Widget
from textual.widgets import Button, Input
from textual.worker import WorkerError

from ccplay.model.base import Option
from ccplay.model.commands import (
    AnyCommand,
    Mark,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartCapture,
    StartDownload,
    StartFlow,
    StartPing,
    StartUdp,
    StopCapture,
    StopDownload,
    StopFlow,
    StopPing,
    StopUdp,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.disciplines import DISCIPLINES, validate
from ccplay.model.values import Qdisc
from ccplay.model.wording import describe, describe_qdisc
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.captures import capture_choices
from ccplay.ui.dialogs.hosts import next_sender, running_flows
from ccplay.ui.keys import bindings_of, wording
from ccplay.ui.modal import Modal
from ccplay.ui.themes import Look
from ccplay.ui.view import tracing_problem
from ccplay.units import format_rate, format_size, parse_rate, parse_ratio, parse_time_us

RATES = ("1 Mbit/s", "1.5 Mbit/s", "5 Mbit/s", "10 Mbit/s", "20 Mbit/s", "50 Mbit/s", "100 Mbit/s")
DELAYS = ("0 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms")
LOSSES = ("0 %", "0.1 %", "1 %", "5 %")
PACKETS = (10, 20, 50, 100, 200, 1000)


_Offer: TypeAlias = tuple[str, str, Callable[[], object]]
"""A text, its meaning, and what it runs."""


class _Lab(Protocol):
    """What the palette needs of a session."""

    @property
    def state(self) -> LabState:
        """What is known of the lab."""

    @property
    def live(self) -> bool:
        """Whether commands can be sent."""


class _Asking(Protocol):
    """What the palette needs of a screen."""

    @property
    def session(self) -> _Lab:
        """The lab that it shows."""

    @property
    def marks(self) -> _Marks:
        """The marks that it shows."""

    def ask(self, command: AnyCommand) -> object:
        """Hand a command to the lab."""


class _Marks(Protocol):
    """What the palette needs of marks."""

    def offers(self) -> Iterable[_Offer]:
        """Return what can be done with each."""


class _Dressed(Protocol):
    """What the palette needs of the app."""

    looks: dict[str, Look]

    def use_look(self, name: str) -> None:
        """Switch to another theme."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the palette and the command that it stands for."""

    text: str
    help: str
    command: AnyCommand


def entries(state: LabState) -> list[Entry]:
    """Return what can be done with the lab as it is now, the most wanted first."""
    if state.hello is None:
        return []
    return [*_flows(state), *_queues(state), *_links(), *_traffic(state), *_captures(state)]


def typed(query: str, state: LabState) -> Entry | None:
    """Return what a query says in full, such as ``queue pfifo 37`` or ``rate 7 Mbit/s``.

    A number without a unit has the one of the entries: Mbit/s, ms or per cent.
    """
    word, rest = _words(query)
    if state.hello is None or word not in _READERS or not rest:
        return None
    if word in _UNITS and _is_number(rest):
        rest = f"{rest} {_UNITS[word]}"
    try:
        command = _READERS[word](rest)
    except (ValueError, OverflowError):
        return None
    return Entry(f"{word}: {rest}", describe(command), command)


def _words(query: str) -> tuple[str, str]:
    """Return the first word of a query, without a colon, and the rest."""
    word, _, rest = query.strip().partition(" ")
    return word.rstrip(":").lower(), rest.strip()


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


class Palette(CommandPalette, Modal[None]):
    """Textual's palette with nothing but ours in it, and without its emoji."""

    DEFAULT_CSS = """
    Palette SearchIcon { display: none; }
    Palette > Vertical { margin-top: 1; }
    """

    def __init__(self) -> None:
        hint = "what shall happen?  also: queue pfifo 37, rate 7 Mbit/s, mark hello"
        super().__init__([LabProvider], placeholder=hint)
        self._parts: list[Widget] = []

    def on_mount(self) -> None:
        """Know the widgets."""
        self._parts = list(self.query("*"))

    def query_one(self, selector: Any, expect_type: Any = None) -> Any:
        """Find a widget, also after it was removed.

        A palette that is left loses its widgets while Textual's search, timers and watchers may
        still ask for them. Raises ``NoMatches``.
        """
        try:
            return super().query_one(selector, expect_type)
        except NoMatches:
            for each in self._parts:
                if selector in (type(each), f"#{each.id}"):
                    return each
            raise

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        """Run the chosen line once, however often it was chosen before the palette is gone."""
        if not self.answered:
            super()._select_or_command(event)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Wait until the list answers all that was typed: enter is for that, not for less.

        A second enter, which may come before the palette is gone, runs nothing again.
        """
        if self._selected_command is not None:
            event.prevent_default()
            return
        for worker in list(self.workers):
            if worker.group == self._GATHER_COMMANDS_GROUP:
                with contextlib.suppress(WorkerError):
                    await worker.wait()


class LabProvider(Provider):
    """Feed the palette: keys of the screen, commands to the lab, themes."""

    async def discover(self) -> Hits:
        """List what the screen's keys do, then what concerns running flows, then themes."""
        for text, help_text, run in self._all():
            if not text.startswith(("rate:", "delay:", "loss:", "queue:")):
                yield DiscoveryHit(text, run, help=help_text)

    async def search(self, query: str) -> Hits:
        """List what the query says in full, first of all, then what matches.

        Letters match wherever they are, but a value only as it begins: 2 is no 20, 5 no 1.5.
        """
        lab = self._lab
        entry = typed(query, lab.state) if lab.live else None
        if entry is not None:
            prompt = Content(entry.text)
            # Textual's own scores have no bound.
            yield Hit(
                math.inf, prompt, self._sending(entry.command), entry.text, escape(entry.help)
            )
        word, rest = _words(query)
        value = f"{word}: {rest}" if word in _READERS and any(map(str.isdecimal, rest)) else ""
        matcher = self.matcher(query)
        for text, help_text, run in self._all():
            score = matcher.match(text)
            said = entry is not None and entry.text == text
            if score > 0 and not said and text.lower().startswith(value.lower()):
                yield Hit(score, matcher.highlight(text), run, text=text, help=help_text)

    @property
    def _lab(self) -> _Lab:
        return self._asking.session

    @property
    def _asking(self) -> _Asking:
        return cast("_Asking", self.screen)

    def _all(self) -> Iterator[_Offer]:
        yield from self._keys()
        for entry in entries(self._lab.state) if self._lab.live else ():
            yield entry.text, entry.help, self._sending(entry.command)
        if self._lab.live:
            yield from self._asking.marks.offers()
        for name, title in self._themes():
            yield f"theme: {name}", title, self._choosing(name)

    def _keys(self) -> Iterator[_Offer]:
        seen = set()
        for active in bindings_of(self.screen):
            action, description = active.binding.action, active.binding.description
            if action not in seen and action.rpartition(".")[2] != "command_palette":
                seen.add(action)
                key = f"key {self.app.get_key_display(active.binding)}"
                more = wording(active)
                text = key if more == description else f"{more} ({key})"
                yield description, text, self._acting(active.node, action)

    def _themes(self) -> Iterable[tuple[str, str]]:
        looks = cast("_Dressed", self.app).looks
        return [(name, look.about) for name, look in looks.items()]

    def _acting(self, node: object, action: str) -> Callable[[], object]:
        return lambda: self.app.run_action(action, default_namespace=node)  # type: ignore[arg-type]

    def _sending(self, command: AnyCommand) -> Callable[[], object]:
        return lambda: self._asking.ask(command)

    def _choosing(self, name: str) -> Callable[[], object]:
        return lambda: cast("_Dressed", self.app).use_look(name)


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
            yield Entry(f"trace flow {name} no more", "sampling goes on", UntraceFlow(flow=name))
        elif not tracing_problem(state):
            said = "cwnd, ssthresh and srtt at every ACK: zoom in to see"
            yield Entry(f"trace flow {name}", said, TraceFlow(flow=name))
        path = f"{flow.src} → {flow.dst}"
        yield Entry(f"stop flow {name}", f"{flow.cc}, {path}", StopFlow(flow=name))


def _queues(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has looked
    kinds = {each.name for each in state.hello.capabilities.qdiscs if each.available}
    sizes: list[Qdisc] = [Qdisc(kind="pfifo", options={"limit": packets}) for packets in PACKETS]
    plain = [Qdisc(kind=kind) for kind in DISCIPLINES if kind not in ("pfifo", "tbf", "choke")]
    for qdisc in (*sizes, *plain):
        if qdisc.kind in kinds:
            filled = validate(qdisc)
            limit = f" {qdisc.options['limit']}" if qdisc.options else ""
            text = f"queue: {qdisc.kind}{limit}"
            summary = DISCIPLINES[qdisc.kind].summary
            yield Entry(text, f"{describe_qdisc(filled)}: {summary}", SetQdisc(qdisc=filled))


def _links() -> Iterator[Entry]:
    for rate in RATES:
        yield Entry(f"rate: {rate}", "of the bottleneck", SetLink(rate=parse_rate(rate)))
    for delay in DELAYS:
        command = SetLink(delay_us=parse_time_us(delay))
        yield Entry(f"delay: {delay}", "added at the bottleneck, each way", command)
    for loss in LOSSES:
        yield Entry(f"loss: {loss}", "after the bottleneck", SetLink(loss=parse_ratio(loss)))


def _traffic(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has looked
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
    yield Entry("ping", f"{first} → {last}", StartPing(src=first, dst=last))
    monitor = any(each.available for each in state.hello.capabilities.monitors)
    cross = StartUdp(src=first, dst=last, monitor=monitor)
    text = f"{format_rate(cross.rate_bps)} in {cross.packet_bytes} byte packets, {first} → {last}"
    yield Entry("cross traffic by UDP", text, cross)
    fetch = StartDownload(src=first, dst=last)
    yield Entry("download", f"{format_size(fetch.bytes)} with wget, {first} → {last}", fetch)
    for ping in state.pings.values():
        if ping.ended is None:
            yield Entry(
                f"stop ping {ping.name}", f"{ping.src} → {ping.dst}", StopPing(ping=ping.name)
            )
    for udp in state.udp.values():
        if udp.ended is None:
            yield Entry(f"stop UDP {udp.name}", f"{udp.src} → {udp.dst}", StopUdp(udp=udp.name))
    for each in state.downloads.values():
        if each.ended is None:
            stop = StopDownload(download=each.name)
            yield Entry(f"stop download {each.name}", f"{each.src} → {each.dst}", stop)


def _captures(state: LabState) -> Iterator[Entry]:
    assert state.hello is not None  # noqa: S101 - entries() has looked
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
        # "pfifo 20 packets" names no parameter: it is the limit that people mean.
        options.update({name: value} if name.isidentifier() and value else {"limit": part})
    return SetQdisc(qdisc=validate(Qdisc(kind=kind, options=options)))


_UNITS = {"rate": "Mbit/s", "delay": "ms", "jitter": "ms", "loss": "%"}
"""Of a number that has none, as the entries have it."""

_READERS: dict[str, Callable[[str], AnyCommand]] = {
    "queue": _read_queue,
    "rate": lambda text: SetLink(rate=parse_rate(text)),
    "delay": lambda text: SetLink(delay_us=parse_time_us(text)),
    "jitter": lambda text: SetLink(jitter_us=parse_time_us(text)),
    "loss": lambda text: SetLink(loss=parse_ratio(text)),
    "mark": lambda text: Mark(text=text),
}
"""What the first word of a query may be, and how the rest is read."""
