"""The flows as the user lists them: filtered, sorted and grouped; and the selected one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from ccplay.model.base import StopTraffic
from ccplay.traffic import KINDS
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow
from ccplay.ui.view import View, goodput, goodputs, is_running, once

# --- the flows as the user lists them: filtered, sorted and grouped -------------------------------

_CROWD = 4
"""Smallest number of flows at which the selected one is highlighted and the others are dimmed."""

MOST = 40
"""Largest number of flows that plots draw; more lines can't be told apart."""

Key = Callable[[View, Flow], float | str | None]


class Group(msgspec.Struct, frozen=True):
    """The flows of one algorithm."""

    cc: str
    flows: tuple[Flow, ...]
    """Flows of the group, at least one; the first gives the group its colour and its glyph."""

    @property
    def first(self) -> str:
        """Name of the group's first flow."""
        return self.flows[0].name

    def chosen(self, view: View) -> str:
        """Return the name of the flow that keys act on while the group is selected."""
        chosen, names = view.shown.selected, [each.name for each in self.flows]
        return chosen if chosen and chosen in names else self.first


@once
def listed(view: View) -> list[Flow]:
    """Return the flows of the table in order: those that run, and those that have just ended."""
    flows, places = view.listed(), view.state.places
    if view.shown.listing.text:
        flows = [each for each in flows if matches(view, each)]
    # Subflows are listed below their flow, even if other flows started in between.
    flows = sorted(
        flows, key=lambda each: places[each.parent if each.kind == "subflow" else each.name]
    )
    if not (column := view.shown.listing.column):
        return flows[::-1] if view.shown.listing.reverse else flows
    known: list[tuple[float | str, Flow]] = []
    unknown: list[Flow] = []
    values: Iterable[float | str | None] = (_KEYS[column](view, each) for each in flows)
    if column == "goodput":
        values = goodputs(flows, view.tick)
    for each, value in zip(flows, values, strict=True):
        if value is None:
            unknown.append(each)
        else:
            known.append((value, each))
    known.sort(key=lambda pair: pair[0], reverse=view.shown.listing.descending)
    return [*(each for _, each in known), *unknown]


def others(view: View) -> list[Traffic]:
    """Return the other traffic that the table lists below the flows."""
    return [each for each in view.others() if matches(view, each)]


def matches(view: View, each: Traffic) -> bool:
    """Return whether traffic passes the filter: its name, algorithm, kind or a host contains it."""
    if not (text := view.shown.listing.text.casefold()):
        return True
    cc = view.state.cc_at(each, view.t) if isinstance(each, Flow) else each.kind
    return any(text in word.casefold() for word in (each.name, cc, each.src, each.dst))


@once
def in_window(view: View) -> list[Flow]:
    """Return the flows in the window that pass the filter, in the order of their starts."""
    left, until = view.shown.playhead.left, view.shown.playhead.until
    flows = [
        each
        for each in view.state.flows.values()
        if each.started < until and (each.ended is None or each.ended > left)
    ]
    return [each for each in flows if matches(view, each)] if view.shown.listing.text else flows


@once
def drawn(view: View) -> list[Flow]:
    """Return the flows that plots draw, the selected one last, so that it is on top."""
    flows = in_window(view)
    chosen = [each for each in flows if each.name == view.shown.selected]
    if view.shown.listing.alone and chosen:
        return chosen
    if len(flows) > MOST and not view.shown.listing.grouped:
        flows = flows[:MOST]
    rest = [each for each in flows if each.name != view.shown.selected]
    return [*(rest if view.shown.listing.grouped else rest[: MOST - len(chosen)]), *chosen]


def crowded(view: View, flows: Iterable[Flow]) -> bool:
    """Return whether there are so many flows that the selected one must be highlighted.

    Downloads, which are short, and subflows do not count once they have ended.
    """
    return sum(each.kind == "flow" or is_running(each, view.t) for each in flows) >= _CROWD


