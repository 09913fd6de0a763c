"""The keys of the screen: what they do, their names, and the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from textual.app import App
from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import Keys, _character_to_key, format_key
from textual.screen import Screen

from ccplay.model.quantities import did_you_mean, quote
from ccplay.traffic import TRAFFIC

# --- the keys of the app and of its main screen: what they do, and the names for remapping them ---

_VALUES = "Variables of algorithms in place of RTT (V backwards)"
_VALUES_BACK = "Variables of algorithms, backwards"
_LOGARITHM = "Logarithmic value axes, or linear ones"
_LESSON_UP = "Lesson: scroll the page up"
_PATH = "Move the selected traffic to its next path"
_EXPLAIN = "What the selected flow is doing, and why"
_FAIR = "Put CAKE (or FQ-CoDel) on both directions of the line, or take it off"
_HOLD = "Hold the value axes, or release them"
_START = f"Start traffic: {', '.join(kind.word for kind in TRAFFIC)}"

APP: list[BindingType] = [
    Binding("ctrl+q", "quit", "Quit", id="quit", priority=True, tooltip="End the lab and leave"),
    Binding(
        "ctrl+z",
        "suspend_process",
        "Suspend",
        id="suspend",
        priority=True,
        tooltip="Suspend to the shell; the lab keeps running, and fg returns to it",
    ),
]
"""Keys that work on every screen."""

MAIN: list[BindingType] = [
    *(
        Binding(kind.form.key, f"start_traffic('{kind.name}')", kind.form.title, id=kind.name)
        for kind in TRAFFIC
    ),
    Binding("c", "dialog('CongestionDialog')", "Congestion control", id="congestion"),
    Binding("q", "dialog('QueueDialog')", "Queue discipline", id="queue"),
    Binding("j", "fair_queue", "CAKE on the line, or off", id="fair-queue", tooltip=_FAIR),
    Binding("l", "dialog('LinkDialog')", "Link", id="link"),
    Binding("ctrl+o", "path", "Another path, of several", id="path", tooltip=_PATH),
    Binding("k", "capture", "Capture packets, or stop", id="capture"),
    Binding("h", "trace", "Trace every ACK, or stop", id="trace"),
    Binding("m", "mark", "Set or change a mark", id="mark"),
    Binding("enter", "put_mark", "Put the mark here", id="put-mark"),
    Binding("escape", "leave_mark", "Leave the mark where it was", id="leave-mark"),
    Binding("escape", "show_all", "Show all flows again", id="show-all"),
    Binding("g", "ghost", "Ghost", id="ghost", priority=True, tooltip="Earlier run as a ghost"),
    Binding("x", "stop", "Stop the selected traffic", id="stop"),
    Binding("z", "undo", "Undo your last change", id="undo"),
    Binding("Z", "redo", "Redo what you undid", id="redo"),
    Binding("space", "freeze", "Freeze, pause, continue", id="freeze"),
    Binding("left", "scrub(-1)", "Back in time", id="back"),
    Binding("right", "scrub(1)", "Forward in time", id="forward"),
    Binding("shift+left", "scrub_far(-1)", "Far back in time", id="far-back"),
    Binding("shift+right", "scrub_far(1)", "Far forward in time", id="far-forward"),
    Binding("home", "seek_start", "To the start", id="start"),
    Binding("end", "seek_end", "To the end, live again", id="end"),
    Binding("plus,equals_sign", "zoom(1)", "Shorter time axis", id="zoom-in"),
    Binding("minus", "zoom(-1)", "Longer time axis", id="zoom-out"),
    Binding("left_square_bracket,less_than_sign", "speed(-1)", "Slower replay", id="slower"),
    Binding("right_square_bracket,greater_than_sign", "speed(1)", "Faster replay", id="faster"),
    Binding("down,tab", "select_flow(1)", "Next in the table", id="next-flow"),
    Binding("up,shift+tab", "select_flow(-1)", "Previous in the table", id="previous-flow"),
    Binding("o", "alone", "The selected flow alone", id="alone"),
    Binding("G", "groups", "Group by algorithm", id="groups"),
    Binding("T", "stack", "Stack rates, classes of a queue", id="stack"),
    Binding("d", "sort", "Sort by the next column", id="sort"),
    Binding("D", "reverse", "Reverse the order", id="reverse"),
    Binding("slash", "filter", "Filter flows", id="filter"),
    Binding("b", "other_queue", "Next observed queue", id="way-back"),
    Binding("ctrl+n", "new_network", "New network…", id="network"),
    Binding("N", "map", "Network drawn large, or plots", id="map"),
    Binding("v", "variable(1)", "Variables of algorithms", id="variable", tooltip=_VALUES),
    Binding("V", "variable(-1)", id="variable-before", tooltip=_VALUES_BACK),
    Binding("L", "logarithm", "Logarithmic value axes", id="logarithm", tooltip=_LOGARITHM),
    Binding("H", "hold", "Hold the value axes", id="hold", tooltip=_HOLD),
    *(
        Binding(
            str(place + 1),
            f"enlarge({place})",
            f"Plot {place + 1} alone",
            id=f"plot-{place + 1}",
            tooltip="This plot alone, or all again",
        )
        for place in range(9)
    ),
    Binding("t", "next_look", "Next theme", id="theme"),
    Binding("B", "stroke", "Bold lines on and off", id="stroke"),
    Binding("ctrl+g", "ascii", "ASCII on and off", id="ascii"),
    Binding("r", "receiver", "Receiver's table or events", id="receiver"),
    Binding("e", "events", "Events in full", id="events", tooltip="Events and messages in full"),
    Binding("y", "theory", "Theory: W(t) and Reno's line", id="theory"),
    Binding("i", "explain", "Explain", id="explain", tooltip=_EXPLAIN),
    Binding("W", "share", "Share", id="share", tooltip="Share this session, or stop sharing"),
    Binding(
        "ctrl+b", "browsers", "Watch in a browser", id="browsers", tooltip="A link for browsers"
    ),
    Binding("F", "follow", "Follow", id="follow", tooltip="Follow the presenter again"),
    Binding("M", "point", "Point", id="point", tooltip="Point at this moment on all screens"),
    Binding("enter", "lesson_next", "Lesson: answer, run, reveal, next page", id="lesson-next"),
    Binding("enter,a,A", "start_traffic", "Start traffic…", id="start-traffic", tooltip=_START),
    Binding("backspace", "lesson_back", "Lesson: the page before", id="lesson-back"),
    Binding("R", "lesson_again", "Lesson: this page again", id="lesson-again"),
    Binding("pagedown", "lesson_scroll(1)", "Lesson: scroll the page", id="lesson-down"),
    Binding("pageup", "lesson_scroll(-1)", id="lesson-up", tooltip=_LESSON_UP),
    Binding("s", "picture", "Save a picture (SVG, PNG)", id="picture"),
    Binding("S", "save_scenario", "Save as scenario", id="scenario"),
    Binding("question_mark", "help", "Help", id="help"),
]
"""Keys of the main screen."""

COPY = Binding("ctrl+y", "copy", "Copy the tc line", priority=True)
"""Key that copies a command of tc(8)."""


# --- the keys in use: those of ``bindings``, as changed by the user's preferences -----------------

_MODIFIERS = re.compile(r"((?:ctrl|alt|shift|super|meta|hyper)\+)*")
_NAMED = frozenset(each.value for each in Keys if re.fullmatch("[a-z][a-z0-9_]+", each.value)) - {
    "any",
    "ignore",
}

_SIGNS = {_character_to_key(each) for each in map(chr, range(33, 127))}
_PUNCTUATION = {_character_to_key(each): each for each in "!#$%&'()*+-./:;<=>?@[]^_`{|}~"}
"""Punctuation that needs no escape in TOML or in a list of keys, by Textual's name for it."""


