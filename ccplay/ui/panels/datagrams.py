"""A row of the table for what has no connection: cross traffic by UDP, or a ping."""

from __future__ import annotations

from ccplay.state import Ping, Udp
from ccplay.ui.panels.columns import Columns
from ccplay.ui.selection import selection
from ccplay.ui.sheet import Run, first_fitting, fit
from ccplay.ui.view import View
from ccplay.units import format_rate
from ccplay.words import describe_loss


def row(view: View, each: Udp | Ping, cells: Columns) -> list[Run]:
    """Return the row of one of them."""
    glyphs = view.glyphs
    chosen = selection(view) is each
    over = each.ended is not None and each.ended <= view.t
    if isinstance(each, Udp):
        said, ink = _udp(each, cells, over=over), view.ink("text")
    else:
        said, ink = _ping(view, each, cells, over=over), view.ink("ping")
    bold, words = "bold " if chosen else "", view.ink("muted" if over else "text")
    return [
        (glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (f"{glyphs.separator} {fit(each.name, cells.name, glyphs.ellipsis)}", bold + ink),
        (fit(glyphs.translate(said), cells.rest, glyphs.ellipsis), bold + words),
    ]


def _udp(udp: Udp, cells: Columns, *, over: bool) -> str:
    """Say what it sends, and in the end what became of that: nothing is known before."""
    rate, path = format_rate(udp.rate_bps), f"{udp.src} → {udp.dst}"
    if not over:
        size = f" in {udp.packet_bytes} byte packets" if cells.wide else ""
        return f"UDP {rate}{size}, {path}"
    if udp.error:
        return f"UDP ended: {udp.error}"
    lost = describe_loss(udp.sent, udp.received, udp.monitored)
    return first_fitting(cells.rest, f"UDP: {udp.sent:,} sent, {lost}", f"UDP {lost}", lost)


def _ping(view: View, ping: Ping, cells: Columns, *, over: bool) -> str:
    """Say how long the last answer took, and the range of all."""
    if over:
        return f"ping ended: {ping.error or f'{ping.sent} sent, {ping.lost} lost'}"
    series = ping.rtt_us
    tick = series.timeline.before_or_at(view.t)
    if (found := series.extremes(0, tick + 1)) is None:
        return "ping no answer yet"
    least, most = (value / 1e3 for value in found)
    last = series.at(tick)
    now = "lost" if last is None else f"{last / 1e3:.1f} ms"
    words = f"min {least:.1f}  max {most:.1f}" if cells.wide else f"{least:.0f} to {most:.0f}"
    return f"ping {now:<10}{words}"
