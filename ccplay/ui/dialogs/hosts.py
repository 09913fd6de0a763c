"""Rules about hosts and flows: who sends next, who is opposite whom, what runs."""

from __future__ import annotations

from ccplay.model.values import Network
from ccplay.state.lab_state import LabState


def hosts(network: Network) -> list[str]:
    """Return the hosts, senders first; routers carry no traffic of their own."""
    return _named(network, "sender") + _named(network, "receiver")


def opposite(network: Network, host: str) -> str:
    """Return the host that ``host`` talks to by default: the first receiver from the first sender.

    Empty where there is none.
    """
    senders, receivers = _named(network, "sender"), _named(network, "receiver")
    for mine, theirs in ((senders, receivers), (receivers, senders)):
        if host in mine and theirs:
            return theirs[min(mine.index(host), len(theirs) - 1)]
    return ""


def running_flows(state: LabState) -> list[str]:
    """Return the names of the flows that run, each once however many streams it has."""
    running = (each.parent for each in state.flows.values() if each.running and each.kind == "flow")
    return list(dict.fromkeys(running))


def next_sender(state: LabState, network: Network) -> str:
    """Return the first sender without a running flow, or the one with the fewest."""
    load = dict.fromkeys(_named(network, "sender"), 0)
    for name in running_flows(state):
        source = state.flows[name].src
        if source in load:
            load[source] += 1
    return min(load, key=lambda host: load[host], default="")


def _named(network: Network, role: str) -> list[str]:
    return [node.name for node in network.nodes if node.role == role]
