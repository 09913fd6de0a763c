"""The table of traffic: flows and downloads with cwnd, RTT and rate, then the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from ccplay.model.variables import describe
from ccplay.model.wording import one_way
from ccplay.traffic import KINDS
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.ui import lineup, plot_ghosts
from ccplay.ui.cells import Row, Run, abbreviated, first_fitting, fit
from ccplay.ui.lineup import Group, selection
from ccplay.ui.plot_traces import short
from ccplay.ui.view import View, goodput
from ccplay.units import format_size

# --- widths of the columns in the table of traffic: whole names take precedence -------------------

GLYPHS = 3
"""Number of cells before a name: pointer, glyph, and the sign of a warning or a trace."""

WRONG = "!"
"""Sign after the glyph of a flow whose algorithm misbehaves."""

_WIDE = 56
"""Smallest width in cells of a table that spells out units."""


class Columns(msgspec.Struct, frozen=True):
    """The widths in cells of all columns, including the blanks between them."""

    width: int
    """Width of the whole table in cells."""
    name: int
    cc: int
    cwnd: int
    rtt: int
    rate: int
    retr: int
    """Width of the column of retransmits in cells; 0 if names of algorithms need its room."""
    names: frozenset[str]
    """Names of all traffic in the table."""
    path: int = 0
    """Width of the column of source and destination in cells; 0 if there is no room for it."""
    tight: bool = False
    """Whether names also need the room of blanks and units; RTTs below 1 s are then plain ms."""

    @property
    def wide(self) -> bool:
        """Whether units are spelled out."""
        return self.width >= _WIDE

    def named(self, name: str, ellipsis: str) -> str:
        """Return a name cut or padded to its column, unlike any other, and a blank."""
        short = abbreviated(self.names, self.name - 1, ellipsis).get(name, name)
        return f"{fit(short, self.name - 1, ellipsis)} "

    @property
    def indent(self) -> int:
        """Number of cells before the second column."""
        return GLYPHS + self.name

    @property
    def rest(self) -> int:
        """Number of cells from the second column to the end of the line."""
        return self.width - self.indent

    def numbers(self, cwnd: str, rtt: str, rate: str, retr: str) -> str:
        """Return cwnd, RTT, rate and retransmits, right-aligned in their columns."""
        text = f"{cwnd:>{self.cwnd}}{rtt:>{self.rtt}}{rate:>{self.rate}}"
        return text + (f"{retr:>{self.retr}}" if self.retr else "")


def columns(
    width: int, names: Iterable[str], algorithms: Iterable[str], paths: Iterable[str] = ()
) -> Columns:
    """Return the widths that show names of traffic and algorithms uncut, if possible.

    Paths have a column only if all of them fit uncut next to everything else.
    """
    wide = width >= _WIDE
    cwnd, rtt, rate, retr = (6, 8, 13, 6) if wide else (5, 6, 6, 5)
    # Names of traffic have up to 16 characters.
    shortest, longest = (4, 10) if wide else (3, 6)
    names = frozenset(names)
    whole = max(map(len, names), default=0) + 1
    name = min(max(shortest, whole), longest)
    cc = max([10 if wide else 8, *(len(each) + 1 for each in algorithms)])
    room = width - GLYPHS - name - cwnd - rtt - rate
    if cc > room - retr:
        retr = 0
    if tight := cc > room:
        # Four digits of cwnd follow a blank already; an RTT has three digits after a blank.
        room += cwnd + rtt - 8
        cwnd = rtt = 4
    cc = min(cc, room - retr)
    spare = max(0, min(whole - name, room - retr - cc))
    name, room = name + spare, room - spare
    path = max((len(each) + 1 for each in paths), default=0)
    if path > room - retr - cc:
        path = 0
    return Columns(width, name, cc, cwnd, rtt, rate, retr, names, path, tight)


def with_sign(head: str, word: str, sign: str) -> tuple[str, str, str]:
    """Split the table's head at a word into the part before it, the word with a sign, and the rest.

    The sign replaces the blank before the word. If the head lacks the word, no part has a sign.
    """
    at = head.find(word) if word else -1
    if at < 1:
        return head, "", ""
    before, behind = head[: at - 1], head[at + len(word) :]
    if before and not before.endswith(" "):
        # The preceding word moves one cell to the left, so that a blank follows it.
        last = before.split()[-1]
        before = f"{before.removesuffix(last)[:-1]}{last} "
    return before, sign + word, behind


# --- rows of the table for traffic that is not a single connection --------------------------------


def row(view: View, each: Traffic, cells: Columns) -> list[Run]:
    """Return the row of traffic that is not a single connection."""
    glyphs = view.glyphs
    chosen = selection(view) is each
    over = each.ended is not None and each.ended <= view.t
    lines = each.lines(view.t)
    shown = first_fitting(cells.rest, *(glyphs.translate(line) for line in lines))
    ink = view.ink("text" if (kind := KINDS[each.kind]).fills else kind.ink)
    bold, words = "bold " if chosen else "", view.ink("muted" if over else "text")
    return [
        (glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (f"{glyphs.separator} {cells.named(each.name, glyphs.ellipsis)}", bold + ink),
        (fit(shown, cells.rest, glyphs.ellipsis), bold + words),
    ]


# --- the rows of a group of flows in the table: sums, means, and the selected flow ----------------


def group_rows(view: View, group: Group, cells: Columns) -> list[list[Run]]:
    """Return a row of sums, and one of means if the group has several flows.

    RTTs are not summed. Below the selected group, a row names the flow that keys act on.
    """
    tick = view.tick
    cwnd = _known(flow.series["cwnd"].at(tick) for flow in group.flows)
    rtt = _known(flow.series["srtt_us"].at(tick) for flow in group.flows)
    rate = _known(goodput(flow, tick) for flow in group.flows)
    retr = _known(flow.series["total_retrans"].at(tick) for flow in group.flows)
    count = len(group.flows)
    wrong = any(flow.wrong_at(view.t) for flow in group.flows)
    chosen = group.chosen(view) == view.shown.selected
    ink, bold = view.flow_ink(group.first), "bold " if chosen else ""
    name = fit(str(count), cells.name, view.glyphs.ellipsis)
    one_rtt = _mean(rtt) if count == 1 else None
    sums = _numbers(view, cells, _sum(cwnd), one_rtt, _sum(rate), _sum(retr))
    found: list[list[Run]] = [
        [
            (view.glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
            (view.flow_glyph(group.first), f"bold {ink}"),
            (WRONG if wrong else " ", f"bold {view.ink('bad')}"),
            (name, f"{bold}{ink}"),
            (f"{fit(group.cc, cells.cc - 1, view.glyphs.ellipsis)} ", bold + view.ink("text")),
            (sums, bold + view.ink("text")),
        ]
    ]
    blank, muted = " " * cells.indent, view.ink("muted")
    if count > 1:
        means = _numbers(view, cells, _mean(cwnd), _mean(rtt), _mean(rate), _mean(retr))
        found.append([(f"{blank}{fit('mean', cells.cc)}{means}", muted)])
    if chosen and count > 1:
        name = group.chosen(view)
        flow = (f"{view.flow_glyph(name)} {name}", f"bold {view.flow_ink(name)}")
        found.append([(f"{blank}keys act on ", muted), flow])
    return found


def _known(values: Iterable[float | None]) -> list[float]:
    return [each for each in values if each is not None]


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


# --- the table of traffic: flows and downloads with cwnd, RTT and rate, then the rest -------------

Line = Callable[[], list[Run]]
"""Function that makes a line of the table; only visible lines are made."""

_HINT = "nothing is sent yet: {} starts traffic"
"""Hint at the key that starts traffic, shown while there is none."""


def rows(view: View, width: int, height: int) -> list[Row]:
    """Return the table for ``height`` rows of ``width`` cells."""
    state = view.state
    cells = _columns(view, width)
    head = _head(view, cells)
    if not state.traffic and view.session.live:
        text = _HINT.format(view.key("start-traffic"))
        if view.watching:
            text = "no traffic yet"
        elif view.awaits:
            text = view.awaits
        return [head, (), [(f"   {text}", view.ink("muted"))]]
    top = [head, *_filter(view, width)]
    room = max(height - len(top), 1)
    lines, chosen = (
        _grouped(view, cells) if view.shown.listing.grouped else _listed(view, cells, room)
    )
    if not lines and view.shown.listing.text:
        return [*top, [("   no flow matches the filter", view.ink("muted"))]]
    first, last = in_sight(len(lines), room, chosen)
    body = [line() for line in lines[first:last]]
    if last - first < len(lines):
        counts = ((first, "↑"), (len(lines) - last, "↓"))
        hidden = "  ".join(f"{count} more {arrow}" for count, arrow in counts if count)
        body.append([(view.glyphs.translate(f"   {hidden}"), view.ink("muted"))])
    return [*top, *body]


def height(view: View) -> int:
    """Return the number of rows that the whole table needs, without the selected flow's own values.

    The filter changes this only by its own line, so that plots keep their height while it is typed.
    """
    flows = view.listed()
    if view.shown.listing.grouped:
        found = lineup.groups(view, flows)
        count = sum(2 if len(each.flows) > 1 else 1 for each in found) + 1
    else:
        count = len(flows) + len(view.ghosts())
    return 1 + len(_filter(view, 0)) + count + len(view.others())


def in_sight(count: int, room: int, chosen: int) -> tuple[int, int]:
    """Return the range of lines that ``room`` rows show, with the chosen one; its end is excluded.

    If not all lines fit, one row is left for the number of hidden ones.
    """
    if count <= room:
        return 0, count
    room = max(room - 1, 1)
    # The line below the chosen one is shown too, if there is room.
    first = min(max(chosen - max(room - 2, 0), 0), count - room)
    return first, first + room


def _filter(view: View, width: int) -> list[Row]:
    """Return the filter line while a filter is typed or active."""
    listing = view.shown.listing
    if not listing.typing and not listing.text:
        return []
    end = view.glyphs.cursor if listing.typing else " "
    keys = "enter keeps, esc clears" if listing.typing else "esc clears"
    shown, every = len(lineup.listed(view)), len(view.listed())
    text = first_fitting(
        width - len(listing.text) - 5, f"{shown} of {every}, {keys}", f"{shown} of {every}"
    )
    ink = view.ink("cursor")
    return [[(f" /{listing.text}{end}", f"bold {ink}"), (f"  {text}", view.ink("muted"))]]


def _listed(view: View, cells: Columns, room: int) -> tuple[list[Line], int]:
    """Return the lines of flows and other traffic, and the index of the last selected line."""
    table: list[tuple[str, Line]] = [
        (flow.name, partial(_flow, view, flow, cells)) for flow in lineup.listed(view)
    ]
    rest = [(each.name, partial(row, view, each, cells)) for each in lineup.others(view)]
    for flow, tick in view.ghosts()[: max(room - len(table) - len(rest), 0)]:
        names = [name for name, _ in table]
        at = names.index(flow.name) + 1 if flow.name in names else len(names)
        table.insert(at, (flow.name, partial(_ghost, view, flow, tick, cells)))
    table += rest
    lines = [line for _, line in table]
    last = next((at for at, (name, _) in enumerate(table) if name == view.shown.selected), 0)
    if isinstance(chosen := selection(view), Flow):
        wrong: list[Line] = [partial(list, each) for each in _wrong(view, chosen, cells)]
        lines[last + 1 : last + 1] = wrong
        last += len(wrong)
        own: list[Line] = [partial(list, each) for each in _own(view, chosen, cells)]
        lines[last + 1 : last + 1] = own[: max(room - len(lines), 0)]
    return lines, last


def _grouped(view: View, cells: Columns) -> tuple[list[Line], int]:
    """Return the lines of groups and other traffic, and the index of the last selected line."""
    lines: list[Line] = []
    last = 0
    for group in lineup.groups(view, lineup.listed(view)):
        lines += [partial(list, each) for each in group_rows(view, group, cells)]
        if group.chosen(view) == view.shown.selected:
            last = len(lines) - 1
    for each in lineup.others(view):
        if each.name == view.shown.selected:
            last = len(lines)
        lines.append(partial(row, view, each, cells))
    return lines, last


def _columns(view: View, width: int) -> Columns:
    """Return the widths of the columns for the traffic at the moment shown."""
    # All flows count, filtered or not, so that columns do not move while a filter is typed.
    flows = view.listed()
    ghosts = [flow for flow, _ in view.ghosts()]
    names = [each.name for each in (*flows, *ghosts, *view.others())]
    cc_at, t = view.state.cc_at, view.t
    algorithms = {cc_at(flow, t) for flow in flows if flow.kind == "flow"}
    algorithms |= {plot_ghosts.flow_cc(view, flow) or flow.kind for flow in ghosts}
    # Flows often share source and destination: one flow of each pair is enough.
    ends = {} if view.shown.listing.grouped else {(flow.src, flow.dst): flow for flow in flows}
    paths = [lineup.path(view, flow) for flow in ends.values()]
    return columns(width, names, algorithms, paths)


def _head(view: View, cells: Columns) -> list[Run]:
    """Return the title of each column; the first begins above the glyphs."""
    name = "flows" if view.shown.listing.grouped and cells.name > len("flow") - 1 else "flow"
    numbers = cells.numbers("cwnd", "rtt", "goodput" if cells.wide else "rate", "retr")
    path = f" {'path':<{cells.path}}"[: cells.path]
    text = f" {name:<{cells.indent - 1}}{'cc':<{cells.cc}}{numbers}{path}"
    muted = view.ink("muted")
    word = {"flow": name, "goodput": "goodput" if cells.wide else "rate"}.get(
        view.shown.listing.column, view.shown.listing.column
    )
    sign = view.glyphs.translate("↓" if view.shown.listing.descending else "↑")
    before, title, behind = with_sign(text, word, sign)
    return [(before, muted), (title, f"bold {view.ink('text')}"), (behind, muted)]


def _flow(view: View, flow: Flow, cells: Columns) -> list[Run]:
    tick, ellipsis = view.tick, view.glyphs.ellipsis
    chosen = flow.name == view.shown.selected
    over = flow.ended is not None and flow.ended <= view.t
    ink = view.ink("muted") if over else view.ink("text")
    bold = "bold " if chosen else ""
    own = view.flow_ink(flow.name)
    bad = view.ink("bad") if flow.wrong_at(view.t) else ""
    is_traced = flow.trace is not None and flow.trace.covers(view.t)
    traced = view.glyphs.traced if is_traced else " "
    row: list[Run] = [
        (view.glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
        (view.flow_glyph(flow.name), f"bold {own}"),
        (WRONG if bad else traced, f"bold {bad or own}"),
        (cells.named(flow.name, ellipsis), f"{bold}{own}"),
    ]
    whole = view.state.find_of(flow.kind, flow.name)
    if whole is not None and whole.goal is not None:
        return [*row, *_progress(view, flow, whole, cells.rest, ink)]
    cc = fit(view.state.cc_at(flow, view.t), cells.cc - 1, ellipsis)
    row.append((f"{cc} ", f"{bold}{bad or ink}"))
    if over:
        room = cells.rest - cells.cc
        return [*row, (fit(_account(flow, room), room, ellipsis), ink)]
    numbers = _values(view, flow, tick, cells)
    path = f" {lineup.path(view, flow)}" if cells.path else ""
    return [*row, (numbers, f"{bold}{ink}"), (path, view.ink("muted"))]


def _account(flow: Flow, width: int) -> str:
    """Return an ended flow's error, or its bytes, with its monitored delay if there is room."""
    if flow.error:
        return flow.error
    sent, late = format_size(flow.bytes), one_way(flow.monitored)
    return first_fitting(width, f"ended, {sent}{late}", f"{sent}{late}", f"ended, {sent}")


