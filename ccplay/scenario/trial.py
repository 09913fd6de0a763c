"""The default scenario for a network that is given without one: some flows over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ccplay.model.topologies import describe_topology, plan
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Scenario
from ccplay.scenario.writing import toml

MOST_FLOWS = 4
"""Largest number of flows, each from one of the first hosts to its peer."""

_PATH = Path("network.toml")


def trial(topology: str, settings: Sequence[str] = ()) -> Scenario:
    """Return a scenario for a network: a flow from each of the first hosts to its peer.

    ``topology`` is a value of TOML, ``settings`` are as in ``--set``. Raises ``ScenarioError``.
    """
    head = f'duration = "20 s"\ntopology = {topology}\n'
    build = parse(head, _PATH, settings).cases[0].build
    network = plan(build.topology)
    senders = [host for host in network.senders if network.peer(host)][:MOST_FLOWS]
    steps = [
        f'  {{ at = "0 s", do = "start-flow", flow = "{number}", src = {toml(host)}, '
        f"dst = {toml(network.peer(host))} }},\n"
        for number, host in enumerate(senders, start=1)
    ]
    title = toml(describe_topology(build.topology))
    text = f"title = {title}\n{head}timeline = [\n{''.join(steps)}]\n"
    return replace(parse(text, _PATH, settings), text=text)
