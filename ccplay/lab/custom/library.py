"""The user's own disciplines that a lab's command line names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ccplay.files.watching import SavedFiles
from ccplay.lab.custom.declaring import declared
from ccplay.lab.custom.files import custom_disciplines, text
from ccplay.model import disciplines


class Library:
    """The files of the user's disciplines, by name; a process has one library."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self._saved = SavedFiles()

    def add(self, paths: Iterable[Path]) -> None:
        """Add files, and their disciplines to ``model.disciplines``.

        Raises ``CcplayError`` for invalid names and for mistakes in the files.
        """
        for name, path in custom_disciplines(paths).items():
            self.files[name] = path
            self.source(name)

    def source(self, name: str) -> str:
        """Read and return the current source of a discipline; empty for one of ccplay's.

        Raises ``CcplayError`` with the reason if it can't be read or is not Python.
        """
        if (path := self.files.get(name)) is None:
            return ""
        self._saved.note(name, path)
        source = text(path)
        disciplines.custom[name] = declared(name, source)
        return source

    def changed(self) -> list[str]:
        """Return the names of disciplines whose files were saved after their source was read."""
        return self._saved.changed(self.files.items())


library = Library()
"""The user's disciplines in this process."""
