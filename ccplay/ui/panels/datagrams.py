"""A row of the table for traffic other than single connections: UDP, pings, short flows."""

from __future__ import annotations

from ccplay.model.wording import describe_loss
from ccplay.state.lab_state import Ping, Traffic, Udp
from ccplay.state.monitor_rates import DELAY, LOSS, RECEIVED
from ccplay.state.traffic import Measured
from ccplay.ui.cells.sheet import Run, first_fitting, fit
from ccplay.ui.panels.columns import Columns
from ccplay.ui.selection import selection
from ccplay.ui.view import View
from ccplay.units import format_part, format_rate, format_ratio, format_time_us


def row(view: View, each: Traffic, cells: Columns) -> list[Run]:
    """Return the row of one of them."""
    glyphs = view.glyphs
    chosen = selection(view) is each
    over = each.ended is not None and each.ended <= view.t
    said, ink = "", view.ink("text")
    match each:
        case Udp():
            said = _fate(each, cells) if over else _udp(each, cells, view.t)
        case Ping():
            said, ink = _ping(view, each, cells, over=over), view.ink("ping")
        case Measured():
            said = first_fitting(cells.rest, *each.lines(view.t))
    bold, words = "bold " if chosen else "", view.ink("muted" if over else "text")
    return [
        (glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (f"{glyphs.separator} {fit(each.name, cells.name, glyphs.ellipsis)}", bold + ink),
        (fit(glyphs.translate(said), cells.rest, glyphs.ellipsis), bold + words),
    ]


def _udp(udp: Udp, cells: Columns, t: float) -> str:
    """Return its rate; if monitored, also delivery, loss and delay of the last second."""
    rate, tick = format_rate(udp.rate_bps), udp.timeline.before_or_at(t)
    if udp.stopped is not None and udp.stopped <= t:
        rest = "packets under way"
        return first_fitting(cells.rest, f"UDP stopping, its last {rest}", f"UDP stopping, {rest}")
    if tick < udp.timeline.first:
        size = f" in {udp.packet_bytes} byte packets" if cells.wide else ""
        return f"UDP {rate}{size}, {udp.src} → {udp.dst}"
    received, loss, delay = (udp.seen[name].at(tick) for name in (RECEIVED, LOSS, DELAY))
    if received is None or delay is None:
        return f"UDP {rate}, nothing arrives"
    part = f"UDP {format_part(received, udp.rate_bps)}"
    short = format_rate(received).replace(" ", "").removesuffix("bit/s")
    lost = f"{format_ratio(loss or 0.0)} lost, {format_time_us(delay)}"
    several = (f"{part}, {lost} one way", f"{part}, {lost}", f"UDP {short}, {lost}")
    return first_fitting(cells.rest, *several, f"{short}, {lost}")


def _fate(udp: Udp, cells: Columns) -> str:
    """Say what became of it."""
    if udp.error:
        return f"UDP ended: {udp.error}"
    lost = describe_loss(udp.loss, udp.monitored)
    return first_fitting(cells.rest, f"UDP: {udp.sent:,} sent, {lost}", f"UDP {lost}", lost)


def _ping(view: View, ping: Ping, cells: Columns, *, over: bool) -> str:
    """Return the RTT of the last reply, and the range of all."""
    if over:
        return f"ping ended: {ping.error or f'{ping.sent} sent, {ping.lost} lost'}"
    series = ping.rtt_us
    tick = series.timeline.before_or_at(view.t)
    if (found := series.extremes(0, tick + 1)) is None:
        return "ping no reply yet"
    least, most = (value / 1e3 for value in found)
    last = series.at(tick)
    now = "lost" if last is None else f"{last / 1e3:.1f} ms"
    words = f"min {least:.1f}  max {most:.1f}" if cells.wide else f"{least:.0f} to {most:.0f}"
    return f"ping {now:<10}{words}"
