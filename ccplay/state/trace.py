"""A trace of a flow: what its sender's kernel said at each ACK, as series of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.state.series import Series, Timeline
from ccplay.stream import sweep_codec

TRACE_SERIES = ("cwnd", "ssthresh", "srtt_us", "snd_wnd")
"""Fields of ``TraceSamples`` that are kept over time."""


def _series() -> dict[str, Series]:
    timeline = Timeline()
    return {name: Series(timeline) for name in TRACE_SERIES}


@dataclass(slots=True)
class Trace:
    """What was told of a connection at each segment that its sender received."""

    series: dict[str, Series] = field(default_factory=_series)
    """Those of ``TRACE_SERIES``, on a timeline of their own: one moment a segment."""
    ca_state: Series = field(default_factory=lambda: Series(Timeline()))
    """One value a change, at its exact moment."""

    @property
    def moments(self) -> Timeline:
        """When each segment came."""
        return self.series["cwnd"].timeline

    def covers(self, t: float, within_s: float = 1.0) -> bool:
        """Say whether a segment was told of at ``t`` or shortly before."""
        tick = self.moments.before_or_at(t)
        return tick >= self.moments.first and self.moments.time(tick) > t - within_s

    def add(self, samples: TraceSamples) -> None:
        """Take in some segments, later than all before."""
        moments = sweep_codec.moments(samples)
        tick = self.moments.extend(moments)
        said = {
            name: sweep_codec.floats([getattr(samples, name)], len(moments))[0]
            for name in TRACE_SERIES
        }
        for name, series in self.series.items():
            series.extend(tick, said[name])

    def change(self, event: CaStateChanged) -> None:
        """Take in a change of the congestion state, later than all before."""
        self.ca_state.put(self.ca_state.timeline.append(event.t), event.ca_state)
