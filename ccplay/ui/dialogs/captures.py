"""Which links there are to capture packets of, and the dialog that starts to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import StartCapture
from ccplay.model.values import BOTTLENECK, CAPTURE_LIMITS, Capabilities, Network
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Dialog, available
from ccplay.ui.dialogs.fields import Field
from ccplay.ui.dialogs.menu import Item, Menu
from ccplay.units import format_size, parse_size

PROGRAMS = ("tcpdump", "dumpcap")
"""One of them must be there."""

_SNAPLENS = (64, 65_535)


class CaptureDialog(Dialog):
    """Choose a link; its packets go to a file of a bounded size, where the lab runs."""

    HEADING = "Capture packets"
    START = "Menu"
    VERB = "capture"
    HINT = "k ends it  ·  tab size"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck first, or say what is missing for any capture."""
        super().__init__(state, selected_flow)
        missing = lack(self.capabilities)
        choices = capture_choices(self.network)
        items = [Item(link, link, where, missing) for link, where in choices]
        self.menu = Menu(items, self.glyphs)
        default = StartCapture()
        size, kept = format_size(default.max_bytes), format_size(default.snaplen)
        self.size_of_file = self._field(
            "file up to", size, _bounded(*CAPTURE_LIMITS), "pcapng, in the folder of the lab"
        )
        self.kept = self._field(
            "per packet", kept, _bounded(*_SNAPLENS), f"{kept} hold all headers"
        )

    def controls(self) -> Iterable[Widget]:
        """Return the list of links, and how much to keep."""
        return (
            self.menu,
            Static(classes="detail", markup=False),
            self.size_of_file,
            self.kept,
        )

    def command(self) -> StartCapture:
        """Return the capture."""
        default = StartCapture()
        return StartCapture(
            link=available(self.menu),
            max_bytes=self.size_of_file.value or default.max_bytes,
            snaplen=self.kept.value or default.snaplen,
        )

    def _field(self, label: str, text: str, read: Callable[[str], int], meaning: str) -> Field[int]:
        return Field(label, text, read, self.glyphs, optional=text, meaning=meaning)


def capture_choices(network: Network) -> list[tuple[str, str]]:
    """Return links by the names that commands take, and what is seen there."""
    choices = []
    if network.bottlenecks:
        first, *others = network.bottlenecks
        choices.append((BOTTLENECK, f"{first}: past its queue, and what comes back"))
        choices += [(name, "the same of the way back") for name in others]
    seen = {frozenset(name.split("->")) for name in network.bottlenecks}
    for link in network.links:
        if (ends := frozenset((link.src, link.dst))) not in seen:
            seen.add(ends)
            choices.append((f"{link.src}-{link.dst}", "both ways, at the router"))
    return choices


def lack(capabilities: Capabilities) -> str:
    """Return why nothing can be captured and what to do about that; empty where it can."""
    programs = [tool for tool in capabilities.tools if tool.name in PROGRAMS]
    if not programs or any(tool.available for tool in programs):
        return ""
    reasons = "; ".join(f"{tool.name}: {tool.reason}, {tool.remedy}" for tool in programs)
    return f"needs one of two. {reasons}"


def _bounded(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        size = parse_size(text)
        if not low <= size <= high:
            raise ValueError(f"{format_size(low)} to {format_size(high)}, not {format_size(size)}")
        return size

    return read
