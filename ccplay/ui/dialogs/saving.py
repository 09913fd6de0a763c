"""The dialog that saves the session as a scenario file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import CcplayError
from ccplay.files import writing
from ccplay.scenario.writing import write
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Question
from ccplay.ui.dialogs.fields import Field, LabelledRow, Steps
from ccplay.ui.playhead import Playhead
from ccplay.units import format_clock

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
