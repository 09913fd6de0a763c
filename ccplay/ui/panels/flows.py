"""The table of what flows: flows and downloads with their cwnd, RTT and rate, and the pings."""

from __future__ import annotations

from ccplay.state import Flow, Ping
from ccplay.ui.sheet import Row, Run, fit
from ccplay.ui.view import View, goodput
from ccplay.units import format_rate, format_size
from ccplay.variables import say

WRONG = "!"
"""After the mark of a flow that its algorithm does no good."""

WIDE = 56
"""From this width on units are spelt out."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the table, ``height`` rows of ``width`` cells."""
    head = _head(view, width)
    if not view.state.flows and not view.state.pings and view.session.live:
        said = "f starts a flow, w a download, p a ping"
        return [head, (), [(f"   {said}"[:width], view.ink("muted"))]]
    listed = view.listed()
    body = [_flow(view, flow, width) for flow in listed]
    body += [_ping(view, ping, width) for ping in view.pings()]
    room = height - 1
    for flow, tick in view.ghosts()[: max(room - len(body), 0)]:
        at = next((n + 1 for n, each in enumerate(listed) if each.name == flow.name), len(listed))
        body.insert(at, _ghost(view, flow, tick, width))
        listed.insert(at, flow)
    last = 0
    for at, flow in enumerate(listed):
        if flow.name == view.selected:
            body[at + 1 : at + 1] = wrong = _wrong(view, flow, width)
            last = at + len(wrong)
            body[last + 1 : last + 1] = _own(view, flow, width)[: max(room - len(body), 0)]
            break
    start = 0
    if len(body) > room:
        start = min(max(last - room + 2, 0), len(body) - room + 1)
        hidden = len(body) - (room - 1)
        body = body[start : start + room - 1]
        body.append([(f"   {view.glyphs.ellipsis} {hidden} more", view.ink("muted"))])
    return [head, *body]


def _columns(width: int) -> tuple[int, int, int, int, int, int]:
    """Return the widths of id, cc, cwnd, rtt, rate and retransmits."""
    if width >= WIDE:
        return 5, 10, 6, 9, 13, 7
    return 3, 7, 5, 7, 7, 5


def _head(view: View, width: int) -> list[Run]:
    number, cc, cwnd, rtt, rate, retr = _columns(width)
    name = "flow" if number >= 4 else "fl"
    text = (
        f"   {name:<{number}}{'cc':<{cc}}{'cwnd':>{cwnd}}{'rtt':>{rtt}}"
        f"{'goodput' if width >= WIDE else 'rate':>{rate}}{'retr':>{retr}}"
    )
    return [(text, view.ink("muted"))]


