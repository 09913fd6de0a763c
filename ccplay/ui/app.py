"""The Textual app: holds the session, the look and the glyphs, and runs the main screen."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from rich.console import RenderableType
from textual._compositor import ChopsUpdate
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from ccplay.errors import UsageError
from ccplay.session.session import Session
from ccplay.session.unsaved import Unsaved
from ccplay.ui.cells.diff_writer import ThriftyUpdate
from ccplay.ui.cells.glyphs import ASCII, UNICODE, Glyphs
from ccplay.ui.playhead import WINDOW_S
from ccplay.ui.screen import MainScreen
from ccplay.ui.terminal import Terminal
from ccplay.ui.themes import DEFAULT, Look, load_looks


class CcplayApp(App[int]):
    """The screen of one session, live or recorded."""

    TITLE = "ccplay"
    CSS_PATH = "ccplay.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+q", "quit", "Quit", id="quit", priority=True, tooltip="End the lab and leave"
        ),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            id="suspend",
            priority=True,
            tooltip="To the shell; the lab keeps running, fg shows it again",
        ),
    ]

    def __init__(
        self,
        session: Session,
        *,
        look: str | None = None,
        ascii: bool = False,  # noqa: A002
        start_at: float = 0.0,
        speed: float = 1.0,
        fps: float = 10.0,
        window: float = WINDOW_S,
        ghost: Path | None = None,
        lab_words: Sequence[str] = (),
        unsaved: Unsaved | None = None,
    ) -> None:
        """Prepare to show ``session`` over the recording ``ghost``; ``look`` names a theme.

        ``unsaved`` is what leaving would lose, so that ctrl+q asks first. Raises ``UsageError``.
        """
        super().__init__(driver_class=Terminal)
        self.session = session
        self._unsaved = unsaved
        self.glyphs: Glyphs = ASCII if ascii else UNICODE
        self.looks = load_looks()
        if (look or DEFAULT) not in self.looks:
            names = ", ".join(self.looks)
            raise UsageError(f"unknown theme {look!r}; there are: {names}")
        self.look: Look = self.looks[look or DEFAULT]
        for each in self.looks.values():
            self.register_theme(each.textual_theme)
        self.theme = self.look.textual_theme.name
        self.main = MainScreen(
            session,
            start_at=start_at,
            speed=speed,
            fps=fps,
            window=window,
            ghost=ghost,
            lab_words=lab_words,
        )
        """The screen under everything else."""

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen."""
        return self.main

    def action_command_palette(self) -> None:
        """Open the palette: every command by name."""
        from ccplay.ui.palette import Palette  # noqa: PLC0415 - first paint shall not wait for it

        if self.screen is self.main:
            self.push_screen(Palette())

    async def action_quit(self) -> None:
        """Leave; where the session is recorded nowhere, ask first, unless that is asked already."""
        if self._unsaved is None or self.session.state.ready_at is None:
            self.exit()
            return
        from ccplay.ui.dialogs.leaving import LeaveDialog  # noqa: PLC0415 - as above

        if isinstance(self.screen, LeaveDialog):
            self.exit()
        else:
            self.push_screen(LeaveDialog(self._unsaved), self._asked_to_leave)

    def _asked_to_leave(self, leaves: bool | None) -> None:
        if leaves:
            self.exit()

    def on_mount(self) -> None:
        """Start processing the session's events."""
        self.run_worker(self.session.run(), name="session", group="session", exit_on_error=True)
        self.call_after_refresh(_collect_garbage_again)

    async def on_unmount(self) -> None:
        """End the session in an orderly way."""
        await self.session.close()

    def use_look(self, name: str) -> None:
        """Switch to another theme."""
        self.look = self.looks[name]
        self.theme = self.look.textual_theme.name
        self.main.redraw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        """Switch to another set of characters."""
        self.glyphs = glyphs
        self.main.redraw()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        # All output passes here; partial updates are reduced to changed cells.
        if isinstance(self._driver, Terminal) and not self._driver.takes_frame():
            return
        if type(renderable) is ChopsUpdate:
            renderable = cast("RenderableType", ThriftyUpdate(renderable))
        super()._display(screen, renderable)


def _collect_garbage_again() -> None:
    """After the first paint, where the program was started without: what is there now stays."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
