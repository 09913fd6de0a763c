"""The Textual app: it holds the session, the theme and the glyphs, and runs the main screen."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from rich.console import RenderableType
from textual import work
from textual.actions import ActionParseResult
from textual.app import App
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.notifications import SeverityLevel
from textual.screen import Screen

from ccplay.errors import UsageError
from ccplay.model.events import Log
from ccplay.scenario.values import Scenario
from ccplay.session.session import Session
from ccplay.share.frames import WINDOW_S, Playhead, Shown
from ccplay.traffic.base import LogEntry
from ccplay.ui import keys
from ccplay.ui.audience import WITH_FILES, Audience
from ccplay.ui.cells import ASCII, UNICODE
from ccplay.ui.compositor import Colourless, ThriftyUpdate
from ccplay.ui.help import OrderlyApp
from ccplay.ui.keys import Keymap
from ccplay.ui.lesson_roles import Role
from ccplay.ui.main_screen import MainScreen
from ccplay.ui.plot_row import PANES
from ccplay.ui.preferences import NONE, Preferences
from ccplay.ui.preferences import path as preferences_path
from ccplay.ui.terminal import Terminal
from ccplay.ui.textual_private import ChopsUpdate
from ccplay.ui.themes import Appearance, Look, load_looks

_ANOTHER = "the presenter starts another network; this screen joins it"
"""Reason sent to spectators when the presenter leaves for another network."""


class CcplayApp(OrderlyApp[int]):
    """The screen of one session, live or recorded."""

    TITLE = "ccplay"
    CSS_PATH = "ccplay.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = keys.APP

    def __init__(
        self,
        session: Session,
        *,
        look: str | None = None,
        ascii: bool = False,  # noqa: A002
        looks: Mapping[str, Look] | None = None,
        preferences: Preferences | None = None,
        start_at: float = 0.0,
        speed: float = 1.0,
        fps: float = 10.0,
        window: float = WINDOW_S,
        ghost: Path | None = None,
        lab_words: Sequence[str] = (),
        audience: Audience | None = None,
        starts: bool = False,
        lesson: Role | None = None,
    ) -> None:
        """Prepare to show ``session`` over the recording ``ghost``, in the theme named ``look``.

        ``look`` and ``ascii`` override ``preferences``; ``looks`` are the themes by name, if they
        are already loaded. ``audience`` connects this screen with its spectators, or with the
        presenter that it follows. ``lesson`` is shown beside the network. If ``starts`` is true,
        the user may leave for another network, which ``wanted`` then holds.

        Raises ``UsageError`` if there is no such theme.
        """
        super().__init__(driver_class=Terminal)
        # A terminal without colours, such as TERM=dumb, counts as the user's wish for none.
        self.no_color = self.no_color or self.console.color_system is None
        self.session = session
        self.wanted: Scenario | None = None
        """Scenario to start once this session has ended."""
        mine = preferences or Preferences()
        looks = looks or load_looks()
        if (look or mine.theme) not in looks:
            raise UsageError(f"unknown theme {look!r}; there are: {', '.join(looks)}")
        self.appearance = Appearance(
            looks,
            looks[look or mine.theme],
            ASCII if ascii or mine.glyphs == "ascii" else UNICODE,
            Keymap(mine.keys),
            own_stroke=mine.stroke,
            no_color=self.no_color,
        )
        self.set_keymap(self.appearance.keymap.own)
        self._mistakes = mine.mistakes
        for each in looks.values():
            self.register_theme(each.textual_theme)
        if self.no_color:
            self.filter_lines([Colourless(lambda: self.appearance.look.textual_theme.dark)])
        # Assigning ``theme`` would call its watcher, which parses the stylesheet a second time.
        self.set_reactive(App.theme, self.appearance.look.textual_theme.name)
        self.stylesheet.set_variables(self.get_css_variables())
        self.main = MainScreen(
            session,
            Shown(
                Playhead(recorded=session.recorded, t=start_at, width=window, speed=speed),
                plots=mine.plots,
                large=mine.large.removeprefix(NONE),
            ),
            self.appearance,
            fps=fps,
            ghost=ghost,
            lab_words=lab_words,
            kept=self.keep_choices,
            start=self.start if starts else None,
            audience=audience,
        )
        """The screen below all dialogs."""
        self.main.lesson = lesson
        self._began_with = self._choices()
        self._told = False
        """Whether the log has said that the user's choices are kept."""

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen."""
        return self.main

    def keep_notice(self, message: str, severity: SeverityLevel) -> None:
        """Keep the text of a toast for the list of events and messages."""
        kind = {"information": "info"}.get(severity, severity)
        notices = self.main.notices
        if notices and notices[-1].text == message:
            # A held key repeats its message many times a second.
            notices.pop()
        notices.append(LogEntry(self.session.state.now, kind, message))

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        """Open nothing: a browser would have the rights of a spectator's account, or of root."""

    def action_command_palette(self) -> None:
        """Open the command palette, unless another screen covers the main screen."""
        from ccplay.ui.palette import Palette  # noqa: PLC0415 - after first paint

        if self.screen is self.main:
            self.push_screen(Palette())

    def action_help_quit(self) -> None:
        """Name the key that quits: Ctrl-C, a key too, copies what is selected in a field."""
        self.notify(f"{self.appearance.keymap.shown('quit')} quits ccplay.", markup=False)

    async def action_quit(self) -> None:
        """Quit; ask first if the session is not recorded, unless the question is already open."""
        if self.session.unsaved is None or self.session.state.ready_at is None:
            self.exit()
            return
        from ccplay.ui.dialogs_session import LeaveDialog  # noqa: PLC0415 - after first paint

        if isinstance(self.screen, LeaveDialog):
            self.exit()
        else:
            self.push_screen(LeaveDialog(self.session.unsaved), self._asked_to_leave)

    def _asked_to_leave(self, leaves: bool | None) -> None:
        if leaves:
            self.exit()
        else:
            self.wanted = None

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Quit; if another network follows, inform spectators first."""
        if self.wanted is not None:
            self.main.audience.announce(_ANOTHER)
        super().exit(*arguments, **options)

    async def start(self, scenario: Scenario | None) -> None:
        """Leave for another network, asking first as ``quit`` does; None changes nothing."""
        if scenario is not None:
            self.wanted = scenario
            await self.action_quit()

    def on_mount(self) -> None:
        """Start processing the session's events."""
        self._run_session()
        self.call_after_refresh(_collect_garbage_again)
        self.set_interval(0.3, self.collect_garbage)
        for mistake in self._mistakes:
            self.notify(mistake, severity="warning", timeout=12, markup=False)
        self.main.notify_shared()

    @work(group="session")
    async def _run_session(self) -> None:
        """Process the session's events; leave to watch the presenter's next network, if any."""
        await self.session.run()
        if await self.main.audience.rejoin():
            self.exit()

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action of a key or a palette entry, which may make a spectator roam."""
        self.main.note_action(action if isinstance(action, str) else action[1])
        return await super().run_action(action, default_namespace, namespaces)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Disable the keys that a restricted spectator may not use."""
        return self.main.audience.keeps_files or action not in WITH_FILES

    async def on_unmount(self) -> None:
        """Close the session and end sharing."""
        await self.session.close()
        self.main.audience.close()

    def keep_choices(self) -> None:
        """Draw all as the user has chosen, and log once, on this screen, that choices are kept."""
        self.theme = self.appearance.look.textual_theme.name
        self.main.redraw()
        if self._told or not self.main.audience.keeps_files or not self.changed_choices():
            return
        self._told = True
        text = "your theme, characters, lines and plots are kept for later sessions in "
        text += str(preferences_path())
        if self.session.live:
            # Into the state alone: no recording has it, and no spectator.
            state = self.session.state
            state.apply(Log(t=state.now, level="info", text=text))
        else:
            self.notify(text, markup=False)

    def changed_choices(self) -> dict[str, object]:
        """Return the display choices that the user has changed, by name of the preference."""
        return {
            name: value
            for name, value in self._choices().items()
            if value is not None and value != self._began_with[name]
        }

    def _choices(self) -> dict[str, object]:
        # Own values of an algorithm exist only while it is in use.
        plots = tuple(name for name in self.main.plots.preferred if name in PANES)
        return {
            "theme": self.appearance.look.name,
            "glyphs": self.appearance.glyphs.name,
            "stroke": self.appearance.own_stroke,
            "plots": plots or None,
        }

    def adapt_output(self, update: RenderableType | None) -> RenderableType | None:
        """Reduce a partial update to changed cells; write nothing if the terminal is late."""
        driver = self.driver_in_use
        if isinstance(driver, Terminal) and not driver.takes_frame():
            return None
        if type(update) is ChopsUpdate:
            return cast("RenderableType", ThriftyUpdate(update))
        return update


def _collect_garbage_again() -> None:
    """Enable garbage collection after the first paint, but exempt all objects made so far."""
    if not gc.isenabled():
        gc.freeze()
        # A dialog makes 30,000 objects; only if they become many more, no pause is waited for.
        gc.set_threshold(150_000, 2, 0)
        gc.enable()
