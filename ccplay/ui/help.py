"""The help screen: the keys of the screen below it, and how to read what that draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ccplay.ui.glyphs import UNICODE, Glyphs
from ccplay.words import CA_STATES

GROUPS: dict[str, tuple[str, ...]] = {
    "traffic": ("flow", "download", "ping", "stop"),
    "network": ("congestion", "queue", "qdisc", "link"),
    "time": ("freeze", "scrub", "seek", "zoom", "live", "mark", "cursor", "pause", "speed", "time"),
    "screen": (),
}
"""Words in a binding's action by which it is put into a group; the last takes the rest."""

_STATES = (
    "all is well: cwnd grows",
    "something came out of order: wait whether it is loss",
    "told of congestion (ECN or a full local queue): cwnd shrinks",
    "loss seen by duplicate ACKs: resending, cwnd cut",
    "no ACK in time: all is resent, cwnd starts from 1",
)

Keys = tuple[str, str]
"""A key as people write it, and what it does."""


def group_of(action: str) -> str:
    """Return the group of a binding by its action: ``open_flow`` is ``traffic``."""
    for group, words in GROUPS.items():
        if any(word in action.lower() for word in words):
            return group
    return "screen"


def grouped(bindings: Iterable[tuple[str, Binding]]) -> dict[str, list[Keys]]:
    """Return keys and descriptions by group; several keys of one description share a line."""
    groups: dict[str, dict[str, list[str]]] = {group: {} for group in GROUPS}
    for key, binding in bindings:
        if binding.description and not binding.system:
            text = binding.tooltip or binding.description
            keys = groups[group_of(binding.action)].setdefault(text, [])
            if key not in keys:
                keys.append(key)
    return {
        group: [(" ".join(keys), text) for text, keys in lines.items()]
        for group, lines in groups.items()
        if lines
    }


class HelpScreen(ModalScreen[None]):
    """Everything on one page; any of escape, enter, q and ? leaves."""

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
        & Horizontal > Static { width: 1fr; height: auto; margin: 0 1 1 0; }
        & .section { height: auto; margin: 0 0 1 0; }
    }
    HelpScreen.ascii > #page { border: ascii $primary; scrollbar-size: 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "dismiss", "leave", show=False),
        Binding("space", "page_down", "scroll", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Put the keys first, then how to read the plots."""
        glyphs: Glyphs = getattr(self.app, "glyphs", UNICODE)
        self.set_class(glyphs.name == "ascii", "ascii")
        pairs = list(grouped(self._bindings_below()).items())
        rows = [pairs[at : at + 2] for at in range(0, len(pairs), 2)]
        page = VerticalScroll(
            *(Horizontal(*(Static(_keys(*group, glyphs)) for group in row)) for row in rows),
            *(Static(each, classes="section") for each in _explanations(glyphs)),
            id="page",
        )
        page.border_title = "Help"
        hints = f"↑↓ scroll  {glyphs.separator}  esc leave"
        page.border_subtitle = glyphs.translate(hints)
        yield page

    def action_page_down(self) -> None:
        """Scroll by a page."""
        self.query_one("#page").scroll_page_down(animate=False)

    def _bindings_below(self) -> list[tuple[str, Binding]]:
        stack = self.app.screen_stack
        below = stack[stack.index(self) - 1]
        return [
            (self.app.get_key_display(each.binding), each.binding)
            for each in below.active_bindings.values()
        ]


def _keys(group: str, lines: Sequence[Keys], glyphs: Glyphs) -> Content:
    width = max(len(key) for key, _ in lines)
    parts: list[Content | str | tuple[str, str]] = [(group.capitalize(), "bold $primary")]
    for key, text in lines:
        parts += ["\n", (glyphs.translate(f"{key:>{width}}"), "bold"), "  ", glyphs.translate(text)]
    return Content.assemble(*parts)


def _explanations(glyphs: Glyphs) -> list[Content]:
    states = [(f"{glyphs.ribbon[n]} {name}", _STATES[n]) for n, name in enumerate(CA_STATES)]
    return [
        _section(
            "The three plots share one time axis",
            [
                ("cwnd", "segments that a flow may have under way, unacknowledged"),
                (
                    f"{glyphs.dotted * 2} ssthresh",
                    "below it cwnd doubles each round trip, above it creeps",
                ),
                ("queue", "packets that wait before the bottleneck; a line shows its limit"),
                (f"{glyphs.drop} drop", "a packet found no room, or was dropped on purpose"),
                ("RTT", "each flow's smoothed round trip, and ping's from outside"),
                ("base RTT", "the least seen: the path itself; what is above waits in queues"),
                (f"{glyphs.dashed_vertical} mark", "a change took effect here: look right of it"),
            ],
            glyphs,
        ),
        _section("The ribbon is what the kernel thinks of a flow", states, glyphs),
        _section(
            "Flows have a colour and a mark each",
            [(" ".join(glyphs.flow_marks[:8]), "flows 1 to 8, in plots and table alike")],
            glyphs,
        ),
    ]


def _section(title: str, lines: Sequence[Keys], glyphs: Glyphs) -> Content:
    width = max(len(name) for name, _ in lines)
    parts: list[Content | str | tuple[str, str]] = [(title, "bold $primary")]
    for name, text in lines:
        parts += ["\n", (f"{name:<{width}}", "bold"), "  ", glyphs.translate(text)]
    return Content.assemble(*parts)
