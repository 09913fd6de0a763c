"""A session's marks: set at the cursor, changed, moved and removed by keys and palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from textual.app import App

from ccplay.model.commands import AnyCommand, ChangeMark, RemoveMark
from ccplay.session.session import Session
from ccplay.state.lab_state import Entry
from ccplay.ui.playhead import Playhead
from ccplay.ui.themes import appearance
from ccplay.units import format_clock


class MarkedScreen(Protocol):
    """The part of a screen that marks need."""

    session: Session
    playhead: Playhead

    @property
    def app(self) -> App[Any]:
        """The app that opens dialogs."""

    def ask(self, command: AnyCommand) -> None:
        """Send a command to the lab."""

    def redraw(self) -> None:
        """Draw at once."""


class Marks:
    """Sets, changes, moves and removes a session's marks for the screen's keys and palette."""

    def __init__(self, screen: MarkedScreen) -> None:
        self.carried: Entry | None = None
        """The mark that moves with the cursor until it is put down."""
        self._screen = screen

    @property
    def notice(self) -> str:
        """Hint shown while a mark is being moved; otherwise empty."""
        if self.carried is None:
            return ""
        text = f"moving the mark of {format_clock(self.carried.t)}"
        key = appearance(self._screen.app).keymap.shown
        moves, puts = f"{key('back')}{key('forward')}", f"{key('mark')} or {key('put-mark')}"
        text += f": {moves}, then {puts} to put it here, {key('leave-mark')} to cancel"
        return f"{text}: {self.carried.text}"

    def press(self, reach_s: float) -> None:
        """Put down the mark being moved; else ask about a mark near the cursor, or a new one.

        While the playhead is stopped, a mark within ``reach_s`` seconds of it is near.
        """
        from ccplay.ui.dialogs import MarkDialog  # noqa: PLC0415 - after first paint

        screen = self._screen
        mark = None if screen.playhead.running else self._at_cursor(reach_s)
        if self.carried is not None:
            self.put_down()
        elif mark is not None:
            self.ask_about(mark)
        else:
            at = None if screen.playhead.running else screen.playhead.t
            screen.app.push_screen(MarkDialog(screen.session.state, None, at), self._asked)

    def ask_about(self, mark: Entry) -> None:
        """Ask what to do with a mark."""
        from ccplay.ui.dialogs.session import ChangeMarkDialog  # noqa: PLC0415 - after first paint

        self._screen.app.push_screen(ChangeMarkDialog(mark), self._asked)

    def carry(self, mark: Entry) -> None:
        """Make a mark follow the cursor, which first jumps to the mark."""
        self._screen.playhead.jump(mark.t, self._screen.session.state.now)
        self.carried = mark
        self._screen.redraw()

    def put_down(self) -> None:
        """Put the mark being moved at the cursor."""
        if self.carried is not None:
            mark, self.carried = self.carried, None
            at = self._screen.playhead.t
            self._screen.ask(ChangeMark(name=mark.name, at=at, text=mark.text))
            self._screen.redraw()

    def leave(self) -> None:
        """Return the mark being moved to its old place."""
        self.carried = None
        self._screen.redraw()

    def offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entries for every mark: text, meaning, and function."""
        for mark in reversed(self._own()):
            at = f"at {format_clock(mark.t)}"
            yield f"change mark {mark.text}", at, partial(self.ask_about, mark)
            yield f"move mark {mark.text}", f"{at}, with ←→", partial(self.carry, mark)
            remove = RemoveMark(name=mark.name)
            yield f"remove mark {mark.text}", at, partial(self._screen.ask, remove)

    def _own(self) -> list[Entry]:
        log = self._screen.session.state.log
        return [each for each in log if each.kind == "mark" and each.name]

    def _at_cursor(self, reach_s: float) -> Entry | None:
        t = self._screen.playhead.t
        near = [each for each in self._own() if abs(each.t - t) <= reach_s]
        return min(near, key=lambda each: abs(each.t - t), default=None)

    def _asked(self, answer: AnyCommand | Entry | None) -> None:
        if isinstance(answer, Entry):
            self.carry(answer)
        elif answer is not None:
            self._screen.ask(answer)
        self._screen.redraw()
