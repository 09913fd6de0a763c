"""The machines and the network of a report's runs, as plain rows of text."""

from __future__ import annotations

from collections import Counter

import msgspec

from ccplay.model.events import Hello, LinkChanged
from ccplay.model.values import Capabilities
from ccplay.model.wording import describe_link, describe_qdisc
from ccplay.report.data.material import Material
from ccplay.state.columns import UNKNOWN


def machine(material: Material, hello: Hello | None) -> list[tuple[str, str]]:
    """Return facts about the labs' machines, which may explain differences between results."""
    found = material.result.machine
    facts: list[tuple[str, str]] = []
    if found is not None:
        facts += [
            ("kernel", f"Linux {found.kernel}"),
            ("cores", str(found.cpus) if found.cpus else UNKNOWN),
            ("privilege", found.privilege),
            ("delay by", ", ".join(found.delay_engines) or "no link delays"),
            ("segmentation offloads", "on" if found.offloads else "off"),
            ("sampling", f"{found.sample_hz:g} samples per second"),
            ("versions", f"ccplay {found.ccplay}, Python {found.python}"),
        ]
    runs = Counter(run.machine for run in material.result.cases)
    facts += [
        (f"machine {each.name}", f"{runs[each.name]} runs; Linux {each.kernel}, {each.cpus} cores")
        for each in material.result.machines
    ]
    facts += [("effect of the machine", str(each)) for each in material.result.machine_effects]
    if hello is not None:
        facts += _capabilities(hello.capabilities)
    return facts


def _capabilities(offered: Capabilities) -> list[tuple[str, str]]:
    kinds = (
        ("congestion control algorithms", offered.congestion_controls),
        ("queueing disciplines", offered.qdiscs),
        ("tools", offered.tools),
    )
    return [
        (name, ", ".join(each.name for each in features if each.available))
        for name, features in kinds
        if any(each.available for each in features)
    ]


class NetworkTable(msgspec.Struct, frozen=True):
    """A table of the links of a case's network, as built."""

    case: str
    heads: list[str]
    rows: list[list[str]]


def network(case: str, hello: Hello | None, links: dict[str, LinkChanged]) -> NetworkTable | None:
    """Return a table of each direction of a link with its settings; None if they are unknown."""
    if hello is None or not links:
        return None
    address = {node.name: node.address for node in hello.network.nodes}
    rows = []
    for link in hello.network.links:
        change = links.get(link.name)
        if change is None:
            continue
        setting = change.setting
        observed = link.name in hello.network.observed
        rows.append(
            [
                f"{link.src} → {link.dst}" + (" (bottleneck)" if observed else ""),
                f"{address.get(link.src, '')} → {address.get(link.dst, '')}",
                describe_link(setting) or "unlimited",
                describe_qdisc(setting.qdisc) if setting.qdisc else UNKNOWN,
                change.delay_engine if change.delay_engine != "none" else UNKNOWN,
            ]
        )
    return NetworkTable(case, ["link", "addresses", "rate, delay", "queue", "delay by"], rows)
