"""Which keys do what: those of ``bindings``, and what a person has made of them."""

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
"""Textual's names of punctuation, without what TOML or a list of keys would need to escape."""


class Keymap:
    """The keys of the app and of its main screen."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """``own`` are keys by the id of what they do, several with commas between, as checked."""
        self.own: dict[str, str] = dict(own or {})
        """What differs from ccplay's own keys."""
        self._keys = {
            name: tuple(normalized(self.own.get(name, each.key)))
            for name, each in REMAPPABLE.items()
        }

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of what has the id ``name``, as Textual names them."""
        return self._keys[name]

    def shown(self, name: str) -> str:
        """Return the first key of what has this id, as a person reads it: ``f``, ``←``, ``^q``."""
        return shown(self._keys[name][0])


class Remapped(NamedTuple):
    """What is left of a table of keys, and what is wrong with the rest."""

    keys: dict[str, str]
    mistakes: dict[str, str]
    """What is wrong with the rest, by id of the action."""


def remapped(wanted: Mapping[str, object]) -> Remapped:
    """Check keys by the ids of what they do; an id or a key that can't be is left out."""
    kept: dict[str, str] = {}
    mistakes: dict[str, str] = {}
    for name, value in wanted.items():
        try:
            kept[name] = _checked(name, value)
        except ValueError as error:
            mistakes[name] = str(error)
    # One key for two actions would silently take one of them away.
    while taken := _taken(Keymap(kept)):
        name, said = taken
        mistakes[name] = said
        del kept[name]
    return Remapped(kept, mistakes)


def _taken(keymap: Keymap) -> tuple[str, str] | None:
    """Return an id whose own keys are also those of another, and what is wrong with that."""
    for name in keymap.own:
        for key in keymap.keys(name):
            if key == App.COMMAND_PALETTE_BINDING:
                return name, f"{quote(shown(key))} opens the palette"
            for other in REMAPPABLE:
                if other != name and key in keymap.keys(other) and not _share(name, other, key):
                    said = f"{quote(shown(key))} is the key of {other}: give that another one"
                    return name, said
    return None


def _share(one: str, other: str, key: str) -> bool:
    """Whether two ids have a key in common from the start: only one of them acts at a time."""
    return all(key in normalized(REMAPPABLE[name].key) for name in (one, other))


def normalized(keys: str) -> list[str]:
    """Return keys with commas between as Textual names them; raise ``ValueError`` for others."""
    if keys.strip() == ",":
        return ["comma"]
    return [_key(each.strip()) for each in keys.split(",")]


def shown(key: str) -> str:
    """Return a key that Textual names so as a person reads it."""
    *modifiers, last = key.split("+")
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        return "+".join([*modifiers, f"^{format_key(last)}"])
    return "+".join([*modifiers, format_key(last)])


def spelled(key: str) -> str:
    """Return a key as a file of preferences has it: ``[`` for ``left_square_bracket``."""
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
"""What can have other keys, by its id."""

DEFAULT = Keymap()
"""Keys as ccplay has them."""
