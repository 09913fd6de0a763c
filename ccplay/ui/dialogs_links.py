"""Dialogs about links: their settings, queues and captures; and one for another network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from msgspec.structs import replace
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import ScenarioError
from ccplay.model.base import Option
from ccplay.model.commands import SetLink, SetQdisc, StartCapture
from ccplay.model.disciplines import DISCIPLINES, SUFFIX, described, is_software, serves, validate
from ccplay.model.network import BOTTLENECK, Network, Topology
from ccplay.model.qdiscs import Parameter
from ccplay.model.quantities import FLAG, Field, MisfitError, fields_of
from ccplay.model.topologies import TopologyKind, generated, plan, value_of
from ccplay.model.values import LINK_OFF, Capabilities, LinkSetting, Qdisc
from ccplay.scenario.values import Scenario
from ccplay.scenario.writing import toml, trial
from ccplay.state.lab_state import LabState
from ccplay.ui.cells import Glyphs
from ccplay.ui.dialog_form import (
    Dialog,
    Item,
    LabelledRow,
    Menu,
    Question,
    Stepper,
    TextField,
    available,
    entries,
    entry,
    feature_items,
    lack_of,
    row_or_lack,
    typed,
)
from ccplay.ui.keys import COPY

# --- the links to choose from, and the dialog that changes one ------------------------------------

_SETTINGS = {name: each for name, each in fields_of(SetLink).items() if each.label}

NONE = "none"
"""Word for no delay, no jitter, no loss or no marks."""
_NOTHING = (NONE, "no", "off", "never", "0")
"""Words that the user may type for no delay, no jitter, no loss or no marks."""

_ETHERNET = 1500
"""MTU of a link in bytes if none is set."""


def link_choices(network: Network) -> list[tuple[str, str]]:
    """Return pairs of a link's name in commands and its text: bottleneck, cables, directions."""
    choices = [(BOTTLENECK, f"bottleneck ({_observed(network)})")] if network.observed else []
    choices += [
        (name, f"{name}, both directions") for name in network.link_names if name != BOTTLENECK
    ]
    choices += [(link.name, f"{link.name} only") for link in network.links]
    return choices


def setting_now(state: LabState, network: Network, link: str) -> LinkSetting:
    """Return a link's current settings; those of the first direction if the two differ."""
    return state.setting_now(network.resolve(link)[0].name)


def _observed(network: Network) -> str:
    first, others = network.observed[0], len(network.observed) - 1
    if others == 1:
        return f"{first} and back"
    return f"{first} and {others} more" if others else first


def shortly(lines: list[str]) -> str:
    """Return the first command of a change, and the number of the others."""
    if not lines:
        return ""
    others = f"  (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return next(line for line in lines if " replace " in line) + others


