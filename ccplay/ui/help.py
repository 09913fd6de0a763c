"""Screens over the main one: help, events in full, the explanation of a flow."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import ScrollableContainer, VerticalScroll
from textual.content import Content
from textual.driver import Driver
from textual.geometry import Size
from textual.notifications import Notification, Notify, SeverityLevel
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.wording import CA_STATES
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import LogEntry
from ccplay.ui.cells import Glyphs
from ccplay.ui.keys import (
    COPY,
    ESSENTIALS,
    GROUPS,
    MOST_ESSENTIALS,
    Keymap,
    bindings_of,
    group_of,
    wording,
)
from ccplay.ui.plot_row import PANES
from ccplay.ui.status_lines import INKS, WORDS
from ccplay.ui.textual_private import Answer, AppWithOutput, has_messages
from ccplay.ui.themes import Appearance
from ccplay.units import format_clock

# --- keys act in the order in which they were typed, however fast they arrive ---------------------
# Textual passes a key from queue to queue, and a field inserts a letter before the screen has acted
# on the Backspace before it. A slow line delivers many keys at once: each waits for the one before.

_PATIENCE_S = 2.0
"""Longest time in seconds that a key waits for the effect of the one before it."""

_LATEST_S, _MOST = 10.0, 1000
"""Seconds since a key was typed, and number of keys that wait, beyond which none waits: on a busy
machine, or if a key is held, a screen that is so far behind takes keys as fast as it can."""

_LOOK_S = 0.001
"""Interval in seconds of checks whether that effect is complete."""

_LEAVING = ("dismiss", "leave")
"""Actions that work before the screen's widgets exist."""


class Notice(Notification):
    """A toast's text. Textual's timer would never return from a time that is not above 0.

    A toast may be drawn some milliseconds after it has expired: a new screen shows it again.
    """

    @property
    def time_left(self) -> float:
        """Seconds for the toast's timer."""
        return max(super().time_left, 0.001)

    @property
    def has_expired(self) -> bool:
        """Whether the toast is not to be shown again."""
        return super().time_left <= 0


