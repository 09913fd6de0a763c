"""The command palette: every command by name, ready to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, cast

from textual import events
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.markup import escape
from textual.widget import Widget
from textual.widgets import Button, Input

from ccplay.model.commands import AnyCommand
from ccplay.state.lab_state import LabState
from ccplay.ui.appearance import appearance
from ccplay.ui.keys import bindings_of, wording
from ccplay.ui.modal import Modal
from ccplay.ui.palette_entries import READERS, entries, typed, words
from ccplay.ui.plots.band import Band
from ccplay.ui.view import View

_Offer: TypeAlias = tuple[str, str, Callable[[], object]]
"""Text, meaning and function of an entry."""


class _Lab(Protocol):
    """The part of a session that the palette needs."""

    @property
    def state(self) -> LabState:
        """State of the lab."""

    @property
    def live(self) -> bool:
        """Whether commands can be sent."""


class _Asking(Protocol):
    """The part of a screen that the palette needs."""

    @property
    def session(self) -> _Lab:
        """Session on the screen."""

    @property
    def marks(self) -> _Marks:
        """Marks on the screen."""

    @property
    def plots(self) -> Band:
        """Plots on the screen."""

    @property
    def view(self) -> View:
        """View that the plots are drawn from."""

    def undo_offers(self) -> Iterable[_Offer]:
        """Return the palette entries for undo."""

    def ghost_offers(self) -> Iterable[_Offer]:
        """Return the palette entries for ghosts."""

    def ask(self, command: AnyCommand) -> object:
        """Send a command to the lab."""


class _Marks(Protocol):
    """The part of marks that the palette needs."""

    def offers(self) -> Iterable[_Offer]:
        """Return the entries for each mark."""


class Palette(CommandPalette, Modal[None]):
    """Textual's palette with ccplay's entries only, and without its emoji."""

    DEFAULT_CSS = """
    Palette SearchIcon { display: none; }
    Palette > Vertical { margin-top: 1; }
    """

    def __init__(self) -> None:
        hint = "type a command, such as queue pfifo 37, rate 7 Mbit/s, mark hello"
        super().__init__([LabProvider], placeholder=hint)
        self._parts: list[Widget] = []

    def on_mount(self) -> None:
        """Keep references to the widgets, for ``query_one`` after their removal."""
        self._parts = list(self.query("*"))

    def query_one(self, selector: Any, expect_type: Any = None) -> Any:
        """Find a widget, even after its removal.

        A closed palette loses its widgets while Textual's search, timers and watchers may still
        need them. Raises ``NoMatches``.
        """
        try:
            return super().query_one(selector, expect_type)
        except NoMatches:
            for each in self._parts:
                if selector in (type(each), f"#{each.id}"):
                    return each
            raise

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        """Run the chosen line once, even if it is chosen again before the palette closes."""
        if not self.answered:
            super()._select_or_command(event)

    def holds(self, event: events.Event) -> bool:
        """Return whether the list must match the whole text before a key acts; letters need not."""
        letter = isinstance(event, events.Key) and event.is_printable
        return not letter and any(
            worker.group == self._GATHER_COMMANDS_GROUP and not worker.is_finished
            for worker in self.workers
        )


class LabProvider(Provider):
    """Provides the palette's entries: keys, commands, undo, marks, ghosts, plots and themes."""

    async def discover(self) -> Hits:
        """List all entries except values of links and queues, which are found by typing."""
        for text, help_text, run in self._all():
            if not text.startswith(("rate:", "delay:", "loss:", "queue:")):
                yield DiscoveryHit(Content(text), run, text=text, help=escape(help_text))

    async def search(self, query: str) -> Hits:
        """List the command that the query spells out, then the entries that match.

        Letters may match anywhere in an entry, but a value only at its beginning: ``rate 2 mbit``
        does not match 20 Mbit/s, nor ``rate 5`` 1.5 Mbit/s.
        """
        lab = self._lab
        entry = typed(query, lab.state) if lab.live else None
        if entry is not None:
            prompt = Content(entry.text)
            # Textual's own scores have no upper bound.
            yield Hit(
                math.inf, prompt, self._sending(entry.command), entry.text, escape(entry.help)
            )
        word, rest = words(query)
        value = f"{word}: {rest}" if word in READERS and any(map(str.isdecimal, rest)) else ""
        matcher = self.matcher(query)
        for text, help_text, run in self._all():
            score = matcher.match(text)
            same = entry is not None and entry.text == text
            if score > 0 and not same and text.lower().startswith(value.lower()):
                # Names of a recording are no markup, which could run actions when clicked.
                prompt = Content(text) if "[" in text else matcher.highlight(text)
                yield Hit(score, prompt, run, text=text, help=escape(help_text))

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
