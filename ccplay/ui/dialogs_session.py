"""Dialogs about the session: marks, ghosts, saving, sharing, a prediction, and leaving."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import CcplayError, RecordingError, UsageError
from ccplay.files import writing
from ccplay.model.base import Command
from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.scenario.writing import write
from ccplay.session import archive
from ccplay.session.archive import Found, Unsaved, describe_recording, find
from ccplay.share.frames import LONGEST_POINT, Board, Playhead, Pointer
from ccplay.share.presenter import BrowserServer
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import check_recording
from ccplay.traffic.base import LogEntry
from ccplay.ui.cells import abbreviated
from ccplay.ui.dialog_form import (
    Answer,
    Dialog,
    Item,
    LabelledRow,
    Menu,
    Question,
    Stepper,
    TextField,
    available,
)
from ccplay.ui.help import Page
from ccplay.ui.view import Choice, View, next_action, of_session
from ccplay.units import format_clock, format_size

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
        self.text = TextField(
            "remark", "", str.strip, self.glyphs, optional="what happens here", wide=True
        )

    def controls(self) -> Iterable[Widget]:
        """Return the field for the text."""
        return (self.text,)

    def command(self) -> Mark | None:
        """Return the mark; None if its text is empty."""
        return Mark(text=self.text.value, at=self._at) if self.text.value else None


class ChangeMarkDialog(Question[Command | LogEntry]):
    """Asks what to do with a mark; the answer is the mark itself if it should be moved."""

    AUTO_FOCUS = "Menu"
    VERB = "apply"

    def __init__(self, mark: LogEntry) -> None:
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
        self.text = TextField("remark", mark.text, _remark, self.glyphs, wide=True)

    def controls(self) -> Iterable[Widget]:
        """Return the choice, then the text."""
        return (self.menu, Static(classes="gap"), self.text)

    def command(self) -> Command | LogEntry | None:
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
        self.text = TextField(
            "text", "", _short, self.glyphs, optional="what to look at", wide=True
        )

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


# --- the question before a key with consequences for others, or for an answer ---------------------


class Confirmation(Question[bool]):
    """Asks whether to do what a key does; enter does it, escape changes nothing."""

    HINT = ""

    def __init__(self, heading: str, verb: str, text: str) -> None:
        """Ask under ``heading``; ``verb`` names the effect of enter, ``text`` explains it."""
        self.HEADING, self.VERB = heading, verb
        super().__init__()
        self._text = text

    def controls(self) -> Iterable[Widget]:
        """Return the explanation."""
        return (Static(self.glyphs.translate(self._text), markup=False),)

    def command(self) -> bool:
        """Return that the user wants it."""
        return True


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
        self.number = TextField(
            board.unit or "number",
            begun,
            self._read,
            self.glyphs,
            optional=self._expected,
            wide=True,
        )
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


class Saving(Question[Answer]):
    """A dialog that writes a file; it replaces one only when enter is pressed a second time."""

    _replaces: Path | None = None

    def write(self, path: Path, write: Callable[..., object]) -> None:
        """Write a file by calling ``write(replace=…)``. Raises ``ValueError``."""
        try:
            write(replace=path == self._replaces)
        except FileExistsError:
            self._replaces = path
            raise ValueError(f"{path} exists: enter again replaces it") from None
        except OSError as error:
            raise ValueError(f"can't write {path}: {error.strerror}") from None


class SaveDialog(Saving[Path]):
    """Asks for a file name, writes the scenario there and answers with its path."""

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
        everything = (ALL, f"the whole session ({format_clock(state.now)})")
        shown = (SHOWN, f"up to the moment shown ({format_clock(self._t)})")
        follows = playhead.running and not playhead.recorded
        ends = follows or playhead.t >= state.now
        parts = [everything] if ends else [shown, everything]
        # By default a frozen session is saved up to that moment, a recording as a whole.
        self.part = Stepper(parts[::-1] if playhead.recorded else parts, self.glyphs)
        self.name_of_file = TextField("file", proposal(), path_of, self.glyphs, wide=True)

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
            self.write(path, partial(writing.write, path, text))
        except CcplayError as error:
            raise ValueError(str(error)) from None
        return path


def proposal(suffix: str = ".toml") -> str:
    """Return a distinct file name for a session: ``session-20261121-064512.toml``."""
    return f"session-{datetime.now().astimezone():%Y%m%d-%H%M%S}{suffix}"


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


class LeaveDialog(Saving[bool]):
    """Asks whether to save the recording; answers True to leave, None to stay."""

    HEADING = "This session is not recorded"
    AUTO_FOCUS = "Menu"
    VERB = "apply"
    HINT = "tab file"
    ESCAPE = "stay"

    def __init__(self, unsaved: Unsaved) -> None:
        """Offer to save the recording kept in memory."""
        super().__init__()
        self._unsaved = unsaved
        items = [
            Item(_SAVE, "save and leave", "the recording, into the file below", unsaved.lost),
            Item(_LEAVE, "leave", "nothing is kept"),
            Item(_STAY, "stay", "the lab keeps running"),
        ]
        self.menu = Menu(items, self.glyphs, pointed=_LEAVE if unsaved.lost else _SAVE)
        read = partial(path_of, suffix=_SUFFIX)
        self.file = TextField("file", proposal(_SUFFIX), read, self.glyphs, wide=True)

    def controls(self) -> Iterable[Widget]:
        """Return the choice, then the file."""
        return (self.menu, Static(classes="gap"), self.file)

    def command(self) -> bool | None:
        """Save the recording if the user chose to. Raises ``ValueError`` if that fails."""
        key = available(self.menu)
        if key == _SAVE:
            path = self.file.value or Path()
            self.write(path, partial(self._unsaved.write_to, path))
        return None if key == _STAY else True


# --- the link for browsers, with its QR code ------------------------------------------------------

_LOOK_S = 0.2
"""Interval in seconds at which reports of the server for browsers are read."""

_PAPER = Style(color="#000000", bgcolor="#ffffff")
"""Style of the QR code: dark on light in every theme, as cameras need it."""


class BrowserLink(Page):
    """A box with the link."""

    DEFAULT_CSS = """
    BrowserLink { background: $background 0%; }
    BrowserLink > VerticalScroll { width: 84; max-width: 100%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+b", "dismiss", "leave", id="browsers", show=False)
    ]

    def __init__(self, browsers: BrowserServer) -> None:
        """Show the link as soon as ``browsers`` reports it."""
        super().__init__()
        self._browsers = browsers
        self._shown = ""
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        """Compose the box."""
        box = self.box(self._text, "Watch in a browser")
        box.border_subtitle = self.hints()
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
        if self.appearance.glyphs.name != "ascii":
            for row in browsers.code:
                found.append(row, _PAPER)
                found.append("\n")
        watching = f"{browsers.count} {'browser' if browsers.count == 1 else 'browsers'} now"
        found.append(f"\nAnyone with this link can watch and vote, but change nothing. {watching}.")
        return found