def _wrong(view: View, flow: Flow, cells: Columns) -> list[list[Run]]:
    """Return a line that reports misbehaviour of the flow's algorithm; empty if there is none."""
    if not (wrong := flow.wrong_at(view.t)):
        return []
    text = fit(f"{WRONG} {wrong}", cells.rest, view.glyphs.ellipsis)
    return [[(" " * cells.indent + text, view.ink("bad"))]]


def _own(view: View, flow: Flow, cells: Columns) -> list[list[Run]]:
    """Return lines with the own values of the flow's algorithm."""
    lines: list[str] = []
    for name, series in flow.own.items():
        if (value := series.at(view.tick)) is None:
            continue
        text = describe(name, value)
        if lines and len(lines[-1]) + 2 + len(text) <= cells.rest:
            lines[-1] += f"  {text}"
        else:
            lines.append(text)
    ink, blank = view.ink("muted"), " " * cells.indent
    return [[(blank + fit(each, cells.rest, view.glyphs.ellipsis), ink)] for each in lines]


def _ghost(view: View, flow: Flow, tick: int, cells: Columns) -> list[Run]:
    """Return the row of a ghost's flow at the ghost's sweep ``tick``."""
    ellipsis = view.glyphs.ellipsis
    ink = plot_ghosts.flow_ink(view, flow.name)
    name = plot_ghosts.flow_cc(view, flow) or flow.kind
    return [
        (f"{view.glyphs.ghost}{plot_ghosts.flow_glyph(view, flow.name)} ", ink),
        (cells.named(flow.name, ellipsis), ink),
        (f"{fit(name, cells.cc - 1, ellipsis)} ", view.ink("muted")),
        (_values(view, flow, tick, cells), view.ink("muted")),
    ]


