"""The links to choose from, and the dialog that changes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model import tc
from ccplay.model.commands import SetLink
from ccplay.model.fields import Field as Setting
from ccplay.model.fields import fields_of
from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.quantities import FLAG
from ccplay.model.values import LINK_OFF, LinkSetting
from ccplay.state.lab_state import LabState
from ccplay.ui.bindings import COPY
from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.fields import Field, LabelledRow, Steps

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


class LinkDialog(Dialog):
    """Asks for a link's settings, including whether it is down; only edited ones are sent."""

    DEFAULT_CSS = """
    LinkDialog .tc { height: auto; margin-top: 1; padding-left: 2; color: $text-muted; }
    LinkDialog .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    HEADING = "Link"
    AUTO_FOCUS = "Input"
    VERB = "change"
    HINT = "empty: unchanged  ·  ^y copy tc"
    BINDINGS: ClassVar[list[BindingType]] = [COPY]

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck first."""
        super().__init__(state, selected_flow)
        self.link = Steps(link_choices(self.network), self.glyphs)
        self.entries = {
            name: Field(
                each.label, "", _or_none(each), self.glyphs, optional="unchanged", meaning=each.hint
            )
            for name, each in _SETTINGS.items()
        }
        self.mtu = Static(classes="note", markup=False)
        self._line = Static(classes="tc", markup=False)
        self._fill()

    def controls(self) -> Iterable[Widget]:
        """Return the choice of link, its settings or why it can't mark, its MTU and tc line."""
        controls: dict[str, Widget] = {**self.entries}
        if why := self._lack_of_marking():
            note = self.glyphs.translate(f"{self.glyphs.missing} {why}")
            controls["mark"] = LabelledRow(
                _SETTINGS["mark"].label, Static(note, classes="note", markup=False)
            )
        return (
            LabelledRow("link", self.link),
            *controls.values(),
            LabelledRow("MTU", self.mtu),
            self._line,
        )

    def on_field_edited(self, event: Field.Edited) -> None:
        """Show the tc command for the typed settings."""
        event.stop()
        self._line.update(shortly(self._lines()))

    def action_copy(self) -> None:
        """Copy the commands of tc(8) for this change."""
        self.copy("\n".join(self._lines()))

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Show the settings of another link."""
        event.stop()
        self._fill()

    def command(self) -> SetLink | None:
        """Return the change; None if nothing was edited."""
        edited = {name: each.value for name, each in self.entries.items() if each.changed}
        change = SetLink(link=self.link.value, **edited)
        return None if change == SetLink(link=self.link.value) else change

    def _fill(self) -> None:
        now = setting_now(self.state, self.network, self.link.value)
        for name, field in self.entries.items():
            value = getattr(now, name) or LINK_OFF.get(name, 0)
            if _SETTINGS[name].quantity is FLAG:
                field.fill("yes" if value else "no")
                continue
            field.fill(NONE if value == 0 and name != "rate" else _SETTINGS[name].show(value))
        self._line.update(shortly(self._lines()))
        self.mtu.update(f"{now.mtu or _ETHERNET} bytes, fixed when the network was built")

    def _lines(self) -> list[str]:
        """Return the commands of tc(8) for the change; empty if it is invalid or tc has none."""
        try:
            change = self.command()
        except ValueError:
            return []
        return [] if change is None else tc.link_lines(change, self.network, self.state.setting_now)

    def _lack_of_marking(self) -> str:
        marker = next(iter(self.capabilities.markers), None)
        if marker is None:
            return "this lab does not support ECN marking: update ccplay there"
        return "" if marker.available else f"{marker.reason}: {marker.remedy}"


def _or_none(setting: Setting) -> Callable[[str], Any]:
    """Return a reader that accepts words such as ``none`` for 0, except for a rate."""
    if setting.quantity.unlimited or setting.quantity.type not in (int, float):
        return setting.parse
    return lambda text: 0 if text.lower() in _NOTHING else setting.parse(text)
