"""The base of all dialogs: a box over the screen that returns one answer, usually a command."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import DescendantFocus, Resize
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from ccplay.model.commands import AnyCommand
from ccplay.model.network import Network
from ccplay.model.values import Capabilities
from ccplay.state.lab_state import LabState
from ccplay.ui.cells.glyphs import UNICODE, Glyphs
from ccplay.ui.dialogs.fields import Field, Row
from ccplay.ui.dialogs.menu import Menu
from ccplay.ui.modal import Modal

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

    AUTO_FOCUS = "Menu, Input, Steps"
    """Selector of controls; the first match receives the focus when the dialog opens."""
    HEADING: str
    VERB: str
    """Effect of enter, in one or two words."""
    HINT: ClassVar[str] = "tab next field"
    ESCAPE: ClassVar[str] = "leave"
    """Effect of escape, in one or two words."""

    def __init__(self) -> None:
        """Prepare the dialog; it uses the glyphs of the screen below."""
        super().__init__()
        self.glyphs: Glyphs = getattr(self.app, "glyphs", UNICODE)
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
        for row in self.query(Row):
            row.named = row is event.widget.parent

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Accept the answer when enter is pressed on a line."""
        event.stop()
        self.action_do()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Accept the answer when enter is pressed in a field."""
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
        wrong = [each for each in self.query(Field) if _in_use(each) and not each.check()]
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


class Dialog(Question[AnyCommand]):
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


def _in_use(field: Widget) -> bool:
    return isinstance(field.parent, Widget) and field.parent.display


def available(menu: Menu) -> str:
    """Return the highlighted item's key. Raises ``ValueError`` with the remedy if unavailable."""
    item = menu.item
    if item.missing:
        raise ValueError(f"{item.label}: {item.missing}")
    return item.key
