"""The shipped themes for a page: the colours of plots, by theme."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from ccplay.assets import assets


@cache
def looks() -> dict[str, dict[str, Any]]:
    """Return each theme by name: its title, whether it is dark, and its colours."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(assets("themes").glob("*.toml")):
        theme = tomllib.loads(path.read_text(encoding="utf-8"))
        screen = {name: theme["screen"][name] for name in _SCREEN}
        found[path.stem] = {
            "title": theme["title"],
            "dark": theme["dark"],
            "flows": theme["plot"].pop("flows"),
            "inks": {**theme["plot"], **screen},
        }
        found[path.stem]["inks"].pop("ca_states", None)
    return found


_SCREEN = ("background", "surface", "panel", "foreground", "accent", "error")
