"""Themes, each a TOML file, from ccplay and from the user; the appearance that screens share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec
from textual.theme import Theme

from ccplay.assets import assets
from ccplay.errors import UsageError
from ccplay.files.caller import as_caller, config_folder
from ccplay.files.reading import open_regular
from ccplay.model.quantities import did_you_mean
from ccplay.scenario import document
from ccplay.traffic import TRAFFIC
from ccplay.ui.cells import Glyphs
from ccplay.ui.keys import Keymap

# --- themes, each a TOML file, from ccplay and from the user --------------------------------------

DEFAULT = "dark"
"""Default theme."""

SCREEN = (
    "background",
    "surface",
    "panel",
    "foreground",
    "primary",
    "secondary",
    "accent",
    "success",
    "warning",
    "error",
)
"""Names of the colours in ``[screen]``, used by Textual's widgets."""

PLOT = (
    "axis",
    "grid",
    "text",
    "muted",
    "queue",
    "queue_limit",
    "drop",
    "mark",
    "base_rtt",
    "ssthresh",
    "cursor",
    "good",
    "warn",
    "bad",
    *sorted({kind.ink for kind in TRAFFIC} - {"queue"}),
)
"""Names of the colours in ``[plot]``, used for everything that ccplay draws itself."""

OPTIONAL = {"ghost": "muted"}
"""Colours of ``[plot]`` that a theme may omit, each with the colour that replaces it.

The colours of an earlier run are mixtures of the present run's colours and ``ghost``."""

_FADED = 0.6
"""Share of ``ghost`` in the colours of an earlier run."""

FLOWS = 8
"""Smallest number of flow colours in a theme."""

CA_STATES = 5
"""Number of congestion avoidance states: Open, Disorder, CWR, Recovery and Loss."""

StrokeName: TypeAlias = Literal["normal", "bold"]
"""Thickness of the lines in plots."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


class Look(msgspec.Struct, frozen=True):
    """A loaded theme. All colours are ``#rrggbb``."""

    name: str
    title: str
    about: str
    """Purpose of the theme in one line."""
    textual_theme: Theme
    flows: tuple[str, ...]
    """Colours of flows, at least ``FLOWS``; they repeat if there are more flows."""
    colours: Mapping[str, str]
    """Colours by the names in ``PLOT`` and ``OPTIONAL``."""
    ca_states: tuple[str, ...]
    """Colours of the congestion avoidance states Open, Disorder, CWR, Recovery and Loss."""
    stroke: StrokeName = "normal"

    def faded(self, colour: str) -> str:
        """Return the colour that replaces ``colour`` in an earlier run."""
        return mixed(colour, self.colours["ghost"], _FADED)

    def toned(self, colour: str, share: float) -> str:
        """Return a colour ``share`` of the way to the background."""
        return mixed(colour, str(self.textual_theme.background), share)


def load_looks(
    complain: Callable[[str], None] | None = None, folders: Iterable[Path] | None = None
) -> dict[str, Look]:
    """Return the themes by name, the default first; the user's files override ccplay's.

    An invalid file is reported to ``complain`` (standard error if None) and ignored.
    """
    complain = complain or (lambda message: print(message, file=sys.stderr))
    looks: dict[str, Look] = {}
    if folders is not None:
        _load(looks, folders, complain)
    else:
        _load(looks, [assets("themes")], complain)
        own = config_folder() / "themes"
        try:
            with as_caller():
                _load(looks, [own], complain)
        except OSError as error:
            complain(f"themes in {own} are ignored: {error.strerror}")
    return dict(sorted(looks.items(), key=lambda item: item[0] != DEFAULT))


def _load(looks: dict[str, Look], folders: Iterable[Path], complain: Callable[[str], None]) -> None:
    for path in (path for folder in folders for path in sorted(folder.glob("*.toml"))):
        try:
            looks[path.stem] = read_look(path)
        except UsageError as error:
            complain(str(error))


def read_look(path: Path) -> Look:
    """Read one theme. Raises ``UsageError`` with the file, the place and a suggestion."""
    try:
        with open_regular(path) as file:
            content = document.loads(file.read(document.LARGEST_FILE).decode())
        return _look(path.stem, content)
    except (OSError, ValueError) as error:
        raise UsageError(f"theme {path} is ignored: {error}") from None


