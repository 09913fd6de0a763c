"""Dialogs about the session: marks, saving, sharing, a lesson's prediction, and leaving."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import CcplayError
from ccplay.files import writing
from ccplay.model.commands import AnyCommand, ChangeMark, Mark, RemoveMark
from ccplay.scenario.writing import write
from ccplay.session.archive import Unsaved
from ccplay.share.browsers import Browsers
from ccplay.share.frames import LONGEST_POINT, Board, Pointer
from ccplay.state.lab_state import Entry, LabState
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.dialogs.base import Dialog, Field, LabelledRow, Question, Steps, available
from ccplay.ui.dialogs.menu import Item, Menu
from ccplay.ui.playhead import Playhead
from ccplay.ui.screens import Modal
from ccplay.units import format_clock

# --- the dialogs that set a mark on the time axis, and that change, move or remove one ------------

_KEEP, _MOVE, _REMOVE = "keep", "move", "remove"


class MarkDialog(Dialog):
    """Asks for the text of a mark, which is drawn through all plots at one moment."""

    HEADING = "Mark this moment"
    VERB = "mark"
    HINT = ""

    def __init__(self, state: LabState, selected_flow: str | None, at: float | None = None) -> None:
        """Ask for the text of a mark at the moment ``at``; None stands for now."""
        super().__init__(state, selected_flow)
        if at is not None:
            self.HEADING = f"Mark the moment shown, {format_clock(at)}"
        self._at = at
        self.text = Field("remark", "", str.strip, self.glyphs, optional="what happens here")
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the field for the text."""
        return (self.text,)

    def command(self) -> Mark | None:
        """Return the mark; None if its text is empty."""
        return Mark(text=self.text.value, at=self._at) if self.text.value else None


class ChangeMarkDialog(Question[AnyCommand | Entry]):
    """Asks what to do with a mark; the answer is the mark itself if it should be moved."""

    AUTO_FOCUS = "Menu"
    VERB = "apply"

    def __init__(self, mark: Entry) -> None:
        """Offer to keep the mark, perhaps with another text."""
        super().__init__()
        self.HEADING = f"Mark at {format_clock(mark.t)}"
        self._mark = mark
        items = [
            Item(_KEEP, "keep it here", "with the text below"),
            Item(_MOVE, "move it", "←→ to another moment, then m or enter"),
            Item(_REMOVE, "remove it"),
        ]
        self.menu = Menu(items, self.glyphs)
        self.text = Field("remark", mark.text, _remark, self.glyphs)
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the choice, then the text."""
        return (self.menu, Static(classes="gap"), self.text)

    def command(self) -> AnyCommand | Entry | None:
        """Return the change, or the mark to move; None if nothing changes."""
        text = self.text.value or self._mark.text
        if self.menu.item.key == _REMOVE:
            return RemoveMark(name=self._mark.name)
        if self.menu.item.key == _MOVE:
            return replace(self._mark, text=text)
        return ChangeMark(name=self._mark.name, text=text) if self.text.changed else None


def _remark(text: str) -> str:
    if not text.strip():
        raise ValueError("a mark needs a text; to delete it, choose: remove it")
    return text.strip()


# --- the dialog with which a presenter points at a moment -----------------------------------------


class PointDialog(Question[Pointer]):
    """Asks for a few words to show on the screens of all spectators."""

    VERB = "point"

    def __init__(self, t: float) -> None:
        """Point at the moment ``t``."""
        super().__init__()
        self.HEADING = f"Point at {format_clock(t)} on all screens"
        self._t = t
        self.text = Field("text", "", _short, self.glyphs, optional="what to look at")
        self.text.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the field for the words."""
        return (self.text,)

    def command(self) -> Pointer:
        """Return the pointer, with or without words."""
        return Pointer(t=self._t, text=self.text.value or "")


def _short(text: str) -> str:
    if len(text.strip()) > LONGEST_POINT:
        raise ValueError(f"at most {LONGEST_POINT} characters")
    return text.strip()


# --- the dialog for a number that a lesson asks for -----------------------------------------------


