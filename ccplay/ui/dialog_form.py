"""The base of all dialogs: a box of fields and lists over the screen, which returns one answer."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click, DescendantFocus, Key, Resize
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ccplay.guest.boot import offer
from ccplay.model.base import Command
from ccplay.model.network import Network
from ccplay.model.quantities import Field, fields_of
from ccplay.model.values import Capabilities, Feature
from ccplay.state.lab_state import LabState
from ccplay.ui.cells import Glyphs, fit
from ccplay.ui.help import Modal

# --- a list of choices, each with a line of explanation; digits and letters jump to one -----------


class Item(msgspec.Struct, frozen=True):
    """One line of a menu."""

    key: str
    """Value of the choice; empty for the default."""
    label: str
    summary: str = ""
    missing: str = ""
    """Reason why the item is unavailable, with the remedy; empty if it is available."""


_HEAD = 8
"""Columns of a line for pointer, number, sign and gaps, without label and summary."""


def lack_of(features: Sequence[Feature], what: str) -> str:
    """Return why none of the features that provide ``what`` is there; empty if one is."""
    if not features:
        return f"this lab does not support {what}: update ccplay there"
    first = features[0]
    return "" if any(each.available for each in features) else f"{first.reason}: {first.remedy}"


def feature_items(features: Iterable[Feature], kernel: str = "") -> list[Item]:
    """Return items for available features, then for missing ones with reason and remedy.

    The remedy is a guest if its kernel has what ``kernel``, the lab's, lacks.
    """
    items = []
    for each in sorted(features, key=lambda feature: not feature.available):
        reason = each.reason or "not on this machine"
        lacks = not each.available and "this kernel" in reason
        remedy = (offer(kernel, "it", "--kernel guest") if lacks else "") or each.remedy
        missing = "" if each.available else f"{reason}; {remedy}" if remedy else reason
        items.append(Item(each.name, each.name, each.summary, missing))
    return items


class ClickedList(OptionList):
    """A list that survives a click on a line which has been removed since it was drawn."""

    def on_click(self, event: Click) -> None:
        """Ignore a click on a line that is gone; Textual would raise ``IndexError``."""
        if event.style.meta.get("option", -1) >= self.option_count:
            event.prevent_default()


class Menu(ClickedList):
    """A list from which one line is chosen; unavailable lines can be read, but not chosen."""

    DEFAULT_CSS = """
    Menu {
        height: auto; max-height: 8; border: none; padding: 0; background: $surface;
        text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1;
        &:focus { border: none; background-tint: $foreground 0%; }
        & > .option-list--option { padding: 0; }
    }
    """

    class Chosen(Message):
        """Posted when the highlight has moved to another line."""

        def __init__(self, menu: Menu, item: Item) -> None:
            super().__init__()
            self.menu = menu
            self.item = item

    def __init__(
        self,
        items: Sequence[Item],
        glyphs: Glyphs,
        *,
        current: str | None = None,
        pointed: str | None = None,
    ) -> None:
        """Show ``items``: ``current`` is ticked, ``pointed`` is highlighted.

        If ``pointed`` is None, the current item is highlighted.
        """
        self.items = list(items)
        self.glyphs = glyphs
        self.current = current
        self._pointed = self._row(pointed or current or "")
        self._typed = ""
        super().__init__(*(Option(self._line(row)) for row in range(len(self.items))))

    @property
    def item(self) -> Item:
        """The highlighted item."""
        return self.items[self._pointed if self.highlighted is None else self.highlighted]

    def is_cut(self, item: Item) -> bool:
        """Return whether the line is too narrow for the item's whole summary."""
        width = self.scrollable_content_region.width
        return 0 < width < _HEAD + self._label_width + len(item.summary)

    @property
    def _label_width(self) -> int:
        return max(len(each.label) for each in self.items)

    def on_mount(self) -> None:
        """Highlight the current item."""
        self.highlighted = self._pointed

    def set_items(self, items: Sequence[Item], current: str | None, pointed: str) -> None:
        """Show other items: ``current`` is ticked, ``pointed`` is highlighted."""
        self.items, self.current = list(items), current
        self._pointed = self._row(pointed)
        self.set_options(Option(self._line(row)) for row in range(len(self.items)))
        self.highlighted = self._pointed

    def tick(self, key: str | None) -> None:
        """Tick another item as the current one, and highlight it."""
        self.set_items(self.items, key, key or "")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Move the pointer, which shows the highlight without colours."""
        event.stop()
        before, self._pointed = self._pointed, event.option_index
        for row in {before, self._pointed}:
            self.replace_option_prompt_at_index(row, self._line(row))
        self.post_message(self.Chosen(self, self.item))

    def on_key(self, event: events.Key) -> None:
        """Jump to the item with a typed number, or the next that begins as typed, available first.

        Up and down are handled here too, because a binding would act on whichever control has the
        focus by then.
        """
        if event.key in ("up", "down"):
            event.stop()
            event.prevent_default()
            (self.action_cursor_up if event.key == "up" else self.action_cursor_down)()
            self._typed = ""
        if event.character is None or not event.character.isalnum():
            return
        # A name may be typed whole; what continues none begins anew.
        for typed in (self._typed + event.character.lower(), event.character.lower()):
            if (row := self._row_of(typed)) is not None:
                self._typed, self.highlighted = typed, row
                event.stop()
                return

    def _row_of(self, typed: str) -> int | None:
        if typed.isdigit():
            row = int(typed) - 1
            return row if 0 <= row < min(len(self.items), 9) else None
        count, first = len(self.items), int(len(typed) == 1)
        rows = ((self._pointed + step) % count for step in range(first, count + 1))
        names = ["".join(filter(str.isalnum, each.label.lower())) for each in self.items]
        found = [row for row in rows if names[row].startswith(typed)]
        return min(found, key=lambda row: bool(self.items[row].missing), default=None)

    def _row(self, key: str) -> int:
        keys = [item.key for item in self.items]
        return keys.index(key) if key in keys else 0

    def _line(self, row: int) -> Content:
        item, glyphs = self.items[row], self.glyphs
        pointed = row == self._pointed
        pointer = glyphs.chosen if pointed else " "
        number = str(row + 1) if row < 9 else " "
        sign = glyphs.missing if item.missing else " "
        if item.key == self.current:
            sign = glyphs.live
        text = item.missing or item.summary
        head = f"{pointer} {number} {sign} {item.label:<{self._label_width}}  "
        line = Content.assemble(head, (glyphs.translate(text), "" if pointed else "$text-muted"))
        return line.stylize("$text-muted") if item.missing and not pointed else line


# --- rows of a dialog: a field for a quantity, or a few values to step through --------------------

T = TypeVar("T")


class LabelledRow(Widget):
    """A row with a control; it writes its label itself: a widget costs a millisecond at opening."""

    DEFAULT_CSS = """
    LabelledRow { layout: horizontal; width: 1fr; height: auto; color: $foreground; }
    LabelledRow .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
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


