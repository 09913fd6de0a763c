"""The view that panels are drawn from: session, moment, theme and the user's choices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ccplay.analysis.theory import Theory
from ccplay.model.events import LinkChanged
from ccplay.model.network import Network
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.plots.derived import value_at, values_at
from ccplay.plots.table import GOODPUT
from ccplay.session.session import Session
from ccplay.share.frames import Pointer
from ccplay.state.lab_state import Entry, Flow, LabState, Ping, Queue, Traffic
from ccplay.ui import keys
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.keys import Keymap
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots.ghosts import Ghost
from ccplay.ui.plots.traces import LINE_KINDS, LineKind
from ccplay.ui.themes import Look, StrokeName

# --- how the user lists the flows: sorted, filtered, grouped, stacked, or one alone ---------------

COLUMNS = ("", "flow", "cc", "cwnd", "rtt", "goodput", "retr", "path")
"""Columns to sort by; the empty name stands for the order in which flows started."""

_WORDS = ("", "flow", "cc", "path")
"""Columns in ascending order by default; columns of numbers are in descending order."""

_LONGEST = 40
"""Longest filter in characters."""


class Listing(msgspec.Struct, frozen=True):
    """Which flows table and plots show, and in which order."""

    column: str = ""
    """Column that the table is sorted by, one of ``COLUMNS``."""
    reverse: bool = False
    """Whether the order of the table is reversed."""
    text: str = ""
    """Text that the name, algorithm or a host of a listed flow contains; empty lists all flows."""
    typing: bool = False
    """Whether typed keys extend the filter."""
    alone: bool = False
    """Whether plots draw the selected flow alone."""
    grouped: bool = False
    """Whether all flows of an algorithm share one line."""
    stacked: bool = False
    """Whether plots of rates and queues stack values that add up."""

    @property
    def descending(self) -> bool:
        """Whether the greatest value is listed first."""
        return (self.column not in _WORDS) != self.reverse

    def next_column(self) -> Listing:
        """Return this listing sorted by the next column, in that column's default order."""
        at = COLUMNS.index(self.column) + 1
        return replace(self, column=COLUMNS[at % len(COLUMNS)], reverse=False)

    def typed(self, key: str, character: str | None) -> Listing:
        """Return this listing after a key typed into the filter."""
        if key == "escape":
            return replace(self, text="", typing=False)
        if key == "enter":
            return replace(self, typing=False)
        if key == "backspace":
            return replace(self, text=self.text[:-1])
        if character and character.isprintable() and len(self.text) < _LONGEST:
            return replace(self, text=self.text + character)
        return self


# --- values that panels and plots derive from the state, cached for one state and moment ----------

T = TypeVar("T")


class Known:
    """Cached results by key, all of one state at one moment."""

    def __init__(self) -> None:
        self._at: tuple[int, int, float] | None = None
        self._found: dict[Hashable, Any] = {}

    def once(self, state: LabState, t: float, key: Hashable, derive: Callable[[], T]) -> T:
        """Return the result of ``derive``, called once per state, moment ``t`` and ``key``.

        ``key`` must contain everything else that the result depends on. Callers must not change the
        result.
        """
        at = (id(state), state.version, t)
        if at != self._at:
            self._at = at
            self._found.clear()
        if key not in self._found:
            self._found[key] = derive()
        found: T = self._found[key]
        return found


# --- the view that panels are drawn from: session, moment, theme and the user's choices -----------

LINGER_S = 10.0
"""Seconds for which ended traffic stays in the table."""


