"""The selection in the table, and the command that stops it."""

from __future__ import annotations

from ccplay.model.traffic import KINDS
from ccplay.model.traffic_commands import StopTraffic
from ccplay.state.lab_state import Flow, Traffic
from ccplay.ui import lineup
from ccplay.ui.view import View


def choices(view: View) -> dict[str, Traffic]:
    """Return the rows of the table by name, from the top; for equal names, the first row.

    A group is represented by one flow: the selected one, or its first.
    """
    found: dict[str, Traffic] = {}
    flows = lineup.listed(view)
    if view.listing.grouped:
        names = [group.chosen(view) for group in lineup.groups(view, flows)]
        flows = [view.state.flows[name] for name in names]
    for each in (*flows, *lineup.others(view)):
        found.setdefault(each.name, each)
    return found


def selection(view: View) -> Traffic | None:
    """Return the selected row; None if nothing is selected."""
    return choices(view).get(view.selected or "")


def beside(view: View, steps: int) -> str | None:
    """Return the name ``steps`` rows below the selection, wrapping around; None without rows."""
    names = list(choices(view))
    if not names:
        return None
    if view.selected not in names:
        return names[0 if steps > 0 else -1]
    return names[(names.index(view.selected) + steps) % len(names)]


def kept(view: View) -> str | None:
    """Return the selection if it is still in the table, else the first flow."""
    shown = (*view.listed(), *view.others())
    if any(each.name == view.selected and lineup.matches(view, each) for each in shown):
        return view.selected
    return next((flow.name for flow in lineup.listed(view)), None)


def stop(traffic: Traffic) -> StopTraffic:
    """Return the command that stops the selected traffic."""
    # The table also lists a flow's streams and subflows; only the whole flow can be stopped.
    name = traffic.parent if isinstance(traffic, Flow) else traffic.name
    kind = "flow" if traffic.kind == "subflow" else traffic.kind
    return KINDS[kind].stopping(name)
