"""Settings of the command line: ``--set links.bottleneck.rate="5 Mbit/s"``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ccplay.model.quoting import MisfitError, quote
from ccplay.scenario import bounded
from ccplay.scenario.file.mistakes import Mistakes, Place, SetPath
from ccplay.scenario.file.older_names import renewed, renewed_path
from ccplay.scenario.file.paths import KeyPath, split_setting
from ccplay.scenario.file.tree import Node, Reader, grow
from ccplay.visible import control_in

MOST_SETTINGS = 1000
_OPENS = ("[", "{", '"', "'")


class Setting(msgspec.Struct, frozen=True):
    """A value with its path, and its name in messages."""

    path: KeyPath
    value: Node

    @property
    def place(self) -> Place:
        """Place of the value, which is not in the file."""
        return self.value.place


def read_settings(settings: Sequence[str], mistakes: Mistakes) -> list[Setting]:
    """Read the arguments of ``--set``, each ``PATH=VALUE``."""
    read: list[Setting] = []
    if len(settings) > MOST_SETTINGS:
        mistakes.add((SetPath("PATH=VALUE"),), f"is given more than {MOST_SETTINGS} times")
        return read
    for text in settings:
        try:
            read.append(_setting(text, mistakes))
        except MisfitError as error:
            mistakes.add((SetPath(text.partition("=")[0].strip()),), str(error))
    return read


def lay_over(below: Node, settings: Iterable[Setting], reader: Reader) -> Node:
    """Return a case with the settings merged into it; later ones override earlier ones."""
    for setting in settings:
        below = reader.graft(below, setting.path, setting.value, setting.place)
    return below


def _setting(text: str, mistakes: Mistakes) -> Setting:
    # Arguments need not be text: Python keeps undecodable bytes as lone surrogates.
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise MisfitError(f"{quote(text)} is not UTF-8 text")
    written, path, value = split_setting(text)
    if path[0] == "case":
        raise MisfitError("a setting applies to every case; --case NAME selects some")
    path, names = renewed_path(path)
    found = grow(_value(value), (SetPath(written),))
    return Setting(path, renewed(found, mistakes, names=names))


def _value(text: str) -> Any:
    """Read a value as TOML, else as plain text, which saves a second pair of quotes."""
    if character := control_in(text):
        raise MisfitError(f"{quote(text)} {bounded.ControlError(character)}")
    try:
        table = bounded.loads(f"value = {text}")
    except (bounded.TooMuchError, bounded.ControlError) as error:
        raise MisfitError(str(error)) from None
    except ValueError as error:
        if not text.startswith(_OPENS):
            return text
        raise MisfitError(f"{quote(text)} is not TOML: {error}") from None
    # A line break would let more than one value in.
    return table["value"] if len(table) == 1 and "\n" not in text else text