class PredictionDialog(Question[float]):
    """Asks for the number that a page of a lesson asks to predict."""

    VERB = "answer"
    HINT = ""

    def __init__(self, board: Board, begun: str = "") -> None:
        """Ask a page's question; ``begun`` is the part of the number typed so far."""
        super().__init__()
        self.HEADING = board.heading
        self._low, self._high = board.low, board.high
        unit = f" {board.unit}" if board.unit else ""
        self._expected = f"from {board.low:g} to {board.high:g}{unit}"
        if board.plot:
            self._expected = f"the middle of the region, {self._expected}"
        self.number = Field(
            board.unit or "number",
            begun,
            self._read,
            self.glyphs,
            optional=self._expected,
        )
        self.number.add_class("wide")
        # Further digits are appended to those already typed.
        self.number.input.select_on_focus = False

    def _read(self, text: str) -> float:
        try:
            value = float(text.strip().split(" ")[0])
        except ValueError:
            raise ValueError(f"a number from {self._low:g} to {self._high:g}") from None
        if not self._low <= value <= self._high:
            raise ValueError(f"must be from {self._low:g} to {self._high:g}")
        return value

    def controls(self) -> Iterable[Widget]:
        """Return the field for the number."""
        return (self.number,)

    def command(self) -> float | None:
        """Return the number. Raises ``ValueError`` if none was typed."""
        if (value := self.number.value) is None:
            raise ValueError(f"type your answer first: {self._expected}, or leave with esc")
        return value


# --- the dialog that saves the session as a scenario file -----------------------------------------

SHOWN, ALL = "shown", "all"


class SaveDialog(Question[Path]):
    """Asks for a file name, writes the scenario there and answers with its path.

    An existing file is replaced only when enter is pressed a second time.
    """

    HEADING = "Save as scenario"
    AUTO_FOCUS = "Input"
    VERB = "save"

    def __init__(self, state: LabState, playhead: Playhead, title: str) -> None:
        """Offer the whole session, or the part up to the playhead."""
        super().__init__()
        self.state = state
        # A recording's title is its file name without the suffix.
        self.title_of_session = Path(title).stem if playhead.recorded else title
        self._t = playhead.t
        self._replaces: Path | None = None
        everything = (ALL, f"the whole session ({format_clock(state.now)})")
        shown = (SHOWN, f"up to the moment shown ({format_clock(self._t)})")
        parts = [everything] if _at_the_end(state, playhead) else [shown, everything]
        # By default a frozen session is saved up to that moment, a recording as a whole.
        self.part = Steps(parts[::-1] if playhead.recorded else parts, self.glyphs)
        self.name_of_file = Field("file", proposal(), path_of, self.glyphs)
        self.name_of_file.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the field for the file, then the choice of the part."""
        note = (
            "Traffic and changes become the steps of a timeline.\n"
            "ccplay run FILE repeats it, ccplay FILE shows it live."
        )
        return (
            Static(note, classes="detail", markup=False),
            Static(classes="gap"),
            self.name_of_file,
            LabelledRow("what", self.part),
        )

    def command(self) -> Path | None:
        """Write the file and return its path. Raises ``ValueError`` if that fails."""
        path = self.name_of_file.value
        if path is None:
            return None
        until = self._t if self.part.value == SHOWN else None
        try:
            text = write(self.state, title=self.title_of_session, until=until)
            writing.write(path, text, replace=path == self._replaces)
        except FileExistsError:
            self._replaces = path
            raise ValueError(f"{path} exists: enter again replaces it") from None
        except OSError as error:
            raise ValueError(f"can't write {path}: {error.strerror}") from None
        except CcplayError as error:
            raise ValueError(str(error)) from None
        return path


def proposal(suffix: str = ".toml") -> str:
    """Return a distinct file name for a session: ``session-20261121-064512.toml``."""
    return f"session-{datetime.now().astimezone():%Y%m%d-%H%M%S}{suffix}"


def _at_the_end(state: LabState, playhead: Playhead) -> bool:
    return playhead.t >= state.now or (playhead.running and not playhead.recorded)


def path_of(text: str, suffix: str = ".toml") -> Path:
    """Read a file name, and add the suffix if it has none. Raises ``ValueError``."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"{text.partition('/')[0]} is no user here") from None
    if not path.name:
        raise ValueError(f"{text} is a folder: name a file in it")
    return path if path.suffix else path.with_name(f"{path.name}{suffix}")


