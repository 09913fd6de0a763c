"""Which keys of a screen are worth telling people of, and to what they belong."""

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
"""Words in a binding's action by which it is put into a group; the last takes the rest."""

_OF_EVERY_APP = ("focus_next", "focus_previous", "copy_text", "help_quit")
"""Actions that Textual binds on its own and that nobody asks for."""


def group_of(action: str) -> str:
    """Return the group of an action: that of ``open_flow`` is ``traffic``."""
    for group, words in GROUPS.items():
        if any(word in action.lower() for word in words):
            return group
    return "screen"


def bindings_of(screen: Screen[Any]) -> list[ActiveBinding]:
    """Return what the keys of ``screen`` do, without what every Textual app has."""
    return [
        each
        for each in screen.active_bindings.values()
        if each.binding.description
        and not each.binding.system
        and each.binding.action.rpartition(".")[2] not in _OF_EVERY_APP
    ]


def wording(active: ActiveBinding) -> str:
    """Return what a key does, as fully as its binding says."""
    return active.binding.tooltip or active.binding.description
