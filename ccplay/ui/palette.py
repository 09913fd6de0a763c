"""The command palette: all that the lab can do, by name, ready to run."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.markup import escape
from textual.widget import Widget
from textual.widgets import Button, Input
from textual.worker import WorkerError

from ccplay.model.commands import AnyCommand
from ccplay.state.lab_state import LabState
from ccplay.ui.appearance import appearance
from ccplay.ui.keys import bindings_of, wording
from ccplay.ui.modal import Modal
from ccplay.ui.palette_entries import READERS, entries, typed, words
from ccplay.ui.plots.band import Band
from ccplay.ui.view import View

_Offer: TypeAlias = tuple[str, str, Callable[[], object]]
"""A text, its meaning, and what it runs."""


class _Lab(Protocol):
    """What the palette needs of a session."""

    @property
    def state(self) -> LabState:
        """What is known of the lab."""

    @property
    def live(self) -> bool:
        """Whether commands can be sent."""


class _Asking(Protocol):
    """What the palette needs of a screen."""

    @property
    def session(self) -> _Lab:
        """The lab that it shows."""

    @property
    def marks(self) -> _Marks:
        """The marks that it shows."""

    @property
    def plots(self) -> Band:
        """The plots that it shows."""

    @property
    def view(self) -> View:
        """What they are drawn from."""

    def undo_offers(self) -> Iterable[_Offer]:
        """Return what can be undone."""

    def ghost_offers(self) -> Iterable[_Offer]:
        """Return which sessions can be laid under this one."""

    def ask(self, command: AnyCommand) -> object:
        """Hand a command to the lab."""


class _Marks(Protocol):
    """What the palette needs of marks."""

    def offers(self) -> Iterable[_Offer]:
        """Return what can be done with each."""


class Palette(CommandPalette, Modal[None]):
    """Textual's palette with nothing but ours in it, and without its emoji."""

    DEFAULT_CSS = """
    Palette SearchIcon { display: none; }
    Palette > Vertical { margin-top: 1; }
    """

    def __init__(self) -> None:
        hint = "what shall happen?  also: queue pfifo 37, rate 7 Mbit/s, mark hello"
        super().__init__([LabProvider], placeholder=hint)
        self._parts: list[Widget] = []

    def on_mount(self) -> None:
        """Know the widgets."""
        self._parts = list(self.query("*"))

    def query_one(self, selector: Any, expect_type: Any = None) -> Any:
        """Find a widget, also after it was removed.

        A palette that is left loses its widgets while Textual's search, timers and watchers may
        still ask for them. Raises ``NoMatches``.
        """
        try:
            return super().query_one(selector, expect_type)
        except NoMatches:
            for each in self._parts:
                if selector in (type(each), f"#{each.id}"):
                    return each
            raise

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        """Run the chosen line once, however often it was chosen before the palette is gone."""
        if not self.answered:
            super()._select_or_command(event)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Wait until the list answers all that was typed: enter is for that, not for less.

        A second enter, which may come before the palette is gone, runs nothing again.
        """
        if self._selected_command is not None:
            event.prevent_default()
            return
        for worker in list(self.workers):
            if worker.group == self._GATHER_COMMANDS_GROUP:
                with contextlib.suppress(WorkerError):
                    await worker.wait()


class LabProvider(Provider):
    """Feed the palette: keys of the screen, commands to the lab, themes."""

    async def discover(self) -> Hits:
        """List what the screen's keys do, then what concerns running flows, then themes."""
        for text, help_text, run in self._all():
            if not text.startswith(("rate:", "delay:", "loss:", "queue:")):
                yield DiscoveryHit(text, run, help=help_text)

    async def search(self, query: str) -> Hits:
        """List what the query says in full, first of all, then what matches.

        Letters match wherever they are, but a value only as it begins: 2 is no 20, 5 no 1.5.
        """
        lab = self._lab
        entry = typed(query, lab.state) if lab.live else None
        if entry is not None:
            prompt = Content(entry.text)
            # Textual's own scores have no bound.
            yield Hit(
                math.inf, prompt, self._sending(entry.command), entry.text, escape(entry.help)
            )
        word, rest = words(query)
        value = f"{word}: {rest}" if word in READERS and any(map(str.isdecimal, rest)) else ""
        matcher = self.matcher(query)
        for text, help_text, run in self._all():
            score = matcher.match(text)
            said = entry is not None and entry.text == text
            if score > 0 and not said and text.lower().startswith(value.lower()):
                yield Hit(score, matcher.highlight(text), run, text=text, help=help_text)

    @property
    def _lab(self) -> _Lab:
        return self._asking.session

    @property
    def _asking(self) -> _Asking:
        return cast("_Asking", self.screen)

    def _all(self) -> Iterator[_Offer]:
        yield from self._keys()
        for entry in entries(self._lab.state) if self._lab.live else ():
            yield entry.text, entry.help, self._sending(entry.command)
        if self._lab.live:
            yield from self._asking.undo_offers()
            yield from self._asking.marks.offers()
        yield from self._asking.ghost_offers()
        yield from self._asking.plots.offers(self._asking.view)
        for name, title in self._themes():
            yield f"theme: {name}", title, self._choosing(name)

    def _keys(self) -> Iterator[_Offer]:
        seen = set()
        for active in bindings_of(self.screen):
            action, description = active.binding.action, active.binding.description
            if action not in seen and action.rpartition(".")[2] != "command_palette":
                seen.add(action)
                key = f"key {self.app.get_key_display(active.binding)}"
                more = wording(active)
                text = key if more == description else f"{more} ({key})"
                yield description, text, self._acting(active.node, action)

    def _themes(self) -> Iterable[tuple[str, str]]:
        looks = appearance(self.app).looks
        return [(name, look.about) for name, look in looks.items()]

    def _acting(self, node: object, action: str) -> Callable[[], object]:
        return lambda: self.app.run_action(action, default_namespace=node)  # type: ignore[arg-type]

    def _sending(self, command: AnyCommand) -> Callable[[], object]:
        return lambda: self._asking.ask(command)

    def _choosing(self, name: str) -> Callable[[], object]:
        return lambda: appearance(self.app).use_look(name)
