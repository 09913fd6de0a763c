"""The keys of a scenario file that describe its network: how each is read and its meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Option
from ccplay.model.commands import Build
from ccplay.model.disciplines import NOT_OF_CLASS, described, kinds, software_only, validate
from ccplay.model.network import Network, Topology, Written
from ccplay.model.quantities import WHOLE, Field, MisfitError, Plain, did_you_mean, fields_of, quote
from ccplay.model.texts import ALGORITHM, LINE, NAME, choice
from ccplay.model.topologies import TOPOLOGIES, generated, observed_problem, plan, topology_of
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.model.written import Where, apart, mistakes, observing
from ccplay.scenario.document import Place
from ccplay.scenario.tree import Node, Reader, unknown_key
from ccplay.traffic import TRAFFIC

# --- the meanings ---------------------------------------------------------------------------------
# The meanings, one line each, of keys with tables and lists; a ``Field`` has its own meaning.

FILE = {
    "title": "One line, for people",
    "topology": "What to build: a kind of network with its numbers, or nodes and links by name",
    "links": "Settings of links by name: bottleneck, h1-r (both directions), h1->r (one)",
    "hosts": "By name: h1, h2, or s1, d1, s2 …",
    "timeline": "The steps, each with its moment",
    "metrics": "Metrics to report first, each by its path in the result",
    "expect": "Checks of every run: the required value of a metric, and why",
    "published": "Values measured by others, shown beside ours",
    "matrix": 'Every case is run at every point: NAME = { path = …, values = […] } or "PATH" = […]',
    "case": "Cases, each run in its own lab; each has only the keys that differ from the rest",
    "name": "Name of this case",
    "lesson": "Pages beside the running network: ccplay lesson FILE",
}

STEP = {
    "after": "Wait until the traffic of this name has ended",
    "do": "What to do",
    "kind": "The queue discipline",
    "classes": "Several queues that share the link's rate; an empty list is one queue",
}

LINK = {"classes": STEP["classes"], "queue": "The queue in front of the link"}

OBSERVED = (
    'Directions whose queue is observed, such as "h2->r", in the order of the screen; links that '
    "are named here have no default delay"
)

WRITTEN = {
    "kind": "Nodes and links written out one by one",
    "hosts": "Names of hosts; those of the first half send to those of the second by default",
    "routers": "Names of routers, which forward packets",
    "links": "The two nodes that each link joins, and the settings of both directions",
    "ends": "The two nodes that the link joins",
    "observed": 'Directions whose queue is observed, such as "r1->r2", in the order of the screen; '
    "by default of links with a rate, where routers send",
    "name": "What people call the network",
    "remarks": "Lines that the lab reports as warnings",
}

CLASS = {
    "traffic": f"Names of traffic, or all of a kind: {', '.join(kind.plural for kind in TRAFFIC)}",
    "queue": "Its queue; by default the link's own",
}

EVIDENCE = {
    "metric": "Path in the result: checkpoint.ratio, flows.1.goodput_bps, pings.p1.p50_ms",
    "value": "Expected value",
    "tolerance": 'Tolerance: a share such as "15 %", or a plain number',
    "at_least": "Least allowed value",
    "at_most": "Greatest allowed value",
    "why": "Reason for the expectation",
    "values": "One or several readings",
    "note": "Why ours may differ",
}

AXIS = {
    "path": 'Path to set, such as "links.bottleneck.queue.limit", or a list of paths',
    "values": "Its values, used in turn",
    "names": "Names of the values; needed if they are tables or lists",
}


# --- queue disciplines in a scenario: a kind and its parameters, read into ``model.Qdisc`` --------


def _kind(value: Any) -> str:
    """Read a kind, possibly the user's own. Raises ``ValueError`` with a suggestion."""
    try:
        return str(choice("queue discipline", kinds()).read(value))
    except ValueError as error:
        if str(error).endswith("?") or not isinstance(value, str) or not value.isidentifier():
            raise
        raise MisfitError(f"{error}; if it is your own, add --discipline {value}.py") from None


def read_qdisc(
    place: Place, table: dict[str, Node], reader: Reader, *, of_class: bool = False
) -> Qdisc | None:
    """Read ``{ kind = "codel", target = "5 ms" }``; None if it has a mistake.

    ``of_class`` is whether it is the queue of a class, which must be the kernel's.
    """
    if "kind" not in table:
        reader.mistakes.add(place, 'kind is missing: which queue, such as "pfifo"')
        return None
    kind = reader.value(table["kind"], _kind, "")
    discipline = described(kind) if kind else None
    if discipline is None:
        return None
    before = reader.mistakes.count
    if of_class and software_only(kind):
        reader.mistakes.add(table["kind"].place, f"{kind} {NOT_OF_CLASS}")
    known = discipline.names
    options: dict[str, Option] = {}
    nothing: Option = False
    for name, node in table.items():
        if name == "kind":
            continue
        if discipline.open:
            # The lab has its file, and reads values as people write them.
            options[name] = reader.value(node, _any, nothing)
        elif name in known:
            options[name] = reader.value(node, discipline.parameter(name).read, 0)
        else:
            reader.mistakes.add(node.place, f"{kind}: {unknown_key(name, known)}")
    if reader.mistakes.count > before:
        return None
    return reader.value(
        Node(place, None), lambda _: validate(Qdisc(kind=kind, options=options)), None
    )


