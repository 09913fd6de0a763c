"""The user's preferences: a TOML file in their configuration folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from ccplay.errors import CcplayError
from ccplay.files.caller import as_caller, config_folder
from ccplay.files.reading import open_regular
from ccplay.files.writing import is_safe, make_directory, write
from ccplay.model.quantities import did_you_mean, quote
from ccplay.scenario import document
from ccplay.scenario.document import locate, nearest
from ccplay.ui import themes
from ccplay.ui.keys import REMAPPABLE, Keymap, as_in_file, remapped
from ccplay.ui.plot_row import DEFAULT as PLOTS_SHOWN
from ccplay.ui.plot_row import PANES

NONE = "none"
"""Value of ``large`` that shows all plots side by side."""

GlyphsName: TypeAlias = Literal["unicode", "ascii"]

_LARGEST = 1 << 16
"""Largest number of bytes read from a preferences file."""


class Preferences(msgspec.Struct, frozen=True):
    """The user's preferences; those that the file leaves out have their defaults."""

    theme: str = themes.DEFAULT
    glyphs: GlyphsName = "unicode"
    stroke: themes.StrokeName | None = None
    """Thickness of lines; None leaves it to the theme."""
    plots: tuple[str, ...] = ()
    """Plots from left to right, as many as have room; empty lets the width decide."""
    large: str = NONE
    """Name of the plot that fills the whole band, or ``NONE``."""
    keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Keys that differ from ccplay's defaults, by action id."""
    mistakes: tuple[str, ...] = ()
    """Descriptions of mistakes in the file; settings without a mistake apply."""


def path() -> Path:
    """Return the path of the preferences file, which may not exist."""
    return config_folder() / "config.toml"


def load(looks: Collection[str]) -> Preferences:
    """Read the user's preferences; ``looks`` are the available themes."""
    where = path()
    try:
        with as_caller():
            text = _read(where)
    except FileNotFoundError:
        return Preferences()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        return Preferences(mistakes=(f"{where}: can't be read: {reason}; it is ignored",))
    return parse(text, str(where), looks)


def parse(text: str, file: str, looks: Collection[str]) -> Preferences:
    """Read preferences from a TOML text; ``file`` names it in mistakes."""
    try:
        content = document.loads(text)
    except ValueError as error:
        return Preferences(mistakes=(f"{file}: {error}; it is ignored",))
    lines = locate(text)
    found: dict[str, Any] = {}
    mistakes: list[tuple[int, str]] = []

    def wrong(place: tuple[str, ...], reason: str) -> None:
        line = nearest(lines, place)
        mistakes.append((line, f"{file}, line {line}: {'.'.join(place)}: {reason}"))

    for name, value in content.items():
        try:
            if name == "keys":
                found["keys"], others = remapped(value)
                for key, reason in others.items():
                    wrong((name, key), reason)
            elif name in _SETTINGS:
                found[name] = _SETTINGS[name](value, looks)
            else:
                wrong((name,), f"unknown{did_you_mean(name, [*_SETTINGS, 'keys'])}")
        except ValueError as error:
            wrong((name,), str(error))
    return Preferences(**found, mistakes=tuple(reason for _, reason in sorted(mistakes)))


def keep(changed: Mapping[str, object]) -> None:
    """Write the user's choices into their preferences file; its other lines and comments stay.

    Raises ``CcplayError`` if the file can't be written.
    """
    if not changed:
        return
    # Imported late: only users with preferences need it.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    where = path()
    try:
        with as_caller():
            try:
                document = tomlkit.parse(_read(where))
            except FileNotFoundError:
                document = tomlkit.document()
            for name, value in changed.items():
                document[name] = list(value) if isinstance(value, tuple) else value
            make_directory(where.parent)
            write(where.resolve(), tomlkit.dumps(document), replace=True)
    except (OSError, UnicodeDecodeError, TOMLKitError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CcplayError(f"can't keep your choices in {where}: {reason}") from None


def _read(where: Path) -> str:
    with open_regular(where) as file:
        if not is_safe(os.fstat(file.fileno())):
            raise PermissionError(1, "other users can write it: chmod go-w, or chown")
        return file.read(_LARGEST).decode()


def _choice(value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{quote(value)} is none of {', '.join(allowed)}")
    return value


def _plots(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError('plots are a list such as ["cwnd", "rtt"]')
    return tuple(dict.fromkeys(_choice(each, PANES) for each in value))


_SETTINGS: dict[str, Callable[[object, Collection[str]], object]] = {
    "theme": _choice,
    "glyphs": lambda value, _: _choice(value, ("unicode", "ascii")),
    "stroke": lambda value, _: _choice(value, ("normal", "bold")),
    "plots": lambda value, _: _plots(value),
    "large": lambda value, _: _choice(value, (NONE, *PANES)),
}
"""Function that reads a setting, given the available themes, by the setting's name in the file."""


def written(preferences: Preferences) -> str:
    """Return preferences as TOML, with every key."""
    keymap, plots = Keymap(preferences.keys), preferences.plots or PLOTS_SHOWN
    lines = [
        f"theme = {quote(preferences.theme)}",
        f"glyphs = {quote(preferences.glyphs)}",
        f"stroke = {quote(preferences.stroke)}" if preferences.stroke else '# stroke = "bold"',
        f"{'' if preferences.plots else '# '}plots = [{', '.join(map(quote, plots))}]",
        f"large = {quote(preferences.large)}",
        "",
        "[keys]",
    ]
    width = max(map(len, REMAPPABLE))
    for name, binding in REMAPPABLE.items():
        about = binding.tooltip or binding.description
        keys = quote(",".join(map(as_in_file, keymap.keys(name))))
        lines.append(f"{name:<{width}} = {keys:<15}{f' # {about}' if about else ''}".rstrip())
    return "\n".join(lines) + "\n"
