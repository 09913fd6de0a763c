"""What every panel is drawn from: the session at the playhead's moment, the look, the choice."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ccplay.model import LinkChanged, Network
from ccplay.session import Session
from ccplay.state import Entry, Flow, LabState, Ping, Queue
from ccplay.ui.glyphs import Glyphs
from ccplay.ui.playhead import Playhead
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
    reverse: bool = False
    """Whether the queue of the way back is shown."""

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
        """The direction of the bottleneck that is shown."""
        links = self.network.bottlenecks if self.network else []
        return links[min(int(self.reverse), len(links) - 1)] if links else None

    @property
    def queue(self) -> Queue | None:
        """The queue that is shown, None before its first sample."""
        return self.state.queues.get(self.link or "")

    @property
    def setting(self) -> LinkChanged | None:
        """What the link that is shown does at the moment shown."""
        return self.state.link_at(self.link, self.t) if self.link else None

    def ink(self, name: str) -> str:
        """Return a colour of the theme."""
        return self.look.colours[name]

    def number(self, name: str) -> int:
        """Return the place of a flow, from 0, by which it has its colour and its mark."""
        return list(self.state.flows).index(name)

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
        """Return the flows of the table: those that run, and those that ended just now."""
        return [each for each in self.state.flows.values() if _runs(each, self.t, LINGER_S)]

    def pings(self) -> list[Ping]:
        """Return the pings that run, or ended just now."""
        return [each for each in self.state.pings.values() if _runs(each, self.t, LINGER_S)]

    def entries(self, most: int) -> list[Entry]:
        """Return the last lines of the event log at the moment shown."""
        log = self.state.log
        end = bisect_right(log, self.t + 1e-6, key=lambda entry: entry.t)
        return log[max(end - most, 0) : end]

    def ago(self, tick: int, seconds: float) -> int:
        """Return the tick that lies ``seconds`` before another one."""
        timeline = self.state.sweeps
        if not timeline.first <= tick < timeline.end:
            return tick
        return max(timeline.at_or_after(timeline.time(tick) - seconds), timeline.first)

    def goodput(self, flow: Flow, over_s: float = 1.0) -> float | None:
        """Return the acknowledged payload in bits per second over the last second or so."""
        acked, tick = flow.series["bytes_acked"], self.tick
        if not acked.first <= tick < acked.end:
            return None
        since = max(self.ago(tick, over_s), acked.first)
        before, now = acked.at(since), acked.at(tick)
        if before is None or now is None or since == tick:
            return None
        elapsed = self.state.sweeps.time(tick) - self.state.sweeps.time(since)
        return (now - before) * 8 / elapsed


def _runs(each: Flow | Ping, t: float, linger_s: float = 0.0) -> bool:
    return each.started <= t and (each.ended is None or t < each.ended + linger_s)