def _any(value: Any) -> Option:
    if not isinstance(value, bool | int | float | str):
        raise MisfitError(f"must be a number, text, or true or false, not {quote(value)}")
    return value


def write_qdisc(qdisc: Qdisc) -> dict[str, Plain]:
    """Write a queue discipline with its given parameters."""
    known = described(qdisc.kind)
    parameters = {} if known is None else {each.name: each for each in known.parameters}
    written: dict[str, Plain] = {"kind": qdisc.kind}
    for name, value in qdisc.options.items():
        parameter = parameters.get(name)
        # A stranger's recording may have text or a flag where a number belongs.
        written[name] = value
        if parameter is not None and not isinstance(value, str):
            written[name] = parameter.write(parameter.quantity.type(value))
    return written


# --- classes at a link: several queues that share its rate, read into ``model.TrafficClass`` ------

MOST_CLASSES = 8
CLASS_KEYS = ("name", "share", "traffic", "queue")


def read_classes(node: Node | None, reader: Reader) -> list[TrafficClass] | None:
    """Read ``[{ name = "bulk", share = "50 %", traffic = ["flows"] }, …]``; None if missing.

    An empty list stands for one queue.
    """
    if node is None:
        return None
    nodes = reader.members(node)
    if len(nodes) > MOST_CLASSES:
        reader.mistakes.add(node.place, f"more than {MOST_CLASSES} classes")
        return None
    before = reader.mistakes.count
    classes = [
        _class(each, reader, is_last=number == len(nodes)) for number, each in enumerate(nodes, 1)
    ]
    if reader.mistakes.count == before:
        _check(node, classes, reader)
    return classes


def _class(node: Node, reader: Reader, *, is_last: bool) -> TrafficClass:
    fields = fields_of(TrafficClass)
    table = reader.table(node, CLASS_KEYS)
    for key, example in (("name", '"bulk"'), ("share", '"50 %"')):
        if key not in table:
            reader.mistakes.add(node.place, f"{key} is missing, such as {example}")
    traffic = reader.members(table.get("traffic"), "names")
    if not traffic and not is_last:
        text = "traffic is missing: only the last class needs none: it takes the rest"
        reader.mistakes.add(node.place, text)
    queue = table.get("queue")
    return TrafficClass(
        name=reader.value(table.get("name"), fields["name"].read, ""),
        share=reader.value(table.get("share"), fields["share"].read, 1.0),
        traffic=[reader.value(each, NAME.read, "") for each in traffic],
        qdisc=(
            read_qdisc(queue.place, reader.table(queue), reader, of_class=True) if queue else None
        ),
    )


def _check(node: Node, classes: list[TrafficClass], reader: Reader) -> None:
    """Record contradictions between the classes of a link."""
    names = [each.name for each in classes]
    takers: dict[str, str] = {}
    for number, each in enumerate(classes):
        place = (*node.place, number)
        if each.name in names[:number]:
            reader.mistakes.add((*place, "name"), f"another class is named {quote(each.name)}")
        for traffic in each.traffic:
            if traffic in takers and takers[traffic] != each.name:
                text = f"{quote(traffic)} is in class {quote(takers[traffic])} already"
                reader.mistakes.add((*place, "traffic"), text)
            takers.setdefault(traffic, each.name)
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        reader.mistakes.add(node.place, f"the shares add up to {total * 100:.4g} %")


def write_classes(at_link: Sequence[TrafficClass]) -> list[Plain]:
    """Write the classes of a link; an empty list means one queue."""
    return [_written(each) for each in at_link]


def _written(each: TrafficClass) -> dict[str, Plain]:
    fields = fields_of(TrafficClass)
    written = {field.key: field.write(getattr(each, name)) for name, field in fields.items()}
    if each.traffic:
        written["traffic"] = list(each.traffic)
    if each.qdisc is not None:
        written["queue"] = write_qdisc(each.qdisc)
    return written


# --- the setting of a link in a scenario, read into ``model.LinkSetting`` and written from it -----

LINK_KEYS = (*(each.key for each in fields_of(LinkSetting).values()), "queue", "classes")


