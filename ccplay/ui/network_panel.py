"""The network around the shown link: the hosts on both sides, and the queue between them.

::

     s1 ●1 ─┐                               ┌─ d1 ●1
            ├─ r1 ══▶ ▕██████    ▏ ══▶ r2 ──┤
     s2 ■2 ─┘         61/100 pkt            └─ d2 ■2
                  10 Mbit/s · 20 ms · pfifo
                 d1→r2 10 ms · base RTT 50 ms
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ccplay.model.events import FlowPath
from ccplay.model.layout import chained
from ccplay.model.network import Link, Network
from ccplay.model.values import LinkSetting
from ccplay.model.wording import describe_link
from ccplay.plots.levels import counts_bytes
from ccplay.state.lab_state import capacity_at, delay_at
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.traffic.routes import nodes_of
from ccplay.ui.cells import Row, Run, fit, whole_items
from ccplay.ui.view import View, once
from ccplay.units import format_rate, format_time_us

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


def queue_rows(view: View, network: Network, width: int, height: int) -> list[Row]:
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
        path_title(view, width),
        *(_row(view, link, lengths[link], (name, width), crossing.get(link, [])) for link in kept),
    ][:height]


def path_title(view: View, width: int) -> Row:
    """Return a row with the path of the selected traffic, or else of the first running flow."""
    other = view.state.traffic.get(view.shown.selected or "")
    if other is not None and not isinstance(other, Flow) and other.paths:
        path = _path_at(other, view.t)
        if path is not None:
            return _words(view, other.name, view.ink("text"), path, width)
    flow = view.foremost
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
    glyphs = flow_glyphs(view, flows, _GLYPHS)
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


def _path_at(flow: Traffic, t: float) -> FlowPath | None:
    return next((path for path in reversed(flow.paths) if path.t <= t), None)


# --- the network around the shown link: the hosts on both sides, and the queue between them -------

_NARROW = 50
"""Width in columns below which hosts have less room."""

_LEAST_HEIGHT = 7
"""Smallest height of the panel in rows, if the terminal has room for it."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the panel, at most ``height`` rows of ``width`` cells."""
    network = view.network
    if network is None:
        return [[(" starting the lab …", view.ink("muted"))]] if not view.session.done else []
    if view.link is None or not network.senders:
        return []
    if stands_for(network):
        return queue_rows(view, network, width, height)
    near, far, back = _around(network, network.link(view.link))
    behind, ahead = _sides(network, near, far)
    lines = max(min(max(len(behind), len(ahead)), height), min(3, height))
    # For a host's name and the glyphs of its flows.
    host = 9 if width >= _NARROW else 7
    left = _side(view, behind, near, (lines, host), right=False)
    right = _side(view, ahead, far, (lines, host), right=True)
    room = width - 2 * (host + 3) - 2
    middle = _middle(view, (near, far), room, back=back)
    first = max((lines - 1) // 2, 0)
    picture: list[Row] = []
    for line in range(lines):
        at = line - first
        core = middle[at] if 0 <= at < len(middle) else [(" " * room, "")]
        picture.append([(" ", ""), *left[line], *core, *right[line]])
    below = middle[max(lines - first, 0) :]
    picture += [[(" " * (host + 4), ""), *core] for core in below]
    blank: list[Row] = [()] * max((height - len(picture)) // 2, 0)
    return [*blank, *picture][:height]


def height(view: View) -> int:
    """Return the number of rows for the hosts of the side with more, and two lines of text."""
    network = view.network
    if network is None or view.link is None or not network.senders:
        return _LEAST_HEIGHT
    if stands_for(network):
        return _LEAST_HEIGHT + 2
    near, far, _ = _around(network, network.link(view.link))
    return max(max(map(len, _sides(network, near, far))) + 2, _LEAST_HEIGHT)


def _sides(network: Network, near: str, far: str) -> tuple[list[str], list[str]]:
    """Return the hosts nearer to ``near`` than to ``far``, and all others."""
    behind = [host for host in network.hosts if network.hops(host, near) < network.hops(host, far)]
    return behind, [host for host in network.hosts if host not in behind]


def _side(
    view: View, hosts: Sequence[str], end: str, size: tuple[int, int], *, right: bool
) -> list[list[Run]]:
    """Return the lines with the hosts of one side and the tree that joins them to the link's end.

    If this end is the only host, return only the glyphs of its flows.
    """
    lines, width = size
    blank: list[Run] = [(" " * (width + 3), "")]
    if not hosts:
        return [blank] * lines
    if [*hosts] == [end]:
        trunk = max((lines - 1) // 2, 0)
        alone = _glyphs(view, end, width + 2, right=right)
        beside: list[Run] = [*alone, (" ", "")] if right else [(" ", ""), *alone]
        return [beside if line == trunk else blank for line in range(lines)]
    shown = [*hosts]
    if len(hosts) > lines:
        shown = [*hosts[: lines - 1], f"+{len(hosts) - lines + 1}"]
    trunk = max((lines - 1) // 2, 0)
    start = max(trunk - (len(shown) - 1) // 2, 0) if len(shown) < lines else 0
    spots = {start + i: name for i, name in enumerate(shown)}
    if len(shown) == 2 and lines == 3:
        spots = {0: shown[0], 2: shown[1]}
    first, last = min(spots), max(spots)
    rows: list[list[Run]] = []
    for line in range(lines):
        host = [(" " * width, "")]
        if line in spots:
            host = _host(view, spots[line], width, right=right)
        branch = (_branch(view, line, (first, last, trunk), line in spots, right), view.ink("axis"))
        rows.append([branch, *host] if right else [*host, branch])
    return rows


def _branch(view: View, line: int, ends: tuple[int, int, int], host: bool, right: bool) -> str:
    """Return a line's part of the tree: an arm to the link, a joint, and an arm to the host."""
    glyphs = view.glyphs
    first, last, trunk = ends
    if not first <= line <= last and line != trunk:
        return "   "
    # By whether the line has an arm to a host, one to the link, and branches above and below.
    joints = {
        (True, True, False, False): glyphs.horizontal,
        (True, False, False, True): glyphs.top_left if right else glyphs.top_right,
        (True, False, True, False): glyphs.bottom_left if right else glyphs.bottom_right,
        (True, False, True, True): glyphs.tee_right if right else glyphs.tee_left,
        (False, True, True, True): glyphs.tee_left if right else glyphs.tee_right,
        (False, False, True, True): glyphs.vertical,
        (True, True, False, True): glyphs.tee_down,
        (True, True, True, False): glyphs.tee_up,
        (True, True, True, True): glyphs.cross,
    }
    key = (host, line == trunk, first < line, line < last)
    joint = joints.get(key, glyphs.vertical)
    near = glyphs.horizontal if line == trunk else " "
    far = glyphs.horizontal if host else " "
    return near + joint + far if right else far + joint + near


def _host(view: View, name: str, width: int, *, right: bool) -> list[Run]:
    """Return a host's name and the glyphs of its traffic, as many as fit."""
    text = fit(name, min(len(name), width - 2))
    glyphs = _glyphs(view, name, width - len(text) - 2, right=right)
    named: Run = (f" {text} ", f"bold {view.ink('text')}")
    return [named, *glyphs] if right else [*glyphs, named]


def _glyphs(view: View, name: str, width: int, *, right: bool) -> list[Run]:
    """Return the glyphs of a host's traffic, as many as fit."""
    glyphs = flow_glyphs(view, flows_by_host(view).get(name, []), width)
    blank = (" " * (width - len(glyphs)), "")
    return [*glyphs, blank] if right else [blank, *glyphs]


def flow_glyphs(view: View, flows: Sequence[Flow], most: int) -> list[Run]:
    """Return the glyphs of flows; of more than ``most``, an ellipsis stands for the rest."""
    # One flow more than fits is enough to know that some are left out.
    shown = flows[: most + 1]
    glyphs = [(view.flow_glyph(each.name), f"bold {view.flow_ink(each.name)}") for each in shown]
    if len(glyphs) > most > 0:
        return [*glyphs[: most - 1], (view.glyphs.ellipsis, view.ink("muted"))]
    return glyphs


@once
def flows_by_host(view: View) -> dict[str, list[Flow]]:
    """Return the flows that run from or to each host."""
    found: dict[str, list[Flow]] = {}
    for flow in view.running():
        for name in {flow.src, flow.dst}:
            found.setdefault(name, []).append(flow)
    return found


def _around(network: Network, link: Link) -> tuple[str, str, bool]:
    """Return a link's ends, the first sender's side first, and whether the link leads there."""
    first = network.senders[0]
    back = network.hops(first, link.src) > network.hops(first, link.dst)
    return (link.dst, link.src, back) if back else (link.src, link.dst, back)


def _middle(view: View, ends: tuple[str, str], width: int, *, back: bool) -> list[list[Run]]:
    """Return the ends of the shown link with the queue between them, and its setting below."""
    near, far = ends
    glyphs = view.glyphs
    wire = glyphs.bottleneck * 2 if width >= 30 else ""
    arrow = glyphs.arrow_left + wire if back else wire + glyphs.arrow_right
    text, axis, muted = f"bold {view.ink('text')}", view.ink("queue"), view.ink("muted")
    count, share = occupancy(view, view.link or "")
    room = width - len(near) - len(far) - 2 * len(arrow) - 8
    line: list[Run] = [
        (f" {near} ", text),
        (arrow, axis),
        (" ", ""),
        *gauge(view, share, max(room, 4)),
        (" ", ""),
        (arrow, axis),
        (f" {far} ", text),
    ]
    setting = view.setting.setting if view.setting else None
    kind = setting.qdisc.kind if setting and setting.qdisc else ""
    rows = [line, [(f"{kind} {count}".strip().center(width), text)]]
    if setting is not None:
        items = glyphs.translate(_link_text(view, setting)).split(", ")
        shown = whole_items(items, f" {glyphs.separator} ", width)
        rows.append([(shown.center(width), muted)])
    if elsewhere := _delays_elsewhere(view):
        items = [glyphs.translate(each) for each in elsewhere]
        shown = whole_items(items, f" {glyphs.separator} ", width)
        rows.append([(shown.center(width), muted)])
    return rows


def _link_text(view: View, setting: LinkSetting) -> str:
    """Return a link's settings; of one that moves, what it has at the moment shown."""
    if not setting.trace or view.link is None:
        return describe_link(setting)
    rate, delay = (each(view.state, view.link, view.t) for each in (capacity_at, delay_at))
    rest = describe_link(replace(setting, trace=None, rate=None, delay_us=None))
    words = [setting.trace.title if rate is None else f"{setting.trace.title} {format_rate(rate)}"]
    words += [format_time_us(delay)] if delay else []
    return ", ".join(filter(None, (*words, rest)))


def _delays_elsewhere(view: View) -> list[str]:
    """Return the delays on the path that the shown link's setting does not tell, and the base RTT.

    A delay that its way back has too is told. Without others, return nothing.
    """
    network, shown = view.network, view.link
    if network is None or shown is None:
        return []
    src = network.senders[0]
    links = network.round_trip(src, network.peer(src))

    def delay_us(name: str) -> float:
        return delay_at(view.state, name, view.t)

    back = network.opposite(network.link(shown)).name
    told = {shown} | ({back} if delay_us(back) == delay_us(shown) else set())
    others = [each for each in links if each.name not in told and delay_us(each.name)]
    if not others:
        return []
    total = sum(delay_us(each.name) for each in links)
    return [
        *(f"{each.src}→{each.dst} {format_time_us(delay_us(each.name))}" for each in others),
        f"base RTT {format_time_us(total)}",
    ]
