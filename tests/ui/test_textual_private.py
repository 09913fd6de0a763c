"""Textual's private parts are used in one module, and the installed Textual still has them."""

import ast
import inspect
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.app import App
from textual.command import CommandPalette
from textual.drivers.linux_driver import LinuxDriver
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

import ccplay.ui
from ccplay.ui import textual_private

TRIED = ("8.2.8",)
"""Versions of Textual with which every test of the screen has passed."""

PARTS: dict[type, tuple[str, ...]] = {
    App: ("_display", "_driver", "_filters", "_batch_count", "_background_screens"),
    Screen: ("_compositor", "_compositor_refresh", "_dirty_widgets", "_on_timer_update"),
    Widget: (
        *("_layout_required", "_scroll_required", "_repaint_required", "_recompose_required"),
        *("_set_dirty", "_styles_cache"),
    ),
    textual_private.Compositor: ("_dirty_regions",),
    LinuxDriver: ("_app", "_loop", "_debug"),
    MessagePump: ("_pending_message",),
    CommandPalette: ("_GATHER_COMMANDS_GROUP", "_select_or_command"),
}
"""The private parts by the class that has them."""


def _used(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    names |= {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    imported = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    return names | {each for each in imported if each.startswith("textual._")}


@pytest.mark.parametrize(("owner", "name"), [(o, name) for o in PARTS for name in PARTS[o]])
def test_textual_has_a_private_part(owner: type, name: str) -> None:
    # Python 3.13 does not find the source of a class that a metaclass has made anew.
    sources = [inspect.getsource(sys.modules[each.__module__]) for each in owner.__mro__[:-1]]
    assert hasattr(owner, name) or any(f"self.{name}" in each for each in sources), (
        f"Textual {version('textual')} has no {owner.__name__}.{name}, which "
        f"ccplay/ui/textual_private.py uses; it was tried with Textual {', '.join(TRIED)}"
    )


def test_the_installed_textual_was_tried() -> None:
    assert version("textual") in TRIED, "run all of tests/ui, and then add the version to TRIED"


def test_private_parts_are_used_in_one_module() -> None:
    private = {name for names in PARTS.values() for name in names}
    own = Path(textual_private.__file__)
    assert {name for name in _used(own) if name[0] == "_" and name[1] != "_"} == private
    for path in Path(ccplay.ui.__file__).parent.rglob("*.py"):
        if path != own:
            used = _used(path) - {"_app"}  # others have an attribute of their own of this name
            assert not {each for each in used if each in private or each.startswith("textual._")}
