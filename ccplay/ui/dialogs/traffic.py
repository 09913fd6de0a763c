"""Dialogs that start traffic: a flow, a download, a ping."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import StartDownload, StartFlow, StartPing
from ccplay.scenario.fields.quantities import (
    MOST_PINGS,
    MOST_STREAMS,
    duration,
    interval,
    name,
    size,
)
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import available
from ccplay.ui.dialogs.fields import Field, Row, Steps
from ccplay.ui.dialogs.hosts import next_sender
from ccplay.ui.dialogs.menu import Item, Menu, feature_items
from ccplay.ui.dialogs.path import MonitorRow, PathDialog
from ccplay.units import format_time_us

_ECN = (("", "as its algorithm has it"), ("yes", "asks for it: marks instead of losses"))


class FlowDialog(PathDialog):
    """Start a long-lived transfer."""

    HEADING = "Start a flow"
    VERB = "start"
    HINT = "1-9 a-z jump"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the next sender without a flow, and its default congestion control."""
        hello = state.hello
        super().__init__(state, selected_flow, next_sender(state, hello.network) if hello else "")
        self.menu = Menu(self._items(), self.glyphs)
        self.streams = Field("streams", "1", _streams, self.glyphs, meaning="parallel connections")
        self.limit = Field(
            "stop after", "", size, self.glyphs, optional="no limit", meaning="bytes: 50 MB"
        )
        self.duration = Field(
            "or after", "", duration, self.glyphs, optional="no limit", meaning="time: 30 s"
        )
        self.ecn = Steps(_ECN, self.glyphs)
        self.monitor = MonitorRow(self.capabilities, self.glyphs)
        self.name_of_flow = Field(
            "name", "", name, self.glyphs, optional="the next number", meaning="for yourself"
        )

    def controls(self) -> Iterable[Widget]:
        """Algorithms first: that is what a demonstration changes."""
        return (
            self.menu,
            Static(classes="detail", markup=False),
            Row("from", self.source),
            Row("to", self.sink),
            self.streams,
            self.limit,
            self.duration,
            Row("ECN", self.ecn),
            self.monitor,
            self.name_of_flow,
        )

    def source_changed(self) -> None:
        """Name the default of the host that sends now."""
        self.menu.set_items(self._items(), None, self.menu.item.key)

    def command(self) -> StartFlow:
        """Return the flow to start."""
        source, sink = self.path()
        return StartFlow(
            flow=self.name_of_flow.value,
            src=source,
            dst=sink,
            cc=available(self.menu) or None,
            streams=self.streams.value or 1,
            bytes=self.limit.value,
            duration_s=self.duration.value,
            ecn=bool(self.ecn.value),
            monitor=self.monitor.chosen,
        )

    def _items(self) -> list[Item]:
        default = self.state.hosts.get(self.source.value)
        summary = f"{default}, as {self.source.value} does by default" if default else ""
        return [
            Item("", "default", summary or f"what {self.source.value} does by default"),
            *feature_items(self.capabilities.congestion_controls),
        ]


class DownloadDialog(PathDialog):
    """Fetch a file with wget from a web server inside the network."""

    HEADING = "Download"
    VERB = "fetch"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender as the server: its data meet the queue under study."""
        super().__init__(state, selected_flow)
        usual = f"{StartDownload().bytes} bytes"
        self.bytes = Field("size", usual, size, self.glyphs, meaning="50 MB, 178 kB")
        controls = [Item("", "default"), *feature_items(self.capabilities.congestion_controls)]
        names = [(each.key, each.label) for each in controls if not each.missing]
        self.cc = Steps(names, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Put the size first, with the focus."""
        return (
            self.bytes,
            Row("web server", self.source),
            Row("wget on", self.sink),
            Row("congestion", self.cc),
        )

    def command(self) -> StartDownload:
        """Return the download to start."""
        source, sink = self.path()
        amount = self.bytes.value or StartDownload().bytes
        return StartDownload(src=source, dst=sink, bytes=amount, cc=self.cc.value or None)


class PingDialog(PathDialog):
    """Ping one host from another."""

    HEADING = "Ping"
    VERB = "ping"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the path that the first flow takes too."""
        super().__init__(state, selected_flow)
        every = format_time_us(StartPing().interval_s * 1e6)
        self.interval = Field("every", every, interval, self.glyphs, meaning="200 ms, 1 s")
        self.count = Field(
            "how many", "", _count, self.glyphs, optional="until stopped", meaning="pings"
        )

    def controls(self) -> Iterable[Widget]:
        """Put the path first, then how often."""
        return (
            Row("from", self.source),
            Row("to", self.sink),
            self.interval,
            self.count,
        )

    def command(self) -> StartPing:
        """Return the ping to start."""
        source, sink = self.path()
        every = self.interval.value or StartPing().interval_s
        return StartPing(src=source, dst=sink, interval_s=every, count=self.count.value)


def _whole(text: str, what: str, low: int, high: int) -> int:
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is not {what} from {low} to {high}")
    return int(text)


def _streams(text: str) -> int:
    return _whole(text, "a number of connections", 1, MOST_STREAMS)


def _count(text: str) -> int:
    return _whole(text, "a number of pings", 1, MOST_PINGS)
