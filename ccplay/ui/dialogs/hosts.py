"""The names of running flows, and the default sender of the next one."""

from __future__ import annotations

from ccplay.model.network import Network
from ccplay.state.lab_state import LabState


def running_flows(state: LabState) -> list[str]:
    """Return the distinct names of the running flows."""
    running = (each.parent for each in state.flows.values() if each.running and each.kind == "flow")
    return list(dict.fromkeys(running))


def next_sender(state: LabState, network: Network) -> str:
    """Return the first sender without a running flow, or the one with the fewest."""
    load = dict.fromkeys(network.senders, 0)
    for name in running_flows(state):
        source = state.flows[name].src
        if source in load:
            load[source] += 1
    return min(load, key=lambda host: load[host], default="")
