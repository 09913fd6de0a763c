"""Rows of a dialog: a field for a quantity, or a few values to step through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from ccplay.model.fields import Field as Setting
from ccplay.model.fields import fields_of
from ccplay.ui.cells.glyphs import Glyphs

T = TypeVar("T")


class Field(Vertical, Generic[T]):
    """A text field, checked at every key; the reason for invalid text is shown below it."""

    DEFAULT_CSS = """
    Field {
        height: auto;
        & > Horizontal { height: 1; }
        & Input, & Input:focus { width: 22; height: 1; border: none; padding: 0 1;
            background: $panel; color: $foreground; background-tint: $foreground 0%; }
        &.wide Input, &.wide Input:focus { width: 1fr; }
        & .meaning { width: 1fr; height: 1; padding-left: 2; color: $text-muted;
            text-wrap: nowrap; text-overflow: ellipsis; }
        & .reason { display: none; height: auto; padding-left: 14; color: $error; }
        &.wrong .reason { display: block; }
    }
    """

    class Edited(Message):
        """Posted when the text of a field has changed."""

    def __init__(
        self,
        label: str,
        text: str,
        read: Callable[[str], T],
        glyphs: Glyphs,
        *,
        meaning: str = "",
        optional: str = "",
    ) -> None:
        """Accept text that ``read`` can convert; otherwise it raises ``ValueError``.

        ``optional`` is shown in an empty field, and describes its effect; without ``optional``, the
        field must not be empty. ``meaning`` is shown beside the field.
        """
        super().__init__()
        self._label = label
        self.glyphs = glyphs
        self._read = read
        self._optional = optional
        self._meaning = meaning
        self._initial = glyphs.translate(text)
        self.input = Input(
            self._initial,
            placeholder=glyphs.translate(optional),
            select_on_focus=True,
            compact=True,
        )
        self._reason = Static(classes="reason", markup=False)

    @property
    def value(self) -> T | None:
        """The value of the text; None if it is empty. Raises ``ValueError`` if it is invalid."""
        text = self.input.value.strip()
        if not text and self._optional:
            return None
        try:
            return self._read(text)
        except OverflowError:
            raise ValueError("the number is too large") from None

    @property
    def changed(self) -> bool:
        """Whether the user has edited the text."""
        return self.input.value.strip() != self._initial

    @property
    def reason(self) -> str:
        """Why the text is invalid; empty if it is valid."""
        try:
            _ = self.value
        except ValueError as error:
            return str(error) if self.input.value.strip() else "this can't be empty"
        return ""

    def fill(self, text: str) -> None:
        """Show another initial text, unless the user has edited the field."""
        if not self.changed:
            self._initial = self.input.value = self.glyphs.translate(text)

    def compose(self) -> ComposeResult:
        """Compose label, text and meaning in one line, with the reason below."""
        with Horizontal():
            yield Label(self._label)
            yield self.input
            if self._meaning:
                text = self.glyphs.translate(self._meaning)
                yield Static(text, classes="meaning", markup=False)
        yield self._reason

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check the changed text."""
        event.stop()
        self.check()
        self.post_message(self.Edited())

    def check(self) -> bool:
        """Show or hide the reason; return whether the text is valid."""
        reason = self.reason
        self._reason.update(self.glyphs.translate(f"{self.glyphs.missing} {reason}"))
        self.set_class(bool(reason), "wrong")
        return not reason


def entry(setting: Setting, glyphs: Glyphs, text: str | None = None) -> Field[Any]:
    """Return the row for a setting; it starts with ``text``, else with the setting's default."""
    usual = "" if setting.default is None else setting.show(setting.default)
    return Field(
        setting.label or setting.name,
        usual if text is None else text,
        setting.parse,
        glyphs,
        meaning=setting.hint or setting.meaning,
        optional=usual or setting.unset,
    )


def entries(command: type[msgspec.Struct], glyphs: Glyphs) -> dict[str, Field[Any]]:
    """Return the rows, by name, for those settings of a command that have a label."""
    settings = fields_of(command)
    return {name: entry(each, glyphs) for name, each in settings.items() if each.label}


def typed(fields: Mapping[str, Field[Any]]) -> dict[str, Any]:
    """Return the typed values by name, without those left empty. Raises ``ValueError``."""
    values = {name: field.value for name, field in fields.items()}
    return {name: value for name, value in values.items() if value is not None}


class Label(Static):
    """Text to the left of a control; bold while the control has the focus."""

    DEFAULT_CSS = """
    Label { width: 14; height: 1; padding-right: 1; color: $text-muted; }
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, markup=False)


_STEPS = {"right": 1, "space": 1, "left": -1}


class Steps(Widget, can_focus=True):
    """A control that shows one of a few values, and steps through them with the arrow keys."""

    DEFAULT_CSS = """
    Steps { width: 1fr; height: 1; background: $surface; color: $foreground; }
    Steps:focus { text-style: bold; background: $panel; }
    """

    index: reactive[int] = reactive(0)

    class Stepped(Message):
        """Posted when another value is shown."""

        def __init__(self, steps: Steps) -> None:
            super().__init__()
            self.steps = steps

    def __init__(
        self, values: Sequence[tuple[str, str]], glyphs: Glyphs, *, current: str | None = None
    ) -> None:
        """Step through ``values``: pairs of a key and the text shown."""
        super().__init__()
        self.values = list(values) or [("", "none")]
        self.glyphs = glyphs
        keys = [key for key, _ in self.values]
        start = keys.index(current) if current in keys else 0
        self.set_reactive(Steps.index, start)

    @property
    def value(self) -> str:
        """Key of the value shown."""
        return self.values[self.index][0]

    @value.setter
    def value(self, key: str) -> None:
        keys = [each for each, _ in self.values]
        if key in keys:
            self.index = keys.index(key)

    def action_step(self, by: int) -> None:
        """Step to the next value or the previous one, wrapping around."""
        self.index = (self.index + by) % len(self.values)

    def on_key(self, event: Key) -> None:
        """Step with arrow keys and space; a letter or digit selects the next value that matches.

        A value matches if one of its words or numbers begins with the key. This is not done by
        bindings, because they would act on whichever control has the focus by then.
        """
        if event.key in _STEPS:
            event.stop()
            self.action_step(_STEPS[event.key])
        if event.character is None or not event.character.isalnum():
            return
        event.stop()
        count = len(self.values)
        for at in ((self.index + step) % count for step in range(1, count)):
            if event.character.lower() in _initials(self.values[at][1]):
                self.index = at
                return

    def watch_index(self) -> None:
        """Post ``Stepped`` when another value is shown."""
        if self.is_mounted:
            self.post_message(self.Stepped(self))

    def render(self) -> Content:
        """Return the value between arrows, with its position among the others."""
        text = self.glyphs.translate(self.values[self.index][1])
        if len(self.values) == 1:
            return Content(f"  {text}")
        left, right = self.glyphs.arrow_left, self.glyphs.arrow_right
        place = f"  {self.index + 1} of {len(self.values)}"
        muted = "" if self.has_focus else "$text-muted"
        return Content.assemble((f"{left} ", muted), text, (f" {right}{place}", muted))


def _initials(text: str) -> set[str]:
    """Return the first characters of a text's words and numbers: ``s`` and ``1`` of ``s12``."""
    return {each[0].lower() for each in re.findall(r"[^\W\d]+|\d+", text)}


class LabelledRow(Horizontal):
    """A row with a label and its control."""

    DEFAULT_CSS = "LabelledRow { height: 1; }"

    def __init__(self, label: str, control: Widget) -> None:
        super().__init__(Label(label), control)
