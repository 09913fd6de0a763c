"""A trace of a flow: the values of its sender's kernel at each ACK, as series of their own."""

from __future__ import annotations

import msgspec

from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.state.series import Series, Timeline
from ccplay.stream import sweep_codec

TRACE_SERIES = ("cwnd", "ssthresh", "srtt_us", "snd_wnd")
"""Fields of ``TraceSamples`` that are kept over time."""


def _series() -> dict[str, Series]:
    timeline = Timeline()
    return {name: Series(timeline) for name in TRACE_SERIES}


class Trace(msgspec.Struct):
    """Values of a connection at each segment that its sender received."""

    series: dict[str, Series] = msgspec.field(default_factory=_series)
    """Series of ``TRACE_SERIES`` on their own timeline, with one moment per segment."""
    ca_state: Series = msgspec.field(default_factory=lambda: Series(Timeline()))
    """Congestion states, one value per change at its exact moment."""

    @property
    def moments(self) -> Timeline:
        """Moments of the segments."""
        return self.series["cwnd"].timeline

    def covers(self, t: float, within_s: float = 1.0) -> bool:
        """Return whether a segment was traced at ``t`` or shortly before."""
        tick = self.moments.before_or_at(t)
        return tick >= self.moments.first and self.moments.time(tick) > t - within_s

    def add(self, samples: TraceSamples) -> None:
        """Add segments that are later than all before."""
        moments = sweep_codec.moments(samples)
        tick = self.moments.extend(moments)
        ticks = {
            name: sweep_codec.floats([getattr(samples, name)], len(moments))[0]
            for name in TRACE_SERIES
        }
        for name, series in self.series.items():
            series.extend(tick, ticks[name])

    def change(self, event: CaStateChanged) -> None:
        """Add a change of the congestion state that is later than all before."""
        self.ca_state.put(self.ca_state.timeline.append(event.t), event.ca_state)
