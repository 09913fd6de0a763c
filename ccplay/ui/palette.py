"""The command palette: every command by name, ready to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.command import CommandList, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.errors import NoWidget
from textual.markup import escape
from textual.widget import Widget

from ccplay.model.base import Command, Option
from ccplay.model.commands import (
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
from ccplay.model.events import Hello
from ccplay.model.values import Qdisc
from ccplay.model.wording import describe_qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic import KINDS, TRAFFIC
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.ui import lab_actions
from ccplay.ui.dialog_form import ClickedList
from ccplay.ui.dialogs_links import capture_choices
from ccplay.ui.dialogs_traffic import next_sender, running_flows
from ccplay.ui.help import Modal
from ccplay.ui.keys import bindings_of, wording
from ccplay.ui.main_screen import MainScreen
from ccplay.ui.textual_private import GuardedPalette
from ccplay.ui.view import tracing_problem
from ccplay.units import parse_rate, parse_ratio, parse_time_us

# --- the palette's commands to the lab: entries ready to run, and queries that spell one out ------

RATES = ("1 Mbit/s", "1.5 Mbit/s", "5 Mbit/s", "10 Mbit/s", "20 Mbit/s", "50 Mbit/s", "100 Mbit/s")
DELAYS = ("0 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms")
LOSSES = ("0 %", "0.1 %", "1 %", "5 %")
PACKETS = (10, 20, 50, 100, 200, 1000)


class PaletteEntry(msgspec.Struct, frozen=True):
    """A line of the palette and the command that it sends."""

    text: str
    help: str
    command: Command


def entries(state: LabState) -> list[PaletteEntry]:
    """Return the commands possible in this state, the most useful first."""
    if (hello := state.hello) is None:
        return []
    found = hello.capabilities.congestion_controls
    algorithms = [each.name for each in found if each.available]
    return [
        *(*_flows(state, algorithms), *_queues(hello), *_links()),
        *(*_traffic(state, hello, algorithms), *_paths(state, hello), *_captures(state, hello)),
    ]


def typed(query: str, state: LabState) -> PaletteEntry | None:
    """Return the entry that a query spells out, such as ``queue pfifo 37`` or ``rate 7 Mbit/s``.

    Numbers without a unit are in Mbit/s, ms or per cent, as in the entries.
    """
    word, rest = words(query)
    if state.hello is None or word not in READERS or not rest:
        return None
    if word in _UNITS and rest.replace(".", "", 1).isdecimal():
        rest = f"{rest} {_UNITS[word]}"
    try:
        command = READERS[word](rest)
    except (ValueError, OverflowError):
        return None
    return PaletteEntry(f"{word}: {rest}", command.describe(), command)


def words(query: str) -> tuple[str, str]:
    """Return the first word of a query, without a colon, and the rest."""
    word, _, rest = query.strip().partition(" ")
    return word.rstrip(":").lower(), rest.strip()


def _flows(state: LabState, algorithms: Sequence[str]) -> Iterator[PaletteEntry]:
    for name in running_flows(state):
        flow = state.flows[name]
        for cc in algorithms:
            if cc != flow.cc:
                command = SetCongestionControl(cc=cc, flow=name)
                yield PaletteEntry(
                    f"switch flow {name} to {cc}", f"from {flow.cc}, while it runs", command
                )
        if name in state.traced:
            yield PaletteEntry(
                f"stop tracing flow {name}", "sampling continues", UntraceFlow(flow=name)
            )
        elif not tracing_problem(state):
            text = "cwnd, ssthresh and srtt at every ACK: zoom in to see them"
            yield PaletteEntry(f"trace flow {name}", text, TraceFlow(flow=name))
        path = f"{flow.src} → {flow.dst}"
        yield PaletteEntry(f"stop flow {name}", f"{flow.cc}, {path}", StopFlow(flow=name))


def _queues(hello: Hello) -> Iterator[PaletteEntry]:
    kinds = {each.name: each.summary for each in hello.capabilities.qdiscs if each.available}
    sizes: list[Qdisc] = [Qdisc(kind="pfifo", options={"limit": packets}) for packets in PACKETS]
    own = [kind for kind in DISCIPLINES if kind not in ("pfifo", "tbf", "choke")]
    plain = [Qdisc(kind=kind) for kind in (*own, *custom)]
    for qdisc in (*sizes, *plain):
        if qdisc.kind in kinds:
            filled = validate(qdisc)
            limit = f" {qdisc.options['limit']}" if qdisc.options else ""
            text = f"queue: {qdisc.kind}{limit}"
            title = f"{describe_qdisc(filled)}: {kinds[qdisc.kind]}"
            yield PaletteEntry(text, title, SetQdisc(qdisc=filled))


def _links() -> Iterator[PaletteEntry]:
    for rate in RATES:
        yield PaletteEntry(f"rate: {rate}", "of the bottleneck", SetLink(rate=parse_rate(rate)))
    for delay in DELAYS:
        command = SetLink(delay_us=parse_time_us(delay))
        yield PaletteEntry(f"delay: {delay}", "added at the bottleneck, each way", command)
    for loss in LOSSES:
        yield PaletteEntry(f"loss: {loss}", "after the bottleneck", SetLink(loss=parse_ratio(loss)))


def _traffic(state: LabState, hello: Hello, algorithms: Sequence[str]) -> Iterator[PaletteEntry]:
    network = hello.network
    source = next_sender(state, network)
    sink = network.peer(source)
    for cc in algorithms:
        command = StartFlow(src=source, dst=sink, cc=cc)
        yield PaletteEntry(f"start a {cc} flow", f"{source} → {sink}", command)
    for cc in algorithms:
        for host in network.senders:
            if state.hosts.get(host) != cc:
                text = f"new connections of {host} use {cc}"
                yield PaletteEntry(text, "its default", SetCongestionControl(cc=cc, host=host))
    first = network.hosts[0]
    last = network.peer(first)
    monitor = any(each.available for each in hello.capabilities.monitors)
    for kind in TRAFFIC:
        if kind.offer:
            start = kind.starting(src=first, dst=last, monitor=monitor)
            path = f"{first} → {last}"
            about = ", ".join(filter(None, (kind.offer_detail(start), path)))
            yield PaletteEntry(kind.offer, about, start)
    for each in state.traffic.values():
        kind = KINDS[each.kind]
        # Entries of flows are listed with the other commands for each flow.
        if each.ended is None and kind.offer:
            text = f"stop {kind.word} {each.name}"
            yield PaletteEntry(text, f"{each.src} → {each.dst}", kind.stopping(each.name))


def _paths(state: LabState, hello: Hello) -> Iterator[PaletteEntry]:
    for each in state.traffic.values():
        if each.ended is None:
            for way, command in lab_actions.offers(state, each, hello.network):
                text = f"path of {KINDS[each.kind].word} {each.name} {way}"
                yield PaletteEntry(text, f"{each.src} → {each.dst}, while it runs", command)


def _captures(state: LabState, hello: Hello) -> Iterator[PaletteEntry]:
    for link, where in capture_choices(hello.network):
        yield PaletteEntry(f"capture packets of {link}", where, StartCapture(link=link))
    for name, capture in state.captures.items():
        yield PaletteEntry(f"stop capture {name}", capture.link, StopCapture(capture=name))


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

READERS: dict[str, Callable[[str], Command]] = {
    "queue": _read_queue,
    "rate": lambda text: SetLink(rate=parse_rate(text)),
    "delay": lambda text: SetLink(delay_us=parse_time_us(text)),
    "jitter": lambda text: SetLink(jitter_us=parse_time_us(text)),
    "loss": lambda text: SetLink(loss=parse_ratio(text)),
    "mark": lambda text: Mark(text=text),
}
"""Function that reads the rest of a query as a command, by the query's first word."""