# --- the dialog that chooses a ghost: an earlier run drawn under this one -------------------------

NONE, SESSION = "none", "session"

_NAME = 28
"""Width of a file's name in columns."""

_NEAR = 1 / 30
"""Largest distance, as a share of the window, of an action that counts as at the cursor."""

_LEAST_S = 1.0
"""Shortest useful ghost in seconds."""


class GhostDialog(Question[Choice]):
    """Asks for a recording, an earlier part of this session, or none."""

    HEADING = "Ghost: an earlier run under this one"
    VERB = "draw it"
    HINT = "1-9 a-z jump  ·  tab file"

    DEFAULT_CSS = "GhostDialog Menu { max-height: 12; }"

    def __init__(self, view: View, folder: Path | None = None) -> None:
        """Offer the recordings in ``folder``, the current one if None."""
        super().__init__()
        self._state = view.state
        self._live = view.session.live
        self._now = view.state.now if self._live else view.t
        self._moment, text = _meant(view)
        items = [Item(NONE, "none", "only this session")] if view.ghost else []
        items.append(self._own(text))
        sessions = archive.earlier(view.session.archived)
        items += [_session(name, path) for name, path in sessions[:1]]
        there = find(folder or Path())
        # The names of one experiment's recordings often differ at their ends alone.
        short = abbreviated(frozenset(each.name for each in there), _NAME)
        items += [replace(_item(each), label=short[each.name]) for each in there]
        items += [_session(name, path) for name, path in sessions[1:]]
        if len(items) == 1:
            items.append(Item("", "no recordings here", missing="record with --record FILE"))
        usable = [item.key for item in items if not item.missing]
        recordings = [key for key in usable if key not in (NONE, SESSION)]
        first = NONE if view.ghost else next(iter(recordings or usable), "")
        self.menu = Menu(items, self.glyphs, pointed=first)
        self.file = TextField(
            "or the file", "", _read, self.glyphs, optional="another recording", wide=True
        )
        self.lined_up = Stepper(
            [
                ("start", "both networks are ready at the same moment"),
                ("flow", "its first flow starts with the next flow here"),
            ],
            self.glyphs,
        )
        self._row = LabelledRow("lined up", self.lined_up)

    def controls(self) -> Iterable[Widget]:
        """Return the list, then a field for any other file."""
        return (self.menu, Static(classes="detail", markup=False), self.file, self._row)

    def chosen(self, menu: Menu) -> None:
        """Ask how to align the ghost only if there is a choice."""
        self._row.visible = bool(self.file.input.value) or menu.item.key not in (NONE, SESSION)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Show how to align the ghost once the field for another file has the focus."""
        super().on_descendant_focus(event)
        event.prevent_default()
        if self.focused is self.file.input:
            self._row.visible = True

    def command(self) -> Choice:
        """Return the choice. Raises ``ValueError`` if it is impossible."""
        path = self.file.value
        if path is None:
            key = available(self.menu)
            if key == NONE:
                return Choice()
            if key == SESSION:
                since = self._now if self._live else self._moment
                return Choice(moment=self._moment, waits_since=since)
            path = Path(key)
        return Choice(path, waits_since=self._now if self.lined_up.value == "flow" else None)

    def _own(self, text: str) -> Item:
        missing = ""
        if self._state.now - self._moment < _LEAST_S:
            missing = "first freeze (space) and go back (←) to where it should begin"
        elif not self._live and self._never_aligns():
            missing = f"no action of the same kind followed after {format_clock(self._moment)}"
        summary = f"from {format_clock(self._moment)} on{text}"
        return Item(SESSION, "this session", summary, missing)

    def _never_aligns(self) -> bool:
        """Return whether no action would ever align this part of an ended session."""
        ghost = of_session(self._state, self._moment, waits_since=self._moment)
        return ghost.shift(self._state) is None


def _meant(view: View) -> tuple[float, str]:
    """Return the cursor's moment, or that of an action near it, and a description."""
    near = view.shown.playhead.width * _NEAR
    actions = []
    action = next_action(view.state, view.t - near)
    while action is not None and action.t <= view.t + near:
        actions.append(action)
        action = next_action(view.state, action.t)
    if not actions:
        return view.t, ""
    meant = min(actions, key=lambda each: abs(each.t - view.t))
    return meant.t, f": {meant.command.describe()}"


def _item(found: Found) -> Item:
    if found.problem:
        return Item(str(found.path), found.name, missing=found.problem)
    length = "" if found.seconds is None else f"{found.seconds:.0f} s"
    words = [f"{found.began:%Y-%m-%d %H:%M}", f"{length:>6}", f"{format_size(found.size):>8}"]
    summary = "  ".join([*words, ", ".join(found.algorithms)])
    return Item(str(found.path), found.name, summary)


def _session(name: str, path: Path) -> Item:
    """Return the menu's line for an archived session, labelled ``name``, with its scenario."""
    item = _item(describe_recording(path, path.parent))
    label = archive.label_of(path)
    return replace(item, label=name, summary=f"{item.summary}  {label}" if item.summary else "")


def _read(text: str) -> Path:
    try:
        path = archive.named(text).expanduser()
        check_recording(path)
    except (RecordingError, UsageError) as error:
        raise ValueError(str(error)) from None
    return path
