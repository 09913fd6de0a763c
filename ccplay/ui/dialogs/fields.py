"""Rows of a dialog: a field for a quantity, or a few values to step through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Generic, TypeVar

import msgspec
from textual.content import Content
from textual.events import Key
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input

from ccplay.model.fields import Field as Setting
from ccplay.model.fields import fields_of
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.cells.sheet import fit

T = TypeVar("T")


class Row(Widget):
    """A row that writes its label itself: a widget costs a millisecond when a dialog opens."""

    DEFAULT_CSS = """
    Row { layout: horizontal; width: 1fr; height: auto; color: $foreground; }
    """

    named: reactive[bool] = reactive(False)
    """Whether the label is highlighted, because the control has the focus."""
    indent = 14
    """Width of the label in columns, with the gap to the control."""

    def __init__(self, label: str, control: Widget) -> None:
        super().__init__(control)
        self.label = label
        self._control = control
        control.styles.margin = (0, 0, 0, self.indent)

    def widen(self, indent: int) -> None:
        """Leave room for longer labels."""
        self.indent = indent
        self._control.styles.margin = (0, 0, 0, indent)

    def render(self) -> Content:
        """Return the label."""
        style = "bold $primary" if self.named else "$text-muted"
        return Content.assemble((fit(self.label, self.indent), style))


class LabelledRow(Row):
    """A row with a label and any control."""


class Field(Row, Generic[T]):
    """A text field, checked at every key; the reason for invalid text is shown below it."""

    DEFAULT_CSS = """
    Field {
        & Input, & Input:focus { width: 22; height: 1; border: none; padding: 0 1;
            background: $panel; color: $foreground; background-tint: $foreground 0%; }
        &.wide Input, &.wide Input:focus { width: 1fr; }
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
        self.glyphs = glyphs
        self._read = read
        self._optional = optional
        self._meaning = meaning
        self._initial = glyphs.translate(text)
        self.input = Input(
            self._initial,
            placeholder=glyphs.translate(optional),
            select_on_focus=True,
            # Its own validation would style each field anew.
            validate_on=(),
        )
        super().__init__(label, self.input)

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

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Return the number of lines: the field's, and those of the reason."""
        return 1 + len(self._reasons(width))

    def render(self) -> Content:
        """Return label and meaning in one line, with the reason below."""
        width = self.size.width
        blank = " " * (_FIELD + _GAP)
        room = width - self.indent - len(blank)
        meaning = fit(self.glyphs.translate(self._meaning), room, self.glyphs.ellipsis)
        lines = Content.assemble(super().render(), blank, (meaning, "$text-muted"))
        for each in self._reasons(width):
            lines = Content.assemble(lines, "\n", " " * self.indent, (each, "$error"))
        return lines

    def _reasons(self, width: int) -> list[str]:
        """Return the lines of the reason; none while the text is valid."""
        if not self.has_class("wrong"):
            return []
        text = self.glyphs.translate(f"{self.glyphs.missing} {self.reason}")
        return wrap(text, max(width - self.indent, 1))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check the changed text."""
        event.stop()
        self.check()
        self.post_message(self.Edited())

    def check(self) -> bool:
        """Show or hide the reason; return whether the text is valid."""
        reason, before = self.reason, self._reasons(self.size.width)
        self.set_class(bool(reason), "wrong")
        if self._reasons(self.size.width) != before:
            self.refresh(layout=True)
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


_FIELD, _GAP = 22, 2
"""Columns of a field, and of the gap before its meaning."""

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
