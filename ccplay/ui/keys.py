"""The keys of a screen, grouped for display."""

from __future__ import annotations

from typing import Any

from textual.binding import ActiveBinding
from textual.screen import Screen

from ccplay.model.traffic import TRAFFIC

GROUPS: dict[str, tuple[str, ...]] = {
    "traffic": (*(kind.field for kind in TRAFFIC), "stop", "trace"),
    "network": ("congestion", "queue", "link", "way_back", "capture", "undo", "redo"),
    "time": ("freeze", "scrub", "leap", "start", "end", "zoom", "speed", "mark", "ghost"),
    "screen": (),
}
"""Words in a binding's action that assign it to a group; the last group takes the rest."""

_OF_EVERY_APP = ("focus_next", "focus_previous", "copy_text", "help_quit")
"""Actions that Textual binds in every app; help and palette leave them out."""


def group_of(action: str) -> str:
    """Return the group of an action: that of ``open_flow`` is ``traffic``."""
    for group, words in GROUPS.items():
        if any(word in action.lower() for word in words):
            return group
    return "screen"


def bindings_of(screen: Screen[Any]) -> list[ActiveBinding]:
    """Return the key bindings of ``screen`` except those that Textual adds to every app."""
    return [
        each
        for each in screen.active_bindings.values()
        if each.binding.description
        and not each.binding.system
        and each.binding.action.rpartition(".")[2] not in _OF_EVERY_APP
    ]


def wording(active: ActiveBinding) -> str:
    """Return the description of a key's effect: its tooltip, else the shorter description."""
    return active.binding.tooltip or active.binding.description
