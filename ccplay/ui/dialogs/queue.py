"""The dialog that replaces the queue in front of a link."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model import tc
from ccplay.model.base import Option
from ccplay.model.commands import SetQdisc
from ccplay.model.discipline import Parameter
from ccplay.model.disciplines import SUFFIX, described, is_software, serves, validate
from ccplay.model.values import Qdisc
from ccplay.state.lab_state import LabState
from ccplay.ui.bindings import COPY
from ccplay.ui.dialogs.base import Dialog, available
from ccplay.ui.dialogs.fields import Field, LabelledRow, Steps, entry, typed
from ccplay.ui.dialogs.links import link_choices, setting_now, shortly
from ccplay.ui.dialogs.menu import Item, Menu, feature_items


class QueueDialog(Dialog):
    """Asks for a discipline and its parameters; each kind keeps the text typed for it."""

    HEADING = "Queue"
    AUTO_FOCUS = "Menu"
    VERB = "replace"
    HINT = "←→ link  ·  tab fields  ·  ^y copy tc"

    DEFAULT_CSS = """
    QueueDialog Menu { max-height: 8; }
    QueueDialog Vertical { height: auto; }
    QueueDialog .tc { height: auto; margin-top: 1; padding-left: 2; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [COPY]

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the bottleneck's present queue."""
        super().__init__(state, selected_flow)
        self.link = Steps(link_choices(self.network), self.glyphs)
        items = self._items()
        self.menu = Menu(items, self.glyphs, current=self._key(self._now()))
        # A parameter has six widgets: to open with all forms would take many times as long.
        self._forms: dict[str, _Form] = {}
        first = self.menu.item
        self._place = Vertical(*(() if first.missing else (self._new_form(first.key),)))
        self._line = Static(classes="tc", markup=False)

    def controls(self) -> Iterable[Widget]:
        """Return the link, the kinds, and the parameters of the highlighted kind."""
        return (
            LabelledRow("link", self.link),
            self.menu,
            Static(classes="detail", markup=False),
            self._place,
            self._line,
        )

    def on_mount(self) -> None:
        """Start with the parameters of the present kind."""
        self.chosen(self.menu)

    def chosen(self, menu: Menu) -> None:
        """Show the parameters of the highlighted kind, and the tc command for it."""
        self._show_form(menu.item)
        self._show_line()

    def _show_form(self, item: Item) -> None:
        if not item.missing and item.key not in self._forms:
            self._place.mount(self._new_form(item.key))
        for kind, form in self._forms.items():
            form.display = kind == item.key

    def on_field_edited(self, event: Field.Edited) -> None:
        """Show the tc command for the typed parameters."""
        event.stop()
        self._show_line()

    def action_copy(self) -> None:
        """Copy the commands of tc(8) for this queue."""
        self.copy("\n".join(self._lines()))

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Show the queue of another link."""
        event.stop()
        if event.steps is self.link:
            now = self._now()
            self.menu.tick(self._key(now))
            if now and (kind := self._key(now)) in self._forms:
                self._forms[kind].fill(self._start(kind, now))

    def command(self) -> SetQdisc:
        """Return the command that replaces the queue."""
        kind = available(self.menu)
        self._show_form(self.menu.item)
        options = self._forms[kind].options()
        return SetQdisc(link=self.link.value, qdisc=validate(Qdisc(kind=kind, options=options)))

    def _new_form(self, kind: str) -> _Form:
        form = self._forms[kind] = _Form(kind, self._start(kind, self._now()), self)
        return form

    def _lines(self) -> list[str]:
        """Return the commands of tc(8) for this queue; empty if it is invalid or tc has none."""
        try:
            command = self.command()
        except ValueError:
            return []
        return tc.queue_lines(command, self.network)

    def _show_line(self) -> None:
        none = "tc: no single command does this" if not self.menu.item.missing else ""
        self._line.update(shortly(self._lines()) or none)

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

    def _now(self) -> Qdisc | None:
        return setting_now(self.state, self.network, self.link.value).qdisc

    def _start(self, kind: str, now: Qdisc | None) -> dict[str, Option]:
        rate = setting_now(self.state, self.network, self.link.value).rate
        # These kinds need a rate, so start with the link's own. The kernel reports no bandwidth of
        # choke and red.
        needs_rate = _plain(kind) in ("tbf", "choke", "red")
        needed = {"rate": rate, "bandwidth": rate} if rate and needs_rate else {}
        same = now is not None and self._key(now) == kind
        return {**needed, **(now.options if now is not None and same else {})}


def _plain(kind: str) -> str:
    """Return a kind's name in the kernel."""
    return kind.removesuffix(SUFFIX)


class _Form(Vertical):
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