class OrderlyApp(AppWithOutput[Answer]):
    """An app that delivers a key or a paste once everything that the one before caused is done."""

    appearance: Appearance
    """How all screens are drawn."""

    def __init__(self, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self._typed: deque[events.Event] = deque()
        self._waits_since = 0.0
        self._ends = False

    @property
    def keys_wait(self) -> int:
        """Number of keys and pastes that have not been delivered yet; one may be acting now."""
        return len(self._typed)

    def exit(
        self,
        result: Answer | None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """End the app; keys that arrive later do nothing, since their widgets may be gone."""
        self._ends = True
        super().exit(result, return_code, message)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast.

        The text is no markup, which could run actions when clicked, unless ``markup`` says so.
        """
        self.keep_notice(message, severity)
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(message, title, severity, seconds, markup)))

    def keep_notice(self, message: str, severity: SeverityLevel) -> None:
        """Keep the text of a toast; only apps with a list of messages do."""

    def collect_garbage(self) -> None:
        """Search for garbage, for up to 100 ms, if no dialog can be opening just now."""
        if gc.get_count()[0] > 20_000 and time.monotonic() > self._waits_since + 0.4:
            gc.collect()

    async def on_event(self, event: events.Event) -> None:
        """Queue what was typed; handle anything else at once."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            if len(self._typed) == 1:
                self._waits_since = time.monotonic()
                await self._deliver()
        else:
            await super().on_event(event)

    async def _deliver(self) -> None:
        """Deliver the next key as soon as no widget of the screen has anything left to do.

        This runs between two messages of the app, whose own actions are therefore complete.
        """
        if self._ends or not self.screen_stack:
            self._typed.clear()
            return
        now = time.monotonic()
        waits = now < min(self._waits_since + _PATIENCE_S, self._typed[0].time + _LATEST_S)
        if waits and len(self._typed) <= _MOST and self._is_busy():
            # Not with ``set_timer``: Textual drops a short timer if its task is interrupted.
            asyncio.get_running_loop().call_later(_LOOK_S, self.call_next, self._deliver)
            return
        self._waits_since = now
        try:
            await super().on_event(self._typed[0])
        finally:
            self._typed.popleft()
        if self._typed:
            self.call_next(self._deliver)

    def _is_busy(self) -> bool:
        screen = self.screen
        if isinstance(screen, Modal) and self._typed and screen.holds(self._typed[0]):
            return True
        return has_messages(self) or any(
            has_messages(each) or not each.is_mounted
            for each in screen.walk_children(Widget, with_self=True)
        )


class Modal(ModalScreen[Answer]):
    """A modal screen that ignores a second dismissal, which would make Textual fail."""

    @property
    def appearance(self) -> Appearance:
        """How the screens of the app are drawn."""
        assert isinstance(self.app, OrderlyApp)  # noqa: S101 - no other app opens one
        return self.app.appearance

    answered = False
    """Whether the screen has been dismissed."""

    def holds(self, event: events.Event) -> bool:  # noqa: ARG002
        """Return whether a key must wait for work that the screen has begun; false by default."""
        return False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Ignore keys after dismissal; until the widgets exist, accept only keys that leave."""
        return not self.answered and (self.is_mounted or action in _LEAVING)

    def copy(self, text: str) -> None:
        """Copy commands of tc(8) to the terminal's clipboard (OSC 52), and confirm in a toast."""
        if not text:
            self.app.notify("No tc line to copy.", severity="warning")
            return
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.app.notify("Copied the tc line." if lines == 1 else f"Copied {lines} tc lines.")

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Dismiss the screen with ``result``, unless that has already been done."""
        if self.answered:
            return AwaitComplete()
        self.answered = True
        return super().dismiss(result)


# --- a box of text over the screen ----------------------------------------------------------------


class Page(Modal[None]):
    """A box of text that scrolls; escape, enter and q close it, and so does the key that opened it.

    That key is a binding with the id of the key that opens the page, so that one of the user's own
    closes it too.
    """

    DEFAULT_CSS = """
    Page {
        align: center middle;
        & > #page {
            width: 100%; height: auto; max-height: 100%; padding: 0 1;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
            scrollbar-size-vertical: 1;
        }
        & Static { height: auto; }
    }
    Page.ascii > #page { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        Binding("space", "page_down", "scroll", show=False),
    ]

    def box(self, content: Widget, title: str) -> ScrollableContainer:
        """Return the box, with ``title`` in its border: ``content`` itself if it can scroll."""
        self.set_class(self.appearance.glyphs.name == "ascii", "ascii")
        box = content if isinstance(content, ScrollView) else VerticalScroll(content)
        box.id = "page"
        # Not markup: the names of a recording may be in it.
        box.border_title = Content(self.appearance.glyphs.translate(title))
        box.border_subtitle = self.hints("↑↓ scroll")
        return box

    def hints(self, *hints: str) -> str:
        """Return a line of hints on keys, the one that leaves last."""
        glyphs = self.appearance.glyphs
        return glyphs.translate(f"  {glyphs.separator}  ".join((*hints, "esc leave")))

    def action_page_down(self) -> None:
        """Scroll by a page."""
        self.query_one("#page").scroll_page_down(animate=False)


# --- the event log in full, with the texts of toasts ----------------------------------------------

_LOOK_AGAIN_S = 0.25
"""Interval in seconds at which the screen checks for new lines."""


class LogLines(ScrollView):
    """Lines of the event log, each wrapped once; only those on the screen are drawn."""

    DEFAULT_CSS = "LogLines { overflow-x: hidden; }"

    def __init__(self, appearance: Appearance) -> None:
        """Show no line yet."""
        super().__init__()
        self._appearance = appearance
        self.entries: Sequence[LogEntry] = ()
        self._lines: list[Strip] = []
        self._width = 0

    def show(self, entries: Sequence[LogEntry]) -> None:
        """Show these entries; those that are new at the end are added."""
        width, known = self.scrollable_content_region.width, len(self.entries)
        at_end = self.is_vertical_scroll_end
        if width != self._width or entries[:known] != self.entries:
            self._lines, known = [], 0
        self.entries, self._width = entries, width
        self._lines += chain.from_iterable(map(self._wrapped, entries[known:]))
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()
        if at_end:
            self.scroll_end(animate=False)

    def on_resize(self) -> None:
        """Wrap all lines anew."""
        self.show(self.entries)

    def render_line(self, y: int) -> Strip:
        """Draw a line of the part that is shown."""
        at, width = y + self.scroll_offset.y, self._width
        line = self._lines[at] if at < len(self._lines) else Strip.blank(width)
        return line.adjust_cell_length(width).apply_style(self.rich_style)

    def _wrapped(self, entry: LogEntry) -> Iterator[Strip]:
        look, glyphs = self._appearance.look, self._appearance.glyphs
        clock, sign = format_clock(entry.t), glyphs.dashed_vertical if entry.is_mark else " "
        text = glyphs.translate(WORDS.get(entry.kind, "") + entry.text)
        room = max(self._width - len(clock) - 3, 1)
        muted, mark = (Style.parse(look.colours[each]) for each in ("muted", "mark"))
        for words, ink in ((text, INKS[entry.kind]), (entry.detail, "muted")):
            style, pieces = Style.parse(look.colours[ink]), [words] if words else []
            if "\n" in words or cell_len(words) > room:
                pieces = [
                    each.plain for each in Text(words).wrap(self.app.console, room, overflow="fold")
                ]
            for piece in pieces:
                when = Segment(f"{clock} ", muted)
                yield Strip([when, Segment(f"{sign} ", mark), Segment(piece, style)])
                clock = " " * len(clock)


