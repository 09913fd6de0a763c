"""Lines of plots: each a variable of one subject, as whole numbers on a grid of moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal, TypeAlias

import msgspec

from ccplay.analysis.trust import credible
from ccplay.model.variables import Rate, Variable, variable
from ccplay.plots.derived import per_second, value_at, values_at
from ccplay.plots.plot import Line, Plot, Scope, Summary, of_variable
from ccplay.plots.table import GOODPUT, PLOTS
from ccplay.state.lab_state import Flow, LabState, Ping, Queue
from ccplay.state.series import Series
from ccplay.state.udp import Udp

Role: TypeAlias = Literal["line", "bytes", "companion", "count", "summary", "table"]
"""Role of a line in its plot; ``bytes`` replaces ``line`` if a queue's limit is in bytes; ``table``
means that no plot has it."""

MOST_FLOWS = 40
"""Largest number of flows with lines; a page shows the number of all flows."""

MOST_QUEUES = 40
"""Largest number of queues with lines."""

MOST_LINES = 600
"""Largest number of lines in a session."""

_UDP_S = 1.4
"""Seconds for which a sample of cross traffic is drawn, unless another follows."""

_QUANTA = {"us": 10.0, "bps": 1000.0, "bytes": 100.0, "share": 1e-3}
"""Resolution of values by unit; plots can't show smaller differences."""

CARRIED = Variable(
    "carried", "carried", "bps", "queue", scale="Mbit/s", rate=Rate("bytes"), digits=1
)
"""Rate at which a link sends, for the drawing of the network."""