# --- the command palette: every command by name, ready to run -------------------------------------

_Offer: TypeAlias = tuple[str, str, Callable[[], object]]
"""Text, meaning and function of an entry."""


class Results(CommandList, ClickedList):
    """The palette's list, which each letter typed replaces."""


class Palette(GuardedPalette, Modal[None]):
    """Textual's palette with ccplay's entries only, and without its emoji."""

    DEFAULT_CSS = """
    Palette SearchIcon { display: none; }
    Palette > Vertical { margin-top: 1; }
    """

    def __init__(self) -> None:
        hint = "type a command, such as queue pfifo 37, rate 7 Mbit/s, mark hello"
        super().__init__([LabProvider], placeholder=hint)
        self._parts: list[Widget] = []

    def compose(self) -> ComposeResult:
        """Compose Textual's palette with a list of our own."""
        for each in super().compose():
            yield Results() if isinstance(each, CommandList) else each

    def on_mount(self, event: events.Mount) -> None:
        """Keep references to the widgets, for ``query_one`` after their removal.

        If the app ends before there are any, no search begins.
        """
        self._parts = list(self.query("*"))
        if not self._parts:
            event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        """Ignore a click outside a screen that has become smaller; Textual would raise an error."""
        try:
            self.get_widget_at(event.screen_x, event.screen_y)
        except NoWidget:
            event.prevent_default()

    def query_one(self, selector: Any, expect_type: Any = None) -> Any:
        """Find a widget, even after its removal.

        A closed palette loses its widgets while Textual's search, timers and watchers may still
        need them. Raises ``NoMatches``.
        """
        try:
            return super().query_one(selector, expect_type)
        except NoMatches:
            for each in self._parts:
                if selector == f"#{each.id}" or selector in type(each).__mro__:
                    return each
            raise

    def may_choose(self) -> bool:
        """Return whether the chosen line is run: once, even if chosen again before the end."""
        return not self.answered

    def holds(self, event: events.Event) -> bool:
        """Return whether the list must match the whole text before a key acts; letters need not."""
        letter = isinstance(event, events.Key) and event.is_printable
        return not letter and self.gathers_commands