def read_link(node: Node, reader: Reader, besides: Iterable[str] = ()) -> LinkSetting:
    """Read the settings of a link; ``besides`` are keys of its table that others read."""
    table = reader.table(node, (*LINK_KEYS, *besides))
    queue = table.get("queue")
    values = {
        name: reader.value(table.get(field.key), field.read, None)
        for name, field in fields_of(LinkSetting).items()
    }
    setting = LinkSetting(
        **values,
        qdisc=read_qdisc(queue.place, reader.table(queue), reader) if queue else None,
        classes=read_classes(table.get("classes"), reader),
    )
    if queue and setting.classes and setting.qdisc and software_only(setting.qdisc.kind):
        # It would be the queue of each class that names none.
        reader.mistakes.add(queue.place, f"{setting.qdisc.kind} {NOT_OF_CLASS}")
    if setting.jitter_us and setting.delay_us is not None and setting.jitter_us > setting.delay_us:
        reader.mistakes.add(table["jitter"].place, "can't be more than the delay that it varies")
    if setting.loss and setting.gemodel:
        reader.mistakes.add(table["gemodel"].place, "is a model of loss, as loss is: leave one out")
    return setting


# --- A network listed in a scenario: ``hosts``, ``routers`` and ``links`` of its topology ---------

WRITTEN_KEYS = ("hosts", "routers", "links", "observed", "name", "remarks")
"""Keys of a written topology. Others have ``observed`` too."""

_NO_ENDS = ("", "")
"""Placeholder for the ends of a link that could not be read."""


def read_written(
    node: Node, table: dict[str, Node], reader: Reader
) -> tuple[Topology, dict[str, LinkSetting]]:
    """Read a listed topology, and the settings of its links by name.

    Unless ``observed`` names them, links with a rate are observed where a router sends; if none has
    a rate, all are. A link has no delay and no loss unless its entry sets them.
    """
    before = reader.mistakes.count
    for key, example in (("hosts", '["h1", "h2"]'), ("links", '[{ ends = ["h1", "r1"] }]')):
        if key not in table:
            text = f"{key} is missing, such as {key} = {example}"
            reader.mistakes.add(node.place, text)
    links: list[tuple[tuple[str, str], LinkSetting]] = []
    for each in reader.members(table.get("links")):
        setting = read_link(each, reader, ("ends",))
        ends = each.value.get("ends") if isinstance(each.value, dict) else None
        if ends is None:
            reader.mistakes.add(each.place, 'ends is missing, such as ends = ["h1", "r1"]')
        links.append((reader.value(ends, _ends, _NO_ENDS), setting))
    hosts = read_names(table.get("hosts"), reader)
    routers = read_names(table.get("routers"), reader)
    written = Written(
        hosts=hosts,
        routers=routers,
        cables=[ends for ends, _ in links],
        observed=read_names(table.get("observed"), reader),
        name=reader.value(table.get("name"), LINE.read, ""),
        remarks=[
            reader.value(each, LINE.read, "")
            for each in reader.members(table.get("remarks"), "lines")
        ],
    )
    for where, text in mistakes(written):
        # What could not be read has been reported.
        if not _is_unread(written, where):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before:
        for where, text in apart(written):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before and "observed" not in table:
        written = observing(written, _limited(links))
    settings = {"-".join(ends): _whole(each) for ends, each in links if each != LinkSetting()}
    return Topology(kind="written", written=written), settings


def _limited(links: list[tuple[tuple[str, str], LinkSetting]]) -> list[str]:
    """Return both directions of the links that have a rate."""
    return [f"{a}->{b}" for ends, setting in links for a, b in (ends, ends[::-1]) if setting.rate]


def _whole(setting: LinkSetting) -> LinkSetting:
    """Return a setting in which a missing delay is none rather than the default."""
    return setting if setting.delay_us is not None else replace(setting, delay_us=0)


def read_names(node: Node | None, reader: Reader) -> list[str]:
    """Read a list of names; one that is no text is a mistake."""
    return [reader.value(each, _text, "") for each in reader.members(node, "names")]


def _is_unread(written: Written, where: Where) -> bool:
    match where:
        case ("hosts", int(number), *_):
            return not written.hosts[number]
        case ("routers", int(number), *_):
            return not written.routers[number]
        case ("observed", int(number), *_):
            return not written.observed[number]
        case ("links", int(number), *_):
            return written.cables[number] == _NO_ENDS
    return False


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError(f'a node\'s name is text in quotes, such as "h1", not {quote(value)}')
    return value


def _ends(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise MisfitError(f'two names of nodes, such as ["h1", "r1"], not {quote(value)}')
    return _text(value[0]), _text(value[1])


# --- the network of a scenario: its topology, links and hosts, read into ``model.Build`` ----------

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
    having: dict[str, list[str]] = {key: ["written"] for key in WRITTEN_KEYS if key != "observed"}
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
