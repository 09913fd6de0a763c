"""The links whose packets can be captured, and the dialog that starts a capture."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import StartCapture
from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.values import Capabilities
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Dialog, available
from ccplay.ui.dialogs.fields import entries, typed
from ccplay.ui.dialogs.menu import Item, Menu

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
