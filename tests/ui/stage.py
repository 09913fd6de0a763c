"""A plain screen on which dialogs, palette and help open, with what they need of the real one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from ccplay.assets import assets
from ccplay.model.base import Command
from ccplay.state.lab_state import LabState
from ccplay.traffic.base import TrafficKind
from ccplay.ui import keys
from ccplay.ui.cells import UNICODE, Glyphs
from ccplay.ui.dialog_form import Dialog
from ccplay.ui.dialogs_traffic import StartDialog
from ccplay.ui.help import HelpScreen, OrderlyApp
from ccplay.ui.palette import Palette
from ccplay.ui.themes import Appearance, load_looks


@dataclass
class Lab:
    """A session that keeps the commands sent to it."""

    state: LabState
    live: bool = True
    undoable: str = ""
    sent: list[Command] = field(default_factory=list)

    def send(self, command: Command) -> None:
        self.sent.append(command)


class NoPlots:
    """The plots of a screen without any."""

    def offers(self, _view: object) -> tuple[()]:
        return ()


class Dots(Widget):
    """Lines of dots under a dialog, drawn like a ``Static``, which would be slow to wrap them."""

    DEFAULT_CSS = "Dots { height: auto; }"

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        return 60 * len(_rows(width))

    def render_line(self, y: int) -> Strip:
        rows = _rows(self.size.width)
        dots = rows[y % len(rows)]
        gap = " " * (self.size.width - len(dots))
        background = Style(bgcolor=self.rich_style.bgcolor)
        return Strip([Segment(dots, self.rich_style), Segment(gap, background)], self.size.width)


def _rows(width: int) -> list[str]:
    """Return the rows of a wrapped line of a hundred dots, without the blank before each break."""
    each = max(1, width // 2)
    *broken, last = ["· " * min(each, 100 - at) for at in range(0, 100, each)]
    return [*map(str.rstrip, broken), last]


class Backdrop(Screen[None]):
    """A screen with keys and a lab, over which dialogs open."""

    BINDINGS: ClassVar[list[BindingType]] = keys.MAIN

    def __init__(self, state: LabState) -> None:
        super().__init__()
        self.session = Lab(state)
        self.done: list[str] = []
        self.plots = NoPlots()
        self.view = None

    def compose(self) -> ComposeResult:
        yield Dots()

    def ask(self, command: Command) -> None:
        self.session.send(command)

    def undo_offers(self) -> tuple[()]:
        return ()

    def mark_offers(self) -> tuple[()]:
        return ()

    def ghost_offers(self) -> tuple[()]:
        return ()

    @property
    def appearance(self) -> Appearance:
        assert isinstance(self.app, Stage)
        return self.app.appearance

    def use_look(self, name: str) -> None:
        self.app.theme = name

    def action_freeze(self) -> None:
        self.done.append("freeze")

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())


Opens = Callable[[LabState, str | None], Dialog]
"""What makes a dialog from the state of a lab and the selected flow."""


def starts(kind: TrafficKind) -> Opens:
    """Return what makes the dialog that starts traffic of a kind, named as the command."""

    def dialog(state: LabState, selected_flow: str | None) -> Dialog:
        return StartDialog(kind, state, selected_flow)

    dialog.__name__ = f"{kind.start.__name__.removeprefix('Start')}Dialog"
    return dialog


def written(value: object) -> str:
    """Return a function's or class's name, else the value as text: alike in all workers."""
    return getattr(value, "__name__", None) or str(value)


class Stage(OrderlyApp[None]):
    """An app that shows a dialog, the palette or the help over the backdrop."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", tooltip="End the lab and leave")
    ]

    def __init__(
        self,
        state: LabState,
        dialog: Opens | None = None,
        *,
        theme: str = "dark",
        glyphs: Glyphs = UNICODE,
        selected_flow: str | None = None,
    ) -> None:
        super().__init__()
        self.backdrop = Backdrop(state)
        self.dialog = dialog
        looks = load_looks(folders=[assets("themes")])
        self.appearance = Appearance(looks, looks[theme], glyphs, keys.DEFAULT)
        for look in looks.values():
            self.register_theme(look.textual_theme)
        self.theme = theme
        self.selected_flow = selected_flow
        self.answers: list[Command | None] = []

    def action_command_palette(self) -> None:
        self.push_screen(Palette())

    def get_default_screen(self) -> Screen[None]:
        return self.backdrop

    def on_mount(self) -> None:
        if self.dialog is not None:
            self.open(self.dialog)

    def open(self, dialog: Opens) -> None:
        state = self.backdrop.session.state
        self.push_screen(dialog(state, self.selected_flow), self.answers.append)
