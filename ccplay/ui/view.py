"""The view that panels are drawn from: session, moment, ghost, theme and the user's choices."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ccplay.analysis.theory import Theory
from ccplay.errors import RecordingError
from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import Applied, LinkChanged
from ccplay.model.network import Network
from ccplay.plots.subjects import values_at
from ccplay.plots.table import GOODPUT
from ccplay.session.archive import describe_recording
from ccplay.session.session import Session
from ccplay.share.frames import Shown
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from ccplay.traffic import KINDS, TRAFFIC
from ccplay.traffic.base import LogEntry, Traffic
from ccplay.traffic.connections import Flow
from ccplay.ui import keys
from ccplay.ui.cells import Glyphs
from ccplay.ui.keys import Keymap
from ccplay.ui.plot_traces import LINE_KINDS, LineKind
from ccplay.ui.themes import Look, StrokeName
from ccplay.units import format_clock

# --- ghosts: an earlier run, or an earlier part of this one, drawn under the session --------------

_FLOW = "start-flow"
_REMARKS = (Mark, ChangeMark, RemoveMark)
_SAME_S = 1e-6
"""Seconds within which two moments count as equal, because the wire has microseconds."""


class Ghost(msgspec.Struct, frozen=True):
    """A ghost and its alignment with the session's time axis."""

    state: LabState
    name: str
    """Displayed name, usually that of the file."""
    first: float
    """First moment of the ghost that is shown."""
    last: float = math.inf
    """Last moment of the ghost that is shown."""
    waits_since: float | None = None
    """Moment after which the session's next action aligns the ghost, which is hidden until then;
    if None, ``first`` is aligned with the moment at which the session's network was ready."""
    repeats: str = ""
    """Kind of the action that aligns the ghost, such as ``start-flow``; empty for any."""

    def shift(self, state: LabState) -> float | None:
        """Return the seconds to add to the ghost's moments to align it; None while it waits."""
        if self.waits_since is None:
            return None if state.ready_at is None else state.ready_at - self.first
        action = next_action(state, self.waits_since, self.repeats)
        return None if action is None else action.t - self.first


def of_run(state: LabState, name: str) -> Ghost:
    """Return a whole run as a ghost, aligned at the moments when the networks were ready."""
    return Ghost(state, name, first=state.ready_at or 0.0)


def of_session(state: LabState, first: float, *, waits_since: float) -> Ghost:
    """Return a session's own past from ``first`` on as its ghost.

    If there was an action at ``first``, the ghost waits for the next action of that kind.
    """
    action = next_action(state, first - 2 * _SAME_S)
    repeats = kind_of(action) if action is not None and action.t - first < _SAME_S else ""
    name = f"from {format_clock(first)} on"
    return Ghost(state, name, first, state.now, waits_since, repeats)


def next_action(state: LabState, t: float, kind: str = "") -> Applied | None:
    """Return the first action after ``t``, of ``kind`` unless it is empty; marks are no actions."""
    done = state.applied
    for at in range(bisect_right(done, t + _SAME_S, key=lambda each: each.t), len(done)):
        found = kind_of(done[at])
        if found == kind or (not kind and not isinstance(done[at].command, _REMARKS)):
            return done[at]
    return None


def kind_of(action: Applied) -> str:
    """Return the kind of an action as written in scenarios: ``start-flow``."""
    return str(action.command.__struct_config__.tag)


class Choice(msgspec.Struct, frozen=True):
    """The choice of a ghost; ``Choice()`` chooses none."""

    path: Path | None = None
    """Path of a recording."""
    moment: float | None = None
    """Moment of the session from which its own past becomes the ghost; None for a recording."""
    waits_since: float | None = None
    """Moment after which the session's next action aligns the ghost; if None, a recording is
    aligned at the moments when the networks were ready."""


class Ghosts:
    """The ghost of a session, and the reading of ghosts from files in the background."""

    def __init__(self, state: LabState) -> None:
        self.shown: Ghost | None = None
        self.state = state
        """State of the session, part of which may be the ghost."""
        self._reading: _Reading | None = None

    @property
    def reading(self) -> str:
        """Name and progress of the ghost being read; empty if none is."""
        return str(self._reading or "")

    async def choose(self, choice: Choice) -> None:
        """Show another ghost, or none. If ``RecordingError`` is raised, the present one stays."""
        if choice.path is not None:
            self.shown = await self._read(choice.path, choice.waits_since)
        elif choice.moment is not None and choice.waits_since is not None:
            self.shown = of_session(self.state, choice.moment, waits_since=choice.waits_since)
        else:
            self.shown = None

    async def _read(self, path: Path, waits_since: float | None) -> Ghost:
        self._reading = reading = _Reading(path)
        try:
            await asyncio.to_thread(reading.read)
        finally:
            # A cancelled worker leaves its thread behind, which must not continue.
            reading.wanted = False
            if self._reading is reading:
                self._reading = None
        name = wire.printable(path.name)
        if waits_since is None:
            return of_run(reading.state, name)
        action = next_action(reading.state, -math.inf, _FLOW)
        if action is None:
            raise RecordingError(f"{name}: it starts no flow, so it can't be aligned")
        return Ghost(reading.state, name, action.t, waits_since=waits_since, repeats=_FLOW)