class EventsScreen(Page):
    """The event log with uncut lines, newest last."""

    DEFAULT_CSS = "EventsScreen > #page { height: 100%; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "dismiss", "leave", id="events", show=False),
        COPY,
    ]

    def __init__(self, entries: Callable[[], Sequence[LogEntry]]) -> None:
        """Show the lines that ``entries`` returns, oldest first."""
        super().__init__()
        self._entries = entries

    def compose(self) -> ComposeResult:
        """Compose the page."""
        page = self.box(LogLines(self.appearance), "Events and messages")
        page.border_subtitle = self.hints("↑↓ scroll", "^y copy the tc lines")
        yield page

    def on_mount(self) -> None:
        """Show the newest lines, and check for more at intervals."""
        if not self.children:
            # The app is ending, and has mounted nothing.
            return
        self.call_after_refresh(self._look_again)
        self.set_interval(_LOOK_AGAIN_S, self._look_again)

    def action_copy(self) -> None:
        """Copy all commands of tc(8) in the list, oldest first."""
        lines = [each.detail for each in self._entries() if each.detail]
        self.copy("\n".join(lines))

    def _look_again(self) -> None:
        lines, entries = self.query_one(LogLines), self._entries()
        if entries != lines.entries:
            lines.show(entries)


# --- what the selected flow is doing at the moment shown, and why, in sentences -------------------


