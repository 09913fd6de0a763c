"""The table of traffic: flows and downloads with cwnd, RTT and rate, then the rest."""

from __future__ import annotations

from ccplay.model.variables import say
from ccplay.model.wording import one_way
from ccplay.state.lab_state import Download, Flow
from ccplay.ui.cells.sheet import Row, Run, first_fitting, fit
from ccplay.ui.panels import datagrams
from ccplay.ui.panels.columns import Columns, columns
from ccplay.ui.plots import ghost_plots
from ccplay.ui.plots.scale import short
from ccplay.ui.selection import selection
from ccplay.ui.view import View, goodput
from ccplay.units import format_rate, format_size

WRONG = "!"
"""Sign after the glyph of a flow with a misbehaving algorithm."""

_HINT = "f starts a flow, w a download, p a ping, u UDP"
_SHORT_HINT = "f flow, w download, p ping, u UDP"
"""Hints at keys while there is no traffic."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the table, ``height`` rows of ``width`` cells."""
    state = view.state
    cells = _columns(view, width)
    head = _head(view, cells)
    if not state.traffic and view.session.live:
        return [head, (), [(f"   {_HINT if cells.wide else _SHORT_HINT}", view.ink("muted"))]]
    room = height - 1
    flows = [(flow.name, _flow(view, flow, cells)) for flow in view.listed()]
    others = [(each.name, datagrams.row(view, each, cells)) for each in view.others()]
    for flow, tick in view.ghosts()[: max(room - len(flows) - len(others), 0)]:
        names = [name for name, _ in flows]
        at = names.index(flow.name) + 1 if flow.name in names else len(names)
        flows.insert(at, (flow.name, _ghost(view, flow, tick, cells)))
    table = flows + others
    body = [row for _, row in table]
    last = next((at for at, (name, _) in enumerate(table) if name == view.selected), 0)
    if isinstance(chosen := selection(view), Flow):
        body[last + 1 : last + 1] = wrong = _wrong(view, chosen, cells)
        last += len(wrong)
        body[last + 1 : last + 1] = _own(view, chosen, cells)[: max(room - len(body), 0)]
    if len(body) > room:
        start = min(max(last - room + 2, 0), len(body) - room + 1)
        hidden = len(body) - (room - 1)
        body = body[start : start + room - 1]
        body.append([(f"   {view.glyphs.ellipsis} {hidden} more", view.ink("muted"))])
    return [head, *body]


def _columns(view: View, width: int) -> Columns:
    """Return the columns for the current rows."""
    flows = view.listed()
    ghosts = [flow for flow, _ in view.ghosts()]
    names = [each.name for each in (*flows, *ghosts, *view.others())]
    algorithms = [view.state.cc_at(flow, view.t) for flow in flows if flow.kind == "flow"]
    algorithms += [ghost_plots.flow_cc(view, flow) or flow.kind for flow in ghosts]
    return columns(width, names, algorithms)


def _head(view: View, cells: Columns) -> list[Run]:
    """Return the title of each column; the first begins above the glyphs."""
    numbers = cells.numbers("cwnd", "rtt", "goodput" if cells.wide else "rate", "retr")
    text = f" {'flow':<{cells.indent - 1}}{'cc':<{cells.cc}}{numbers}"
    return [(text, view.ink("muted"))]