def row_or_lack(label: str, control: Widget, lack: str, glyphs: Glyphs) -> LabelledRow:
    """Return a row with a control, or with the reason why what it asks for is impossible."""
    if lack:
        lack = glyphs.translate(f"{glyphs.missing} {lack}")
        return LabelledRow(label, Static(lack, classes="note", markup=False))
    return LabelledRow(label, control)


class TextField(LabelledRow, Generic[T]):
    """A text field, checked at every key; the reason for invalid text is shown below it."""

    DEFAULT_CSS = """
    TextField {
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
        wide: bool = False,
    ) -> None:
        """Accept text that ``read`` can convert; otherwise it raises ``ValueError``.

        ``optional`` is shown in an empty field, and describes its effect; without ``optional``, the
        field must not be empty. ``meaning`` is shown beside the field, unless it is ``wide``.
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
        self.set_class(wide, "wide")

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


def entry(setting: Field, glyphs: Glyphs, text: str | None = None) -> TextField[Any]:
    """Return the row for a setting; it starts with ``text``, else with the setting's default."""
    usual = "" if setting.default is None else setting.show(setting.default)
    return TextField(
        setting.label or setting.name,
        usual if text is None else text,
        setting.parse,
        glyphs,
        meaning=setting.hint or setting.meaning,
        optional=usual or setting.unset,
    )


def entries(command: type[msgspec.Struct], glyphs: Glyphs) -> dict[str, TextField[Any]]:
    """Return the rows, by name, for those settings of a command that have a label."""
    settings = fields_of(command)
    return {name: entry(each, glyphs) for name, each in settings.items() if each.label}


def typed(fields: Mapping[str, TextField[Any]]) -> dict[str, Any]:
    """Return the typed values by name, without those left empty. Raises ``ValueError``."""
    values = {name: field.value for name, field in fields.items()}
    return {name: value for name, value in values.items() if value is not None}


_FIELD, _GAP = 22, 2
"""Columns of a field, and of the gap before its meaning."""

_STEPS = {"right": 1, "space": 1, "left": -1}


