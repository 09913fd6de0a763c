"""What every sweep samples of flows and queues: one description a field, for state and exports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampled:
    """A field of ``TcpSamples`` or ``QdiscSamples``, as the kernel names it."""

    name: str
    unit: str = ""
    """``segments``, ``packets``, ``bytes``, ``bps``, ``us`` or none."""
    kept: bool = False
    """Whether the state keeps it over time; the rest is only exported."""
    named: str = ""
    """Its column in exports, where that is not the name with its unit."""

    @property
    def column(self) -> str:
        """Its column in exports; the unit is part of the name."""
        if self.named or not self.unit or self.name.endswith(f"_{self.unit}"):
            return self.named or self.name
        return f"{self.name}_{self.unit}"


FLOW_VARIABLES = (
    Sampled("ca_state", kept=True),
    Sampled("cwnd", "segments", kept=True),
    Sampled("ssthresh", "segments", kept=True),
    Sampled("srtt_us", "us", kept=True),
    Sampled("rttvar_us", "us"),
    Sampled("min_rtt_us", "us", kept=True),
    Sampled("mss", "bytes"),
    Sampled("unacked", "segments", kept=True),
    Sampled("lost", "segments"),
    Sampled("retrans", "segments"),
    Sampled("total_retrans", "segments", kept=True),
    Sampled("pacing_rate", "bps", kept=True),
    Sampled("delivery_rate", "bps", kept=True),
    Sampled("bytes_acked", "bytes", kept=True, named="bytes_acked"),
    Sampled("bytes_sent", "bytes", named="bytes_sent"),
    Sampled("delivered_ce", "segments"),
)
"""Fields of ``TcpSamples`` but for names, in the order of exports."""

QUEUE_VARIABLES = (
    Sampled("backlog", "bytes", kept=True),
    Sampled("qlen", "packets", kept=True),
    Sampled("drops", "packets", kept=True),
    Sampled("ecn_marks", "packets", kept=True),
    Sampled("overlimits"),
    Sampled("requeues"),
    Sampled("bytes", "bytes", kept=True, named="sent_bytes"),
    Sampled("packets", "packets", kept=True, named="sent_packets"),
)
"""Fields of ``QdiscSamples`` but for names, in the order of exports."""