class Drawn(msgspec.Struct, frozen=True):
    """A line of the page: its description, and the source of its values."""

    plot: str
    """Name of the plot, or of the table's column."""
    role: Role
    subject: str
    """Name of the flow, queue or other traffic, or the word of a summary."""
    variable: Variable
    series: Series | None = None
    """Series of the samples; None for a summary."""
    style: str = "line"
    ink: str = ""
    summary: Summary | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key that identifies the line among all lines of the session."""
        return self.plot, self.role, self.subject, self.variable.series

    @property
    def quantum(self) -> float:
        """Value that the number 1 stands for."""
        return quantum(self.variable)


def quantum(variable: Variable) -> float:
    """Return the value that the number 1 stands for in lines of a variable."""
    if variable.one is not None:
        return variable.one / 1000
    return _QUANTA.get(variable.unit, 1.0)


def plots(state: LabState) -> dict[str, Plot]:
    """Return the plots of this session by name, those of own values last."""
    found = {plot.name: plot for plot in PLOTS.values() if plot.on_screen}
    own = [name for flow in flows_with_lines(state) for name in flow.own]
    own += [name for queue in _queues(state) for name in queue.own]
    for name in dict.fromkeys(own):
        found.setdefault(name, of_variable(variable(name)))
    return found


def lines(state: LabState) -> Iterator[Drawn]:
    """Yield the lines of a session, at most ``MOST_LINES``."""
    yield from islice(_lines(state), MOST_LINES)


def _lines(state: LabState) -> Iterator[Drawn]:
    for flow in flows_with_lines(state):
        series = flow.series["total_retrans"]
        yield Drawn("retr", "table", flow.name, _COUNTER, series)
    for queue in _queues(state):
        yield Drawn("carried", "table", queue.link, CARRIED, queue.series["bytes"])
    for plot in plots(state).values():
        for line in plot.lines:
            yield from _of(state, plot, line, "line")
        if plot.in_bytes is not None:
            yield from _of(state, plot, plot.in_bytes, "bytes")
        for line in plot.companions:
            yield from _of(state, plot, line, "companion")
        for count in plot.counts:
            for queue in _queues(state):
                series = queue.series[count.variable.name]
                yield Drawn(
                    plot.name, "count", queue.link, count.variable, series, "count", count.ink
                )
        for summary in plot.summaries:
            share = Variable(summary.word, unit="share")
            yield Drawn(plot.name, "summary", summary.word, share, summary=summary)


def _of(state: LabState, plot: Plot, line: Line, role: Role) -> Iterator[Drawn]:
    for subject, series in _SUBJECTS[line.subject](state, line.variable):
        yield Drawn(plot.name, role, subject, line.variable, series, line.style, line.ink)


def flows_with_lines(state: LabState) -> list[Flow]:
    """Return the flows that have lines: running ones, and the newest of the others."""
    flows = list(state.flows.values())
    if len(flows) <= MOST_FLOWS:
        return flows
    running = [each for each in flows if each.running][:MOST_FLOWS]
    ended = [each for each in flows if not each.running][-(MOST_FLOWS - len(running) or 1) :]
    kept = {each.name for each in (*running, *ended[: MOST_FLOWS - len(running)])}
    return [each for each in flows if each.name in kept]


def _queues(state: LabState) -> list[Queue]:
    return list(islice(state.queues.values(), MOST_QUEUES))


_Found: TypeAlias = Iterator[tuple[str, Series]]


def _of_flows(state: LabState, variable: Variable) -> _Found:
    for flow in flows_with_lines(state):
        if variable.series in flow.series:
            yield flow.name, flow.series[variable.series]


def _of_queues(state: LabState, variable: Variable) -> _Found:
    for queue in _queues(state):
        if variable.series in queue.series:
            yield queue.link, queue.series[variable.series]


def _of_pings(state: LabState, _: Variable) -> _Found:
    for ping in islice(state.of(Ping).values(), MOST_QUEUES):
        yield ping.name, ping.rtt_us


def _of_udp(state: LabState, variable: Variable) -> _Found:
    for udp in islice(state.of(Udp).values(), MOST_QUEUES):
        if variable.name in udp.seen:
            yield udp.name, udp.seen[variable.name]


def _reported(state: LabState, variable: Variable) -> _Found:
    for flow in flows_with_lines(state):
        if variable.series in flow.own:
            yield flow.name, flow.own[variable.series]
    for queue in _queues(state):
        if variable.series in queue.own:
            yield queue.link, queue.own[variable.series]


_SUBJECTS: dict[str | None, Callable[[LabState, Variable], _Found]] = {
    "flow": _of_flows,
    "queue": _of_queues,
    "ping": _of_pings,
    "udp": _of_udp,
    None: _reported,
}
"""Functions that yield the subjects of a variable with their series, by kind of subject."""

_COUNTER = Variable("total_retrans", "retransmitted", "segments", "flow")
"""Counter of retransmissions in the table."""


def value(state: LabState, line: Drawn, t: float, step: float) -> int | None:
    """Return the value of a line at ``t``, ``step`` seconds after the last one; None if unknown."""
    if line.series is None:
        return _whole(line, _summary(state, line, t))
    timeline = line.series.timeline
    tick = timeline.before_or_at(t)
    if tick < timeline.first:
        return None
    if timeline is not state.sweeps and t - timeline.time(tick) > _lasts(line, step):
        return None
    if line.style == "area" and line.variable.rate is None and timeline is state.sweeps:
        # A queue may have been longer between two moments of the grid.
        found = line.series.extremes(max(timeline.at_or_after(t - step), 0) + 1, tick + 1)
        return _whole(line, found[1] if found else line.series.at(tick))
    found_now = value_at(line.series, line.variable, t)
    if found_now is not None and found_now > credible(line.variable.name):
        return None
    return _whole(line, found_now)


def columns(
    state: LabState, line: Drawn, start: float, step: float, count: int
) -> tuple[list[int | None], list[int | None]]:
    """Return the lowest and the highest value in each of ``count`` columns of ``step`` seconds.

    If each column has only one value, the same list is returned twice.
    """
    series = line.series
    if series is None:
        # Titles show only the current value of a summary.
        nothing: list[int | None] = [None] * count
        return nothing, nothing
    edges = tuple(start + at * step for at in range(count + 1))
    if line.variable.rate is not None:
        over_s, factor = line.variable.rate.over_s, per_second(line.variable)
        rates = series.rates([(edge - max(over_s, step), edge) for edge in edges[1:]])
        scaled = [_whole(line, None if each is None else each * factor) for each in rates]
        return scaled, scaled
    ticks = series.timeline.ticks(edges)
    if line.role in ("count", "table"):
        counts = [_whole(line, series.at(tick - 1)) for tick in ticks[1:]]
        return counts, counts
    own_moments = series.timeline is not state.sweeps
    most = credible(line.variable.name)
    low: list[int | None] = []
    high: list[int | None] = []
    for at in range(count):
        first, last = ticks[at], ticks[at + 1]
        if first == last and not own_moments and first > series.timeline.first:
            # Columns are narrower than the interval of sweeps.
            first -= 1
        found_here = series.extremes(first, last, most) if first < last else None
        low.append(_whole(line, found_here[0] if found_here else None))
        high.append(_whole(line, found_here[1] if found_here else None))
    return (low, low) if low == high else (low, high)


def _whole(line: Drawn, value: float | None) -> int | None:
    return None if value is None else round(value / line.quantum)


def _lasts(line: Drawn, step: float) -> float:
    """Return the seconds for which a sample is drawn, of a series without a sample per sweep."""
    return step if line.style == "dots" else _UDP_S


def _summary(state: LabState, line: Drawn, t: float) -> float | None:
    if line.summary is None:
        return None
    running = [
        flow
        for flow in state.flows.values()
        if flow.kind != "subflow" and flow.started <= t and (flow.ended is None or t < flow.ended)
    ]
    series = [flow.series[GOODPUT.variable.series] for flow in running]
    values = [each for each in values_at(series, GOODPUT.variable, t) if each is not None]
    network = state.hello.network if state.hello else None
    link = network.observed[0] if network and network.observed else ""
    return line.summary.value(Scope(state, link, t=t, values=values))