class Keymap:
    """The keys of the app and of its main screen."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """Use the user's ``own`` keys, already checked, by action id; commas separate several."""
        self.own: dict[str, str] = dict(own or {})
        """Keys that differ from ccplay's defaults, by action id."""
        self._keys = {
            name: tuple(normalized(self.own.get(name, each.key)))
            for name, each in REMAPPABLE.items()
        }

    def together(self, names: str) -> str:
        """Return the keys of several ids, separated by blanks, as displayed: ``←→``, ``⇧⇥/tab``."""
        keys = [self.shown(name) for name in names.split()]
        return ("/" if max(map(len, keys)) > 1 else " " if keys[0] == "[" else "").join(keys)

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of the action with the id ``name``, as Textual names them."""
        return self._keys[name]

    def shown(self, name: str) -> str:
        """Return the first key of the action with this id as displayed: ``f``, ``←``, ``^q``."""
        if name == "palette":
            return shown(App.COMMAND_PALETTE_BINDING)
        return shown(self._keys[name][0])


class Remapped(NamedTuple):
    """The valid part of a table of keys, and the mistakes in the rest."""

    keys: dict[str, str]
    mistakes: dict[str, str]
    """Mistakes in the table of keys, by action id."""


def remapped(wanted: object) -> Remapped:
    """Check a table of keys by action id; omit unknown ids and impossible keys.

    Raises ``ValueError`` if it is no table.
    """
    if not isinstance(wanted, Mapping):
        raise ValueError('keys are a table: [keys], and below it flow = "f"')  # noqa: TRY004
    kept: dict[str, str] = {}
    mistakes: dict[str, str] = {}
    for name, value in wanted.items():
        try:
            kept[name] = _checked(name, value)
        except ValueError as error:
            mistakes[name] = str(error)
    # If two actions had the same key, one of them would silently lose it.
    while taken := _taken(Keymap(kept)):
        name, reason = taken
        mistakes[name] = reason
        del kept[name]
    return Remapped(kept, mistakes)


def _taken(keymap: Keymap) -> tuple[str, str] | None:
    """Return an action id with a key that is already in use, and a message, or None."""
    for name in keymap.own:
        for key in keymap.keys(name):
            if key == App.COMMAND_PALETTE_BINDING:
                return name, f"{quote(shown(key))} opens the palette"
            for other in REMAPPABLE:
                # By default two actions share some keys: only one of the two is active at a time.
                share = all(key in normalized(REMAPPABLE[one].key) for one in (name, other))
                if other != name and key in keymap.keys(other) and not share:
                    reason = f"{quote(shown(key))} is the key of {other}: change one of them"
                    return name, reason
    return None


def normalized(keys: str) -> list[str]:
    """Return comma-separated keys under Textual's names; raise ``ValueError`` for unknown ones."""
    if keys.strip() == ",":
        return ["comma"]
    return [_key(each.strip()) for each in keys.split(",")]


