"""The dialog that starts traffic of any kind, and the one that switches a congestion control."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.base import StartTraffic
from ccplay.model.commands import SetCongestionControl
from ccplay.model.network import Network
from ccplay.model.quantities import Field, fields_of
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import TrafficKind
from ccplay.traffic.flow import PATH_MANAGERS
from ccplay.ui.dialog_form import (
    Dialog,
    Item,
    LabelledRow,
    Menu,
    Question,
    Stepper,
    available,
    entry,
    feature_items,
    lack_of,
    row_or_lack,
)
from ccplay.ui.keys import Keymap

# --- the names of running flows, and the default sender of the next one ---------------------------


def running_flows(state: LabState) -> list[str]:
    """Return the distinct names of the running flows."""
    running = (each.parent for each in state.flows.values() if each.running and each.kind == "flow")
    return list(dict.fromkeys(running))


def next_sender(state: LabState, network: Network) -> str:
    """Return the first sender without a running flow, or the one with the fewest."""
    load = dict.fromkeys(network.senders, 0)
    for name in running_flows(state):
        source = state.flows[name].src
        if source in load:
            load[source] += 1
    return min(load, key=lambda host: load[host], default="")


# --- the dialog that starts traffic of any kind, made from the fields of its command --------------

_BY_PORT, _BY_ADDRESS, _SIGNAL, _SUBFLOW = PATH_MANAGERS
_PATHS = (
    ("", "no: TCP over one path"),
    (f"{_BY_PORT} 2", "2 subflows by source port (ndiffports)"),
    (f"{_BY_PORT} 4", "4 subflows by source port (ndiffports)"),
    (f"{_BY_ADDRESS} 8", "one for each pair of addresses (fullmesh)"),
    (f"{_SIGNAL} 8", "the kernel's: to each address of the receiver"),
    (f"{_SUBFLOW} 8", "the kernel's: from each address of the sender"),
)

_MONITOR = (("", "no"), ("yes", "one-way delay of its packets"))
_ECN = (
    ("", "as the algorithm decides"),
    ("yes", "requested: marks instead of losses"),
    ("l4s", "L4S: requested, data are ECT(1)"),
)


class SettingInput(NamedTuple):
    """The part of a dialog that asks for one setting of a command, or for several at once."""

    widgets: tuple[Widget, ...]
    values: Callable[[], dict[str, Any]]
    """Function that returns the chosen values by field of the command."""


class StartDialog(Dialog):
    """Asks for the settings of traffic of one kind, in the order of the kind's ``Form``."""

    def __init__(self, kind: TrafficKind, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender, whose data pass the observed queue.

        For a flow, offer the sender with the fewest flows, and its default congestion control.
        """
        super().__init__(state, selected_flow)
        self.kind = kind
        self.HEADING, self.VERB = kind.form.title, kind.form.verb
        hosts = [(name, name) for name in self.network.hosts]
        source = next_sender(state, self.network) if kind.name == "flow" else ""
        self.source = Stepper(hosts, self.glyphs, current=source)
        self.sink = Stepper(hosts, self.glyphs, current=self.network.peer(self.source.value))
        self.menu: Menu | None = None
        if kind.form.asks[0] == "cc":
            # The algorithms come first, because demonstrations change them most often.
            self.menu = Menu(self._algorithms(), self.glyphs)
            self.HINT = "1-9 a-z jump"
        self.asked = [self._ask(fields_of(kind.start)[name]) for name in kind.form.asks]

    def controls(self) -> Iterable[Widget]:
        """Return the rows of all settings."""
        return [widget for each in self.asked for widget in each.widgets]

    def on_mount(self) -> None:
        """Make the destination follow the source at once: a message could undo a later key."""
        self.watch(self.source, "index", self._follow, init=False)

    def _follow(self) -> None:
        self.sink.value = self.network.peer(self.source.value)
        if self.menu is not None:
            self.menu.set_items(self._algorithms(), None, self.menu.item.key)

    def command(self) -> StartTraffic:
        """Return the command that starts the traffic. Raises ``ValueError``."""
        if self.source.value == self.sink.value:
            raise ValueError(f"{self.source.value} can't send to itself: choose another host")
        values = {name: value for each in self.asked for name, value in each.values().items()}
        return self.kind.start(**{k: value for k, value in values.items() if value is not None})

    def _ask(self, field: Field) -> SettingInput:
        """Return the rows for a setting."""
        name, menu = field.name, self.menu
        match name:
            case "src":
                return self._ask_steps(field, self.source)
            case "dst":
                return self._ask_steps(field, self.sink)
            case "cc" if menu is not None:
                detail = Static(classes="detail", markup=False)
                return SettingInput((menu, detail), lambda: {name: available(menu) or None})
            case "cc":
                known = [(each.key, each.label) for each in self._algorithms() if not each.missing]
                return self._ask_steps(field, Stepper(known, self.glyphs))
            case "ecn":
                steps = Stepper(_ECN, self.glyphs)
                values = ("ecn", "yes"), ("l4s", "l4s")
                return SettingInput(
                    (LabelledRow(field.label, steps),),
                    lambda: {flag: steps.value == value for flag, value in values},
                )
            case "mptcp":
                return self._ask_mptcp()
            case "monitor":
                # Connections are sampled; of other traffic only a monitor measures delays.
                lack = lack_of(self.capabilities.monitors, "monitoring")
                usual = "" if lack or self.kind.connection else "yes"
                steps = Stepper(_MONITOR, self.glyphs, current=usual)
                row = row_or_lack("monitor", steps, lack, self.glyphs)
                return SettingInput((row,), lambda: {name: bool(steps.value)})
        if field.choices:
            choices = [(value, f"{value}: {about}") for value, about in field.choices.items()]
            return self._ask_steps(field, Stepper(choices, self.glyphs))
        text = entry(field, self.glyphs)
        return SettingInput((text,), lambda: {name: text.value})

    def _ask_mptcp(self) -> SettingInput:
        """Return the rows for MPTCP with its subflows, and for the scheduler if there are several.

        Without MPTCP, no value is given.
        """
        lack = lack_of(self.capabilities.mptcp, "MPTCP")
        paths = Stepper(_PATHS, self.glyphs)
        rows = [row_or_lack("MPTCP", paths, lack, self.glyphs)]
        names = [each.name for each in self.capabilities.schedulers if each.available]
        known = [("", "as the host has it"), *((name, name) for name in names)]
        scheduler = Stepper(known, self.glyphs)
        if len(names) > 1 and not lack:
            rows.append(LabelledRow("scheduler", scheduler))

        def values() -> dict[str, Any]:
            manager, _, count = paths.value.partition(" ")
            if not manager:
                return {}
            return {
                "mptcp": True,
                "path_manager": manager,
                "subflows": int(count),
                "scheduler": scheduler.value or None,
            }

        return SettingInput(tuple(rows), values)

    def _ask_steps(self, field: Field, steps: Stepper) -> SettingInput:
        row = LabelledRow(field.label, steps)
        return SettingInput((row,), lambda: {field.name: steps.value or None})

    def _algorithms(self) -> list[Item]:
        source = self.source.value
        default = self.state.hosts.get(source)
        summary = f"{default}, as {source} does by default" if default else ""
        return [
            Item("", "default", summary or f"what {source} uses by default"),
            *feature_items(self.capabilities.congestion_controls, self.capabilities.kernel),
        ]


# --- the menu of all kinds of traffic, which leads to the dialog of one ---------------------------


class TrafficDialog(Question[str]):
    """Asks which kind of traffic to start; answers with its name."""

    HEADING = "Start traffic"
    VERB = "choose"
    HINT = "↑↓ or a letter"

    def __init__(self, keymap: Keymap) -> None:
        """Offer every kind, with the key that opens its dialog directly."""
        super().__init__()
        items = [
            Item(kind.name, kind.word, f"{kind.form.about} ({keymap.shown(kind.name)})")
            for kind in TRAFFIC
        ]
        self.menu = Menu(items, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the list of kinds."""
        return (self.menu, Static(classes="detail", markup=False))

    def command(self) -> str:
        """Return the name of the chosen kind."""
        return self.menu.item.key


# --- the dialog that switches a running flow's congestion control, or a host's default ------------


class CongestionDialog(Dialog):
    """Asks for the algorithm of a running flow, or of a host's new connections."""

    HEADING = "Congestion control"
    AUTO_FOCUS = "Menu"
    VERB = "switch"
    HINT = "←→ flow or host  ·  1-9 a-z jump"

    BINDINGS = [  # noqa: RUF012 - as Textual declares them
        Binding("right", "step(1)", "next flow or host", show=False),
        Binding("left", "step(-1)", "flow or host before", show=False),
    ]

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the selected flow, else the first running one, else the first host."""
        super().__init__(state, selected_flow)
        flows = running_flows(state)
        names = self.network.hosts
        targets = [(f"flow {name}", f"flow {name}") for name in flows]
        targets += [(f"host {name}", f"new connections of {name}") for name in names]
        chosen = (selected_flow or "").partition("/")[0]
        self.target = Stepper(targets, self.glyphs, current=f"flow {chosen}")
        items = feature_items(self.capabilities.congestion_controls, self.capabilities.kernel)
        self.menu = Menu(items, self.glyphs, current=self._now())

    def controls(self) -> Iterable[Widget]:
        """Return the choice of flow or host, then the algorithms, which have the focus."""
        return (
            LabelledRow("of", self.target),
            Static(classes="gap"),
            self.menu,
            Static(classes="detail", markup=False),
        )

    def on_stepper_stepped(self, event: Stepper.Stepped) -> None:
        """Show the algorithm of another flow or host."""
        event.stop()
        self.menu.tick(self._now())

    def action_step(self, by: int) -> None:
        """Show another flow or host while the focus stays in the list."""
        self.target.action_step(by)

    def command(self) -> SetCongestionControl:
        """Return the command that switches the algorithm."""
        kind, _, name = self.target.value.partition(" ")
        cc = available(self.menu)
        if kind == "flow":
            return SetCongestionControl(cc=cc, flow=name)
        return SetCongestionControl(cc=cc, host=name)

    def _now(self) -> str | None:
        kind, _, name = self.target.value.partition(" ")
        if kind == "flow":
            return self.state.flows[name].cc if name in self.state.flows else None
        return self.state.hosts.get(name)