def _flow(view: View, flow: Flow, cells: Columns) -> list[Run]:
    tick, ellipsis = view.tick, view.glyphs.ellipsis
    chosen = flow.name == view.selected
    over = flow.ended is not None and flow.ended <= view.t
    ink = view.ink("muted") if over else view.ink("text")
    bold = "bold " if chosen else ""
    own = view.flow_ink(flow.name)
    bad = view.ink("bad") if flow.wrong_at(view.t) else ""
    row: list[Run] = [
        (view.glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (view.flow_glyph(flow.name), f"bold {own}"),
        (WRONG if bad else _traced(view, flow), f"bold {bad or own}"),
        (fit(flow.name, cells.name, ellipsis), f"{bold}{own}"),
    ]
    if flow.kind == "download":
        return [*row, *_download(view, flow, cells.rest, ink)]
    cc = fit(view.state.cc_at(flow, view.t), cells.cc - 1, ellipsis)
    row.append((f"{cc} ", f"{bold}{bad or ink}"))
    if over:
        room = cells.rest - cells.cc
        return [*row, (fit(_account(flow, room), room, ellipsis), ink)]
    return [*row, (view.glyphs.translate(_values(flow, tick, cells)), f"{bold}{ink}")]


def _account(flow: Flow, width: int) -> str:
    """Return how a flow ended, and its monitored delay if there is room."""
    if flow.error:
        return flow.error
    sent, late = format_size(flow.bytes), one_way(flow.monitored)
    return first_fitting(width, f"ended, {sent}{late}", f"{sent}{late}", f"ended, {sent}")


def _traced(view: View, flow: Flow) -> str:
    """Return the sign of a traced flow."""
    return view.glyphs.traced if flow.trace is not None and flow.trace.covers(view.t) else " "


def _wrong(view: View, flow: Flow, cells: Columns) -> list[list[Run]]:
    """Return a line with the misbehaviour of the flow's algorithm, or none."""
    if not (wrong := flow.wrong_at(view.t)):
        return []
    said = fit(f"{WRONG} {wrong}", cells.rest, view.glyphs.ellipsis)
    return [[(" " * cells.indent + said, view.ink("bad"))]]


def _own(view: View, flow: Flow, cells: Columns) -> list[list[Run]]:
    """Return lines with the variables of the flow's algorithm."""
    lines: list[str] = []
    for name, series in flow.own.items():
        if (value := series.at(view.tick)) is None:
            continue
        said = say(name, value)
        if lines and len(lines[-1]) + 2 + len(said) <= cells.rest:
            lines[-1] += f"  {said}"
        else:
            lines.append(said)
    ink, blank = view.ink("muted"), " " * cells.indent
    return [[(blank + fit(each, cells.rest, view.glyphs.ellipsis), ink)] for each in lines]


def _ghost(view: View, flow: Flow, tick: int, cells: Columns) -> list[Run]:
    """Return the row of an earlier run at this moment, shown below the present one."""
    ellipsis = view.glyphs.ellipsis
    ink = ghost_plots.flow_ink(view, flow.name)
    name = ghost_plots.flow_cc(view, flow) or flow.kind
    return [
        (f"{view.glyphs.ghost}{ghost_plots.flow_glyph(view, flow.name)} ", ink),
        (fit(flow.name, cells.name, ellipsis), ink),
        (f"{fit(name, cells.cc - 1, ellipsis)} ", view.ink("muted")),
        (view.glyphs.translate(_values(flow, tick, cells)), view.ink("muted")),
    ]


def _values(flow: Flow, tick: int, cells: Columns) -> str:
    """Return cwnd, RTT, rate and retransmits of a flow."""
    series = flow.series
    return cells.numbers(
        _whole(series["cwnd"].at(tick), cells.cwnd),
        _time(series["srtt_us"].at(tick), cells),
        _rate(goodput(flow, tick), cells),
        _whole(series["total_retrans"].at(tick), cells.retr - 1),
    )


def _download(view: View, flow: Flow, width: int, ink: str) -> list[Run]:
    download = view.state.find(Download, flow.name)
    if download is None:
        return [("", ink)]
    if download.ended is not None and download.ended <= view.t:
        if download.error:
            return [(fit(download.error, width), view.ink("bad"))]
        seconds = download.duration_s or 0.0
        said = f"{format_size(download.total)} in {seconds:.2f} s"
        if seconds and width > 36:
            said += f", {format_rate(download.bytes * 8 / seconds)}"
        return [(fit(said, width), ink)]
    acked = flow.series["bytes_acked"].at(view.tick) or 0.0
    share = min(acked / download.total, 1.0) if download.total else 0.0
    bar = max(width - 24, 6)
    full = view.glyphs.queue_steps[-1] * round(share * bar)
    return [
        ("wget ", ink),
        (full, view.flow_ink(flow.name)),
        (view.glyphs.horizontal * (bar - len(full)), view.ink("grid")),
        (f"{share:>5.0%} of {format_size(download.total)}", ink),
    ]


def _whole(value: float | None, width: int) -> str:
    """Write a count; a long one is abbreviated."""
    if value is None:
        return "–"
    return number if len(number := f"{value:.0f}") <= width else short(value)


def _time(microseconds: float | None, cells: Columns) -> str:
    if not microseconds:
        return "–"
    value, unit = microseconds / 1e3, "ms"
    if value >= 1000:
        value, unit = value / 1e3, "s"
    if cells.tight and unit == "s":
        return f"{value:.0f}s"
    number = f"{value:.1f}" if value < 10 else f"{value:.0f}"
    if cells.tight:
        return number
    return f"{number} {unit}" if cells.wide else f"{number}{unit}"


def _rate(bits_per_second: float | None, cells: Columns) -> str:
    if bits_per_second is None:
        return "–"
    value = bits_per_second / 1e6
    if cells.wide:
        return f"{value:.2f} Mbit/s" if value < 100 else f"{value:.0f} Mbit/s"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}M"