def groups(view: View, flows: Iterable[Flow]) -> list[Group]:
    """Return flows grouped by their algorithm at the moment shown.

    Groups follow the order of the flows; flows within a group follow the order of their starts.
    Subflows are left out, because their flow already contains their sums.
    """
    found: dict[str, list[Flow]] = {}
    for each in whole(flows):
        found.setdefault(view.state.cc_at(each, view.t), []).append(each)
    return [
        Group(cc, tuple(sorted(members, key=lambda flow: view.number(flow.name))))
        for cc, members in found.items()
    ]


def whole(flows: Iterable[Flow]) -> list[Flow]:
    """Return flows without the subflows of MPTCP, so that nothing is counted twice."""
    return [each for each in flows if each.kind != "subflow"]


def path(view: View, flow: Flow) -> str:
    """Return a flow's source and destination in the order in which the network is drawn.

    ``s1 ← d1`` is a flow in the reverse direction. For a subflow, return the nodes that distinguish
    its path from those of other subflows: ``via spine2``.
    """
    if flow.kind == "subflow" and (own := _own_nodes(view, flow)):
        return f"via {', '.join(own)}"
    senders = view.network.senders if view.network else []
    if flow.dst in senders and flow.src not in senders:
        return view.glyphs.translate(f"{flow.dst} ← {flow.src}")
    return view.glyphs.translate(f"{flow.src} → {flow.dst}")


def _own_nodes(view: View, flow: Flow) -> list[str]:
    """Return the nodes of a subflow's path that at least one other subflow avoids."""
    every = [set(each.via) for each in view.state.flows[flow.parent].subflows if each.via]
    common = set.intersection(*every) if len(every) > 1 else set()
    return [node for node in flow.via[1:-1] if node not in common]


_KEYS: Mapping[str, Key] = {
    "flow": lambda view, flow: view.number(flow.name),
    "cc": lambda view, flow: view.state.cc_at(flow, view.t),
    "cwnd": lambda view, flow: flow.series["cwnd"].at(view.tick),
    "rtt": lambda view, flow: flow.series["srtt_us"].at(view.tick),
    "goodput": lambda view, flow: goodput(flow, view.tick),
    "retr": lambda view, flow: flow.series["total_retrans"].at(view.tick),
    "path": path,
}
"""Function that returns a flow's sort key, by column of the table."""


# --- the selection in the table, its name in commands, and the command that stops it --------------


def choices(view: View) -> dict[str, Traffic]:
    """Return the rows of the table by name, from the top; for equal names, the first row.

    A group is represented by one flow: the selected one, or its first.
    """
    found: dict[str, Traffic] = {}
    flows = listed(view)
    if view.shown.listing.grouped:
        names = [group.chosen(view) for group in groups(view, flows)]
        flows = [view.state.flows[name] for name in names]
    for each in (*flows, *others(view)):
        found.setdefault(each.name, each)
    return found


def selection(view: View) -> Traffic | None:
    """Return the selected row; None if nothing is selected."""
    return choices(view).get(view.shown.selected or "")


def beside(view: View, steps: int) -> str | None:
    """Return the name ``steps`` rows below the selection, wrapping around; None without rows."""
    names = list(choices(view))
    if not names:
        return None
    if view.shown.selected not in names:
        return names[0 if steps > 0 else -1]
    return names[(names.index(view.shown.selected) + steps) % len(names)]


def kept(view: View) -> str | None:
    """Return the selection if it is still in the table, else the first flow."""
    shown = (*view.listed(), *view.others())
    if any(each.name == view.shown.selected and matches(view, each) for each in shown):
        return view.shown.selected
    return next((flow.name for flow in listed(view)), None)


def stop(traffic: Traffic) -> StopTraffic:
    """Return the command that stops the selected traffic."""
    # The table also lists a flow's streams and subflows; only the whole flow can be stopped.
    kind = "flow" if traffic.kind == "subflow" else traffic.kind
    return KINDS[kind].stopping(name_of(traffic))


def name_of(traffic: Traffic) -> str:
    """Return the name of traffic in commands; for a stream or subflow, that of its flow."""
    return traffic.parent if isinstance(traffic, Flow) else traffic.name