def shown(key: str) -> str:
    """Return a key, given by Textual's name, as displayed to the user."""
    *modifiers, last = key.split("+")
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        return "+".join([*modifiers, f"^{format_key(last)}"])
    return "+".join([*modifiers, format_key(last)])


def as_in_file(key: str) -> str:
    """Return a key as written in a preferences file: ``[`` for ``left_square_bracket``."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, _PUNCTUATION.get(last, last)])


def _checked(name: str, value: object) -> str:
    if name not in REMAPPABLE:
        raise ValueError(f"there is no such action{did_you_mean(name, REMAPPABLE)}")
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'keys are text such as "f" or "ctrl+f,F5", not {quote(value)}')
    return ",".join(normalized(value))


def _key(text: str) -> str:
    modifiers = _MODIFIERS.match(text)
    start = modifiers.end() if modifiers else 0
    name = text[start:]
    if len(name) == 1 and name.isprintable():
        return text[:start] + _character_to_key(name)
    name = name.lower()
    if name in _NAMED or name in _SIGNS:
        return text[:start] + name
    raise ValueError(f'{quote(text)} is no key: "f", "F", "?", "f5", "space", "ctrl+f", "shift+up"')


REMAPPABLE = {
    each.id: each for each in (*MAIN, *APP) if isinstance(each, Binding) and each.id is not None
}
"""Bindings whose keys the user can change, by action id."""

DEFAULT = Keymap()
"""Keymap of ccplay's default keys."""


# --- the keys of a screen, grouped for display ----------------------------------------------------

GROUPS: dict[str, tuple[str, ...]] = {
    "traffic": ("traffic", "flow", "stop", "trace"),
    "network": ("congestion", "queue", "link", "way_back", "capture", "undo", "redo"),
    "time": ("freeze", "scrub", "leap", "start", "end", "zoom", "speed", "mark", "ghost"),
    "screen": (),
}
"""Words in a binding's action that assign it to a group; the last group takes the rest."""

ESSENTIALS = (
    ("start-traffic", _START),
    ("previous-flow next-flow", "Select a row of the table: other keys act on it"),
    ("stop", "Stop the selected traffic"),
    ("congestion", "Switch the congestion control of a flow while it runs"),
    ("queue", "Replace the queue in front of the bottleneck"),
    ("link", "Change the rate, delay or loss of a link"),
    ("undo", "Undo your last change"),
    ("follow", "Follow the presenter again"),
    ("freeze", "Freeze the screen, or resume; what is measured is kept"),
    ("back forward", "Look back in time, and forward again"),
    ("explain", "What the selected flow is doing, and why"),
    ("palette", "Any command by its name, such as: rate 5 Mbit/s"),
    ("quit", "Leave"),
    ("zoom-in zoom-out", "A shorter or a longer time axis"),
    ("slower faster", "Replay slower or faster"),
    ("start end", "Go to the start, or to the end"),
    ("plot-1", "The first plot alone, or all plots; 2, 3 … the others"),
    ("ghost", "Draw an earlier run under this one"),
    ("events", "All events and messages in full"),
)
"""Ids of keys that act alike and their effect, the most useful first; help shows the first that
have an effect now."""

MOST_ESSENTIALS = 12
"""Number of ``ESSENTIALS`` on the first page of the help."""

_OF_EVERY_APP = ("focus_next", "focus_previous", "copy_text", "help_quit")
"""Actions that Textual binds in every app; help and palette leave them out."""


def group_of(action: str) -> str:
    """Return the group of an action: that of ``open_flow`` is ``traffic``."""
    for group, words in GROUPS.items():
        if any(word in action.lower() for word in words):
            return group
    return "screen"


def bindings_of(screen: Screen[Any]) -> list[ActiveBinding]:
    """Return the key bindings of ``screen`` except those that Textual adds to every app."""
    return [
        each
        for each in screen.active_bindings.values()
        if each.binding.description
        and not each.binding.system
        and each.binding.action.rpartition(".")[2] not in _OF_EVERY_APP
    ]


def wording(active: ActiveBinding) -> str:
    """Return the description of a key's effect: its tooltip, else the shorter description."""
    return active.binding.tooltip or active.binding.description
