"""Marks on the time axis: the lab names them and refuses impossible ones."""

from __future__ import annotations

from itertools import count
from typing import TypeAlias

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.commands import ChangeMark, Mark, RemoveMark

OfMarks: TypeAlias = Mark | ChangeMark | RemoveMark


class Marks:
    """The names of all marks of a lab that have not been removed."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def apply(self, command: OfMarks, now: float) -> OfMarks:
        """Carry a command out at lab time ``now``; return it with the mark's name filled in.

        Raises ``CommandError`` for a moment in the future, a name in use, or an unknown name.
        """
        if isinstance(command, Mark | ChangeMark) and command.at is not None and command.at > now:
            raise CommandError(
                f"a mark can't be at {command.at:g} s, in the future: it is {now:g} s now"
            )
        if isinstance(command, Mark):
            name = command.name or next(n for i in count(1) if (n := f"m{i}") not in self._names)
            if name in self._names:
                raise CommandError(f"a mark named {name!r} already exists: choose another name")
            self._names.add(name)
            return replace(command, name=name)
        if command.name not in self._names:
            raise CommandError(f"there is no mark {command.name!r}")
        if isinstance(command, RemoveMark):
            self._names.remove(command.name)
        return command
