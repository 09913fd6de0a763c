"""The private parts of Textual that the screen needs, which any release of Textual may change.

No other module of ``ui`` touches a private part. ccplay writes changed cells itself, reads keys
from a terminal that may stall, and draws pictures of the screen; Textual has no public way to do
so. ``tests/ui/test_textual_private.py`` names the versions that were tried, and a part that has
gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.command import CommandPalette
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button, Input

__all__ = ["ChopsUpdate", "Compositor", "CompositorUpdate", "XTermParser"]

Answer = TypeVar("Answer")


class AppWithOutput(App[Answer]):
    """An app all of whose output passes through ``adapt_output``."""

    def adapt_output(self, update: RenderableType | None) -> RenderableType | None:
        """Return what is written in place of an update: itself, another, or None for nothing."""
        return update

    @property
    def driver_in_use(self) -> Driver | None:
        """What reads and writes the terminal; None before the app runs."""
        return self._driver

    def filter_lines(self, filters: Sequence[LineFilter]) -> None:
        """Pass all lines through these filters rather than those of Textual."""
        self._filters = list(filters)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self.adapt_output(renderable))


class DirectScreen(Screen[None]):
    """A screen that may write updates of its own, beside those of Textual."""

    @property
    def is_drawn(self) -> bool:
        """Whether Textual may draw the screen now; always by default."""
        return True

    def use_compositor(self, compositor: Compositor) -> None:
        """Let ``compositor`` lay out and draw the screen."""
        self._compositor = compositor

    def write_update(self, update: CompositorUpdate) -> None:
        """Write an update without Textual's messages."""
        # Textual uses only ``render_segments`` of it.
        self.app._display(self, cast("RenderableType", update))

    def textual_draws(self) -> bool:
        """Return whether Textual has anything to draw itself, or drawing is not allowed now."""
        return bool(
            self._dirty_widgets
            or self._compositor._dirty_regions
            or self._layout_required
            or self._scroll_required
            or self._repaint_required
            or self._recompose_required
            or self.app._batch_count
            or not self.is_current
        )

    def add_regions(self, widget: Widget, regions: Iterable[Region]) -> None:
        """Let Textual draw parts of a widget; one that has no place yet is drawn later anyway."""
        # For a widget not yet placed, Textual would lay out all and not know what moved.
        if widget in self._compositor.visible_widgets:
            widget._set_dirty(*regions)
            self._dirty_widgets.add(widget)

    def draw_regions(self) -> None:
        """Let Textual draw the parts that were added now, unless a layout will do that."""
        if self._dirty_widgets and not self._layout_required:
            self._on_timer_update()

    def _compositor_refresh(self) -> None:
        if self.is_drawn:
            super()._compositor_refresh()


class GuardedPalette(CommandPalette):
    """A palette that may refuse a choice."""

    def may_choose(self) -> bool:
        """Return whether the chosen line is run; always by default."""
        return True

    @property
    def gathers_commands(self) -> bool:
        """Whether the list is still being made."""
        return any(
            worker.group == self._GATHER_COMMANDS_GROUP and not worker.is_finished
            for worker in self.workers
        )

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        if self.may_choose():
            super()._select_or_command(event)


class TerminalDriver(LinuxDriver):
    """Textual's driver of a terminal of Linux, with what it keeps to itself."""

    @property
    def running_app(self) -> App[Any]:
        """The app that is shown on the terminal."""
        return self._app

    @property
    def event_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that the app runs in."""
        return self._loop

    def new_parser(self) -> XTermParser:
        """Return a parser of what the terminal sends."""
        return XTermParser(self._debug)


def has_messages(pump: MessagePump) -> bool:
    """Return whether a message waits, in the queue or already taken from it by Textual."""
    return bool(pump.message_queue_size) or pump._pending_message is not None


def has_undrawn_widgets(screen: Screen[Any]) -> bool:
    """Return whether a widget of a screen has changed and is not drawn yet."""
    return bool(screen._dirty_widgets)


def must_be_drawn(widget: Widget) -> bool:
    """Return whether a widget waits for layout or to be drawn."""
    return widget._layout_required or widget._repaint_required


def forget_lines(widget: Widget) -> None:
    """Drop the lines of a widget that Textual keeps."""
    widget._styles_cache.clear()


def screen_lines(app: App[Any]) -> list[Strip]:
    """Return the lines of the whole screen, with dialogs and notifications."""
    # Dialogs are translucent: the compositor reads the screens below from this variable.
    token = visible_screen_stack.set(app._background_screens)
    try:
        return app.screen._compositor.render_strips()
    finally:
        visible_screen_stack.reset(token)
