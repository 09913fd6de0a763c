"""The network of a scenario file: its topology, links, hosts and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model import settings
from ccplay.model.base import Option
from ccplay.model.commands import Build
from ccplay.model.disciplines import (
    DISCIPLINES,
    NOT_OF_CLASS,
    SUFFIX,
    described,
    kinds,
    software_only,
    validate,
)
from ccplay.model.moving import TRACE
from ccplay.model.network import BOTTLENECK, Network, Topology, WrittenNetwork
from ccplay.model.qdiscs import DisciplineKind
from ccplay.model.quantities import (
    WHOLE,
    Field,
    MisfitError,
    Plain,
    Shape,
    did_you_mean,
    fields_of,
    quote,
)
from ccplay.model.texts import LINE, NAME, choice, worded
from ccplay.model.topologies import (
    TOPOLOGIES,
    generated,
    observed_problem,
    parameters,
    plan,
    topology_of,
)
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.model.written import (
    MOST_HOSTS,
    MOST_LINKS,
    MOST_ROUTERS,
    NODE_PATTERN,
    Where,
    find_apart,
    mistakes,
    observing,
)
from ccplay.scenario import parts
from ccplay.scenario.document import Place
from ccplay.scenario.parts import WRONG, Items, Keys, Named, Part, TomlTable, keys_of, table_shape
from ccplay.scenario.tree import Placed, Reader, unknown_key
from ccplay.trace import delivery
from ccplay.trace.content import TraceError
from ccplay.traffic import TRAFFIC

# --- queues: a kind and its parameters, read into ``model.Qdisc`` ---------------------------------

KIND = "The queue discipline"


class QueuePart(Part, frozen=True, kw_only=True, eq=False):
    """A queue discipline: ``{ kind = "codel", target = "5 ms" }``."""

    definition: str = "queue"

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the ``Qdisc`` with the values that ``tc-KIND(8)`` calls so."""
        table = reader.table(node)
        if "kind" not in table:
            if isinstance(node.value, dict):
                reader.mistakes.add(node.place, 'kind is missing: which queue, such as "pfifo"')
            return WRONG
        kind = reader.value(table["kind"], _kind, "")
        discipline = described(kind) if kind else None
        if discipline is None:
            return WRONG
        before = reader.mistakes.count
        options: dict[str, Option] = {}
        nothing: Option = False
        for name, each in table.items():
            if name == "kind":
                continue
            if discipline.open:
                # The lab has its file, and reads values as people write them.
                options[name] = reader.value(each, _any, nothing)
            elif name in discipline.names:
                options[name] = reader.value(each, discipline.parameter(name).read, 0)
            else:
                reader.mistakes.add(each.place, f"{kind}: {unknown_key(name, discipline.names)}")
        if reader.mistakes.count > before:
            return WRONG
        qdisc = Qdisc(kind=kind, options=options)
        return reader.value(Placed(node.place, None), lambda _: validate(qdisc), WRONG)

    def write(self, value: Any) -> dict[str, Plain]:
        """Return a queue discipline with its given parameters."""
        known = described(value.kind)
        parameters = {} if known is None else {each.name: each for each in known.parameters}
        written: dict[str, Plain] = {"kind": value.kind}
        for name, option in value.options.items():
            parameter = parameters.get(name)
            # A stranger's recording may have text or a flag where a number belongs.
            written[name] = option
            if parameter is not None and not isinstance(option, str):
                written[name] = parameter.write(parameter.quantity.type(option))
        return written

    def form(self) -> Shape:
        """Return the JSON Schema of the queues of all kinds, and of one whose kind is elsewhere."""
        kinds = [table_shape(*_of_kind(each)) for each in DISCIPLINES.values()]
        return {"anyOf": [*kinds, _any_kind()]}

    def forms(self, others: Mapping[str, Shape], needed: str) -> Iterator[Shape]:
        """Yield the JSON Schema of each kind of queue whose keys stand among others."""
        for discipline in DISCIPLINES.values():
            own, required = _of_kind(discipline)
            yield table_shape({**others, **own}, (*required, needed))


