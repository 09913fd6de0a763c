"""Distributions of the times of packets and transfers, for one run or several together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec

from ccplay.analysis.queueing import queueing_delays_us
from ccplay.state.lab_state import LabState, Ping
from ccplay.state.short_flows import SIZES, SIZES_IN_WORDS, ShortFlows

POINTS = 400
"""Largest number of quantiles that represent the values of a run."""

KINDS = {
    "rtt": "RTT (ms)",
    "ping": "ping RTT (ms)",
    "delay": "queueing delay (ms)",
    "sojourn": "sojourn time (ms)",
}
"""Labels of the value axes of distributions of packet times, by kind of distribution."""

COMPLETION_TIMES = {f"fct-{name}": words for name, words in SIZES_IN_WORDS.items()}
"""Size classes in words of the distributions of flow completion times in ms, by kind."""


class Distribution(msgspec.Struct, frozen=True):
    """A cumulative distribution: for each value the share of values that do not exceed it."""

    values: list[float]
    shares: list[float]
    count: int
    """Number of values measured."""

    def quantile(self, share: float) -> float:
        """Return the value that ``share`` of all values do not exceed."""
        if not self.values:
            return 0.0
        return self.values[min(bisect_left(self.shares, share), len(self.values) - 1)]


def distribution(values: Sequence[float]) -> Distribution | None:
    """Return the distribution of values, thinned but with both extremes; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    n = len(ordered)
    if n > POINTS:
        picks = sorted({round(i * (n - 1) / (POINTS - 1)) for i in range(POINTS)})
    else:
        picks = list(range(n))
    return Distribution([ordered[i] for i in picks], [(i + 1) / n for i in picks], n)


def together(parts: Sequence[Distribution]) -> Distribution:
    """Return one distribution of all values of several, each weighted by its number of values."""
    steps: list[tuple[float, float]] = []
    for part in parts:
        before = 0.0
        for value, share in zip(part.values, part.shares, strict=True):
            steps.append((value, (share - before) * part.count))
            before = share
    steps.sort()
    total = sum(weight for _, weight in steps)
    width = max(len(steps) // (2 * POINTS), 1)
    values, shares, sum_until = [], [], 0.0
    for number, (value, weight) in enumerate(steps):
        sum_until += weight
        if number % width == 0 or number == len(steps) - 1:
            values.append(value)
            shares.append(min(sum_until / total, 1.0))
    return Distribution(values, shares, sum(part.count for part in parts))


def distributions(state: LabState) -> dict[str, Distribution]:
    """Return the distributions of a run in ms by kind, as in ``KINDS`` and ``COMPLETION_TIMES``.

    ``rtt`` is srtt over all sweeps of all connections. Queueing delays and sojourn times are those
    of the first observed link: the delay in each sweep while there was traffic, the sojourn times
    of all packets, if a discipline in software measured them. Kinds without values are left out.
    """
    srtt = [
        value * 1e-3
        for flow in state.flows.values()
        if flow.kind == "flow"
        for value in flow.series["srtt_us"].values(0, flow.series["srtt_us"].end)
        if value > 0
    ]
    pings = [
        value * 1e-3
        for ping in state.of(Ping).values()
        for value in ping.rtt_us.values(0, ping.rtt_us.end)
    ]
    found = {"rtt": distribution(srtt), "ping": distribution(pings), **_completion_times(state)}
    names = state.hello.network.observed if state.hello else []
    queue = state.queues.get(names[0]) if names else None
    if queue is not None and state.flows:
        found["delay"] = distribution([us * 1e-3 for us in queueing_delays_us(state, queue)])
    if names:
        found["sojourn"] = counted(state.sojourns.of(names[0]))
    return {kind: each for kind, each in found.items() if each is not None}


def counted(packets: Mapping[int, int]) -> Distribution | None:
    """Return the distribution in ms of packets' times, from counts of packets by time in µs."""
    total, sum_until = sum(packets.values()), 0
    if not total:
        return None
    values, shares = [], []
    for upto_us, count in sorted(packets.items()):
        sum_until += count
        values.append(upto_us * 1e-3)
        shares.append(sum_until / total)
    return Distribution(values, shares, total)


def _completion_times(state: LabState) -> dict[str, Distribution | None]:
    """Return the distribution of completion times in each size class, over all short flows."""
    done = [
        (size, us * 1e-3)
        for flows in state.of(ShortFlows).values()
        for size, us in zip(flows.sizes, flows.fct_us, strict=True)
    ]
    return {
        f"fct-{name}": distribution([ms for size, ms in done if low <= size < high])
        for name, (low, high) in SIZES.items()
    }
