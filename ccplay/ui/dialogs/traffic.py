"""Dialogs that start traffic: a flow, a download, a ping."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.traffic_commands import StartDownload, StartFlow, StartPing
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import available
from ccplay.ui.dialogs.fields import LabelledRow, Steps, entries, typed
from ccplay.ui.dialogs.hosts import next_sender
from ccplay.ui.dialogs.menu import Item, Menu, feature_items
from ccplay.ui.dialogs.mptcp import MptcpRows
from ccplay.ui.dialogs.path import MonitorRow, PathDialog

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