def _kind(value: Any) -> str:
    """Read a kind, possibly the user's own. Raises ``ValueError`` with a suggestion."""
    try:
        return str(choice("queue discipline", kinds()).read(value))
    except ValueError as error:
        if str(error).endswith("?") or not isinstance(value, str) or not value.isidentifier():
            raise
        raise MisfitError(f"{error}; if it is your own, add --discipline {value}.py") from None


def _any(value: Any) -> Option:
    if not isinstance(value, bool | int | float | str):
        raise MisfitError(f"must be a number, text, or true or false, not {quote(value)}")
    return value


def _of_kind(discipline: DisciplineKind) -> tuple[dict[str, Shape], tuple[str, ...]]:
    """Return the JSON Schema of the keys of a queue of this kind, and those that it needs."""
    names: Shape = {"const": discipline.kind}
    if discipline.software:
        names = {"enum": [discipline.kind, discipline.kind + SUFFIX]}
    properties = {"kind": {**names, "description": discipline.summary}}
    for each in discipline.parameters:
        shown = "" if each.default is None else f" (default {each.show(each.default)})"
        properties[each.name] = {"description": f"{each.meaning}{shown}", **each.shape}
    needed = [each.name for each in discipline.parameters if each.required and each.default is None]
    return properties, ("kind", *needed)


def _any_kind() -> Shape:
    """Return the JSON Schema of a queue whose kind is in the common part or in the matrix."""
    known: dict[str, Shape] = {}
    for each in (each for kind in DISCIPLINES.values() for each in kind.parameters):
        found = known.setdefault(each.name, {"description": each.meaning, "anyOf": []})
        if each.shape not in found["anyOf"]:
            found["anyOf"].append(each.shape)
    return table_shape(known)


QUEUE = QueuePart()

# --- classes at a link: several queues that share its rate ----------------------------------------


