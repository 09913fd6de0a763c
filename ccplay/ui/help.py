"""The help screen: the keys of the main screen and how to read its plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Static

from ccplay.model.wording import CA_STATES
from ccplay.ui.cells.glyphs import UNICODE, Glyphs
from ccplay.ui.keymap import DEFAULT, Keymap
from ccplay.ui.keys import GROUPS, bindings_of, group_of, wording
from ccplay.ui.modal import Modal
from ccplay.ui.plots.table import PANES

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


class HelpScreen(Modal[None]):
    """A page of help; escape, enter, q and ? close it."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > #page {
            width: 100%; max-width: 104; height: 100%; max-height: 46; padding: 0 2;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $text-muted; background: $surface; color: $foreground;
            scrollbar-size-vertical: 1;
        }
        & Horizontal { height: auto; }
        & Horizontal > .section { width: 1fr; padding-right: 1; }
        & .section { height: auto; margin-bottom: 1; }
        & .section > Static { height: auto; }
        & .title { color: $primary; text-style: bold; }
    }
    HelpScreen.ascii > #page { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "leave", show=False),
        # The id of the key that opened it, so a remapped key closes it too.
        Binding("question_mark", "dismiss", "leave", id="help", show=False),
        Binding("space", "page_down", "scroll", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Compose the keys first, then how to read the plots."""
        glyphs: Glyphs = getattr(self.app, "glyphs", UNICODE)
        keymap: Keymap = getattr(self.app, "keymap", DEFAULT)
        self.set_class(glyphs.name == "ascii", "ascii")
        groups = list(grouped(self._keys_below()).items())
        pairs = [groups[at : at + 2] for at in range(0, len(groups), 2)]
        page = VerticalScroll(
            *(
                Horizontal(*(_section(title.capitalize(), keys, glyphs) for title, keys in pair))
                for pair in pairs
            ),
            *(_section(title, lines, glyphs) for title, lines in _explanations(glyphs, keymap)),
            id="page",
        )
        page.border_title = "Help"
        hints = f"↑↓ scroll  {glyphs.separator}  esc leave"
        page.border_subtitle = glyphs.translate(hints)
        yield page

    def action_page_down(self) -> None:
        """Scroll by a page."""
        self.query_one("#page").scroll_page_down(animate=False)

    def _keys_below(self) -> list[tuple[str, ActiveBinding]]:
        stack = self.app.screen_stack
        below = stack[stack.index(self) - 1]
        return [(self.app.get_key_display(each.binding), each) for each in bindings_of(below)]


def _section(title: str, lines: Sequence[Keys], glyphs: Glyphs) -> Vertical:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, text in lines:
        table.add_row(Text(glyphs.translate(name)), Text(glyphs.translate(text)))
    return Vertical(Static(title, classes="title"), Static(table), classes="section")


def _explanations(glyphs: Glyphs, keymap: Keymap) -> list[tuple[str, list[Keys]]]:
    key = keymap.shown
    theory, zoom = key("theory"), key("zoom-in")
    return [
        (
            "The plots share one time axis",
            [
                *((plot.title, plot.help) for plot in PANES.values()),
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
            "The ribbon is the kernel's congestion state of a flow",
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
            "Each flow has a colour and a symbol",
            [
                (" ".join(glyphs.flow_glyphs[:8]), "flows 1 to 8, in plots and table"),
                ("UDP", "received rate, loss and mean one-way delay, over the last second"),
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
                (
                    "table",
                    "d sorts by the next column, D reverses; / lists what contains a text",
                ),
                ("short", "transfers done and under way, median and 99th percentile of FCT"),
            ],
        ),
    ]
