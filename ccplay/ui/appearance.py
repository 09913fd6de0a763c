"""The appearance that screens share: theme, characters, strokes and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from textual.app import App

from ccplay.state.lab_state import Entry
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.keymap import Keymap
from ccplay.ui.themes import Look, StrokeName


class Appearance(Protocol):
    """The part of ccplay's app that screens draw with."""

    looks: dict[str, Look]
    """All themes by name."""
    look: Look
    """Theme in use."""
    glyphs: Glyphs
    """Set of characters in use."""
    keymap: Keymap
    """Keys of each action, as the user has set them."""
    no_color: bool
    """Whether the user asked for no colours (https://no-color.org)."""
    notices: Sequence[Entry]
    """Texts of toasts, oldest first."""

    @property
    def stroke(self) -> StrokeName:
        """Thickness of the lines in plots."""

    def use_look(self, name: str) -> None:
        """Switch to another theme."""

    def use_stroke(self, stroke: StrokeName) -> None:
        """Draw plots with lines of another thickness."""

    def use_glyphs(self, glyphs: Glyphs) -> None:
        """Switch to another set of characters."""


def appearance(app: App[Any]) -> Appearance:
    """Return the appearance of ccplay's app."""
    return cast("Appearance", app)
