"""Dialogs that start traffic, and the one that switches a congestion control."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import SetCongestionControl
from ccplay.model.network import Network
from ccplay.model.values import Capabilities
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC
from ccplay.traffic.call import StartCall
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import PATH_MANAGERS, StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.short_flows import StartShortFlows
from ccplay.traffic.udp import StartUdp
from ccplay.ui.cells import Glyphs
from ccplay.ui.dialog_form import (
    Dialog,
    Item,
    LabelledRow,
    Menu,
    Question,
    Steps,
    available,
    entries,
    feature_items,
    typed,
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


# --- the flow dialog's questions about MPTCP, or the reason why it is unavailable -----------------

_BY_PORT, _BY_ADDRESS, _SIGNAL, _SUBFLOW = PATH_MANAGERS
_CHOICES = (
    ("", "no: TCP over one path"),
    (f"{_BY_PORT} 2", "2 subflows by source port (ndiffports)"),
    (f"{_BY_PORT} 4", "4 subflows by source port (ndiffports)"),
    (f"{_BY_ADDRESS} 8", "one for each pair of addresses (fullmesh)"),
    (f"{_SIGNAL} 8", "the kernel's: to each address of the receiver"),
    (f"{_SUBFLOW} 8", "the kernel's: from each address of the sender"),
)


class MptcpRows(Vertical):
    """Asks for MPTCP, the number of subflows, and the scheduler if there are several."""

    DEFAULT_CSS = """
    MptcpRows { height: auto; }
    MptcpRows .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    def __init__(self, capabilities: Capabilities, glyphs: Glyphs) -> None:
        """Offer the choices that the lab reported."""
        super().__init__()
        lack = _lack(capabilities)
        self._paths = Steps(_CHOICES, glyphs)
        note = Static(glyphs.translate(f"{glyphs.missing} {lack}"), classes="note", markup=False)
        self._rows = [LabelledRow("MPTCP", note if lack else self._paths)]
        names = [each.name for each in capabilities.schedulers if each.available]
        values = [("", "as the host has it"), *((name, name) for name in names)]
        self._scheduler = Steps(values, glyphs)
        if len(names) > 1 and not lack:
            self._rows.append(LabelledRow("scheduler", self._scheduler))

    def compose(self) -> ComposeResult:
        """Compose the rows."""
        yield from self._rows

    @property
    def chosen(self) -> dict[str, Any]:
        """The chosen values for fields of ``StartFlow``; empty without MPTCP."""
        if not self._paths.value:
            return {}
        manager, count = self._paths.value.split()
        return {
            "mptcp": True,
            "path_manager": manager,
            "subflows": int(count),
            "scheduler": self._scheduler.value or None,
        }


def _lack(capabilities: Capabilities) -> str:
    if not capabilities.mptcp:
        return "this lab does not support MPTCP: update ccplay there"
    feature = capabilities.mptcp[0]
    return "" if feature.available else f"{feature.reason}: {feature.remedy}"


# --- questions common to dialogs that start traffic -----------------------------------------------
# Questions common to dialogs that start traffic: its source, its destination, and monitoring.


class PathDialog(Dialog):
    """A dialog with a source and a destination; the destination follows the source."""

    def __init__(self, state: LabState, selected_flow: str | None, source: str = "") -> None:
        """Offer ``source``, else the first sender."""
        super().__init__(state, selected_flow)
        names = [(name, name) for name in self.network.hosts]
        self.source = Steps(names, self.glyphs, current=source)
        self.sink = Steps(names, self.glyphs, current=self.network.peer(self.source.value))

    def on_mount(self) -> None:
        """Make the destination follow the source at once: a message could undo a later key."""
        self.watch(self.source, "index", self._follow, init=False)

    def _follow(self) -> None:
        self.sink.value = self.network.peer(self.source.value)
        self.source_changed()

    def source_changed(self) -> None:
        """React to a change of the source; does nothing by default."""

    def path(self) -> tuple[str, str]:
        """Return source and destination. Raises ``ValueError`` if they are equal."""
        if self.source.value == self.sink.value:
            raise ValueError(f"{self.source.value} can't send to itself: choose another host")
        return self.source.value, self.sink.value