class Stepper(Widget, can_focus=True):
    """A control that shows one of a few values, and steps through them with the arrow keys."""

    DEFAULT_CSS = """
    Stepper { width: 1fr; height: 1; background: $surface; color: $foreground; }
    Stepper:focus { text-style: bold; background: $panel; }
    """

    index: reactive[int] = reactive(0)

    class Stepped(Message):
        """Posted when another value is shown."""

        def __init__(self, steps: Stepper) -> None:
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
        self.set_reactive(Stepper.index, start)

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

        A value matches if one of its words or numbers begins with the key: ``s12`` with ``s`` and
        with ``1``. This is not done by bindings, because they would act on whichever control has
        the focus by then.
        """
        if event.key in _STEPS:
            event.stop()
            self.action_step(_STEPS[event.key])
        if event.character is None or not event.character.isalnum():
            return
        event.stop()
        count, typed = len(self.values), event.character.lower()
        for at in ((self.index + step) % count for step in range(1, count)):
            words = re.findall(r"[^\W\d]+|\d+", self.values[at][1].lower())
            if any(word.startswith(typed) for word in words):
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


# --- the base of all dialogs: a box over the screen that returns one answer, usually a command ----

Answer = TypeVar("Answer")


class Question(Modal[Answer | None], Generic[Answer]):
    """A dialog: enter returns its answer, escape cancels."""

    DEFAULT_CSS = """
    Question {
        align: center middle;
        & > #box {
            width: 76; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
            scrollbar-size-vertical: 1;
        }
        & #complaint { display: none; color: $error; height: auto; }
        & .detail { height: 2; color: $foreground; padding-left: 2; }
        & .gap { height: 1; }
    }
    Question.ascii Menu { text-overflow: clip; scrollbar-size: 0 0; }
    Question.ascii > #box { border: ascii $primary; scrollbar-size: 0 0; }
    Question.roomy > #box { width: 96; padding: 1 2; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "do", "apply"),
        Binding("escape", "leave", "leave"),
        Binding("tab,down", "app.focus_next", "next", show=False),
        Binding("shift+tab,up", "app.focus_previous", "previous", show=False),
    ]

    AUTO_FOCUS = "Menu, Input, Stepper"
    """Selector of controls; the first match receives the focus when the dialog opens."""
    HEADING: str
    VERB: str
    """Effect of enter, in one or two words."""
    HINT: str = "tab next field"
    ESCAPE: ClassVar[str] = "leave"
    """Effect of escape, in one or two words."""

    def __init__(self) -> None:
        """Prepare the dialog; it uses the glyphs of the screen below."""
        super().__init__()
        self.glyphs: Glyphs = self.appearance.glyphs
        self._complaint = Static(id="complaint", markup=False)

    @abstractmethod
    def controls(self) -> Iterable[Widget]:
        """Return the content of the box, from top to bottom."""

    @abstractmethod
    def command(self) -> Answer | None:
        """Return the answer. Raises ``ValueError`` with the reason if it is impossible."""

    def compose(self) -> ComposeResult:
        """Put the controls into a box that shows the effects of enter and escape."""
        glyphs = self.glyphs
        self.set_class(glyphs.name == "ascii", "ascii")
        # If this waited for the first resize, all parts would be styled twice.
        self._use_room(self.app.size)
        box = VerticalScroll(*self.controls(), self._complaint, id="box", can_focus=False)
        box.border_title = self.HEADING
        hints = (f"enter {self.VERB}", self.HINT, f"esc {self.ESCAPE}")
        gap = f"  {glyphs.separator}  "
        box.border_subtitle = glyphs.translate(gap.join(hint for hint in hints if hint))
        yield box

    def on_resize(self, event: Resize) -> None:
        """Enlarge the box if the screen has room."""
        self._use_room(event.size)

    def _use_room(self, size: Size) -> None:
        self.set_class(size.width >= 110 and size.height >= 32, "roomy")

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Highlight the label of the focused control."""
        for row in self.query(LabelledRow):
            row.named = row is event.widget.parent

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def accept(self, event: Message) -> None:
        """Accept the answer when enter is pressed on a line or in a field."""
        event.stop()
        self.action_do()

    def on_menu_chosen(self, event: Menu.Chosen) -> None:
        """Show the whole text of the highlighted line if it is cut or unavailable."""
        event.stop()
        self._complaint.display = False
        item = event.item
        text = item.missing or (item.summary if event.menu.is_cut(item) else "")
        for detail in self.query(".detail").results(Static):
            detail.update(self.glyphs.translate(text))
        self.chosen(event.menu)

    def chosen(self, menu: Menu) -> None:
        """React to another highlighted line of a menu; does nothing by default."""

    def action_do(self) -> None:
        """Return the answer, or show why it is impossible and keep the typed text."""
        shown = [each for each in self.query(TextField) if getattr(each.parent, "display", False)]
        wrong = [each for each in shown if not each.check()]
        if wrong:
            wrong[0].input.focus()
            return
        try:
            command = self.command()
        except ValueError as error:
            self._complaint.update(self.glyphs.translate(f"{self.glyphs.missing} {error}"))
            self._complaint.display = True
            self._complaint.scroll_visible(animate=False)
            return
        self.dismiss(command)

    def action_leave(self) -> None:
        """Cancel the dialog."""
        self.dismiss(None)


class Dialog(Question[Command]):
    """A dialog that asks for a command to the lab."""

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the choices of ``state``; ``selected_flow`` is the name selected in the table."""
        if state.hello is None:
            raise ValueError("a dialog needs a lab that has sent Hello")
        super().__init__()
        self.state = state
        self.selected_flow = selected_flow
        self.capabilities: Capabilities = state.hello.capabilities
        self.network: Network = state.hello.network


def available(menu: Menu) -> str:
    """Return the highlighted item's key. Raises ``ValueError`` with the remedy if unavailable."""
    item = menu.item
    if item.missing:
        raise ValueError(f"{item.label}: {item.missing}")
    return item.key
