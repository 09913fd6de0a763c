"""Whether the network did what it was set to: its RTT against the links' delays."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.state.lab_state import LabState, Ping

MOST_DELAY_OFF = 0.05
"""Share of the base RTT,"""
LEAST_DELAY_OFF_US = 3_000.0
"""and what a busy machine may add to any packet."""
_SMALL_PACKET_BITS = 8 * 98
"""A ping, or a SYN with its options: what measures the least RTT."""


def delay_off(state: LabState) -> str | None:
    """Return where the least RTT of a run was not that of the links; None if nowhere.

    An RTT below the links' delays is always wrong. Above them, only the part not explained by the
    shortest queue at the bottleneck is.
    """
    worst: tuple[float, str] | None = None
    for name, least, base, slack in _round_trips(state):
        allowed = max(LEAST_DELAY_OFF_US, MOST_DELAY_OFF * base)
        off = max(least - base - slack - allowed, base - least - allowed)
        if off > 0 and (worst is None or off > worst[0]):
            text = f"the least RTT of {name} was {least / 1000:.1f} ms"
            worst = (off, f"{text}, that of the links is {base / 1000:.1f} ms")
    return worst[1] if worst else None


def _round_trips(state: LabState) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, least RTT, base RTT and what a standing queue may add, in us."""
    if state.hello is None:
        return
    network = state.hello.network
    seen: dict[tuple[str, str], tuple[str, float]] = {}
    for name, src, dst, least in _least_rtts(state):
        if (src, dst) not in seen or least < seen[src, dst][1]:
            seen[src, dst] = (name, least)
    for (src, dst), (name, least) in seen.items():
        links = [link.name for link in network.round_trip(src, dst)]
        if links and (base := _base_us(state, links)) is not None:
            yield name, least, base, sum(_shortest_wait_us(state, link) for link in links)


def _least_rtts(state: LabState) -> Iterator[tuple[str, str, str, float]]:
    for flow in state.flows.values():
        # Of several paths the first subflow's is compared: each may have delays of its own.
        if flow.mptcp or (flow.kind == "subflow" and flow.name != f"{flow.parent}/1"):
            continue
        # The kernel's minimum never grows but over five minutes; the newest is the least.
        if least := flow.series["min_rtt_us"].last:
            yield f"flow {flow.name}", flow.src, flow.dst, least
    for ping in state.of(Ping).values():
        if (extremes := ping.rtt_us.extremes(ping.rtt_us.first, ping.rtt_us.end)) is not None:
            yield f"ping {ping.name}", ping.src, ping.dst, extremes[0]


def _base_us(state: LabState, links: list[str]) -> float | None:
    """Return the sum of the links' delays; None if they vary or changed."""
    base = 0.0
    for link in links:
        settings = [change.setting for change in state.links.get(link, ())]
        if len({each.delay_us or 0 for each in settings}) > 1 or any(s.jitter_us for s in settings):
            return None
        for setting in settings[:1]:
            base += setting.delay_us or 0
    return base


def _shortest_wait_us(state: LabState, link: str) -> float:
    """Return the shortest time of a small packet in a link's queue.

    HTB lets one through at once while it has tokens, so this is what may be, not what must.
    """
    queue, now = state.queues.get(link), state.link_at(link, state.now)
    if now is None or not now.setting.rate:
        return 0.0
    alone = _SMALL_PACKET_BITS * 1e6 / now.setting.rate
    if queue is None or not state.flows:
        return alone
    start = min(flow.started for flow in state.flows.values())
    backlog = queue.series["backlog"]
    extremes = backlog.extremes(state.sweeps.at_or_after(start), backlog.end)
    return alone + (0.0 if extremes is None else extremes[0] * 8e6 / now.setting.rate)