def _values(view: View, flow: Flow, tick: int, cells: Columns) -> str:
    """Return cwnd, RTT, rate and retransmits of a flow."""
    cwnd, rtt, retr = (flow.series[name].at(tick) for name in ("cwnd", "srtt_us", "total_retrans"))
    return _numbers(view, cells, cwnd, rtt, goodput(flow, tick), retr)


def _numbers(view: View, cells: Columns, *values: float | None) -> str:
    """Return cwnd, RTT, rate and retransmits in their columns."""
    cwnd, rtt, rate, retr = values
    text = cells.numbers(
        _whole(cwnd, cells.cwnd),
        _time(rtt, cells),
        _rate(rate, cells),
        _whole(retr, cells.retr - 1),
    )
    return view.glyphs.translate(text)


def _progress(view: View, flow: Flow, whole: Traffic, width: int, ink: str) -> list[Run]:
    """Return the share that has arrived of what traffic of one connection fetches, or its end."""
    if whole.ended is not None and whole.ended <= view.t:
        lines = whole.lines(view.t)
        text = next((each for each in lines if len(each) <= width), lines[-1])
        bad = view.ink("bad") if whole.error else ink
        return [(fit(text, width, view.glyphs.ellipsis), bad)]
    acked, goal = flow.series["bytes_acked"].at(view.tick) or 0.0, whole.goal or 0
    share = min(acked / goal, 1.0) if goal else 0.0
    bar = max(width - 24, 6)
    full = view.glyphs.queue_steps[-1] * round(share * bar)
    return [
        ("wget ", ink),
        (full, view.flow_ink(flow.name)),
        (view.glyphs.horizontal * (bar - len(full)), view.ink("grid")),
        (f"{share:>5.0%} of {format_size(goal)}", ink),
    ]


def _whole(value: float | None, width: int) -> str:
    """Return a count as text, abbreviated if it is longer than ``width``."""
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