class MonitorRow(LabelledRow):
    """Asks whether to monitor every packet, or shows why that is impossible."""

    DEFAULT_CSS = """
    MonitorRow { height: auto; }
    MonitorRow .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    def __init__(self, capabilities: Capabilities, glyphs: Glyphs, *, wanted: bool = False) -> None:
        """Select monitoring initially if it is ``wanted`` and possible."""
        lack = _lack_of_monitoring(capabilities)
        values = [("", "no"), ("yes", "one-way delay of its packets")]
        self._steps = Steps(values, glyphs, current="" if lack or not wanted else "yes")
        note = Static(glyphs.translate(f"{glyphs.missing} {lack}"), classes="note", markup=False)
        super().__init__("monitor", note if lack else self._steps)

    @property
    def chosen(self) -> bool:
        """Whether every packet should be monitored."""
        return bool(self._steps.value)


def _lack_of_monitoring(capabilities: Capabilities) -> str:
    if not capabilities.monitors:
        return "this lab does not support monitoring: update ccplay there"
    if any(each.available for each in capabilities.monitors):
        return ""
    return f"{capabilities.monitors[0].reason}: {capabilities.monitors[0].remedy}"


# --- dialogs that start traffic: a flow, a download, a ping ---------------------------------------

_ECN = (
    ("", "as the algorithm decides"),
    ("yes", "requested: marks instead of losses"),
    ("l4s", "L4S: requested, data are ECT(1)"),
)


class FlowDialog(PathDialog):
    """Asks for a long-lived transfer."""

    HEADING = "Start a flow"
    VERB = "start"
    HINT = "1-9 a-z jump"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the sender with the fewest running flows, and its default congestion control."""
        hello = state.hello
        super().__init__(state, selected_flow, next_sender(state, hello.network) if hello else "")
        self.menu = Menu(self._items(), self.glyphs)
        self.entries = entries(StartFlow, self.glyphs)
        self.ecn = Steps(_ECN, self.glyphs)
        self.mptcp = MptcpRows(self.capabilities, self.glyphs)
        self.monitor = MonitorRow(self.capabilities, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the algorithms, which demonstrations change most often, then the rest."""
        return (
            self.menu,
            Static(classes="detail", markup=False),
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *(each for name, each in self.entries.items() if name not in ("flow", "bidir")),
            LabelledRow("ECN", self.ecn),
            self.mptcp,
            self.monitor,
            self.entries["flow"],
            self.entries["bidir"],
        )

    def source_changed(self) -> None:
        """Show the default algorithm of the new sender."""
        self.menu.set_items(self._items(), None, self.menu.item.key)

    def command(self) -> StartFlow:
        """Return the command that starts the flow."""
        source, sink = self.path()
        return StartFlow(
            **typed(self.entries),
            src=source,
            dst=sink,
            cc=available(self.menu) or None,
            ecn=self.ecn.value == "yes",
            l4s=self.ecn.value == "l4s",
            monitor=self.monitor.chosen,
            **self.mptcp.chosen,
        )

    def _items(self) -> list[Item]:
        default = self.state.hosts.get(self.source.value)
        summary = f"{default}, as {self.source.value} does by default" if default else ""
        return [
            Item("", "default", summary or f"what {self.source.value} uses by default"),
            *feature_items(self.capabilities.congestion_controls, self.capabilities.kernel),
        ]


class DownloadDialog(PathDialog):
    """Asks for a file to fetch by wget from a web server inside the network."""

    HEADING = "Download"
    VERB = "fetch"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender as the server, because its data pass the observed queue."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartDownload, self.glyphs)
        features, kernel = self.capabilities.congestion_controls, self.capabilities.kernel
        controls = [Item("", "default"), *feature_items(features, kernel)]
        names = [(each.key, each.label) for each in controls if not each.missing]
        self.cc = Steps(names, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the size, which has the focus, then the hosts and the algorithm."""
        return (
            *self.entries.values(),
            LabelledRow("web server", self.source),
            LabelledRow("wget on", self.sink),
            LabelledRow("congestion", self.cc),
        )

    def command(self) -> StartDownload:
        """Return the command that starts the download."""
        source, sink = self.path()
        cc = self.cc.value or None
        return StartDownload(**typed(self.entries), src=source, dst=sink, cc=cc)


class PingDialog(PathDialog):
    """Asks for a ping from one host to another."""

    HEADING = "Ping"
    VERB = "ping"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartPing, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the path, then interval and count."""
        return (
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *self.entries.values(),
        )

    def command(self) -> StartPing:
        """Return the command that starts the ping."""
        source, sink = self.path()
        return StartPing(**typed(self.entries), src=source, dst=sink)


# --- the dialog that starts short flows: transfers that arrive at random --------------------------

_SIZES = (
    ("pareto", "pareto: heavy-tailed, a few hold most bytes"),
    ("fixed", "fixed: each has the mean size"),
)


class ShortFlowsDialog(PathDialog):
    """Asks for TCP transfers at random moments, each over a connection of its own."""

    HEADING = "Short flows"
    AUTO_FOCUS = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer, with the sender's default algorithm."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartShortFlows, self.glyphs)
        self.sizes = Steps(_SIZES, self.glyphs)
        features, kernel = self.capabilities.congestion_controls, self.capabilities.kernel
        controls = [Item("", "default"), *feature_items(features, kernel)]
        names = [(each.key, each.label) for each in controls if not each.missing]
        self.cc = Steps(names, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the load, which has the focus, then the details of the transfers."""
        load, size, *others = self.entries.values()
        return (
            *(load, size),
            LabelledRow("sizes", self.sizes),
            LabelledRow("congestion", self.cc),
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *others,
        )

    def command(self) -> StartShortFlows:
        """Return the command that starts the short flows."""
        source, sink = self.path()
        return StartShortFlows(
            **typed(self.entries),
            src=source,
            dst=sink,
            cc=self.cc.value or None,
            sizes=self.sizes.value,
        )


# --- the dialog that starts cross traffic: UDP at a constant rate ---------------------------------


class UdpDialog(PathDialog):
    """Asks for UDP traffic at a rate that ignores congestion."""

    HEADING = "UDP cross traffic"
    AUTO_FOCUS = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartUdp, self.glyphs)
        # Only a monitor measures the one-way delay while the traffic runs.
        self.monitor = MonitorRow(self.capabilities, self.glyphs, wanted=True)

    def controls(self) -> Iterable[Widget]:
        """Return the rate, which has the focus, then the rest, whose defaults usually fit."""
        rate, packet, *others, both_ways = self.entries.values()
        return (
            *(rate, packet),
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *others,
            self.monitor,
            both_ways,
        )

    def command(self) -> StartUdp:
        """Return the command that starts the cross traffic."""
        source, sink = self.path()
        return StartUdp(
            **typed(self.entries),
            src=source,
            dst=sink,
            monitor=self.monitor.chosen,
        )


