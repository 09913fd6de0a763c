"""Checks the network against its settings: measured RTTs against the links' delays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ccplay.state.lab_state import Flow, LabState, Ping

MOST_DELAY_OFF = 0.05
"""Largest acceptable error of a base RTT, as a share of it."""
LEAST_DELAY_OFF_US = 3_000.0
"""Acceptable error of any base RTT in µs: a busy machine may delay each packet that long."""
_SMALL_PACKET_BITS = 8 * 98
"""Length in bits of the packets that measure the minimum RTT: a ping, or a SYN with its options."""


def delay_off(state: LabState) -> str | None:
    """Return where the minimum RTT of a run differs from the links' delays; None if nowhere.

    A lower RTT is always wrong. Of a higher RTT only the part counts that the shortest queue at the
    bottleneck does not explain.
    """
    worst: tuple[float, str] | None = None
    for name, least, base, slack in _round_trips(state):
        allowed = max(LEAST_DELAY_OFF_US, MOST_DELAY_OFF * base)
        off = max(least - base - slack - allowed, base - least - allowed)
        if off > 0 and (worst is None or off > worst[0]):
            text = f"the minimum RTT of {name} was {least / 1000:.1f} ms"
            worst = (off, f"{text}, that of the links is {base / 1000:.1f} ms")
    return worst[1] if worst else None


def _round_trips(state: LabState) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, minimum RTT, base RTT, and the delay that a standing queue may add, in µs."""
    if state.hello is None:
        return
    network = state.hello.network
    seen: dict[tuple[str, ...], tuple[str, float, float]] = {}
    for each, taken, least in _least_rtts(state):
        there = taken or [link.name for link in network.path(each.src, each.dst)]
        # The path of ACKs is unknown if there are several: they may wait in the fullest queue.
        backs = [[link.name for link in path] for path in network.paths(each.dst, each.src)]
        if not there or not backs:
            continue
        links = (*there, *backs[0])
        if links not in seen or least < seen[links][1]:
            *waits, own = (
                sum(_shortest_wait_us(state, link, each) for link in path)
                for path in (*backs, there)
            )
            seen[links] = (f"{each.kind} {each.name}", least, own + max(waits))
    for links, (name, least, slack) in seen.items():
        if (base := _base_us(state, links)) is not None:
            yield name, least, base, slack


def _least_rtts(
    state: LabState,
) -> Iterator[tuple[Flow | Ping, list[str], float]]:
    """Yield traffic, the links of its path from the sender, and the minimum RTT in µs.

    Traffic that took several paths is left out, because its minimum RTT belongs to an unknown one.
    """
    for flow in state.flows.values():
        if flow.mptcp or len(flow.paths) > 1:
            continue
        # The kernel's minimum never grows but over five minutes; the newest is the least.
        if least := flow.series["min_rtt_us"].last:
            taken = flow.paths[0].links if flow.paths else []
            yield flow, taken, least
    for ping in state.of(Ping).values():
        if (extremes := ping.rtt_us.extremes(ping.rtt_us.first, ping.rtt_us.end)) is not None:
            yield ping, [], extremes[0]


def _base_us(state: LabState, links: Sequence[str]) -> float | None:
    """Return the sum of the links' delays; None if they vary or changed."""
    base = 0.0
    for link in links:
        settings = [change.setting for change in state.links.get(link, ())]
        if len({each.delay_us or 0 for each in settings}) > 1 or any(s.jitter_us for s in settings):
            return None
        for setting in settings[:1]:
            base += setting.delay_us or 0
    return base


def _shortest_wait_us(state: LabState, link: str, during: Flow | Ping) -> float:
    """Return the shortest time in µs that a small packet waited in a link's queue.

    HTB passes a packet at once while it has tokens, so the true time may be shorter.
    """
    queue, now = state.queues.get(link), state.link_at(link, state.now)
    if now is None or not now.setting.rate:
        return 0.0
    alone = _SMALL_PACKET_BITS * 1e6 / now.setting.rate
    if queue is None or not state.flows:
        return alone
    end = state.now if during.ended is None else during.ended
    first, last = state.sweeps.at_or_after(during.started), state.sweeps.at_or_after(end)
    backlog = queue.series["backlog"]
    # Traffic that ends before the next sweep has none of its own: use those around it.
    extremes = backlog.extremes(first, last) or backlog.extremes(first - 1, last + 1)
    return alone + (0.0 if extremes is None else extremes[0] * 8e6 / now.setting.rate)