class ExplainScreen(Page):
    """Sentences in a box over the lower part of the screen."""

    DEFAULT_CSS = """
    ExplainScreen {
        align: center bottom; background: $background 0%;
        & > #page { max-height: 60%; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "dismiss", "leave", id="explain", show=False)
    ]

    def __init__(self, title: str, sentences: Sequence[str]) -> None:
        """Show each of ``sentences`` on a line of its own."""
        super().__init__()
        self._heading = title
        self._sentences = sentences

    def compose(self) -> ComposeResult:
        """Compose the box."""
        glyphs = self.appearance.glyphs
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column()
        for each in self._sentences:
            table.add_row(glyphs.separator, Text(glyphs.translate(each)))
        yield self.box(Static(table), self._heading)


# --- the help screen: the keys of the main screen and how to read its plots -----------------------

_STATES = (
    "no congestion: cwnd grows",
    "a SACK or duplicate ACK arrived: loss or reordering?",
    "congestion reported by ECN or a local queue: cwnd shrinks",
    "loss detected by duplicate ACKs: retransmitting, cwnd cut",
    "retransmission timeout: cwnd starts again from 1",
)

Keys = tuple[str, str]
"""Displayed keys or symbol, and their meaning."""


def grouped(bindings: Iterable[tuple[str, ActiveBinding]]) -> dict[str, list[Keys]]:
    """Return keys and their effects by group; keys with the same effect share a line."""
    groups: dict[str, dict[str, list[str]]] = {group: {} for group in GROUPS}
    for key, active in bindings:
        lines = groups[group_of(active.binding.action)]
        keys = lines.setdefault(wording(active), [])
        if key not in keys:
            keys.append(key)
    return {
        group: [(" ".join(keys), text) for text, keys in lines.items()]
        for group, lines in groups.items()
        if lines
    }


class HelpScreen(Page):
    """The keys that matter, and by a digit each all keys of one subject, or how to read a part."""

    DEFAULT_CSS = "HelpScreen > #page { max-width: 104; padding: 0 2; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "dismiss", "leave", id="help", show=False),
        *(Binding(str(at), f"open({at})", "subject", show=False) for at in range(10)),
    ]

    def compose(self) -> ComposeResult:
        """Compose the first page."""
        self._glyphs, self._keymap = self.appearance.glyphs, self.appearance.keymap
        groups = grouped(self._keys_below()).items()
        self.subjects: list[tuple[str, list[Keys]]] = [
            *((f"Keys: {name}", keys) for name, keys in groups),
            *_explanations(self._glyphs, self._keymap),
        ]
        """Pages that digits open, each with its title."""
        self._text = Static()
        self._page = self.box(self._text, "Help")
        self.action_open(0)
        yield self._page

    def action_open(self, number: int) -> None:
        """Show the page with this number; 0 is the first one."""
        if number > len(self.subjects):
            return
        title, lines = self.subjects[number - 1] if number else ("Help", self._essentials())
        parts: list[RenderableType] = [self._table(lines)]
        if number == 0:
            more = [(str(at), name) for at, (name, _) in enumerate(self.subjects, 1)]
            parts += [Text("\nMore, by a digit:", style="bold"), self._table(more)]
        self._text.update(Group(*parts))
        self._page.border_title = Content(title)
        self._page.border_subtitle = self.hints(*["0 back"] * bool(number), "↑↓ scroll")
        if self._page.is_mounted:
            self._page.scroll_home(animate=False)

    def _essentials(self) -> list[Keys]:
        """Return the most useful keys that have an effect now."""
        active = {each.binding.id for _, each in self._keys_below()} | {"palette"}
        return [
            (self._keymap.together(names), meaning)
            for names, meaning in ESSENTIALS
            if not active.isdisjoint(names.split())
        ][:MOST_ESSENTIALS]

    def _keys_below(self) -> list[tuple[str, ActiveBinding]]:
        # From Python 3.12 on a screen composes its widgets before it is on the stack.
        below = [each for each in self.app.screen_stack if each is not self][-1]
        return [(self.app.get_key_display(each.binding), each) for each in bindings_of(below)]

    def _table(self, lines: Sequence[Keys]) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="bold")
        table.add_column()
        for name, text in lines:
            translate = self._glyphs.translate
            table.add_row(Text(translate(name)), Text(translate(text)))
        return table


def _explanations(glyphs: Glyphs, keymap: Keymap) -> list[tuple[str, list[Keys]]]:
    key = keymap.shown
    theory, zoom = key("theory"), key("zoom-in")
    return [
        (
            "How to read the plots",
            [
                *((pane.plot.title, pane.plot.help) for pane in PANES.values()),
                (
                    f"{glyphs.dotted * 2} ssthresh",
                    "below it cwnd doubles each round trip, above it cwnd grows slowly",
                ),
                (
                    "W R theory",
                    f"cwnd since its last reduction, by CUBIC's W(t) and Reno's line ({theory})",
                ),
                (
                    f"{glyphs.drop} drop",
                    "the queue dropped a packet: it was full, or the discipline chose to",
                ),
                (
                    f"{glyphs.bars[0]}{glyphs.bars[-1]} drops",
                    "in a long window: drops in each column; the number is the greatest",
                ),
                (
                    "long window",
                    "medians as lines (of rates: means); a faint band from least to greatest",
                ),
                (
                    "base RTT",
                    "RTT of the selected flow's path with empty queues; the rest is queueing delay",
                ),
                ("values", f"variables of the algorithm in place of RTT ({key('variable')})"),
                (
                    f"{glyphs.dashed_vertical} mark",
                    f"a change took effect here, or you set a mark ({key('mark')})",
                ),
                (f"{glyphs.mark} point", "what the presenter of a shared session points at"),
                (
                    f"{glyphs.traced} traced",
                    f"every ACK of the flow is recorded ({key('trace')}): zoom in ({zoom})",
                ),
                (
                    f"{glyphs.ghost * 2} ghost",
                    f"an earlier run, dimmed, under this one ({key('ghost')})",
                ),
            ],
        ),
        (
            "How to read the congestion states",
            [
                (f"{step} {name}", meaning)
                for step, name, meaning in zip(glyphs.ribbon, CA_STATES, _STATES, strict=True)
            ]
            + [
                (
                    f"{glyphs.bars[1]}{glyphs.bars[-1]} long window",
                    "share of time not in Open, in the colour of the commonest state",
                ),
                (
                    f"{glyphs.reduced[0]}{glyphs.reduced[-1]} {glyphs.timeout}",
                    "the same, mostly in CWR; a retransmission timeout",
                ),
            ],
        ),
        (
            "How to read flows and their table",
            [
                (" ".join(glyphs.flow_glyphs[:8]), "flows 1 to 8, in plots and table"),
                *((kind.word, kind.form.reads) for kind in TRAFFIC if kind.form.reads),
                (
                    "many",
                    "with four or more, the others are dimmed; o draws the selected one alone",
                ),
                (
                    "groups",
                    "one line for each algorithm (G): its mean over the band from least to most",
                ),
                (
                    "stacked",
                    "goodput up to the link's rate, queues by class (T): there is no count by flow",
                ),
                ("table", "d sorts by the next column, D reverses; / lists what contains a text"),
            ],
        ),
    ]