def _flow(view: View, flow: Flow, width: int) -> list[Run]:
    number, cc = _columns(width)[:2]
    tick = view.tick
    chosen = flow.name == view.selected
    over = flow.ended is not None and flow.ended <= view.t
    ink = view.ink("muted") if over else view.ink("text")
    bold = "bold " if chosen else ""
    own = view.flow_ink(flow.name)
    bad = view.ink("bad") if flow.wrong_at(view.t) else ""
    row: list[Run] = [
        (view.glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (view.flow_mark(flow.name), f"bold {own}"),
        (WRONG if bad else _traced(view, flow), f"bold {bad or own}"),
        (fit(flow.name, number), f"{bold}{own}"),
    ]
    if flow.kind == "download":
        return [*row, *_download(view, flow, width - 3 - number, ink)]
    row.append((fit(view.state.cc_at(flow, view.t), cc - 1) + " ", f"{bold}{bad or ink}"))
    if over:
        said = flow.error or f"ended, {format_size(flow.bytes)}"
        return [*row, (fit(said, width - 4 - number - cc), ink)]
    return [*row, (_values(flow, tick, width), f"{bold}{ink}")]


def _traced(view: View, flow: Flow) -> str:
    """Return what says that the flow is traced."""
    return view.glyphs.traced if flow.trace is not None and flow.trace.covers(view.t) else " "


def _wrong(view: View, flow: Flow, width: int) -> list[list[Run]]:
    """Return a line with what the flow's algorithm does wrong, none where all is well."""
    if not (wrong := flow.wrong_at(view.t)):
        return []
    indent = 3 + _columns(width)[0]
    return [[(" " * indent + fit(f"{WRONG} {wrong}", width - indent), view.ink("bad"))]]


def _own(view: View, flow: Flow, width: int) -> list[list[Run]]:
    """Return lines with what the flow's algorithm says of itself, as many as it takes."""
    indent = 3 + _columns(width)[0]
    lines: list[str] = []
    for name, series in flow.own.items():
        if (value := series.at(view.tick)) is None:
            continue
        said = say(name, value)
        if lines and indent + len(lines[-1]) + 2 + len(said) <= width:
            lines[-1] += f"  {said}"
        else:
            lines.append(said)
    ink = view.ink("muted")
    return [[(" " * indent + fit(each, width - indent), ink)] for each in lines]


def _ghost(view: View, flow: Flow, tick: int, width: int) -> list[Run]:
    """Return what an earlier run had at this moment, below what there is now."""
    number, cc = _columns(width)[:2]
    ink = view.ghost_flow_ink(flow.name)
    name = view.ghost_cc(flow) or flow.kind
    return [
        (f"{view.glyphs.ghost}{view.ghost_flow_mark(flow.name)} {fit(flow.name, number)}", ink),
        (f"{fit(name, cc - 1)} ", view.ink("muted")),
        (_values(flow, tick, width), view.ink("muted")),
    ]


def _values(flow: Flow, tick: int, width: int) -> str:
    """Return cwnd, RTT, rate and retransmits of a flow."""
    _, _, cwnd, rtt, rate, retr = _columns(width)
    series = flow.series
    return (
        f"{_whole(series['cwnd'].at(tick)):>{cwnd}}"
        f"{_ms(series['srtt_us'].at(tick), width):>{rtt}}"
        f"{_rate(goodput(flow, tick), width):>{rate}}"
        f"{_whole(series['total_retrans'].at(tick)):>{retr}}"
    )


def _download(view: View, flow: Flow, width: int, ink: str) -> list[Run]:
    download = view.state.downloads.get(flow.name)
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


def _ping(view: View, ping: Ping, width: int) -> list[Run]:
    number = _columns(width)[0]
    series = ping.rtt_us
    tick = series.timeline.before_or_at(view.t)
    found = series.extremes(0, tick + 1)
    last = series.at(tick)
    if found is None:
        said = "no answer yet"
    else:
        least, most = (value / 1e3 for value in found)
        now = "lost" if last is None else f"{last / 1e3:.1f} ms"
        words = f"min {least:.1f}  max {most:.1f}"
        said = f"{now:<10}" + (words if width >= WIDE else f"{least:.0f} to {most:.0f}")
    if ping.ended is not None and ping.ended <= view.t:
        said = f"ended: {ping.error or f'{ping.sent} sent, {ping.lost} lost'}"
    mark = view.glyphs.separator
    return [
        (f" {mark} {fit(ping.name, number)}", view.ink("ping")),
        (fit(f"ping {said}", width - 4 - number), view.ink("text")),
    ]


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _ms(microseconds: float | None, width: int) -> str:
    if not microseconds:
        return "–"
    value = microseconds / 1e3
    number = f"{value:.1f}" if value < 10 else f"{value:.0f}"
    return f"{number} ms" if width >= WIDE else f"{number}ms"


def _rate(bits_per_second: float | None, width: int) -> str:
    if bits_per_second is None:
        return "–"
    if width >= WIDE:
        value = bits_per_second / 1e6
        return f"{value:.2f} Mbit/s" if value < 100 else f"{value:.0f} Mbit/s"
    value = bits_per_second / 1e6
    return f"{value:.2f}M" if value < 100 else f"{value:.0f}M"