class View(msgspec.Struct):
    """The session as the screen shows it now."""

    session: Session
    playhead: Playhead
    look: Look
    glyphs: Glyphs
    selected: str | None = None
    """Name of the traffic that keys act on; None if nothing is selected."""
    observed: int = 0
    """Index of the observed queue shown, modulo the number of observed queues."""
    variable: str | None = None
    """Variable drawn in place of RTT; None for RTT itself."""
    ghost: Ghost | None = None
    """Ghost drawn under the session; None if there is none."""
    reading: str = ""
    """Name and progress of the ghost being read; empty if none is."""
    theory: Theory | None = None
    """Theory drawn over the selected flow's cwnd; None if it is off."""
    notice: str = ""
    """Notice about the current action; usually empty."""
    listing: Listing = msgspec.field(default_factory=Listing)
    """Filter, order and grouping of the flows shown."""
    stroke: StrokeName = "normal"
    """Thickness of the lines in plots."""
    colourless: bool = False
    """Whether the terminal shows no colours."""
    keys: Keymap = keys.DEFAULT
    """Keys of each action."""
    audience: str = ""
    """Number of spectators, or whether this screen follows or roams; empty if the session is not
    shared."""
    watching: bool = False
    """Whether this screen shows another screen's session."""
    catching_up: bool = False
    """Whether the past of a watched session is still being read."""
    pointer: Pointer | None = None
    """Moment that the presenter points at; None if there is none."""
    region: tuple[str, float, float] | None = None
    """Region that a lesson asks to predict: name of the plot, and both ends on its value axis."""
    awaits: str = ""
    """Reason why traffic will start without a key; usually empty."""
    known: Known = msgspec.field(default_factory=Known)
    """Values derived from the state at this moment; views may share them."""

    @property
    def state(self) -> LabState:
        """The state of the whole session, including moments later than the one shown."""
        return self.session.state

    @property
    def t(self) -> float:
        """The moment shown."""
        return self.playhead.t

    @property
    def tick(self) -> int:
        """Index of the last sweep at or before the moment shown."""
        return self.state.sweeps.before_or_at(self.t)

    @property
    def network(self) -> Network | None:
        """The network; None before it is known."""
        return self.state.hello.network if self.state.hello else None

    @property
    def interval(self) -> float:
        """Seconds between two sweeps."""
        return 1 / self.state.hello.sample_hz if self.state.hello else 0.02

    @property
    def link(self) -> str | None:
        """The link whose queue is shown; None before the network is known."""
        return self.observed_in(self.network)

    def observed_in(self, network: Network | None) -> str | None:
        """Return a network's observed link at the index of the shown queue; None without one."""
        links = network.observed if network else []
        return links[self.observed % len(links)] if links else None

    @property
    def ends(self) -> tuple[str, str]:
        """Source and destination of the selected flow, else of the first one, else of the network.

        Both are empty before the network is known.
        """
        flow = self.state.flows.get(self.selected or "") or next(iter(self.running()), None)
        if flow is not None:
            return flow.src, flow.dst
        if self.network is None or not self.network.senders:
            return "", ""
        first = self.network.senders[0]
        return first, self.network.peer(first)

    @property
    def queue(self) -> Queue | None:
        """The queue that is shown; None before its first sample."""
        return self.state.queues.get(self.link or "")

    @property
    def setting(self) -> LinkChanged | None:
        """The setting of the shown link at the moment shown."""
        return self.state.link_at(self.link, self.t) if self.link else None

    @property
    def unread(self) -> bool:
        """Whether part of a recording before the moment shown is still being read."""
        session = self.session
        if self.catching_up and not session.done:
            return not session.recorded or self.t > session.state.now
        read = session.known_from <= self.t <= session.state.now
        return session.recorded and not session.done and not read

    def key(self, name: str) -> str:
        """Return the key of the action with the id ``name``, as displayed."""
        return self.glyphs.translate(self.keys.shown(name))

    def ink(self, name: str) -> str:
        """Return the theme's colour with this name."""
        return self.look.colours[name]

    def number(self, name: str) -> int:
        """Return the index of a flow, from 0, which selects its colour and glyph."""
        return self.state.places[name]

    def flow_ink(self, name: str) -> str:
        """Return the colour of a flow."""
        return self.look.flows[self.number(name) % len(self.look.flows)]

    def flow_glyph(self, name: str) -> str:
        """Return the glyph of a flow."""
        return self.glyphs.flow_glyph(self.number(name))

    def flow_kind(self, name: str) -> LineKind:
        """Return the dash pattern of a flow's line: the same until colours are used again."""
        number = self.number(name)
        if not self.colourless and self.glyphs.plot_cells == "braille":
            number //= len(self.look.flows)
        return LINE_KINDS[number % len(LINE_KINDS)]

    def running(self) -> list[Flow]:
        """Return the flows, downloads included, that run at the moment shown."""
        state, t = self.state, self.t
        return self.known.once(state, t, "running", lambda: _flows(state, t))

    def listed(self) -> list[Flow]:
        """Return the flows that run or have just ended."""
        state, t = self.state, self.t
        return self.known.once(state, t, "listed", lambda: _flows(state, t, LINGER_S))

    def pings(self) -> list[Ping]:
        """Return the pings that run or have just ended."""
        return [each for each in self.state.of(Ping).values() if is_running(each, self.t, LINGER_S)]

    def others(self) -> list[Traffic]:
        """Return other traffic that runs or has just ended, grouped by kind, pings last."""
        state, t = self.state, self.t
        return self.known.once(state, t, "others", lambda: _others(state, t))

    def entries(self, most: int) -> list[Entry]:
        """Return the last lines of the event log at the moment shown, at most ``most``."""
        seen = [each for each in self.state.log if each.t <= self.t + 1e-6]
        seen.sort(key=lambda entry: entry.t)
        return seen[max(len(seen) - most, 0) :]

    @property
    def shift(self) -> float | None:
        """Seconds to add to the ghost's moments to align them; None without a visible ghost."""
        return self.ghost.shift(self.state) if self.ghost else None

    def ghost_ink(self, name: str) -> str:
        """Return the theme's colour with this name, faded for the ghost."""
        return self.look.faded(self.ink(name))

    def ghosts(self) -> list[tuple[Flow, int]]:
        """Return the ghost's flows that run at the moment shown, with the index of its sweep."""
        ghost, shift = self.ghost, self.shift
        if ghost is None or shift is None or not ghost.first <= self.t - shift <= ghost.last:
            return []
        tick = ghost.state.sweeps.before_or_at(self.t - shift)
        flows = [each for each in ghost.state.flows.values() if is_running(each, self.t - shift)]
        return [(each, tick) for each in flows]


