"""The queues of a network that is too large to draw: a bar each, the fullest first.

::

     ● h1 → edge1 → agg2 → core4 → agg6 → edge5 → h9
    ▸edge5→h9    ▕████████▏ 50/50 pkt ●■▲
     edge1→agg2  ▕██      ▏ 12/50 pkt ●■
     edge1→agg1  ▕        ▏ down
"""

from __future__ import annotations

from ccplay.model.events import FlowPath
from ccplay.model.layout import chained
from ccplay.model.network import Network
from ccplay.plots.plot import counts_bytes
from ccplay.state.lab_state import Flow
from ccplay.state.routes import nodes_of
from ccplay.state.traffic import Routed
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.view import View

# --- the occupancy of a queue as text and as a bar ------------------------------------------------


def occupancy(view: View, link: str) -> tuple[str, float]:
    """Return the length of a link's queue as text, and as a share of its limit or peak."""
    queue, tick = view.state.queues.get(link), view.tick
    setting = view.state.link_at(link, view.t)
    if queue is None:
        return "", 0.0
    qdisc = setting.setting.qdisc if setting else None
    in_bytes = counts_bytes(qdisc)
    value = queue.series["backlog" if in_bytes else "qlen"].at(tick) or 0.0
    limit = qdisc.options.get("limit") if qdisc else None
    if isinstance(limit, int | float) and limit > 0:
        if in_bytes:
            return f"{value / 1e3:.0f}/{limit / 1e3:.0f} kB", value / limit
        return f"{value:.0f}/{limit:.0f} pkt", value / limit
    peak = queue.series["qlen"].extremes(0, tick + 1)
    return f"{value:.0f} pkt", value / max(peak[1] if peak else 1.0, 1.0)


def gauge(view: View, share: float, width: int) -> list[Run]:
    """Return a bar of ``width`` cells between two end marks, filled by ``share``, from 0 to 1."""
    steps = view.glyphs.queue_steps
    eighths = round(min(max(share, 0.0), 1.0) * width * (len(steps) - 1))
    full, part = divmod(eighths, len(steps) - 1)
    bar = steps[-1] * full + (steps[part] if part else "")
    ink = view.ink("queue") if share < 0.95 else view.ink("drop")
    return [
        ("▕" if view.glyphs.name == "unicode" else "[", view.ink("axis")),
        (f"{bar:<{width}}", ink),
        ("▏" if view.glyphs.name == "unicode" else "]", view.ink("axis")),
    ]


# --- the queues of a network that is too large to draw: a bar each, the fullest first -------------

_COUNT = 11
"""Width in columns of a queue's length as text; longer ones, such as ``1000/1000 pkt``, are cut."""

_GLYPHS = 8
"""Number of columns for the glyphs of flows that cross a link."""


def stands_for(network: Network) -> bool:
    """Return whether the table replaces the drawing: links have groups, or paths fork."""
    return bool(network.groups) or not chained(network)


def rows(view: View, network: Network, width: int, height: int) -> list[Row]:
    """Return the panel, at most ``height`` rows of ``width`` cells."""
    running = view.running()
    crossing: dict[str, list[Flow]] = {}
    for flow in running:
        for link in links_of(view, network, flow):
            crossing.setdefault(link, []).append(flow)
    lengths = {link: occupancy(view, link) for link in network.observed}
    fullest = sorted(lengths, key=lambda link: -lengths[link][1])
    # The queue shown in the plots stays visible: it replaces the last row if it is not fuller.
    kept = fullest[: max(height - 1, 0)]
    if view.link is not None and view.link not in kept and kept:
        kept[-1] = view.link
    name = max((len(link) for link in lengths), default=0)
    return [
        title(view, width),
        *(_row(view, link, lengths[link], (name, width), crossing.get(link, [])) for link in kept),
    ][:height]


def shown_flow(view: View) -> Flow | None:
    """Return the flow whose path is shown: the selected one, or else the first running one."""
    return view.state.flows.get(view.selected or "") or next(iter(view.running()), None)


def title(view: View, width: int) -> Row:
    """Return a row with the path of the selected traffic, or else of the first running flow."""
    other = view.state.traffic.get(view.selected or "")
    if isinstance(other, Routed) and not isinstance(other, Flow) and other.paths:
        path = _path_at(other, view.t)
        if path is not None:
            return _words(view, other.name, view.ink("text"), path, width)
    flow = shown_flow(view)
    path = _path_at(flow, view.t) if flow is not None else None
    if flow is None or path is None:
        text = f" queues, fullest first; {view.key('map')} draws the network"
        return [(fit(text, width), view.ink("muted"))]
    return _words(view, view.flow_glyph(flow.name), view.flow_ink(flow.name), path, width)


def _words(view: View, glyph: str, ink: str, path: FlowPath, width: int) -> Row:
    """Return a path as text after the glyph of its traffic; a pinned path is marked."""
    arrow = view.glyphs.translate(" → ")
    text = arrow.join(nodes_of(path)) or "no path: down"
    if path.pinned:
        text += " (pinned)"
    head = f" {glyph} "
    room = fit(text, max(width - len(head), 0), view.glyphs.ellipsis)
    return [(head, f"bold {ink}"), (room, view.ink("text"))]


def _row(
    view: View, link: str, length: tuple[str, float], size: tuple[int, int], flows: list[Flow]
) -> Row:
    name, width = size
    words, share = length
    change = view.state.link_at(link, view.t)
    if change is not None and change.setting.down:
        words = "down"
    room = max(width - name - _COUNT - _GLYPHS - 6, 4)
    shown = link == view.link
    ink = f"bold {view.ink('text')}" if shown else view.ink("text")
    glyphs: list[Run] = [
        (view.flow_glyph(each.name), f"bold {view.flow_ink(each.name)}") for each in flows[:_GLYPHS]
    ]
    if len(flows) > _GLYPHS:
        glyphs[-1] = (view.glyphs.ellipsis, view.ink("muted"))
    pointer = view.glyphs.chosen if shown else " "
    return [
        (f"{pointer}{link:<{name}} ", ink),
        *gauge(view, share, room),
        (f" {fit(words, _COUNT)} ", view.ink("muted")),
        *glyphs,
        (" " * (_GLYPHS - len(glyphs)), ""),
    ]


def links_of(view: View, network: Network, flow: Flow) -> list[str]:
    """Return the links that a flow crosses at the moment shown; none if only its subflows do."""
    if flow.mptcp:
        return []
    path = _path_at(flow, view.t)
    if path is not None:
        return path.links
    return [link.name for link in network.path(flow.src, flow.dst)]


def _path_at(flow: Routed, t: float) -> FlowPath | None:
    return next((path for path in reversed(flow.paths) if path.t <= t), None)
