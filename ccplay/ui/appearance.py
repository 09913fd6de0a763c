"""The appearance that screens share: theme and characters, and how to switch them."""

from __future__ import annotations

from typing import Any, Protocol, cast

from textual.app import App

from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.themes import Look


class Appearance(Protocol):
    """The theme and the characters in which everything is drawn."""

    looks: dict[str, Look]
    """All themes by name."""
    look: Look
    """The theme in use."""
    glyphs: Glyphs
    """The characters in use."""

    def use_look(self, name: str) -> None:
        """Switch to another theme."""

    def use_glyphs(self, glyphs: Glyphs) -> None:
        """Switch to another set of characters."""


def appearance(app: App[Any]) -> Appearance:
    """Return the appearance of ccplay's app."""
    return cast("Appearance", app)
