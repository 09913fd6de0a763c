"""The dialog that chooses a ghost: an earlier run drawn under this one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace
from textual.events import DescendantFocus
from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import RecordingError, UsageError
from ccplay.model.wording import describe
from ccplay.session import archive
from ccplay.session.archive import Found, find, glance
from ccplay.stream.sources import check_recording
from ccplay.ui.cells.sheet import abbreviated
from ccplay.ui.dialogs.base import Field, LabelledRow, Question, Steps, available
from ccplay.ui.dialogs.menu import Item, Menu
from ccplay.ui.plots.ghosts import Choice, next_action, of_session
from ccplay.ui.view import View
from ccplay.units import format_clock, format_size

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
        self.file = Field("or the file", "", _read, self.glyphs, optional="another recording")
        self.file.add_class("wide")
        self.lined_up = Steps(
            [
                ("start", "both networks are ready at the same moment"),
                ("flow", "its first flow starts with the next flow here"),
            ],
            self.glyphs,
        )
        self._row = LabelledRow("lined up", self.lined_up)

    def controls(self) -> Iterable[Widget]:
        """Return the list, then a field for any other file."""
        return (
            self.menu,
            Static(classes="detail", markup=False),
            self.file,
            self._row,
        )

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
        item = Item(SESSION, "this session", f"from {format_clock(self._moment)} on{text}")
        missing = ""
        if self._state.now - self._moment < _LEAST_S:
            missing = "first freeze (space) and go back (←) to where it should begin"
        elif not self._live and self._never_aligns():
            missing = f"no action of the same kind followed after {format_clock(self._moment)}"
        return Item(item.key, item.label, item.summary, missing)

    def _never_aligns(self) -> bool:
        """Return whether no action would ever align this part of an ended session."""
        ghost = of_session(self._state, self._moment, waits_since=self._moment)
        return ghost.shift(self._state) is None


def _meant(view: View) -> tuple[float, str]:
    """Return the cursor's moment, or that of an action near it, and a description."""
    near = view.playhead.width * _NEAR
    actions = []
    action = next_action(view.state, view.t - near)
    while action is not None and action.t <= view.t + near:
        actions.append(action)
        action = next_action(view.state, action.t)
    if not actions:
        return view.t, ""
    meant = min(actions, key=lambda each: abs(each.t - view.t))
    return meant.t, f": {describe(meant.command)}"


def _item(found: Found) -> Item:
    if found.problem:
        return Item(str(found.path), found.name, missing=found.problem)
    length = "" if found.seconds is None else f"{found.seconds:.0f} s"
    words = [f"{found.began:%Y-%m-%d %H:%M}", f"{length:>6}", f"{format_size(found.size):>8}"]
    summary = "  ".join([*words, ", ".join(found.algorithms)])
    return Item(str(found.path), found.name, summary)


def _session(name: str, path: Path) -> Item:
    """Return the menu's line for an archived session, labelled ``name``, with its scenario."""
    item = _item(glance(path, path.parent))
    label = archive.label_of(path)
    return replace(item, label=name, summary=f"{item.summary}  {label}" if item.summary else "")


def _read(text: str) -> Path:
    try:
        path = archive.named(text).expanduser()
        check_recording(path)
    except (RecordingError, UsageError) as error:
        raise ValueError(str(error)) from None
    return path
