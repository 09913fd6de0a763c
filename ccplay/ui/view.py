"""What every panel is drawn from: the session at the playhead's moment, the look, the choice."""

from __future__ import annotations

from dataclasses import dataclass, field

from ccplay.analysis.theory import Theory
from ccplay.model.events import LinkChanged
from ccplay.model.network import Network
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.plots.derived import value_at
from ccplay.plots.table import GOODPUT
from ccplay.session.session import Session
from ccplay.state.lab_state import Entry, Flow, LabState, Ping, Queue, Traffic
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.listing import Listing
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots.ghosts import Ghost
from ccplay.ui.themes import Look

LINGER_S = 10.0
"""So long what has ended stays in the table, to be read."""


@dataclass(slots=True)
class View:
    """The session as the screen shows it now."""

    session: Session
    playhead: Playhead
    look: Look
    glyphs: Glyphs
    selected: str | None = None
    """The flow that keys act on."""
    observed: int = 0
    """Which of the observed queues is shown, counted on round and round."""
    variable: str | None = None
    """What of algorithms' own the right-hand plot shall show; None is RTT."""
    ghost: Ghost | None = None
    """What lies under the session."""
    reading: str = ""
    """What is being read to lie there, and how far; empty where nothing is."""
    theory: Theory | None = None
    """What lies over the selected flow's cwnd; None where nothing shall."""
    notice: str = ""
    """What a person should know of what they do now; empty where that is as always."""
    listing: Listing = field(default_factory=Listing)
    """Which flows are seen, and in which order."""

    @property
    def state(self) -> LabState:
        """Everything known of the session, also what lies after the moment shown."""
        return self.session.state

    @property
    def t(self) -> float:
        """The moment shown."""
        return self.playhead.t

    @property
    def tick(self) -> int:
        """The last sweep at or before the moment shown."""
        return self.state.sweeps.before_or_at(self.t)

    @property
    def network(self) -> Network | None:
        """What was built, None before that is known."""
        return self.state.hello.network if self.state.hello else None

    @property
    def interval(self) -> float:
        """Seconds between two sweeps."""
        return 1 / self.state.hello.sample_hz if self.state.hello else 0.02

    @property
    def link(self) -> str | None:
        """The link whose queue is shown."""
        return self.observed_in(self.network)

    def observed_in(self, network: Network | None) -> str | None:
        """Return the link in the place of the one shown, of this network or another."""
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
        """The queue that is shown, None before its first sample."""
        return self.state.queues.get(self.link or "")

    @property
    def setting(self) -> LinkChanged | None:
        """What the link that is shown does at the moment shown."""
        return self.state.link_at(self.link, self.t) if self.link else None

    @property
    def unread(self) -> bool:
        """Whether a recording is read, and not yet up to the moment shown."""
        session = self.session
        read = session.known_from <= self.t <= session.state.now
        return session.recorded and not session.done and not read

    def ink(self, name: str) -> str:
        """Return a colour of the theme."""
        return self.look.colours[name]

    def number(self, name: str) -> int:
        """Return the place of a flow, from 0, by which it has its colour and its mark."""
        return self.state.places[name]

    def flow_ink(self, name: str) -> str:
        """Return the colour of a flow."""
        return self.look.flows[self.number(name) % len(self.look.flows)]

    def flow_mark(self, name: str) -> str:
        """Return the mark of a flow."""
        return self.glyphs.flow_mark(self.number(name))

    def running(self) -> list[Flow]:
        """Return the flows, downloads included, that run at the moment shown."""
        return [each for each in self.state.flows.values() if _runs(each, self.t)]

    def listed(self) -> list[Flow]:
        """Return the flows that run, and those that ended just now."""
        return [each for each in self.state.flows.values() if _runs(each, self.t, LINGER_S)]

    def pings(self) -> list[Ping]:
        """Return the pings that run, or ended just now."""
        return [each for each in self.state.of(Ping).values() if _runs(each, self.t, LINGER_S)]

    def others(self) -> list[Traffic]:
        """Return what else the table lists below the flows, kind by kind, pings last."""
        listed = [
            each
            for each in self.state.traffic.values()
            if not KINDS[each.kind].connection and _runs(each, self.t, LINGER_S)
        ]
        return sorted(listed, key=lambda each: TRAFFIC.index(KINDS[each.kind]), reverse=True)

    def entries(self, most: int) -> list[Entry]:
        """Return the last lines of the event log at the moment shown."""
        seen = [each for each in self.state.log if each.t <= self.t + 1e-6]
        seen.sort(key=lambda entry: entry.t)
        return seen[max(len(seen) - most, 0) :]

    @property
    def shift(self) -> float | None:
        """Seconds from the ghost's moments to those of the session; None where none is seen."""
        return self.ghost.shift(self.state) if self.ghost else None

    def ghost_ink(self, name: str) -> str:
        """Return a colour of the theme as the ghost has it."""
        return self.look.faded(self.ink(name))

    def ghosts(self) -> list[tuple[Flow, int]]:
        """Return the flows of the ghost that run at the moment shown, and its tick by then."""
        ghost, shift = self.ghost, self.shift
        if ghost is None or shift is None or not ghost.first <= self.t - shift <= ghost.last:
            return []
        tick = ghost.state.sweeps.before_or_at(self.t - shift)
        flows = [each for each in ghost.state.flows.values() if _runs(each, self.t - shift)]
        return [(each, tick) for each in flows]


def tracing_problem(state: LabState) -> str:
    """Say why no flow can be traced here, and what to do; empty where it can."""
    points = state.hello.capabilities.tracepoints if state.hello else []
    probe = next((each for each in points if each.name == "tcp_probe"), None)
    if probe is None:
        return "this lab knows no tracepoints; update ccplay there"
    return "" if probe.available else f"{probe.name}: {probe.reason} ({probe.remedy})"


def goodput(flow: Flow, tick: int) -> float | None:
    """Return what the plot of goodput has at ``tick``, in bits per second."""
    acked = flow.series["bytes_acked"]
    if not acked.first <= tick < acked.end:
        return None
    return value_at(acked, GOODPUT.variable, acked.timeline.time(tick))


def _runs(each: Traffic, t: float, linger_s: float = 0.0) -> bool:
    return each.started <= t and (each.ended is None or t < each.ended + linger_s)
