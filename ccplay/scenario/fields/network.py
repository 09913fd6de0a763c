"""The network of a scenario: its topology, links and hosts, read into ``model.Build``."""

from __future__ import annotations

from dataclasses import dataclass

from ccplay.model.commands import Build
from ccplay.model.values import BOTTLENECK, LinkSetting, Topology
from ccplay.scenario.fields import quantities
from ccplay.scenario.fields.classes import read_classes
from ccplay.scenario.fields.queues import read_qdisc
from ccplay.scenario.file.mistakes import did_you_mean, quote
from ccplay.scenario.file.tree import Node, Reader

PAIRS = quantities.Whole(1, 8)

MTU = quantities.Whole(296, 1500)

_KEYS = ("rate", "delay", "jitter", "loss", "mtu", "mark", "queue", "classes")

KINDS = ("linear", "dumbbell")


@dataclass(frozen=True, slots=True)
class Names:
    """What there is on a topology to speak of."""

    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    links: tuple[str, ...]
    """``h1-r`` for both directions."""
    bottlenecks: tuple[str, ...]
    """Directions: always a router's way out, never a host's own interface."""

    def host_problem(self, host: str) -> str | None:
        """Say why ``host`` is none."""
        if host in self.hosts:
            return None
        if host in self.routers:
            return f"{quote(host)} is a router; hosts are {', '.join(self.hosts)}"
        return f"there is no host {quote(host)}{did_you_mean(host, self.hosts)}"

    def link_problem(self, link: str) -> str | None:
        """Say why ``link`` is none. Both ``a-b`` and ``b-a`` are, and ``a->b`` and ``b->a``."""
        one, arrow, other = link.partition("->")
        if not arrow:
            one, _, other = link.partition("-")
        if link == BOTTLENECK or f"{one}-{other}" in self.links or f"{other}-{one}" in self.links:
            return None
        known = (BOTTLENECK, *self.links)
        return f"there is no link {quote(link)}{did_you_mean(link, known)}"

    def directions(self, link: str) -> tuple[str, ...]:
        """Return the directions that a name of a link stands for."""
        if link == BOTTLENECK:
            return self.bottlenecks
        if "->" in link:
            return (link,)
        one, _, other = link.partition("-")
        return (f"{one}->{other}", f"{other}->{one}")

    def is_bottleneck(self, link: str) -> bool:
        """Whether ``link`` is one under study."""
        return link == BOTTLENECK or link in self.bottlenecks


def names_of(topology: Topology) -> Names:
    """Return the names that the lab will give to a topology's hosts, routers and links."""
    if topology.kind == "linear":
        return Names(("h1", "h2"), ("r",), ("h1-r", "r-h2"), ("r->h2", "r->h1"))
    numbers = range(1, topology.pairs + 1)
    senders, receivers = [f"s{n}" for n in numbers], [f"d{n}" for n in numbers]
    access = [*(f"{s}-r1" for s in senders), *(f"r2-{d}" for d in receivers)]
    return Names((*senders, *receivers), ("r1", "r2"), (*access, "r1-r2"), ("r1->r2", "r2->r1"))


def read_build(case: dict[str, Node], reader: Reader) -> tuple[Build, Names | None]:
    """Read what a lab is to build; the names are None where the topology is a mistake."""
    before = reader.mistakes.count
    topology = _topology(case.get("topology"), reader)
    names = names_of(topology) if reader.mistakes.count == before else None
    links = {}
    for link, node in reader.table(case.get("links")).items():
        if names and (problem := names.link_problem(link)):
            reader.mistakes.add(node.place, problem)
        links[link] = _link(node, reader)
        if links[link].mtu is not None and "->" in link:
            both = link.replace("->", "-")
            reader.mistakes.add((*node.place, "mtu"), f"is of both directions: links.{both}.mtu")
        if names and links[link].rate == 0 and names.is_bottleneck(link):
            reader.mistakes.add(node.place, "the link under study needs a rate, or no queue forms")
        elif (
            names and links[link].classes and not links[link].rate and not names.is_bottleneck(link)
        ):
            reader.mistakes.add((*node.place, "classes"), "share a rate: give the link one")
        if names and links[link].mark and not links[link].rate and not names.is_bottleneck(link):
            reader.mistakes.add((*node.place, "mark"), "no queue forms: give the link a rate")
    hosts = {}
    for host, node in reader.table(case.get("hosts")).items():
        if names and (problem := names.host_problem(host)):
            reader.mistakes.add(node.place, problem)
        cc = reader.table(node, ("cc",)).get("cc")
        if cc is not None:
            hosts[host] = reader.value(cc, quantities.congestion_control, "")
    return Build(
        topology=topology,
        links=links,
        congestion_controls=hosts,
        sample_hz=reader.value(case.get("sampling"), quantities.sampling, 50.0),
        seed=reader.value(case.get("seed"), quantities.seed, 1),
    ), names


def _topology(node: Node | None, reader: Reader) -> Topology:
    table = reader.table(node, ("kind", "pairs"))
    default = Topology()
    kind = reader.value(table.get("kind"), quantities.Choice("topology", KINDS), default.kind)
    if kind == "linear" and "pairs" in table:
        reader.mistakes.add(table["pairs"].place, 'only a "dumbbell" has pairs')
    pairs = reader.value(table.get("pairs"), PAIRS, default.pairs)
    return Topology(kind=kind, pairs=pairs)


def _link(node: Node, reader: Reader) -> LinkSetting:
    table = reader.table(node, _KEYS)
    queue = table.get("queue")
    setting = LinkSetting(
        rate=reader.value(table.get("rate"), quantities.rate, None),
        delay_us=reader.value(table.get("delay"), quantities.delay, None),
        jitter_us=reader.value(table.get("jitter"), quantities.delay, None),
        loss=reader.value(table.get("loss"), quantities.loss, None),
        mtu=reader.value(table.get("mtu"), MTU, None),
        mark=reader.value(table.get("mark"), quantities.mark, None),
        qdisc=read_qdisc(queue.place, reader.table(queue), reader) if queue else None,
        classes=read_classes(table.get("classes"), reader),
    )
    if setting.jitter_us and setting.delay_us is not None and setting.jitter_us > setting.delay_us:
        reader.mistakes.add(table["jitter"].place, "can't be more than the delay that it varies")
    return setting
