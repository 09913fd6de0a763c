"""Facts of a session that change rarely, as data: plots and their lines, flows, events, lesson."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice, pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from ccplay.analysis.trust import credible
from ccplay.assets import assets
from ccplay.lesson.course import bins, markdown, outcome
from ccplay.model.layout import layout
from ccplay.model.series import Series
from ccplay.model.variables import Rate, Variable, variable
from ccplay.model.wording import describe_link
from ccplay.plots.levels import Scope, counts_bytes
from ccplay.plots.subjects import name_of, owners, per_second, series_of, value_at, values_at
from ccplay.plots.table import GOODPUT, PLOTS
from ccplay.share.frames import Board
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.traffic import KINDS
from ccplay.traffic.connections import Flow
from ccplay.traffic.plot import Line, Plot, Summary, of_variable
from ccplay.units import format_size

# --- the shipped themes for a page: the colours of plots, by theme --------------------------------


@cache
def looks() -> dict[str, dict[str, Any]]:
    """Return each theme by name: its title, whether it is dark, and its colours."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(assets("themes").glob("*.toml")):
        theme = tomllib.loads(path.read_text(encoding="utf-8"))
        screen = {name: theme["screen"][name] for name in _SCREEN}
        found[path.stem] = {
            "title": theme["title"],
            "dark": theme["dark"],
            "flows": theme["plot"].pop("flows"),
            "inks": {**theme["plot"], **screen},
        }
        found[path.stem]["inks"].pop("ca_states", None)
    return found


_SCREEN = ("background", "surface", "panel", "foreground", "accent", "error")


# --- the Markdown of a lesson as data: nested lists of allowed elements, for a page to draw -------

ELEMENTS = frozenset(
    {"p", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "h3", "hr", "br"}
)
"""Elements that a lesson may contain; of others the text is kept."""

DEEPEST = 20
"""Largest depth of nested elements; of deeper ones the text is kept."""

_NAMES = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "heading": "h3",
    "softbreak": " ",
    "hardbreak": "br",
    "code_inline": "code",
    "fence": "pre",
    "code_block": "pre",
}

_parser = markdown()


def blocks(lines: Sequence[str]) -> list[object]:
    """Return Markdown as a list of texts and elements; an element is a list: name, then content."""
    # Open elements, outermost first. An omitted element is represented by its parent.
    found: list[list[object]] = [[]]
    parsed = _parser.parse("\n".join(lines))
    # The tokens of blocks, with those of their inline text in place.
    inline = ((each.children or ()) if each.type == "inline" else (each,) for each in parsed)
    for token in chain.from_iterable(inline):
        kind = token.type.removesuffix("_open")
        name = _NAMES.get(kind, kind)
        inner = found[-1]
        if token.nesting < 0:
            found.pop()
        elif name not in ELEMENTS or token.hidden or len(found) > DEEPEST:
            if token.nesting:
                found.append(inner)
            else:
                _add(inner, " " if name == " " else token.content)
        else:
            element: list[object] = [name]
            inner.append(element)
            if token.nesting:
                found.append(element)
            else:
                _add(element, token.content.rstrip("\n"))
    return found[0]


def _add(element: list[object], text: str) -> None:
    """Append a text to the content of an element, whose first item is its name."""
    if len(element) > 1 and isinstance(element[-1], str):
        element[-1] += text
    elif text:
        element.append(text)


# --- the page of a lesson that the presenter shows, in the form that a browser receives -----------

_STEPS = 25
"""Number of steps of a slider from the lowest answer to the highest."""


def lesson(board: Board | None, *, votes: bool) -> dict[str, Any] | None:
    """Return a page as text and data; None without one. ``votes``: whether browsers can vote."""
    if board is None or not board.page:
        return None
    return {
        "title": board.title,
        "place": f"{board.page}/{board.pages}",
        "heading": board.heading,
        "text": blocks(board.lines),
        "phase": board.phase,
        "revealed": board.phase == "revealed",
        "question": _question(board, votes=votes) if board.question else None,
        "measured": board.measured,
        "why": blocks(board.why),
    }


def _question(board: Board, *, votes: bool) -> dict[str, Any]:
    kind = "choices" if board.choices else "region" if board.plot else "number"
    ranges = bins(board, len(board.counts)) if board.counts else []
    return {
        "number": board.question,
        "ask": board.ask,
        "kind": kind,
        "choices": board.choices,
        "low": board.low,
        "high": board.high,
        "width": board.width,
        "step": (board.high - board.low) / _STEPS,
        "unit": board.unit,
        "plot": board.plot,
        "title": PLOTS[board.plot].title if board.plot in PLOTS else board.plot,
        "open": board.open,
        "votes": votes,
        "counts": board.counts,
        "bins": [] if board.choices else [f"{each} {board.unit}".rstrip() for each in ranges],
        "right": board.right,
        "answers": board.answers,
        "verdict": outcome(board),
    }


