"""Which links there are to choose from, and the dialog that changes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import SetLink
from ccplay.model.values import BOTTLENECK, MOST_MARK, LinkSetting, Network
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.fields import Field, Row, Steps
from ccplay.units import (
    format_rate,
    format_ratio,
    format_time_us,
    parse_rate,
    parse_ratio,
    parse_time_us,
)

T = TypeVar("T")

UNLIMITED = "unlimited"

NONE = "none"
"""No delay, jitter, loss or marks,"""
_NOTHING = (NONE, "no", "off", "never", "0")
"""and what else says so."""

_ETHERNET = 1500
"""The MTU where nobody has said another."""


def link_choices(network: Network) -> list[tuple[str, str]]:
    """Return names for commands and their texts: the bottleneck, whole links, directions."""
    pairs: dict[frozenset[str], str] = {}
    for link in network.links:
        pairs.setdefault(frozenset((link.src, link.dst)), f"{link.src}-{link.dst}")
    here = f" ({network.bottlenecks[0]} and back)" if network.bottlenecks else ""
    choices = [(BOTTLENECK, f"bottleneck{here}")] if network.bottlenecks else []
    choices += [(name, f"{name}, both ways") for name in pairs.values()]
    choices += [(link.name, f"{link.name} only") for link in network.links]
    return choices


def setting_now(state: LabState, network: Network, link: str) -> LinkSetting:
    """Return what a link does now; where its directions differ, what the first one does."""
    name = link
    if link == BOTTLENECK and network.bottlenecks:
        name = network.bottlenecks[0]
    elif name not in state.links:
        name = next((each.name for each in network.links if f"{each.src}-{each.dst}" == link), link)
    changes = state.links.get(name)
    return changes[-1].setting if changes else LinkSetting()


class LinkDialog(Dialog):
    """Change rate, delay, jitter, loss or marking of a link; only what was edited is sent."""

    DEFAULT_CSS = """
    LinkDialog Row { height: auto; }
    LinkDialog .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    HEADING = "Link"
    START = "Input"
    VERB = "change"
    HINT = "empty leaves as it is"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck first."""
        super().__init__(state, selected_flow)
        self.link = Steps(link_choices(self.network), self.glyphs)
        self.rate = self._field("rate", _rate, "10 Mbit/s; unlimited")
        time = _or_none(parse_time_us)
        self.delay = self._field("delay", time, "20 ms, one way, added")
        self.jitter = self._field("jitter", time, "5 ms, more or less, at random")
        self.loss = self._field("loss", _or_none(parse_ratio), "1 % of packets, past the queue")
        self.mark = self._field("mark", _or_none(_packets), "CE from 20 packets on; none: never")
        self.mtu = Static(classes="note", markup=False)
        self._fill()

    def controls(self) -> Iterable[Widget]:
        """Which link, then what it does; last what can't be changed."""
        mark: Widget = self.mark
        if why := self._lack_of_marking():
            note = self.glyphs.translate(f"{self.glyphs.missing} {why}")
            mark = Row("mark", Static(note, classes="note", markup=False))
        return (
            Row("link", self.link),
            *(self.rate, self.delay, self.jitter, self.loss),
            mark,
            Row("MTU", self.mtu),
        )

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Show what the other link does."""
        event.stop()
        self._fill()

    def command(self) -> SetLink | None:
        """Return the change, None where nothing was edited."""
        change = SetLink(
            link=self.link.value,
            rate=_edited(self.rate),
            delay_us=_edited(self.delay),
            jitter_us=_edited(self.jitter),
            loss=_edited(self.loss),
            mark=_edited(self.mark),
        )
        return None if change == SetLink(link=self.link.value) else change

    def _field(self, label: str, read: Callable[[str], T], meaning: str) -> Field[T]:
        return Field(label, "", read, self.glyphs, optional="as it is", meaning=meaning)

    def _fill(self) -> None:
        now = setting_now(self.state, self.network, self.link.value)
        for field, value, write in (
            (self.rate, now.rate, _write_rate),
            (self.delay, now.delay_us, _none_or(format_time_us)),
            (self.jitter, now.jitter_us, _none_or(format_time_us)),
            (self.loss, now.loss, _none_or(format_ratio)),
            (self.mark, now.mark, _none_or("{:.0f}".format)),
        ):
            field.fill(write(value or 0))
        self.mtu.update(f"{now.mtu or _ETHERNET} bytes, fixed when the network was built")

    def _lack_of_marking(self) -> str:
        marker = next(iter(self.capabilities.markers), None)
        if marker is None:
            return "this lab knows no marker: update ccplay there"
        return "" if marker.available else f"{marker.reason}: {marker.remedy}"


def _edited(field: Field[T]) -> T | None:
    return field.value if field.changed else None


def _or_none(read: Callable[[str], T]) -> Callable[[str], T | int]:
    """Return how to read a value, or that there shall be none."""
    return lambda text: 0 if text.lower() in _NOTHING else read(text)


def _none_or(write: Callable[[float], str]) -> Callable[[float], str]:
    """Return how to write a value, or that there is none."""
    return lambda value: write(value) if value else NONE


def _packets(text: str) -> int:
    number, _, unit = text.partition(" ")
    if not number.isdecimal() or unit.strip() not in ("", "packet", "packets", "pkt"):
        raise ValueError(f"{text!r} is no number of packets, such as 20, or none")
    if int(number) > MOST_MARK:
        raise ValueError(f"at most {MOST_MARK:,} packets")
    return int(number)


def _rate(text: str) -> int:
    if text.lower() == UNLIMITED:
        return 0
    rate = parse_rate(text)
    if not rate:
        raise ValueError(f"{text!r} moves nothing; for no limit write '{UNLIMITED}'")
    return rate


def _write_rate(rate: float) -> str:
    return format_rate(rate) if rate else UNLIMITED