class _Reading:
    """A recording that a thread is reading."""

    def __init__(self, path: Path) -> None:
        self.state = LabState()
        self.wanted = True
        """Whether to continue reading."""
        self._path = path
        self._seconds: float | None = None

    def read(self) -> None:
        """Read the recording. Raises ``RecordingError``."""
        self._seconds = describe_recording(self._path, self._path.parent).seconds
        for event in recorded_events(self._path):
            self.state.apply(event)
            if not self.wanted:
                return

    def __str__(self) -> str:
        """Return the recording's name and the progress."""
        name = wire.printable(self._path.name)
        return f"{name} {self.state.now / self._seconds:.0%}" if self._seconds else name


# --- values that panels and plots derive from the view, cached while it shows the same ------------

T = TypeVar("T")


class Known:
    """Cached results by key, all of one state, moment and window, and one choice of flows."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._found: dict[Hashable, Any] = {}

    def once(self, view: View, key: Hashable, derive: Callable[[View], T]) -> T:
        """Return the result of ``derive``, called once for ``key`` while the view shows the same.

        The result may depend on nothing of the view but its state, its playhead, its selection and
        its listing. Callers must not change it.
        """
        state, shown = view.state, view.shown
        head = shown.playhead
        of = (state, state.version, head.t, head.left, head.until, shown.listing, shown.selected)
        if of != self._of:
            self._of = of
            self._found.clear()
        if key not in self._found:
            self._found[key] = derive(view)
        found: T = self._found[key]
        return found


def once(derive: Callable[[View], T]) -> Callable[[View], T]:
    """Let a function of a view be called once while the view shows the same; see ``Known``."""

    @wraps(derive)
    def known(view: View) -> T:
        return view.known.once(view, derive, derive)

    return known


# --- the view that panels are drawn from: session, moment, theme and the user's choices -----------

LINGER_S = 10.0
"""Seconds for which ended traffic stays in the table."""


class View(msgspec.Struct):
    """The session as the screen shows it now."""

    session: Session
    shown: Shown
    """What the user has chosen to see."""
    look: Look
    glyphs: Glyphs
    ghost: Ghost | None = None
    """Ghost drawn under the session; None if there is none."""
    reading: str = ""
    """Name and progress of the ghost being read; empty if none is."""
    theory: Theory | None = None
    """Theory drawn over the selected flow's cwnd; None if it is off."""
    notice: str = ""
    """Notice about the current action; usually empty."""
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
    region: tuple[str, float, float] | None = None
    """Region that a lesson asks to predict: name of the plot, and both ends on its value axis."""
    awaits: str = ""
    """Reason why traffic will start without a key; usually empty."""
    guided: bool = False
    """Whether a lesson takes the Enter key, which otherwise starts traffic."""
    known: Known = msgspec.field(default_factory=Known)
    """Values derived from the state at this moment; views may share them."""

    @property
    def state(self) -> LabState:
        """The state of the whole session, including moments later than the one shown."""
        return self.session.state

    @property
    def t(self) -> float:
        """The moment shown."""
        return self.shown.playhead.t

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
        return links[self.shown.observed % len(links)] if links else None

    @property
    def flow(self) -> Flow | None:
        """The selected flow; None if there is none, or if other traffic is selected."""
        return self.state.flows.get(self.shown.selected or "")

    @property
    def foremost(self) -> Flow | None:
        """The selected flow, or else the first running one."""
        return self.flow or next(iter(self.running()), None)

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

    @once
    def running(self) -> list[Flow]:
        """Return the flows, downloads included, that run at the moment shown."""
        return [each for each in self.state.flows.values() if is_running(each, self.t)]

    @once
    def listed(self) -> list[Flow]:
        """Return the flows that run or have just ended."""
        return [each for each in self.state.flows.values() if is_running(each, self.t, LINGER_S)]

    @once
    def others(self) -> list[Traffic]:
        """Return other traffic that runs or has just ended, grouped by kind, pings last."""
        traffic = (each for each in self.state.traffic.values() if not KINDS[each.kind].connection)
        listed = [each for each in traffic if is_running(each, self.t, LINGER_S)]
        return sorted(listed, key=lambda each: TRAFFIC.index(KINDS[each.kind]), reverse=True)

    def entries(self, most: int) -> list[LogEntry]:
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
    return goodputs([flow], tick)[0]


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


def is_running(each: Traffic, t: float, linger_s: float = 0.0) -> bool:
    """Return whether traffic runs at ``t``, or ended less than ``linger_s`` seconds before."""
    return each.started <= t and (each.ended is None or t < each.ended + linger_s)
