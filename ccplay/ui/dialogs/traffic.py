"""Dialogs that start traffic: a flow, a download, a ping."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import StartDownload, StartFlow, StartPing
from ccplay.state import LabState
from ccplay.ui.dialogs.base import Dialog, available
from ccplay.ui.dialogs.fields import Field, Row, Steps
from ccplay.ui.dialogs.hosts import hosts, next_sender, opposite
from ccplay.ui.dialogs.menu import Item, Menu, feature_items
from ccplay.units import format_size, format_time_us, parse_size, parse_time_us


class _PathDialog(Dialog):
    """A dialog with a source and a destination; the latter follows the former."""

    def __init__(self, state: LabState, selected_flow: str | None, source: str) -> None:
        super().__init__(state, selected_flow)
        names = [(name, name) for name in hosts(self.network)]
        self.source = Steps(names, self.glyphs, current=source)
        self.sink = Steps(names, self.glyphs, current=opposite(self.network, source))

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Let the destination follow the source."""
        event.stop()
        if event.steps is self.source:
            self.sink.value = opposite(self.network, self.source.value)
            self.source_changed()

    def source_changed(self) -> None:
        """React to another source."""

    def path(self) -> tuple[str, str]:
        """Return source and destination. Raises ``ValueError`` where they are the same."""
        if self.source.value == self.sink.value:
            raise ValueError(f"{self.source.value} can't talk to itself: choose another end")
        return self.source.value, self.sink.value


class FlowDialog(_PathDialog):
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
            "stop after", "", _bytes, self.glyphs, optional="no limit", meaning="bytes: 50 MB"
        )
        self.duration = Field(
            "or after", "", _seconds, self.glyphs, optional="no limit", meaning="time: 30 s"
        )
        self.monitor = Steps([("", "no"), ("yes", "one-way delay of its packets")], self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Algorithms first: that is what a demonstration changes."""
        can_monitor = any(each.available for each in self.capabilities.monitors)
        return (
            self.menu,
            Static(classes="detail", markup=False),
            Row("from", self.source),
            Row("to", self.sink),
            self.streams,
            self.limit,
            self.duration,
            *([Row("monitor", self.monitor)] if can_monitor else []),
        )

    def source_changed(self) -> None:
        """Name the default of the host that sends now."""
        self.menu.set_items(self._items(), None, self.menu.item.key)

    def command(self) -> StartFlow:
        """Return the flow to start."""
        source, sink = self.path()
        return StartFlow(
            src=source,
            dst=sink,
            cc=available(self.menu) or None,
            streams=self.streams.value or 1,
            bytes=self.limit.value,
            duration_s=self.duration.value,
            monitor=bool(self.monitor.value),
        )

    def _items(self) -> list[Item]:
        default = self.state.hosts.get(self.source.value)
        summary = f"{default}, as {self.source.value} does by default" if default else ""
        return [
            Item("", "default", summary or f"what {self.source.value} does by default"),
            *feature_items(self.capabilities.congestion_controls),
        ]


class DownloadDialog(_PathDialog):
    """Fetch a file with wget from a web server inside the network."""

    HEADING = "Download"
    VERB = "fetch"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender as the server: its data meet the queue under study."""
        hello = state.hello
        first = hosts(hello.network)[0] if hello else ""
        super().__init__(state, selected_flow, first)
        size = StartDownload().bytes
        self.bytes = Field("size", f"{size} bytes", _bytes, self.glyphs, meaning="50 MB, 178 kB")
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
        size = self.bytes.value or StartDownload().bytes
        return StartDownload(src=source, dst=sink, bytes=size, cc=self.cc.value or None)


class PingDialog(_PathDialog):
    """Ping one host from another."""

    HEADING = "Ping"
    VERB = "ping"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the path that the first flow takes too."""
        hello = state.hello
        super().__init__(state, selected_flow, hosts(hello.network)[0] if hello else "")
        every = format_time_us(StartPing().interval_s * 1e6)
        self.interval = Field("every", every, _interval, self.glyphs, meaning="200 ms, 1 s")
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
        interval = self.interval.value or StartPing().interval_s
        return StartPing(src=source, dst=sink, interval_s=interval, count=self.count.value)


def _whole(text: str, what: str, low: int, high: int) -> int:
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is not {what} from {low} to {high}")
    return int(text)


def _streams(text: str) -> int:
    return _whole(text, "a number of connections", 1, 128)  # iperf3 refuses more: MAX_STREAMS


def _count(text: str) -> int:
    return _whole(text, "a number of pings", 1, 1_000_000)


def _bytes(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise ValueError(f"{format_size(size)} is nothing to send")
    return size


def _seconds(text: str) -> float:
    return parse_time_us(text) / 1e6


def _interval(text: str) -> float:
    interval = parse_time_us(text) / 1e6
    if interval < 0.01:
        raise ValueError("ping takes 10 ms at the least")
    return interval
