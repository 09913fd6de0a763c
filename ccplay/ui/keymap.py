"""The keys in use: those of ``bindings``, as changed by the user's preferences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textual.app import App
from textual.binding import Binding, BindingType
from textual.keys import Keys, _character_to_key, format_key

from ccplay.model.quoting import did_you_mean, quote
from ccplay.ui import bindings

_MODIFIERS = re.compile(r"((?:ctrl|alt|shift|super|meta|hyper)\+)*")
_NAMED = frozenset(each.value for each in Keys if re.fullmatch("[a-z][a-z0-9_]+", each.value)) - {
    "any",
    "ignore",
}

_SIGNS = {_character_to_key(each) for each in map(chr, range(33, 127))}
_PUNCTUATION = {_character_to_key(each): each for each in "!#$%&'()*+-./:;<=>?@[]^_`{|}~"}
"""Punctuation that needs no escape in TOML or in a list of keys, by Textual's name for it."""


class Keymap:
    """The keys of the app and of its main screen."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """Use the user's ``own`` keys, already checked, by action id; commas separate several."""
        self.own: dict[str, str] = dict(own or {})
        """Keys that differ from ccplay's defaults, by action id."""
        self._keys = {
            name: tuple(normalized(self.own.get(name, each.key)))
            for name, each in REMAPPABLE.items()
        }

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of the action with the id ``name``, as Textual names them."""
        return self._keys[name]

    def shown(self, name: str) -> str:
        """Return the first key of the action with this id as displayed: ``f``, ``←``, ``^q``."""
        return shown(self._keys[name][0])


class Remapped(NamedTuple):
    """The valid part of a table of keys, and the mistakes in the rest."""

    keys: dict[str, str]
    mistakes: dict[str, str]
    """Mistakes in the table of keys, by action id."""


def remapped(wanted: Mapping[str, object]) -> Remapped:
    """Check keys by action id; omit unknown ids and impossible keys."""
    kept: dict[str, str] = {}
    mistakes: dict[str, str] = {}
    for name, value in wanted.items():
        try:
            kept[name] = _checked(name, value)
        except ValueError as error:
            mistakes[name] = str(error)
    # If two actions had the same key, one of them would silently lose it.
    while taken := _taken(Keymap(kept)):
        name, reason = taken
        mistakes[name] = reason
        del kept[name]
    return Remapped(kept, mistakes)


def _taken(keymap: Keymap) -> tuple[str, str] | None:
    """Return an action id with a key that is already in use, and a message, or None."""
    for name in keymap.own:
        for key in keymap.keys(name):
            if key == App.COMMAND_PALETTE_BINDING:
                return name, f"{quote(shown(key))} opens the palette"
            for other in REMAPPABLE:
                if other != name and key in keymap.keys(other) and not _share(name, other, key):
                    reason = f"{quote(shown(key))} is the key of {other}: change one of them"
                    return name, reason
    return None


def _share(one: str, other: str, key: str) -> bool:
    """Return whether ``key`` is a default key of both actions: only one is active at a time."""
    return all(key in normalized(REMAPPABLE[name].key) for name in (one, other))


def normalized(keys: str) -> list[str]:
    """Return comma-separated keys under Textual's names; raise ``ValueError`` for unknown ones."""
    if keys.strip() == ",":
        return ["comma"]
    return [_key(each.strip()) for each in keys.split(",")]


def shown(key: str) -> str:
    """Return a key, given by Textual's name, as displayed to the user."""
    *modifiers, last = key.split("+")
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        return "+".join([*modifiers, f"^{format_key(last)}"])
    return "+".join([*modifiers, format_key(last)])


def as_in_file(key: str) -> str:
    """Return a key as written in a preferences file: ``[`` for ``left_square_bracket``."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, _PUNCTUATION.get(last, last)])


def _checked(name: str, value: object) -> str:
    if name not in REMAPPABLE:
        raise ValueError(f"there is no such action{did_you_mean(name, REMAPPABLE)}")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'keys are text such as "f" or "ctrl+f,F5", not {quote(value)}')
    return ",".join(normalized(value))


def _key(text: str) -> str:
    modifiers = _MODIFIERS.match(text)
    start = modifiers.end() if modifiers else 0
    name = text[start:]
    if len(name) == 1 and name.isprintable():
        return text[:start] + _character_to_key(name)
    name = name.lower()
    if name in _NAMED or name in _SIGNS:
        return text[:start] + name
    raise ValueError(f'{quote(text)} is no key: "f", "F", "?", "f5", "space", "ctrl+f", "shift+up"')


def _remappable(tables: Iterable[Iterable[BindingType]]) -> dict[str, Binding]:
    found = [each for table in tables for each in table if isinstance(each, Binding)]
    return {each.id: each for each in found if each.id}


REMAPPABLE = _remappable([bindings.MAIN, bindings.APP])
"""Bindings whose keys the user can change, by action id."""

DEFAULT = Keymap()
"""Keymap of ccplay's default keys."""