# --- lines of plots: each a variable of one subject, as whole numbers on a grid of moments --------

Role: TypeAlias = Literal["line", "bytes", "companion", "count", "summary", "table"]
"""Role of a line in its plot; ``bytes`` replaces ``line`` if a queue's limit is in bytes; ``table``
means that no plot has it."""

MOST_FLOWS = 40
"""Largest number of flows with lines; a page shows the number of all flows."""

MOST_QUEUES = 40
"""Largest number of queues with lines."""

MOST_LINES = 600
"""Largest number of lines in a session."""

_COUNTED_S = 1.4
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
    kinds: Counter[type] = Counter()
    for each in owners(state, line.variable, flows_with_lines(state)):
        kinds[type(each)] += 1
        if isinstance(each, Flow) or kinds[type(each)] <= MOST_QUEUES:
            series = series_of(each, line.variable)
            yield Drawn(plot.name, role, name_of(each), line.variable, series, line.style, line.ink)


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
    # A series without a sample per sweep.
    lasts_s = step if line.style == "dots" else _COUNTED_S
    if timeline is not state.sweeps and t - timeline.time(tick) > lasts_s:
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
    spans = series.thinned(ticks, most)
    if not own_moments:
        # Columns may be narrower than the interval of sweeps: then the last value holds.
        spans = [
            series.extremes(tick - 1, tick, most) if tick == end > series.timeline.first else span
            for (tick, end), span in zip(pairwise(ticks), spans, strict=True)
        ]
    low, high = ([_whole(line, span and span[at]) for span in spans] for at in (0, 1))
    return (low, low) if low == high else (low, high)


def _whole(line: Drawn, value: float | None) -> int | None:
    return None if value is None else round(value / line.quantum)


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


# --- facts of a session that change rarely: plots, flows, links, network and events, as data ------

Facts: TypeAlias = dict[str, Any]
"""Facts for a page, by name."""

MOST_LOGGED = 500
"""Number of lines of the event log that a page receives, the newest ones."""

MOST_NODES = 300
"""Largest number of nodes in a network that is drawn."""

_MOST_ENDS = 12
"""Largest number of host pairs whose base RTT is drawn."""

_MOST_CHANGES = 500
"""Number of changes of a setting that a page receives, the newest ones."""


def facts(state: LabState) -> Facts:
    """Return everything that a page receives except the values of lines."""
    flows = flows_with_lines(state)
    senders = state.hello.network.senders if state.hello else []
    return {
        "phase": _phase(state),
        "plots": [_plot(plot) for plot in plots(state).values()],
        "settings": _settings_of(state),
        "flows": [_flow(state, flow, senders) for flow in flows],
        "others": _others(state),
        "network": _network(state),
        "links": _links(state),
        "counts": [len(state.flows), len(flows)],
    }


def described(line: Drawn) -> list[Any]:
    """Return a line for a page: plot, role, subject, axis value of number 1, style, colour."""
    factor = line.variable.axis()[1]
    return [line.plot, line.role, line.subject, line.quantum * factor, line.style, line.ink]


def _phase(state: LabState) -> Facts:
    building = state.building
    return {
        "phase": state.phase,
        "step": building.step if building else "",
        "reason": state.end_reason or "",
        "interval": 1 / state.hello.sample_hz if state.hello else 0.02,
    }


def _plot(plot: Plot) -> Facts:
    unit, factor = plot.variable.axis()
    return {
        "name": plot.name,
        "title": plot.full or plot.about or plot.title,
        "short": plot.title,
        "help": plot.help,
        "missing": f"no {plot.missing[0]} at this time" if plot.missing else "",
        "least": plot.least,
        "subject": plot.variable.subject,
        "axis": _axis(plot.lines[-1], unit),
        "bytes": _axis(plot.in_bytes) if plot.in_bytes else None,
        "counts": [{"ink": each.ink, "short": each.short} for each in plot.counts],
        "companions": [each.variable.words for each in plot.companions],
        "factor": factor,
    }


def _axis(line: Line, unit: str = "") -> Facts:
    """Return the unit of an axis and the format of its values, as ``Variable.write`` has it."""
    variable = line.variable
    fraction = 2 if variable.one is not None else variable.digits
    scaled = bool(variable.scale) or variable.unit in ("us", "bps", "share")
    own, factor = variable.axis()
    return {
        "unit": unit or own,
        "digits": fraction,
        "scaled": scaled,
        "per": quantum(variable) * factor,
    }