class LabProvider(Provider):
    """Provides the palette's entries: keys, commands, undo, marks, ghosts, plots and themes."""

    async def discover(self) -> Hits:
        """List all entries except values of links and queues, which are found by typing."""
        for text, help_text, run in self._all():
            if not text.startswith(("rate:", "delay:", "loss:", "queue:")):
                yield DiscoveryHit(Content(text), run, text=text, help=escape(help_text))

    async def search(self, query: str) -> Hits:
        """List the command that the query spells out, then the entries that match.

        Letters may match anywhere in an entry, but a value only at its beginning: ``rate 2 mbit``
        does not match 20 Mbit/s, nor ``rate 5`` 1.5 Mbit/s.
        """
        lab = self._main.session
        entry = typed(query, lab.state) if lab.live else None
        if entry is not None:
            prompt = Content(entry.text)
            # Textual's own scores have no upper bound.
            send = partial(self._main.ask, entry.command)
            yield Hit(math.inf, prompt, send, entry.text, escape(entry.help))
        word, rest = words(query)
        value = f"{word}: {rest}" if word in READERS and any(map(str.isdecimal, rest)) else ""
        matcher = self.matcher(query)
        for text, help_text, run in self._all():
            score = matcher.match(text)
            same = entry is not None and entry.text == text
            if score > 0 and not same and text.lower().startswith(value.lower()):
                # Names of a recording are no markup, which could run actions when clicked.
                prompt = Content(text) if "[" in text else matcher.highlight(text)
                yield Hit(score, prompt, run, text=text, help=escape(help_text))

    @property
    def _main(self) -> MainScreen:
        return cast("MainScreen", self.screen)

    def _all(self) -> Iterator[_Offer]:
        main = self._main
        yield from self._keys()
        if main.session.live:
            for entry in entries(main.session.state):
                yield entry.text, entry.help, partial(main.ask, entry.command)
            yield from main.undo_offers()
            yield from main.mark_offers()
        yield from main.ghost_offers()
        yield from main.plots.offers(main.view)
        for name, look in main.appearance.looks.items():
            yield f"theme: {name}", look.about, partial(main.use_look, name)

    def _keys(self) -> Iterator[_Offer]:
        seen = set()
        for active in bindings_of(self.screen):
            action, description = active.binding.action, active.binding.description
            if action not in seen and action.rpartition(".")[2] != "command_palette":
                seen.add(action)
                key = f"key {self.app.get_key_display(active.binding)}"
                more = wording(active)
                text = key if more == description else f"{more} ({key})"
                run = partial(self.app.run_action, action, default_namespace=active.node)
                yield description, text, run