# --- the dialog that starts a video call ----------------------------------------------------------


class CallDialog(PathDialog):
    """Asks for a video call, whose senders adapt their rate to delay and loss."""

    HEADING = "Video call"
    AUTO_FOCUS = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartCall, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the rate, which has the focus, then the rest, whose defaults usually fit."""
        rate, *others = self.entries.values()
        return (
            rate,
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *others,
        )

    def command(self) -> StartCall:
        """Return the command that starts the call."""
        source, sink = self.path()
        return StartCall(**typed(self.entries), src=source, dst=sink)


# --- the menu of all kinds of traffic, which leads to the dialog of one ---------------------------

STARTING: dict[str, tuple[type[PathDialog], str]] = {
    "flow": (FlowDialog, "TCP, as fast as its congestion control allows"),
    "download": (DownloadDialog, "a file from a web server, over TCP"),
    "ping": (PingDialog, "the round trip time, several times a second"),
    "udp": (UdpDialog, "packets at a constant rate, whatever happens"),
    "call": (CallDialog, "video both ways, its rate adapts to delay and loss"),
    "short-flows": (ShortFlowsDialog, "small TCP transfers that arrive at random"),
}
"""Dialog that starts traffic and what the traffic is, by the name of its kind."""


class TrafficDialog(Question[str]):
    """Asks which kind of traffic to start; answers with its name."""

    HEADING = "Start traffic"
    VERB = "choose"
    HINT = "↑↓ or a letter"

    def __init__(self, keymap: Keymap) -> None:
        """Offer every kind that has a dialog, with the key that opens it directly."""
        super().__init__()
        items = [
            Item(kind.name, kind.word, f"{STARTING[kind.name][1]} ({keymap.shown(kind.name)})")
            for kind in TRAFFIC
            if kind.name in STARTING
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
        self.target = Steps(targets, self.glyphs, current=f"flow {chosen}")
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

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
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