def _settings_of(state: LabState) -> list[list[Any]]:
    """Return plot, subject, colour, name and changes of each setting that plots draw."""
    found: list[list[Any]] = []
    network = state.hello.network if state.hello else None
    links = network.observed[:MOST_QUEUES] if network else []
    ends = {f"{flow.src} {flow.dst}": (flow.src, flow.dst) for flow in flows_with_lines(state)}
    if network and network.senders and not ends:
        first = network.senders[0]
        ends[""] = first, network.peer(first)
    for plot in plots(state).values():
        for setting in plot.settings:
            for subject, scope in _scopes(state, plot, links, ends):
                line = plot.drawn(in_bytes=scope.in_bytes)[-1]
                factor = line.variable.axis()[1]
                changes = setting.changes(scope)[-_MOST_CHANGES:]
                steps = [[t, value and round(value * factor, 4)] for t, value in changes]
                if any(value is not None for _, value in steps):
                    found.append([plot.name, subject, setting.ink, setting.word, steps])
    return found


def _scopes(
    state: LabState, plot: Plot, links: list[str], ends: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, Scope]]:
    if plot.variable.subject == "queue":
        for link in links:
            change = state.link_at(link, state.now)
            in_bytes = counts_bytes(change.setting.qdisc if change else None)
            yield link, Scope(state, link, in_bytes=in_bytes, converts=True)
    elif plot.variable.subject == "flow":
        for name, pair in islice(ends.items(), _MOST_ENDS):
            yield name, Scope(state, ends=pair)
    else:
        yield "", Scope(state)


def _flow(state: LabState, flow: Flow, senders: list[str]) -> Facts:
    back = flow.dst in senders and flow.src not in senders
    path = f"{flow.dst} ← {flow.src}" if back else f"{flow.src} → {flow.dst}"
    over = flow.error or f"ended, {format_size(flow.bytes)}"
    return {
        "name": flow.name,
        "kind": flow.kind,
        "number": state.places.get(flow.name, 0),
        "ends": [flow.src, flow.dst],
        "path": path,
        "cc": [[t, cc] for t, cc in flow.cc_changes[-50:]] or [[flow.started, flow.cc]],
        "from": flow.started,
        "until": flow.ended,
        "over": over if flow.ended is not None else "",
        "wrong": flow.wrong_at(state.now),
    }


def _others(state: LabState) -> list[list[Any]]:
    """Return name, description, start and end of traffic without a connection."""
    found = [each for each in state.traffic.values() if not KINDS[each.kind].connection]
    return [
        [each.name, each.lines(state.now)[0], each.started, each.ended]
        for each in found[-MOST_FLOWS:]
    ]


def _network(state: LabState) -> Facts:
    network = state.hello.network if state.hello else None
    if network is None or len(network.nodes) > MOST_NODES:
        return {"nodes": [], "cables": [], "observed": network.observed if network else []}
    drawn = layout(network)
    observed = network.observed[:MOST_QUEUES]
    return {
        "nodes": [
            [node.name, *drawn.places[node.name], node.role]
            for node in network.nodes
            if node.name in drawn.places
        ],
        "cables": [
            [there.src, there.dst, *(each.name for each in (there, back) if each.name in observed)]
            for there, back in network.cables
        ],
        "observed": observed,
        "chain": drawn.is_chain,
    }


def _links(state: LabState) -> dict[str, list[list[Any]]]:
    """Return each observed link's settings: start, text, rate, limit, whether that is in bytes.

    The rate is None while something else gives it.
    """
    network = state.hello.network if state.hello else None
    found: dict[str, list[list[Any]]] = {}
    for link in network.observed[:MOST_QUEUES] if network else []:
        changes = state.links.get(link, [])[-_MOST_CHANGES:]
        found[link] = [
            [
                each.t,
                describe_link(each.setting),
                None if each.setting.is_paced else each.setting.rate,
                _limit(each.setting.qdisc.options.get("limit") if each.setting.qdisc else None),
                counts_bytes(each.setting.qdisc),
            ]
            for each in changes
        ]
    return found


def _limit(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) or None


def log(state: LabState) -> list[list[Any]]:
    """Return number, moment, kind and text of the newest events, and whether each is a mark."""
    first = max(len(state.log) - MOST_LOGGED, 0)
    return [
        [number, round(each.t, 3), each.kind, each.text, int(each.is_mark)]
        for number, each in enumerate(state.log[first:], first)
    ]
