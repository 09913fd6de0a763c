"""The dialog shown before an unrecorded session is left."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from textual.widget import Widget
from textual.widgets import Static

from ccplay.session.unsaved import Unsaved
from ccplay.ui.dialogs.base import Question, available
from ccplay.ui.dialogs.fields import Field
from ccplay.ui.dialogs.menu import Item, Menu
from ccplay.ui.dialogs.saving import path_of, proposal

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
