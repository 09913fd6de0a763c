"""The disciplines of the user's own that a lab's command line names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ccplay.files.watching import SavedFiles
from ccplay.lab.custom.declaring import declared
from ccplay.lab.custom.files import custom_disciplines, text
from ccplay.model import disciplines


class Library:
    """Files by the name of their discipline; one in a process."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self._saved = SavedFiles()

    def add(self, paths: Iterable[Path]) -> None:
        """Add files, and describe their disciplines to the model.

        Raises ``CcplayError`` for impossible names and for mistakes in them.
        """
        for name, path in custom_disciplines(paths).items():
            self.files[name] = path
            self.source(name)

    def source(self, name: str) -> str:
        """Return the source of a discipline as it is now; empty for one of ccplay's.

        Raises ``CcplayError`` with the reason if it can't be read or is no Python.
        """
        if (path := self.files.get(name)) is None:
            return ""
        self._saved.note(name, path)
        source = text(path)
        disciplines.custom[name] = declared(name, source)
        return source

    def changed(self) -> list[str]:
        """Return the names of those whose files have been saved since their source was read."""
        return self._saved.changed(self.files.items())


library = Library()
"""The user's disciplines in this process."""
