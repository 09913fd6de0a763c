"""What of the table can be selected, and how that is stopped."""

from __future__ import annotations

from ccplay.model.traffic import KINDS
from ccplay.model.traffic_commands import StopTraffic
from ccplay.state.lab_state import Flow, Traffic
from ccplay.ui import lineup
from ccplay.ui.view import View


def choices(view: View) -> dict[str, Traffic]:
    """Return what stands in the table by name, top down; of several of a name the first.

    Of a group it is one flow: the selected one, or its first.
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
    """Return what is selected, None where nothing is."""
    return choices(view).get(view.selected or "")


def beside(view: View, steps: int) -> str | None:
    """Return the name so many lines below what is selected, round and round."""
    names = list(choices(view))
    if not names:
        return None
    if view.selected not in names:
        return names[0 if steps > 0 else -1]
    return names[(names.index(view.selected) + steps) % len(names)]


def kept(view: View) -> str | None:
    """Return what is selected as long as it is in the table, then the first flow there."""
    shown = (*view.listed(), *view.others())
    if any(each.name == view.selected and lineup.matches(view, each) for each in shown):
        return view.selected
    return next((flow.name for flow in lineup.listed(view)), None)


def stop(traffic: Traffic) -> StopTraffic:
    """Return what stops it."""
    # Of a flow with several streams each is in the table.
    name = traffic.parent if isinstance(traffic, Flow) else traffic.name
    return KINDS[traffic.kind].stopping(name)