def _look(name: str, content: dict[str, Any]) -> Look:
    _check_names("", content, ("title", "about", "dark", "stroke", "screen", "plot"))
    dark = content.get("dark")
    if not isinstance(dark, bool):
        raise ValueError(f"dark is true or false, not {dark!r}")  # noqa: TRY004
    stroke = content.get("stroke", "normal")
    if stroke not in ("normal", "bold"):
        raise ValueError(f"stroke is normal or bold, not {stroke!r}")
    screen, plot = (_table(content, each) for each in ("screen", "plot"))
    _check_names("[screen] ", screen, SCREEN)
    _check_names("[plot] ", plot, (*PLOT, *OPTIONAL, "flows", "ca_states"))
    plot = {name: plot[stand_in] for name, stand_in in OPTIONAL.items() if stand_in in plot} | plot
    return Look(
        name=name,
        title=str(content.get("title", name)),
        about=str(content.get("about", "")),
        textual_theme=_theme(
            name,
            dark,
            {each: _colour("screen", screen, each) for each in SCREEN},
            muted=_colour("plot", plot, "muted"),
        ),
        flows=_colours(plot, "flows", FLOWS),
        colours={each: _colour("plot", plot, each) for each in (*PLOT, *OPTIONAL)},
        ca_states=_colours(plot, "ca_states", CA_STATES)[:CA_STATES],
        stroke=cast("StrokeName", stroke),
    )


def _theme(name: str, dark: bool, colours: dict[str, Any], muted: str) -> Theme:
    # Without ``variables`` Textual would derive pale greys with a contrast below 4.5.
    return Theme(
        name=name,
        dark=dark,
        **colours,
        variables={
            "block-cursor-background": colours["primary"],
            "block-cursor-foreground": colours["background"],
            "block-cursor-text-style": "bold",
            "border": colours["primary"],
            "border-blurred": colours["panel"],
            "footer-background": colours["panel"],
            "footer-foreground": colours["foreground"],
            "footer-description-foreground": colours["foreground"],
            "footer-key-foreground": colours["primary"],
            "input-cursor-background": colours["foreground"],
            "input-cursor-foreground": colours["background"],
            "text-muted": muted,
            "text-disabled": muted,
            "scrollbar": colours["primary"],
            "scrollbar-background": colours["panel"],
        },
    )


def _table(content: dict[str, Any], name: str) -> dict[str, Any]:
    table = content.get(name)
    if not isinstance(table, dict):
        raise ValueError(f"the table [{name}] is missing")  # noqa: TRY004
    return table


def _check_names(place: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{place}unknown name {name!r}{did_you_mean(name, known)}")


def _colour(table: str, colours: dict[str, Any], name: str) -> str:
    if name not in colours:
        raise ValueError(f"[{table}] lacks {name!r}")
    return _checked(f"[{table}] {name}", colours[name])


def _colours(plot: dict[str, Any], name: str, at_least: int) -> tuple[str, ...]:
    colours = plot.get(name)
    if not isinstance(colours, list) or len(colours) < at_least:
        raise ValueError(f"[plot] {name} is a list of at least {at_least} colours")
    return tuple(_checked(f"[plot] {name}, entry {n}", each) for n, each in enumerate(colours, 1))


@lru_cache(maxsize=256)
def mixed(one: str, other: str, share: float) -> str:
    """Return the colour ``share`` of the way from ``one`` to ``other``."""
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _checked(place: str, colour: object) -> str:
    if not isinstance(colour, str) or not _COLOUR.fullmatch(colour):
        raise ValueError(f"{place}: {colour!r} is not a colour such as '#5fb3ff'")
    return colour


# --- the appearance that screens share: theme, characters, strokes and keys -----------------------


class Appearance:
    """How the screens of a session are drawn: theme, characters, strokes and keys."""

    def __init__(
        self,
        looks: Mapping[str, Look],
        look: Look,
        glyphs: Glyphs,
        keymap: Keymap,
        *,
        own_stroke: StrokeName | None = None,
        no_color: bool = False,
    ) -> None:
        """Begin with a theme of ``looks``; the user may change all but the keys."""
        self.looks = looks
        """All themes by name."""
        self.look = look
        """Theme in use."""
        self.glyphs = glyphs
        """Set of characters in use."""
        self.keymap = keymap
        """Keys of each action, as the user has set them."""
        self.own_stroke = own_stroke
        """Thickness of the lines in plots that the user chose; None if the theme decides."""
        self.no_color = no_color
        """Whether the user asked for no colours (https://no-color.org)."""

    @property
    def stroke(self) -> StrokeName:
        """Thickness of the lines in plots: the user's choice, else the theme's.

        Without colours lines are bold, because the gaps in thin dashed lines are hard to see.
        """
        return self.own_stroke or ("bold" if self.no_color else self.look.stroke)
