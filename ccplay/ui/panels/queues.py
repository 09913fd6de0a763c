"""Queues of a network that is too large to be drawn: a bar each, the fullest first.

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
from ccplay.state.connections import nodes_of
from ccplay.state.lab_state import Flow
from ccplay.ui.cells.sheet import Row, Run, fit
from ccplay.ui.panels.occupancy import gauge, occupancy
from ccplay.ui.view import View

_COUNT = 11
"""Cells of a queue's length in words: ``1000/1000 pkt`` may lose its unit."""

_MARKS = 8
"""Cells of the marks of flows that cross a link."""


def stands_for(network: Network) -> bool:
    """Return whether the table stands in place of a drawing: links form tiers, or paths fork."""
    return bool(network.groups) or not chained(network)


def rows(view: View, network: Network, width: int, height: int) -> list[Row]:
    """Return the panel, ``height`` rows of ``width`` cells."""
    running = view.running()
    crossing: dict[str, list[Flow]] = {}
    for flow in running:
        for link in links_of(view, network, flow):
            crossing.setdefault(link, []).append(flow)
    lengths = {link: occupancy(view, link) for link in network.observed}
    fullest = sorted(lengths, key=lambda link: -lengths[link][1])
    # The one that the plots show stays in sight, and in its place in the order.
    kept = fullest[: max(height - 1, 0)]
    if view.link is not None and view.link not in kept and kept:
        kept[-1] = view.link
    name = max((len(link) for link in lengths), default=0)
    return [
        title(view, width),
        *(_row(view, link, lengths[link], (name, width), crossing.get(link, [])) for link in kept),
    ][:height]


def shown_flow(view: View) -> Flow | None:
    """Return the flow whose path is shown: the selected one, or the first that runs."""
    return view.state.flows.get(view.selected or "") or next(iter(view.running()), None)


def title(view: View, width: int) -> Row:
    """Return the path of the shown flow, as far as it is known."""
    flow = shown_flow(view)
    path = _path_at(flow, view.t) if flow is not None else None
    if flow is None or path is None:
        return [
            (
                fit(f" queues, fullest first; {view.key('map')} draws the network", width),
                view.ink("muted"),
            )
        ]
    arrow = view.glyphs.translate(" → ")
    text = arrow.join(nodes_of(path)) or "no path: down"
    mark = (f" {view.flow_glyph(flow.name)} ", f"bold {view.flow_ink(flow.name)}")
    return [mark, (fit(text, width - 3, view.glyphs.ellipsis), view.ink("text"))]


def _row(
    view: View, link: str, length: tuple[str, float], size: tuple[int, int], flows: list[Flow]
) -> Row:
    name, width = size
    words, share = length
    change = view.state.link_at(link, view.t)
    if change is not None and change.setting.down:
        words = "down"
    room = max(width - name - _COUNT - _MARKS - 6, 4)
    shown = link == view.link
    ink = f"bold {view.ink('text')}" if shown else view.ink("text")
    marks: list[Run] = [
        (view.flow_glyph(each.name), f"bold {view.flow_ink(each.name)}") for each in flows[:_MARKS]
    ]
    if len(flows) > _MARKS:
        marks[-1] = (view.glyphs.ellipsis, view.ink("muted"))
    pointer = view.glyphs.chosen if shown else " "
    return [
        (f"{pointer}{link:<{name}} ", ink),
        *gauge(view, share, room),
        (f" {fit(words, _COUNT)} ", view.ink("muted")),
        *marks,
        (" " * (_MARKS - len(marks)), ""),
    ]


def links_of(view: View, network: Network, flow: Flow) -> list[str]:
    """Return the links that a flow crosses at the moment shown; of MPTCP, its subflows do."""
    if flow.mptcp:
        return []
    path = _path_at(flow, view.t)
    if path is not None:
        return path.links
    return [link.name for link in network.path(flow.src, flow.dst)]


def _path_at(flow: Flow, t: float) -> FlowPath | None:
    return next((path for path in reversed(flow.paths) if path.t <= t), None)