def _check_class(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if (qdisc := values.get("qdisc")) is not None and software_only(qdisc.kind):
        reader.mistakes.add(node.at("queue", "kind"), f"{qdisc.kind} {NOT_OF_CLASS}")


def _check_classes(classes: list[TrafficClass], node: Placed, reader: Reader) -> None:
    """Record contradictions between the classes of a link."""
    names = [each.name for each in classes]
    takers: dict[str, str] = {}
    for number, each in enumerate(classes):
        place = (*node.place, number)
        if not each.traffic and number + 1 < len(classes):
            text = "traffic is missing: only the last class needs none: it takes the rest"
            reader.mistakes.add(place, text)
        if each.name in names[:number]:
            reader.mistakes.add((*place, "name"), f"another class is named {quote(each.name)}")
        for traffic in each.traffic:
            if traffic in takers and takers[traffic] != each.name:
                text = f"{quote(traffic)} is in class {quote(takers[traffic])} already"
                reader.mistakes.add((*place, "traffic"), text)
            takers.setdefault(traffic, each.name)
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        reader.mistakes.add(node.place, f"the shares add up to {total * 100:.4g} %")


_TAKEN = f"Names of traffic, or all of a kind: {', '.join(kind.plural for kind in TRAFFIC)}"
_MOST_CLASSES = 8

CLASSES = Items(
    definition="classes",
    of=TomlTable(
        keys=keys_of(
            TrafficClass,
            traffic=Items(of=Field(NAME), noun="names", meaning=_TAKEN, default=[]),
            queue=replace(QUEUE, meaning="Its queue; by default the link's own", name="qdisc"),
        ),
        make=TrafficClass,
        check=_check_class,
        missing={"name": ', such as "bulk"', "share": ', such as "50 %"'},
    ),
    most=_MOST_CLASSES,
    bounds=f"more than {_MOST_CLASSES} classes",
    check=_check_classes,
)

# --- what moves a link: a trace or a model --------------------------------------------------------


class TracePart(Part, frozen=True, kw_only=True, eq=False):
    """A trace or a model; the files of a trace are read, to be sent to the lab."""

    definition: str = "trace"

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the ``Trace``, with the digest of what its files contain."""
        trace = reader.value(node, TRACE.read, WRONG)
        if trace is WRONG:
            return WRONG
        try:
            trace = delivery.load(trace, reader.folder or Path(), reader.files)
        except TraceError as error:
            reader.mistakes.add(node.place, str(error))
            return WRONG
        return trace

    def write(self, value: Any) -> Plain:
        """Return the trace as it was named."""
        return TRACE.write(value)

    def form(self) -> Shape:
        """Return the JSON Schema of all traces and models."""
        return TRACE.shape


MOVING = TracePart()

MOVES = {
    "trace": replace(MOVING, meaning=settings.TRACE.meaning, name="trace"),
    "model": replace(
        MOVING,
        meaning="The model that moves the link, as trace = { kind = … } does",
        name="trace",
        is_written=False,
    ),
}
"""Keys for what moves a link; both stand for one value."""


def check_moves(values: Mapping[str, Placed], place: Place, reader: Reader) -> None:
    """Record a link that has both a trace and a model."""
    if "trace" in values and "model" in values:
        reader.mistakes.add((*place, "model"), "moves the link, as trace does: leave one out")


# --- the settings of a link, read into ``model.LinkSetting`` --------------------------------------

OF_LINK = "Several queues that share the link's rate; an empty list is one queue"


def _check_setting(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    check_moves(node.value, node.place, reader)
    setting = LinkSetting(**{name: each for name, each in values.items() if name != "ends"})
    if setting.classes and setting.qdisc and software_only(setting.qdisc.kind):
        # It would be the queue of each class that names none.
        reader.mistakes.add(node.at("queue"), f"{setting.qdisc.kind} {NOT_OF_CLASS}")
    if setting.jitter_us and setting.delay_us is not None and setting.jitter_us > setting.delay_us:
        reader.mistakes.add(node.at("jitter"), "can't be more than the delay that it varies")
    if setting.loss and setting.gemodel:
        reader.mistakes.add(node.at("gemodel"), "is a model of loss, as loss is: leave one out")


LINK = TomlTable(
    definition="link",
    keys=keys_of(
        LinkSetting,
        queue=replace(QUEUE, meaning="The queue in front of the link", name="qdisc"),
        classes=replace(CLASSES, meaning=OF_LINK),
        **MOVES,
    ),
    make=LinkSetting,
    check=_check_setting,
)


class _Links(Named, frozen=True, kw_only=True, eq=False):
    """Settings of links by name, among them the groups of links that topologies have."""

    def form(self) -> Shape:
        """Return the JSON Schema of the table."""
        networks = (plan(Topology(kind=kind.name)) for kind in generated())
        groups = dict.fromkeys(name for network in networks for name in network.groups)
        pattern = rf"^({'|'.join([BOTTLENECK, *groups])}|{NODE_PATTERN}->?{NODE_PATTERN})$"
        return Named(of=self.of, pattern=pattern).form()


LINKS = _Links(
    of=LINK, meaning="Settings of links by name: bottleneck, h1-r (both directions), h1->r (one)"
)
HOSTS = Named(
    meaning="Settings of hosts by name: h1, h2, or s1, d1, s2 …",
    of=TomlTable(definition="host", keys={"cc": settings.CC}),
    pattern=rf"^{NODE_PATTERN}$",
)

# --- topologies -----------------------------------------------------------------------------------

OBSERVED = (
    'Directions whose queue is observed, such as "h2->r", in the order of the screen; links that '
    "are named here have no default delay"
)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError(f'a node\'s name is text in quotes, such as "h1", not {quote(value)}')
    return value


def _ends(value: Any) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise MisfitError(f'two names of nodes, such as ["h1", "r1"], not {quote(value)}')
    return _text(value[0]), _text(value[1])


_NO_ENDS = ("", "")
"""Placeholder for the ends of a link that could not be read."""
_NODE: Shape = {"type": "string", "pattern": f"^{NODE_PATTERN}$"}
_TWO: Shape = {"type": "array", "items": _NODE, "minItems": 2, "maxItems": 2}
_NODES = Field(worded("", "a node", _text, _NODE))
_DIRECTIONS = Items(
    of=Field(worded("", "a direction", _text, {"type": "string"})), noun="names", instead=""
)

WRITTEN_KEYS: Keys = {
    "hosts": Items(
        of=_NODES,
        noun="names",
        instead="",
        words={"minItems": 2, "maxItems": MOST_HOSTS},
        meaning="Names of hosts; those of the first half send to those of the second by default",
        required=True,
    ),
    "routers": Items(
        of=_NODES,
        noun="names",
        instead="",
        words={"maxItems": MOST_ROUTERS},
        meaning="Names of routers, which forward packets",
    ),
    "links": Items(
        of=TomlTable(
            keys={
                "ends": Field(
                    worded("", "two names of nodes", _ends, _TWO),
                    "The two nodes that the link joins",
                    required=True,
                ),
                **LINK.keys,
            },
            make=lambda ends=_NO_ENDS, **values: (ends, LinkSetting(**values)),
            check=_check_setting,
            partial=True,
            missing={"ends": ', such as ends = ["h1", "r1"]'},
        ),
        instead=(_NO_ENDS, LinkSetting()),
        words={"maxItems": MOST_LINKS},
        meaning="The two nodes that each link joins, and the settings of both directions",
        required=True,
    ),
    "observed": replace(
        _DIRECTIONS,
        meaning='Directions whose queue is observed, such as "r1->r2", in the order of the screen; '
        "by default of links with a rate, where routers send",
    ),
    "name": Field(LINE, "Name of the network, for people"),
    "remarks": Items(
        of=Field(LINE), noun="lines", meaning="Lines that the lab reports as warnings"
    ),
}
"""Keys of a written topology. Others have ``observed`` too."""

_EXAMPLES = {
    "hosts": ', such as hosts = ["h1", "h2"]',
    "links": ', such as links = [{ ends = ["h1", "r1"] }]',
}


class _Topology(Part, frozen=True, kw_only=True, eq=False):
    """A topology with its parameters, or with nodes and links written one by one."""

    definition: str = "topology"

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the topology, and the settings given with its own links by name."""
        having: dict[str, list[str]] = {key: ["written"] for key in WRITTEN_KEYS}
        del having["observed"]
        for each in generated():
            for parameter in each.parameters:
                # A star has a number of hosts, a written network has their names.
                having[parameter.name] = [*having.get(parameter.name, ()), each.name]
        table = reader.table(node, ("kind", "observed", *having))
        named = reader.value(table.get("kind", Placed((), Topology().kind)), _TOPOLOGY.read, "")
        if not named:
            # What its other keys mean is unknown.
            return Topology(), {}
        kind = TOPOLOGIES[named]
        for name in having.keys() & table.keys():
            if kind.name not in having[name]:
                text = f"only a {' or '.join(map(quote, having[name]))} has {name}"
                reader.mistakes.add(table[name].place, text)
        if kind.name == "written":
            return _written(node, table, reader)
        values = {
            each.name: reader.value(table[each.name], each.read, each.default)
            for each in kind.parameters
            if each.name in table
        }
        observed = _DIRECTIONS.read(table["observed"], reader) if "observed" in table else None
        return replace(topology_of(kind.name, values), observed=observed or []), {}

    def form(self) -> Shape:
        """Return the JSON Schema of topologies with parameters, and of written ones."""
        kinds = [*generated()]
        known: dict[str, Shape] = {
            "kind": {
                "description": "; ".join(f"{each.name} is {each.summary}" for each in kinds),
                "enum": [each.name for each in kinds],
            }
        }
        known |= {each.key: {"description": each.meaning, **each.shape} for each in parameters()}
        known |= {"observed": {"description": OBSERVED, **_DIRECTIONS.shape}}
        written: dict[str, Shape] = {
            "kind": {"description": "Nodes and links written out one by one", "const": "written"},
            **dict(parts.described(WRITTEN_KEYS)),
        }
        needed = [key for key, entry in WRITTEN_KEYS.items() if entry.required]
        return {"anyOf": [table_shape(known), table_shape(written, ("kind", *needed))]}


TOPOLOGY = _Topology(
    meaning="What to build: a kind of network with its numbers, or nodes and links by name"
)
_TOPOLOGY = choice("topology", TOPOLOGIES)


def _written(
    node: Placed, table: dict[str, Placed], reader: Reader
) -> tuple[Topology, dict[str, LinkSetting]]:
    """Read a listed topology, and the settings of its links by name.

    Unless ``observed`` names them, links with a rate are observed where a router sends; if none has
    a rate, all are. A link has no delay and no loss unless its entry sets them.
    """
    before = reader.mistakes.count
    values = TomlTable(keys=WRITTEN_KEYS, missing=_EXAMPLES).values(
        Placed(node.place, table), reader
    )
    links = values.pop("links", [])
    written = WrittenNetwork(cables=[ends for ends, _ in links], **values)
    for where, text in mistakes(written):
        # What could not be read has been reported.
        if not _is_unread(written, where):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before:
        for where, text in find_apart(written):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before and "observed" not in table:
        limited = [
            f"{a}->{b}" for ends, setting in links for a, b in (ends, ends[::-1]) if setting.rate
        ]
        written = observing(written, limited)
    # A missing delay is none rather than the default.
    none = LinkSetting(delay_us=0)
    settings_of = {
        "-".join(ends): none.changed_by(each) for ends, each in links if each != LinkSetting()
    }
    return Topology(kind="written", written=written), settings_of


def _is_unread(written: WrittenNetwork, where: Where) -> bool:
    match where:
        case ("links", int(number), *_):
            return written.cables[number] == _NO_ENDS
        case (("hosts" | "routers" | "observed") as key, int(number), *_):
            return not getattr(written, key)[number]
    return False


# --- the network of a scenario: its topology, links and hosts, read into ``model.Build`` ----------

BUILD = {
    "sampling": fields_of(Build)["sample_hz"],
    "seed": Field(
        WHOLE,
        "Seed of random loss, delay variation and jitter of starts; each repeat adds one",
        *(0, 2**31 - 1),
    ),
}
"""Single values of a case that the network has."""


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


def read_build(case: dict[str, Placed], reader: Reader) -> tuple[Build, Network | None]:
    """Read the network to build; None if its topology has a mistake."""
    before = reader.mistakes.count
    topology, links = TOPOLOGY.read(case.get("topology", Placed((), {})), reader)
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
        setting = LINK.read(node, reader) or LinkSetting()
        # Settings from a written topology stay unless this changes them.
        links[link] = links.pop(link, setting).changed_by(setting)
        if network is not None:
            _check_link(network, link, links[link], node, reader)
    hosts = {}
    for host, node in reader.table(case.get("hosts")).items():
        if network and (problem := host_problem(network, host)):
            reader.mistakes.add(node.place, problem)
        if cc := (HOSTS.of.read(node, reader) or {}).get("cc"):
            hosts[host] = cc
    return Build(
        topology=topology,
        links=links,
        congestion_controls=hosts,
        **TomlTable(keys=BUILD).values(Placed((), case), reader),
    ), network


def _check_link(
    network: Network, link: str, setting: LinkSetting, node: Placed, reader: Reader
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


def _observing(
    network: Network, topology: Topology, node: Placed, reader: Reader
) -> Network | None:
    """Return the network with the observed links of its topology; None if one does not exist."""
    wrong = {
        number: problem
        for number, name in enumerate(topology.observed)
        if (problem := observed_problem(network, name))
    }
    for number, problem in wrong.items():
        reader.mistakes.add((*node.place, "observed", number), problem)
    return None if wrong else plan(topology)
