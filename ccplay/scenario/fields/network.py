"""The network of a scenario: its topology, links and hosts, read into ``model.Build``."""

from __future__ import annotations

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.commands import Build
from ccplay.model.fields import Field, fields_of
from ccplay.model.network import Network, Topology
from ccplay.model.quantities import WHOLE
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.texts import ALGORITHM, choice
from ccplay.model.topologies import (
    TOPOLOGIES,
    generated,
    observed_problem,
    plan,
    topology_of,
)
from ccplay.model.values import LinkSetting
from ccplay.scenario.fields.links import read_link
from ccplay.scenario.fields.written import KEYS, read_names, read_written
from ccplay.scenario.file.tree import Node, Reader

SEED = Field(
    *(WHOLE, "Seed of random loss, delay variation and jitter of starts; each repeat adds one"),
    *(0, 2**31 - 1),
)
_KIND = choice("topology", TOPOLOGIES)


def host_problem(network: Network, host: str) -> str | None:
    """Return why ``host`` is not a host of the network; None if it is one."""
    if host in network.hosts:
        return None
    if host in network.routers:
        return f"{quote(host)} is a router; hosts are {', '.join(network.hosts)}"
    return f"there is no host {quote(host)}{did_you_mean(host, network.hosts)}"


def link_problem(network: Network, link: str) -> str | None:
    """Return why ``link`` does not name a link of the network; None if it does."""
    try:
        network.resolve(link)
    except CommandError:
        return f"there is no link {quote(link)}{did_you_mean(link, network.link_names)}"
    return None


def directions(network: Network, link: str) -> list[str]:
    """Return the names of the directed links of ``link``; empty if it is unknown."""
    return [] if link_problem(network, link) else [each.name for each in network.resolve(link)]


def is_observed(network: Network, link: str) -> bool:
    """Return whether a name stands for observed links only, where queues can form."""
    names = directions(network, link)
    return bool(names) and set(names) <= set(network.observed)


def read_build(case: dict[str, Node], reader: Reader) -> tuple[Build, Network | None]:
    """Read the network to build; None if its topology has a mistake."""
    before = reader.mistakes.count
    topology, links = _topology(case.get("topology"), reader)
    network = None
    if reader.mistakes.count == before:
        try:
            network = plan(replace(topology, observed=[]))
        except CommandError as error:
            # The topology may be one of --set, which has no line.
            place = case["topology"].place if "topology" in case else ("topology",)
            reader.mistakes.add(place, str(error))
    if network is not None and topology.observed:
        network = _observing(network, topology, case["topology"], reader)
    for link, node in reader.table(case.get("links")).items():
        setting = read_link(node, reader)
        # Settings from a written topology stay unless this changes them.
        links[link] = _merged(links.pop(link, None), setting)
        if network is not None:
            _check_link(network, link, links[link], node, reader)
    hosts = {}
    for host, node in reader.table(case.get("hosts")).items():
        if network and (problem := host_problem(network, host)):
            reader.mistakes.add(node.place, problem)
        cc = reader.table(node, ("cc",)).get("cc")
        if cc is not None:
            hosts[host] = reader.value(cc, ALGORITHM.read, "")
    return Build(
        topology=topology,
        links=links,
        congestion_controls=hosts,
        sample_hz=reader.value(case.get("sampling"), fields_of(Build)["sample_hz"].read, 50.0),
        seed=reader.value(case.get("seed"), SEED.read, 1),
    ), network


def _merged(below: LinkSetting | None, above: LinkSetting) -> LinkSetting:
    values = {name: getattr(above, name) for name in LinkSetting.__struct_fields__}
    return replace(below or above, **{k: v for k, v in values.items() if v is not None})


def _check_link(
    network: Network, link: str, setting: LinkSetting, node: Node, reader: Reader
) -> None:
    """Record impossible settings of a link of this network."""
    if problem := link_problem(network, link):
        reader.mistakes.add(node.place, problem)
    if setting.mtu is not None and "->" in link:
        both = link.replace("->", "-")
        reader.mistakes.add((*node.place, "mtu"), f"applies to both directions: links.{both}.mtu")
    if is_observed(network, link):
        if setting.rate == 0:
            reader.mistakes.add(node.place, "the link under study needs a rate, or no queue forms")
        return
    if setting.classes and not setting.rate:
        reader.mistakes.add((*node.place, "classes"), "share a rate: give the link one")
    if setting.mark and not setting.rate:
        reader.mistakes.add((*node.place, "mark"), "no queue forms: give the link a rate")


def _observing(network: Network, topology: Topology, node: Node, reader: Reader) -> Network | None:
    """Return the network with the observed links of its topology; None if one does not exist."""
    wrong = {
        number: problem
        for number, name in enumerate(topology.observed)
        if (problem := observed_problem(network, name))
    }
    for number, problem in wrong.items():
        reader.mistakes.add((*node.place, "observed", number), problem)
    return None if wrong else plan(topology)


def _topology(node: Node | None, reader: Reader) -> tuple[Topology, dict[str, LinkSetting]]:
    """Return the topology, and the settings given with its own links."""
    having: dict[str, list[str]] = {key: ["written"] for key in KEYS if key != "observed"}
    for each in generated():
        for parameter in each.parameters:
            # A star has a number of hosts, a written network has their names.
            having[parameter.name] = [*having.get(parameter.name, ()), each.name]
    table = reader.table(node, ("kind", "observed", *having))
    named = reader.value(table.get("kind", Node((), Topology().kind)), _KIND.read, "")
    if not named:
        # What its other keys mean is unknown.
        return Topology(), {}
    kind = TOPOLOGIES[named]
    for name in having.keys() & table.keys():
        if kind.name not in having[name]:
            text = f"only a {' or '.join(map(quote, having[name]))} has {name}"
            reader.mistakes.add(table[name].place, text)
    if node is not None and kind.name == "written":
        return read_written(node, table, reader)
    values = {
        each.name: reader.value(table[each.name], each.read, each.default)
        for each in kind.parameters
        if each.name in table
    }
    observed = read_names(table.get("observed"), reader)
    return replace(topology_of(kind.name, values), observed=observed), {}