class TcDialog(Dialog):
    """A dialog about a link that shows, and copies, the commands of tc(8) for what is typed."""

    DEFAULT_CSS = """
    TcDialog .tc { height: auto; margin-top: 1; padding-left: 2; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [COPY]

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck first."""
        super().__init__(state, selected_flow)
        self.link = Stepper(link_choices(self.network), self.glyphs)
        self.line = Static(classes="tc", markup=False)

    @property
    def now(self) -> LinkSetting:
        """The present settings of the chosen link."""
        return setting_now(self.state, self.network, self.link.value)

    def on_text_field_edited(self, event: TextField.Edited) -> None:
        """Show the tc command for what is typed."""
        event.stop()
        self.show_line()

    def show_line(self) -> None:
        """Show the tc command for what is typed."""
        self.line.update(shortly(self.lines()))

    def action_copy(self) -> None:
        """Copy the commands of tc(8)."""
        self.copy("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return the commands of tc(8); empty if what is typed is invalid, or tc has none."""
        try:
            command: Any = self.command()
        except ValueError:
            return []
        return [] if command is None else command.as_tc(self.network, self.state.setting_now)


class LinkDialog(TcDialog):
    """Asks for a link's settings, including whether it is down; only edited ones are sent."""

    HEADING = "Link"
    AUTO_FOCUS = "Input"
    VERB = "change"
    HINT = "empty: unchanged  ·  ^y copy tc"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Show the settings of the bottleneck first."""
        super().__init__(state, selected_flow)
        self.entries = {
            name: TextField(
                each.label, "", _or_none(each), self.glyphs, optional="unchanged", meaning=each.hint
            )
            for name, each in _SETTINGS.items()
        }
        self.mtu = Static(classes="note", markup=False)
        self._fill()

    def controls(self) -> Iterable[Widget]:
        """Return the choice of link, its settings or why it can't mark, its MTU and tc line."""
        controls: dict[str, Widget] = {**self.entries}
        if lack := lack_of(self.capabilities.markers, "ECN marking"):
            mark = self.entries["mark"]
            controls["mark"] = row_or_lack(mark.label, mark, lack, self.glyphs)
        return (
            LabelledRow("link", self.link),
            *controls.values(),
            LabelledRow("MTU", self.mtu),
            self.line,
        )

    def on_stepper_stepped(self, event: Stepper.Stepped) -> None:
        """Show the settings of another link."""
        event.stop()
        self._fill()

    def command(self) -> SetLink | None:
        """Return the change; None if nothing was edited."""
        edited = {name: each.value for name, each in self.entries.items() if each.changed}
        change = SetLink(link=self.link.value, **edited)
        return None if change == SetLink(link=self.link.value) else change

    def _fill(self) -> None:
        now = self.now
        for name, field in self.entries.items():
            value = getattr(now, name) or LINK_OFF.get(name, 0)
            if _SETTINGS[name].quantity is FLAG:
                field.fill("yes" if value else "no")
                continue
            field.fill(NONE if value == 0 and name != "rate" else _SETTINGS[name].show(value))
        self.show_line()
        self.mtu.update(f"{now.mtu or _ETHERNET} bytes, fixed when the network was built")


def _or_none(setting: Field) -> Callable[[str], Any]:
    """Return a reader that accepts words such as ``none`` for 0, except for a rate."""
    if setting.quantity.unlimited or setting.quantity.type not in (int, float):
        return setting.parse
    return lambda text: 0 if text.lower() in _NOTHING else setting.parse(text)


# --- the links whose packets can be captured, and the dialog that starts a capture ----------------

PROGRAMS = ("tcpdump", "dumpcap")
"""Programs that can capture packets; one of them must be installed."""


class CaptureDialog(Dialog):
    """Asks which link's packets to capture, into a file of limited size on the lab's machine."""

    HEADING = "Capture packets"
    AUTO_FOCUS = "Menu"
    VERB = "capture"
    HINT = "k stops it  ·  tab size"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck first; if captures are impossible, show why."""
        super().__init__(state, selected_flow)
        missing = lack(self.capabilities)
        choices = capture_choices(self.network)
        items = [Item(link, link, where, missing) for link, where in choices]
        self.menu = Menu(items, self.glyphs)
        self.entries = entries(StartCapture, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the list of links, then the limits on the file and on each packet."""
        return (
            self.menu,
            Static(classes="detail", markup=False),
            self.entries["max_bytes"],
            self.entries["snaplen"],
        )

    def command(self) -> StartCapture:
        """Return the command that starts the capture."""
        return StartCapture(link=available(self.menu), **typed(self.entries))


def capture_choices(network: Network) -> list[tuple[str, str]]:
    """Return pairs of a link's name in commands and a description of the packets captured."""
    choices = []
    if network.observed:
        first, *others = network.observed
        choices.append((BOTTLENECK, f"{first}: after its queue, and the way back"))
        choices += [(name, "after its queue, and the way back") for name in others]
    for there, back in network.cables:
        if there.name not in network.observed and back.name not in network.observed:
            choices.append((f"{there.src}-{there.dst}", "both directions, at the router"))
    return choices


def lack(capabilities: Capabilities) -> str:
    """Return why captures are impossible, with the remedy; empty if they are possible."""
    programs = [tool for tool in capabilities.tools if tool.name in PROGRAMS]
    if not programs or any(tool.available for tool in programs):
        return ""
    reasons = "; ".join(f"{tool.name}: {tool.reason}, {tool.remedy}" for tool in programs)
    return f"needs one of two programs. {reasons}"


# --- the dialog that replaces the queue in front of a link ----------------------------------------


class QueueDialog(TcDialog):
    """Asks for a discipline and its parameters; each kind keeps the text typed for it."""

    HEADING = "Queue"
    AUTO_FOCUS = "Menu"
    VERB = "replace"
    HINT = "←→ link  ·  tab fields  ·  ^y copy tc"

    DEFAULT_CSS = """
    QueueDialog Menu { max-height: 8; }
    QueueDialog Vertical { height: auto; }
    """

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck's present queue."""
        super().__init__(state, selected_flow)
        items = self._items()
        self.menu = Menu(items, self.glyphs, current=self._key(self.now.qdisc))
        # A parameter has six widgets: to open with all forms would take many times as long.
        self._forms: dict[str, _QueueForm] = {}
        first = self.menu.item
        self._place = Vertical(*(() if first.missing else (self._new_form(first.key),)))

    def controls(self) -> Iterable[Widget]:
        """Return the link, the kinds, and the parameters of the highlighted kind."""
        return (
            LabelledRow("link", self.link),
            self.menu,
            Static(classes="detail", markup=False),
            self._place,
            self.line,
        )

    def on_mount(self) -> None:
        """Start with the parameters of the present kind."""
        self.chosen(self.menu)

    def chosen(self, menu: Menu) -> None:
        """Show the parameters of the highlighted kind, and the tc command for it."""
        self._show_form(menu.item)
        self.show_line()

    def _show_form(self, item: Item) -> None:
        if not item.missing and item.key not in self._forms:
            self._place.mount(self._new_form(item.key))
        for kind, form in self._forms.items():
            form.display = kind == item.key

    def on_stepper_stepped(self, event: Stepper.Stepped) -> None:
        """Show the queue of another link."""
        event.stop()
        if event.steps is self.link:
            now = self.now.qdisc
            self.menu.tick(self._key(now))
            if now and (kind := self._key(now)) in self._forms:
                self._forms[kind].fill(self._start(kind, now))

    def command(self) -> SetQdisc:
        """Return the command that replaces the queue."""
        kind = available(self.menu)
        self._show_form(self.menu.item)
        options = self._forms[kind].options()
        return SetQdisc(link=self.link.value, qdisc=validate(Qdisc(kind=kind, options=options)))

    def _new_form(self, kind: str) -> _QueueForm:
        form = self._forms[kind] = _QueueForm(kind, self._start(kind, self.now.qdisc), self)
        return form

    def show_line(self) -> None:
        """Show the tc command for the typed parameters, or that tc has none."""
        none = "tc: no single command does this" if not self.menu.item.missing else ""
        self.line.update(shortly(self.lines()) or none)

    def serves(self, kind: str) -> str:
        """Return ``SOFTWARE`` if ccplay's discipline serves this kind here, else ``KERNEL``."""
        return serves(kind, self.capabilities.qdiscs)

    def _items(self) -> list[Item]:
        """Return the menu's items; a kind that only ccplay implements is listed once."""
        summaries = {each.name: each.summary for each in self.capabilities.qdiscs}
        return [
            item
            for item in feature_items(self.capabilities.qdiscs, self.capabilities.kernel)
            if (item.missing or described(item.key) is not None)
            and not (is_software(item.key) and summaries.get(_plain(item.key)) == item.summary)
        ]

    def _key(self, now: Qdisc | None) -> str | None:
        """Return the key of the menu's item for a queue; None without a queue."""
        keys = [item.key for item in self._items()]
        return None if now is None else now.kind if now.kind in keys else _plain(now.kind)

    def _start(self, kind: str, now: Qdisc | None) -> dict[str, Option]:
        rate = self.now.rate
        # These kinds need a rate, so start with the link's own. The kernel reports no bandwidth of
        # choke and red.
        needs_rate = _plain(kind) in ("tbf", "choke", "red")
        needed = {"rate": rate, "bandwidth": rate} if rate and needs_rate else {}
        same = now is not None and self._key(now) == kind
        return {**needed, **(now.options if now is not None and same else {})}


def _plain(kind: str) -> str:
    """Return a kind's name in the kernel."""
    return kind.removesuffix(SUFFIX)


class _QueueForm(Vertical):
    """The fields for the parameters of one kind."""

    def __init__(self, kind: str, values: dict[str, Option], dialog: QueueDialog) -> None:
        known = described(kind)
        parameters = () if known is None else known.of(dialog.serves(kind))
        self.parameters = {each.name: each for each in parameters}
        self.fields = {
            each.name: entry(each, dialog.glyphs, _text(each, values)) for each in parameters
        }
        for field in self.fields.values():
            field.widen(22)
        super().__init__(*self.fields.values())

    def fill(self, values: dict[str, Option]) -> None:
        """Show other values in the fields that the user has not edited."""
        for name, field in self.fields.items():
            field.fill(_text(self.parameters[name], values))

    def options(self) -> dict[str, Option]:
        """Return the typed values by name; the kernel chooses those of empty fields."""
        return typed(self.fields)


def _text(parameter: Parameter, values: dict[str, Option]) -> str:
    value = values.get(parameter.name, parameter.default if parameter.required else None)
    return "" if value is None else parameter.show(value)


# --- the dialog that asks for another network to replace the running one --------------------------

_LINK = fields_of(LinkSetting)
_USUAL = {BOTTLENECK: "10 Mbit/s, 10 ms, 100", "edge": "10 Mbit/s, 1 ms, 100"}
"""Default rate, delay and queue limit in packets by tier; other tiers have those of ``edge``."""


class NetworkDialog(Question[Scenario]):
    """Asks for a topology, its parameters, and the links of each tier."""

    DEFAULT_CSS = """
    NetworkDialog .kind { height: auto; }
    NetworkDialog .note { height: auto; color: $text-muted; margin-top: 1; }
    """

    HEADING = "New network"
    AUTO_FOCUS = "Stepper"
    VERB = "start"

    def __init__(self, topology: Topology | None) -> None:
        """Offer the running topology first, if numeric parameters describe it completely."""
        super().__init__()
        self._kinds = {kind.name: kind for kind in generated()}
        current = topology.kind if topology is not None else None
        self.kind = Stepper([(name, name) for name in self._kinds], self.glyphs, current=current)
        self._summary = Static(classes="detail", markup=False)
        self._forms = {
            name: _TopologyForm(kind, topology if name == current else None, self.glyphs)
            for name, kind in self._kinds.items()
        }
        self._show()

    def controls(self) -> Iterable[Widget]:
        """Return the kind, then its parameters and its tiers."""
        note = (
            "The links of a tier have a rate, a delay and a queue limit in packets. This lab ends; "
            "in the new one a flow starts from each of the first hosts to its peer."
        )
        return (
            LabelledRow("kind", self.kind),
            self._summary,
            *self._forms.values(),
            Static(note, classes="note", markup=False),
        )

    def on_stepper_stepped(self, event: Stepper.Stepped) -> None:
        """Show the fields of another kind."""
        event.stop()
        self._show()

    def _show(self) -> None:
        self._summary.update(self.glyphs.translate(self._kinds[self.kind.value].summary))
        for name, form in self._forms.items():
            form.display = name == self.kind.value

    def command(self) -> Scenario:
        """Return the scenario with the chosen network. Raises ``ValueError``."""
        form = self._forms[self.kind.value]
        try:
            return trial(form.topology(), form.settings())
        except ScenarioError as error:
            raise ValueError(error.lines[-1].partition(": ")[2]) from None


class _TopologyForm(Vertical):
    """The fields for the parameters and tiers of one kind of topology."""

    def __init__(self, kind: TopologyKind, topology: Topology | None, glyphs: Glyphs) -> None:
        self._kind = kind
        now = topology or Topology(kind=kind.name)
        self.numbers = {
            each.name: entry(replace(each, hint=each.bounds), glyphs, str(value_of(each, now)))
            for each in kind.parameters
        }
        groups = plan(Topology(kind=kind.name)).groups or (BOTTLENECK,)
        self.tiers = {
            name: TextField(
                name,
                _USUAL.get(name, _USUAL["edge"]),
                _read_link,
                glyphs,
                meaning="rate, delay, packets",
            )
            for name in groups
        }
        super().__init__(*self.numbers.values(), *self.tiers.values(), classes="kind")

    def topology(self) -> str:
        """Return the topology in TOML. Raises ``ValueError``."""
        numbers = {name: field.value for name, field in self.numbers.items()}
        given = {name: number for name, number in numbers.items() if number is not None}
        return toml({"kind": self._kind.name, **given})

    def settings(self) -> list[str]:
        """Return the settings of links in the form of ``--set``. Raises ``ValueError``."""
        return [f"links.{name}={field.value}" for name, field in self.tiers.items()]


def _read_link(text: str) -> str:
    """Read rate, delay and queue limit in packets; return them as TOML. Raises ``ValueError``."""
    parts = [each.strip() for each in text.split(",")]
    if len(parts) != 3:
        raise MisfitError("a rate, a delay and a number of packets, such as 10 Mbit/s, 5 ms, 50")
    rate, delay = _LINK["rate"], _LINK["delay_us"]
    limit = DISCIPLINES["pfifo"].parameter("limit")
    return toml(
        {
            "rate": rate.write(rate.parse(parts[0])),
            "delay": delay.write(delay.parse(parts[1])),
            "queue": {"kind": "pfifo", "limit": int(limit.parse(parts[2]))},
        }
    )
