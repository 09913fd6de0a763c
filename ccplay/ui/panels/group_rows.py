"""The rows of a group of flows in the table: sums, means, and the selected flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ccplay.ui.cells.sheet import Run, fit
from ccplay.ui.lineup import Group
from ccplay.ui.panels.columns import WRONG, Columns
from ccplay.ui.view import View, goodput

Numbers = Callable[[float | None, float | None, float | None, float | None], str]
"""Function that formats cwnd, RTT, rate and retransmits as columns of the table."""


def rows(view: View, group: Group, cells: Columns, numbers: Numbers) -> list[list[Run]]:
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
    chosen = group.chosen(view) == view.selected
    ink, bold = view.flow_ink(group.first), "bold " if chosen else ""
    name = fit(str(count), cells.name, view.glyphs.ellipsis)
    found: list[list[Run]] = [
        [
            (view.glyphs.chosen if chosen else " ", f"bold {view.ink('cursor')}"),
            (view.flow_glyph(group.first), f"bold {ink}"),
            (WRONG if wrong else " ", f"bold {view.ink('bad')}"),
            (name, f"{bold}{ink}"),
            (f"{fit(group.cc, cells.cc - 1, view.glyphs.ellipsis)} ", bold + view.ink("text")),
            (
                numbers(_sum(cwnd), _mean(rtt) if count == 1 else None, _sum(rate), _sum(retr)),
                bold + view.ink("text"),
            ),
        ]
    ]
    blank, muted = " " * cells.indent, view.ink("muted")
    if count > 1:
        means = numbers(_mean(cwnd), _mean(rtt), _mean(rate), _mean(retr))
        found.append([(f"{blank}{fit('mean', cells.cc)}{means}", muted)])
    if chosen and count > 1:
        glyph, own = view.flow_glyph(view.selected or ""), view.flow_ink(view.selected or "")
        flow = f"{glyph} {view.selected}"
        found.append([(f"{blank}keys act on ", muted), (flow, f"bold {own}")])
    return found


def _known(values: Iterable[float | None]) -> list[float]:
    return [each for each in values if each is not None]


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