# --- the dialog shown before an unrecorded session is left ----------------------------------------

_SUFFIX = ".ccplay"
_SAVE, _LEAVE, _STAY = "save", "leave", "stay"


class LeaveDialog(Question[bool]):
    """Asks whether to save the recording; answers True to leave, None to stay.

    An existing file is replaced only when enter is pressed a second time.
    """

    HEADING = "This session is not recorded"
    AUTO_FOCUS = "Menu"
    VERB = "apply"
    HINT = "tab file"
    ESCAPE = "stay"

    def __init__(self, unsaved: Unsaved) -> None:
        """Offer to save the recording kept in memory."""
        super().__init__()
        self._unsaved = unsaved
        self._replaces: Path | None = None
        items = [
            Item(_SAVE, "save and leave", "the recording, into the file below", unsaved.lost),
            Item(_LEAVE, "leave", "nothing is kept"),
            Item(_STAY, "stay", "the lab keeps running"),
        ]
        self.menu = Menu(items, self.glyphs, pointed=_LEAVE if unsaved.lost else _SAVE)
        read = partial(path_of, suffix=_SUFFIX)
        self.file = Field("file", proposal(_SUFFIX), read, self.glyphs)
        self.file.add_class("wide")

    def controls(self) -> Iterable[Widget]:
        """Return the choice, then the file."""
        return (self.menu, Static(classes="gap"), self.file)

    def command(self) -> bool | None:
        """Save the recording if the user chose to. Raises ``ValueError`` if that fails."""
        key = available(self.menu)
        if key == _SAVE:
            self._save()
        return None if key == _STAY else True

    def _save(self) -> None:
        path = self.file.value or Path()
        try:
            self._unsaved.write_to(path, replace=path == self._replaces)
        except FileExistsError:
            self._replaces = path
            raise ValueError(f"{path} exists: enter again replaces it") from None
        except OSError as error:
            raise ValueError(f"can't write {path}: {error.strerror}") from None


# --- the link for browsers, with its QR code ------------------------------------------------------

_LOOK_S = 0.2
"""Interval in seconds at which reports of the server for browsers are read."""

_PAPER = Style(color="#000000", bgcolor="#ffffff")
"""Style of the QR code: dark on light in every theme, as cameras need it."""


class BrowserLink(Modal[None]):
    """A box with the link; escape or the key that opened it closes it."""

    DEFAULT_CSS = """
    BrowserLink {
        align: center middle; background: $background 0%;
        & > #link {
            width: 84; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
        }
        & Static { height: auto; }
    }
    BrowserLink.ascii > #link { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        # The id of the key that opened it, so a remapped key closes it too.
        Binding("ctrl+b", "dismiss", "leave", id="browsers", show=False),
    ]

    def __init__(self, browsers: Browsers, glyphs: Glyphs) -> None:
        """Show the link as soon as ``browsers`` reports it."""
        super().__init__()
        self._browsers = browsers
        self._glyphs = glyphs
        self._shown = ""
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        """Compose the box."""
        self.set_class(self._glyphs.name == "ascii", "ascii")
        box = VerticalScroll(self._text, id="link")
        box.border_title = "Watch in a browser"
        box.border_subtitle = "esc leave"
        yield box

    def on_mount(self) -> None:
        """Start reading reports."""
        self.set_interval(_LOOK_S, self._look)
        self._look()

    def _look(self) -> None:
        browsers = self._browsers
        browsers.listen()
        state = f"{browsers.link}{browsers.count}{browsers.failed}"
        if state == self._shown and self._shown:
            return
        self._shown = state
        self._text.update(self._words())

    def _words(self) -> Text:
        browsers = self._browsers
        if browsers.failed:
            return Text(f"No page: {browsers.failed}")
        if not browsers.link:
            return Text("starting the server for browsers …")
        found = Text(f"{browsers.link}\n\n", style="bold")
        # ASCII has no half blocks.
        if self._glyphs.name != "ascii":
            for row in browsers.code:
                found.append(row, _PAPER)
                found.append("\n")
        watching = f"{browsers.count} {'browser' if browsers.count == 1 else 'browsers'} now"
        found.append(f"\nAnyone with this link can watch and vote, but change nothing. {watching}.")
        return found