def tracing_problem(state: LabState) -> str:
    """Return why flows can't be traced here, with the remedy; empty if they can."""
    points = state.hello.capabilities.tracepoints if state.hello else []
    probe = next((each for each in points if each.name == "tcp_probe"), None)
    if probe is None:
        return "this lab does not support tracing; update ccplay there"
    return "" if probe.available else f"{probe.name}: {probe.reason} ({probe.remedy})"


def goodput(flow: Flow, tick: int) -> float | None:
    """Return the value of the goodput plot at ``tick``, in bits per second."""
    acked = flow.series["bytes_acked"]
    if not acked.first <= tick < acked.end:
        return None
    return value_at(acked, GOODPUT.variable, acked.timeline.time(tick))


def goodputs(flows: Sequence[Flow], tick: int) -> list[float | None]:
    """Return the values of the goodput plot for many flows, whose series share one timeline."""
    series = [flow.series["bytes_acked"] for flow in flows]
    if not series:
        return []
    timeline = series[0].timeline
    if not timeline.first <= tick < timeline.end:
        return [None] * len(series)
    found = values_at(series, GOODPUT.variable, timeline.time(tick))
    there = (each.first <= tick < each.end for each in series)
    return [value if known else None for value, known in zip(found, there, strict=True)]


def _flows(state: LabState, t: float, linger_s: float = 0.0) -> list[Flow]:
    return [each for each in state.flows.values() if is_running(each, t, linger_s)]


def _others(state: LabState, t: float) -> list[Traffic]:
    traffic = (each for each in state.traffic.values() if not KINDS[each.kind].connection)
    listed = [each for each in traffic if is_running(each, t, LINGER_S)]
    return sorted(listed, key=lambda each: TRAFFIC.index(KINDS[each.kind]), reverse=True)


def is_running(each: Traffic, t: float, linger_s: float = 0.0) -> bool:
    """Return whether traffic runs at ``t``, or ended less than ``linger_s`` seconds before."""
    return each.started <= t and (each.ended is None or t < each.ended + linger_s)
