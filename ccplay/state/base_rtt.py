"""Base RTTs over time: the sums of the delays set for a path's links, there and back."""

from __future__ import annotations

from ccplay.model.network import Network
from ccplay.state.lab_state import LabState


def base_rtt(
    state: LabState, network: Network | None, src: str, dst: str
) -> tuple[tuple[float, float | None], ...]:
    """Return the base RTT between two hosts in ms at each change; None without added delay."""
    if network is None:
        return ()
    names = [link.name for link in network.round_trip(src, dst)]
    moments = sorted({change.t for name in names for change in state.links.get(name, ())})
    changes: list[tuple[float, float | None]] = []
    for t in moments:

        def delay_us(name: str, t: float = t) -> float:
            change = state.link_at(name, t)
            return 0.0 if change is None else change.setting.delay_us or 0.0

        changes.append((t, network.base_rtt(src, dst, delay_us) * 1e-3 or None))
    return tuple(changes)
