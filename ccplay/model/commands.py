"""All commands to a lab: what each sets, how it reads in a log, and what undoes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model import settings, tc
from ccplay.model.base import FEW, MANY, AnyStart_co, Command, Moment, Name, StartTraffic
from ccplay.model.disciplines import is_software
from ccplay.model.network import BOTTLENECK, Network, Topology
from ccplay.model.quantities import FREQUENCY, OCTETS, SIZE, Field
from ccplay.model.texts import LINE, NAME, NAMES
from ccplay.model.values import LINK_FIELDS, LinkFields, LinkSetting, Qdisc, TrafficClass
from ccplay.model.wording import describe_classes, describe_link, describe_qdisc, named
from ccplay.units import format_clock


class Build(Command, Generic[AnyStart_co], frozen=True):
    """The first command of every lab: the network to build."""

    topology: Topology = Topology()
    links: Annotated[dict[str, LinkSetting], FEW] = {}
    """Settings by the name of a link, of a direction, or ``bottleneck``; later entries override
    earlier ones."""
    congestion_controls: Annotated[dict[str, str], FEW] = {}
    """Default algorithm of new sockets by host; a missing host has ``cubic``."""
    sample_hz: Annotated[
        float,
        Field(
            FREQUENCY,
            'How often sockets and queues are read, "10 Hz" to "200 Hz"; 50 Hz by default',
            *(10, 200),
            key="sampling",
        ),
    ] = 50.0
    seed: int = 1
    """Seed of random loss and jitter."""
    reserved: Annotated[list[str], MANY] = []
    """Names of traffic that a script will start, in the order of its file.

    The lab assigns these names to no other traffic."""
    traces: bool = False
    """Whether the script traces flows, which the lab then prepares in advance."""
    traced: Annotated[list[str], MANY] = []
    """Names of traffic that the script traces from its start, and so from its first ACK."""
    first: Annotated[list[AnyStart_co], FEW] = []
    """Starts that a script makes as soon as the network is ready; prepared before ``Ready``."""
    soon: Annotated[list[StartTogether[AnyStart_co]], FEW] = []
    """Starts that a script makes shortly after ``Ready``, prepared before it; ``at`` is in seconds
    since ``Ready``."""
    prepared: Annotated[list[str], MANY] = []
    """Congestion controls named by a script; built and loaded before ``Ready``."""
    label: str = ""
    """Name of the files that the lab writes; if empty, they are named after the current time."""
    algorithms: Annotated[dict[str, str], FEW] = {}
    """SHA-256 of the sources of the user's own congestion controls by name; empty if unknown.

    The files themselves are named on the lab's command line."""
    disciplines: Annotated[dict[str, str], FEW] = {}
    """SHA-256 of the sources of the user's own queue disciplines by name; empty if unknown."""

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"build {self.topology.kind}"


class StartTogether(Command, Generic[AnyStart_co], frozen=True):
    """Prepare traffic, and start all of it at one moment of the lab's clock.

    The lab answers each of the commands, in order, as if it had been sent alone, with ``due`` set.
    Only a session sends this command; scenarios can't contain it.
    """

    at: Moment
    """Moment of the start; if it has passed, the traffic starts once all of it is prepared."""
    commands: Annotated[list[AnyStart_co], MANY]


class TraceData(Command, frozen=True):
    """A piece of what moves a link; the whole is known by its digest. Only a session sends it.

    It may come before ``Build``, whose links may need it, and is not answered.
    """

    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the whole."""
    size: Annotated[int, msgspec.Meta(ge=0)]
    """Bytes of the whole, unpacked."""
    piece: Annotated[bytes, msgspec.Meta(max_length=1 << 20)]
    """Bytes of the whole, compressed as in RFC 1950."""
    last: bool = False


class InForce(msgspec.Struct, frozen=True):
    """The settings in force at one moment, which a command may change and its inverse restores."""

    network: Network
    links: Mapping[str, LinkSetting]
    """Settings of links by direction, of those that were ever set."""
    hosts: Mapping[str, str]
    """Default congestion control by host."""
    algorithms: Mapping[str, str]
    """Congestion control of each flow and download, by name."""
    starts: Mapping[str, StartTraffic]
    """Command that started each traffic, with the names that the lab chose, by traffic name."""
    marks: Mapping[str, Mark]
    """Marks by name, as commands that set them."""
    paths: Mapping[str, list[str]] = msgspec.field(default_factory=dict)
    """Routers on the path of traffic, by its name; empty if no command chose the path."""


class Inverse(msgspec.Struct, frozen=True):
    """The commands that undo a command, or the reason why there are none."""

    commands: tuple[Command, ...] = ()
    text: str = ""
    """Line that describes the undoing: ``queue bottleneck back to pfifo 100 pkt``."""
    refusal: str = ""
    """Reason why the command can't be undone; empty if it can."""


Thing: TypeAlias = tuple[str, str]
"""A setting and its subject: ``("queue", "r1->r2")``, ``("traffic", "1")``."""


class Change(Command, frozen=True):
    """A command that changes a running lab, other than a start or stop of traffic."""

    IN_SCENARIOS: ClassVar[bool] = True
    """Whether a step of a scenario's timeline may be this command."""
    THING: ClassVar[str] = ""
    """Setting of the traffic in ``TRAFFIC`` that the command makes or ends; empty if none."""

    def sets(self, network: Network) -> set[Thing]:
        """Return the settings that the command makes or ends; empty if it only adds something."""
        del network
        return {(self.THING, self.needs())} if self.THING else set()

    def split_off(self, things: set[Thing]) -> tuple[Self | None, Self]:
        """Return the command without what makes or ends these settings, and the rest of it.

        The first is None if nothing else is left, as of a command that sets one thing.
        """
        del things
        return None, self

    def inverse(self, was: InForce) -> Inverse:
        """Return what undoes the command, given the settings in force before it."""
        raise NotImplementedError

    def as_tc(self, network: Network, now: Callable[[str], LinkSetting]) -> list[str]:
        """Return the equivalent lines of tc(8), empty if there are none.

        ``now`` returns the settings of a directed link before the command.
        """
        del network, now
        return []

    def redo(self, at: float) -> Command:
        """Return the command that redoes this one, which took effect at the moment ``at``."""
        del at
        return self


class SetCongestionControl(Change, frozen=True):
    """Switch a running flow or the default of a host's new sockets; exactly one must be named."""

    ONE_OF = ("flow", "host")
    TRAFFIC = "flow"

    cc: Annotated[str, settings.CC]
    flow: Annotated[str | None, settings.FLOW] = None
    host: Annotated[
        str | None, Field(NAME, "The host whose default for new connections changes")
    ] = None

    def describe(self) -> str:
        """Return the command as one short line."""
        if self.flow is None:
            return f"{self.host}: new connections use {self.cc}"
        return f"flow {self.flow} switches to {self.cc}"

    def describe_effect(self, cc: str | None, *, renewed: bool) -> str:
        """Return the line of the event log, with the algorithm before the switch."""
        if cc is None:
            return self.describe()
        if renewed:
            return f"flow {self.flow} continues with the new {self.cc}"
        if cc == self.cc:
            return f"flow {self.flow} stays with {self.cc}"
        return f"flow {self.flow} switches {cc} → {self.cc}"

    def is_setting(self) -> bool:
        """Return whether the command changes the default of a host."""
        return self.flow is None

    def sets(self, network: Network) -> set[Thing]:
        """Return the algorithm of the flow, or the default of the host."""
        del network
        return {("host", self.host or "") if self.flow is None else ("algorithm", self.flow)}

    def inverse(self, was: InForce) -> Inverse:
        """Switch back to the earlier algorithm."""
        if self.flow is not None:
            cc, what = was.algorithms.get(self.flow), f"flow {self.flow}"
        else:
            cc, what = was.hosts.get(self.host or ""), f"{self.host}: new connections"
        if cc is None:
            who = self.flow or self.host
            return Inverse(refusal=f"the earlier congestion control of {who} is not known")
        return Inverse((replace(self, cc=cc),), f"{what} back to {cc}")


class SetPath(Change, frozen=True):
    """Move running traffic to another of several paths, without ``via`` to the next one."""

    TRAFFIC = "traffic"
    THING = "path"

    traffic: Annotated[str, Field(NAME, "The name of traffic with a choice of paths")]
    via: Annotated[
        Annotated[list[str], FEW] | None,
        Field(NAMES, "Nodes that its packets pass; if empty, the routers' hash chooses"),
    ] = None

    def describe(self) -> str:
        """Return the command as one short line."""
        way = f"via {', '.join(self.via)}" if self.via else "chosen by the routers' hash"
        return f"path of {self.traffic} → {'another' if self.via is None else way}"

    def inverse(self, was: InForce) -> Inverse:
        """Choose the earlier path, or leave the choice to the routers."""
        back = SetPath(traffic=self.traffic, via=was.paths.get(self.traffic, []))
        return Inverse((back,), _back(back))


class LinkChange(Change, frozen=True):
    """A command that changes a link or the queue in front of it."""

    if TYPE_CHECKING:
        link: str = BOTTLENECK

    def is_setting(self) -> bool:
        """Return True: the command changes a link or its queue."""
        return True

    def sets(self, network: Network) -> set[Thing]:
        """Return the queue of each direction."""
        return {("queue", each) for each in _directions(network, self.link)}

    @property
    def of_class(self) -> str | None:
        """Name of the class whose queue changes; None for that of the link."""
        name: str | None = getattr(self, "traffic_class", None)
        return name

    def requested(self) -> LinkSetting:
        """Return the settings of the link that the command changes."""
        return LinkSetting().changed_by(self)

    def restore(self, link: str, setting: LinkSetting) -> Iterator[Command]:
        """Yield the commands that restore, at a link, what this one changes of its setting."""
        raise NotImplementedError

    def inverse(self, was: InForce) -> Inverse:
        """Restore the earlier settings of each direction, or of the link if both agree."""
        try:
            links = was.network.resolve(self.link)
        except CommandError as error:
            return Inverse(refusal=str(error))
        # A link that was never set is unlimited and has no other effect.
        settings_of = {each.name: was.links.get(each.name, LinkSetting()) for each in links}
        # Under the name in the command, so that equal directions need only one command.
        alike = [list(self.restore(self.link, each)) for each in settings_of.values()]
        if all(each == alike[0] for each in alike):
            commands = alike[0]
        else:
            commands = [each for pair in settings_of.items() for each in self.restore(*pair)]
        if not commands:
            return Inverse(refusal=f"link {self.link} had none before")
        return Inverse(tuple(commands), "; ".join(map(_back, commands)))


class SetQdisc(LinkChange, frozen=True, kw_only=True):
    """Replace the queue in front of a link while traffic flows; the rate stays."""

    qdisc: Qdisc
    link: Annotated[str, settings.LINK] = BOTTLENECK
    traffic_class: Annotated[
        str | None, Field(NAME, "The class whose queue is replaced", key="class")
    ] = None

    def describe(self) -> str:
        """Return the command as one short line."""
        where = " ".join(each for each in (self.link, self.traffic_class) if each)
        return f"queue {where} → {describe_qdisc(self.qdisc)}"

    def describe_effect(self, cc: str | None, *, renewed: bool) -> str:
        """Return the line of the event log."""
        del cc
        if renewed:
            return f"queue {self.link} continues with the new {self.qdisc.kind}"
        return self.describe()

    def as_tc(self, network: Network, now: Callable[[str], LinkSetting]) -> list[str]:
        """Return the command for each interface of the link."""
        if not (directions := _directions(network, self.link)):
            return []
        classes = [each.name for each in now(directions[0]).classes or ()]
        links = network.resolve(self.link)
        return tc.queue_lines(self.qdisc, self.traffic_class, links, classes)

    def restore(self, link: str, setting: LinkSetting) -> Iterator[Command]:
        """Yield the command for the earlier queue; a link that had none was unlimited."""
        qdisc = setting.queue_of(self.traffic_class)
        if qdisc is not None:
            yield replace(self, link=link, qdisc=qdisc)
        elif not setting.rate:
            # Only an unlimited link has no queue; setting no limit removes the queue.
            yield SetLink(link=link, rate=0)


class SetClasses(LinkChange, frozen=True, kw_only=True):
    """Put several queues in front of a link, each with a share of its rate.

    An empty list restores the single queue. The new queues are empty; packets in the old ones are
    lost.
    """

    classes: Annotated[list[TrafficClass], FEW]
    link: Annotated[str, settings.LINK] = BOTTLENECK

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"link {self.link} shared → {describe_classes(self.classes)}"

    def rename_traffic(self, names: Mapping[str, str]) -> Self:
        """Return the command with other names of the traffic in classes."""
        classes = [
            replace(each, traffic=[names.get(name, name) for name in each.traffic])
            for each in self.classes
        ]
        return replace(self, classes=classes)

    def restore(self, link: str, setting: LinkSetting) -> Iterator[Command]:
        """Yield the commands for the earlier classes, or the single queue."""
        yield SetClasses(link=link, classes=setting.classes or [])
        if setting.qdisc is not None and is_software(setting.qdisc.kind):
            # Without classes, the link has the kernel's queue that was behind it.
            yield SetQdisc(link=link, qdisc=setting.qdisc)


class SetLink(LinkChange, LinkFields, frozen=True):
    """Change the settings of a link, or take it down; the queue stays."""

    ANY_OF = LINK_FIELDS

    link: Annotated[str, settings.LINK] = BOTTLENECK

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"link {self.link} → {describe_link(self, zeros=True)}"

    def sets(self, network: Network) -> set[Thing]:
        """Return each changed setting of each direction."""
        directions = _directions(network, self.link)
        return {(field, each) for field in self.changes() for each in directions}

    def split_off(self, things: set[Thing]) -> tuple[Self | None, Self]:
        """Return the command without the fields of these settings, and one of these fields."""
        fields = {field for field, _ in things}
        rest = replace(self, **dict.fromkeys(fields))
        undoing = replace(self, **dict.fromkeys({*LINK_FIELDS} - fields))
        return (rest if rest.changes() else None), undoing

    def as_tc(self, network: Network, now: Callable[[str], LinkSetting]) -> list[str]:
        """Return the commands for each interface of the link, among them those of netem."""
        links = [network.link(each) for each in _directions(network, self.link)]
        return tc.link_lines(self, links, network, now)

    def restore(self, link: str, setting: LinkSetting) -> Iterator[Command]:
        """Yield the commands for the earlier settings, and the queue that went with the rate."""
        yield SetLink(link=link, **{each: setting.restored(each) for each in self.changes()})
        if self.rate == 0 and setting.qdisc is not None:
            # Removing the rate has removed the queue, too.
            yield SetQdisc(link=link, qdisc=setting.qdisc)


def restore_link(link: str, was: LinkSetting, now: LinkSetting) -> Iterator[Command]:
    """Yield the commands that restore the settings ``was`` of a link."""
    fields = {each: was.restored(each) for each in LINK_FIELDS}
    changed = {each: value for each, value in fields.items() if value != now.restored(each)}
    if changed:
        yield SetLink(link=link, **changed)
    if (was.classes or []) != (now.classes or []):
        yield SetClasses(link=link, classes=was.classes or [])
    if was.qdisc is not None and was.qdisc != now.qdisc and not was.classes:
        yield SetQdisc(link=link, qdisc=was.qdisc)


def _directions(network: Network, link: str) -> list[str]:
    """Return the names of the directed links of ``link``; empty if it is unknown."""
    try:
        return [each.name for each in network.resolve(link)]
    except CommandError:
        return []


def restore_hosts(first: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Command]:
    """Yield the commands that restore the default congestion controls of hosts, by host."""
    for host, cc in first.items():
        if now.get(host) != cc:
            yield SetCongestionControl(cc=cc, host=host)


def _back(command: Command) -> str:
    """Return the description of a command that restores an earlier setting."""
    return command.describe().replace(" shared → ", " → ").replace(" → ", " back to ", 1)


class StartCapture(Change, frozen=True):
    """Write the packets of a link, in both directions, to a pcapng file.

    Packets of ``link`` are captured as they leave, after the queue; those of the other direction as
    they arrive, before any delay. If ``link`` names both directions, the capture is at the end with
    an observed queue, else at a router.
    """

    link: Annotated[str, settings.LINK] = BOTTLENECK
    capture: Annotated[str | None, settings.CAPTURE] = None
    """Name of the capture; None takes the next free one: ``c1``, ``c2`` …"""
    snaplen: Annotated[
        int,
        Field(
            *(OCTETS, "Bytes kept of each packet", 64, 65_535),
            label="per packet",
            hint="128 B cover all headers",
        ),
    ] = 128
    max_bytes: Annotated[
        int,
        Field(
            SIZE,
            "Largest size of the file",
            *(10_000, 1_000_000_000),
            key="size",
            label="file up to",
            hint="pcapng, in the folder of the lab",
        ),
    ] = 50_000_000

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"{named('capture', self.capture)} of {self.link} starts"

    def inverse(self, was: InForce) -> Inverse:
        """End the capture."""
        del was
        stop = StopCapture(capture=self.capture or "")
        return Inverse((stop,), stop.describe())

    def redo(self, at: float) -> Command:
        """Start another capture, under the next free name."""
        del at
        return replace(self, capture=None)


class StopCapture(Change, frozen=True):
    """End a capture."""

    capture: Annotated[str, settings.CAPTURE]

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"capture {self.capture} stops"

    def sets(self, network: Network) -> set[Thing]:
        """Return the capture."""
        del network
        return {("capture", self.capture)}

    def inverse(self, was: InForce) -> Inverse:
        """Refuse: the file is complete."""
        del was
        return Inverse(refusal=f"the file of capture {self.capture} is complete: k starts another")


class TraceFlow(Change, frozen=True):
    """Trace every segment that returns to the sender of a flow or download, until it ends.

    The lab then sends ``TraceSamples`` and ``CaStateChanged`` for each of its connections.
    """

    TRAFFIC = "flow"
    THING = "trace"

    flow: Annotated[str, settings.FLOW]

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"flow {self.flow} is traced"

    def inverse(self, was: InForce) -> Inverse:
        """End the trace."""
        del was
        stop = UntraceFlow(flow=self.flow)
        return Inverse((stop,), stop.describe())


class UntraceFlow(Change, frozen=True):
    """End a trace; sampling continues."""

    TRAFFIC = "flow"
    THING = "trace"

    flow: Annotated[str, settings.FLOW]

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"flow {self.flow} is no longer traced"

    def inverse(self, was: InForce) -> Inverse:
        """Trace the flow again."""
        del was
        start = TraceFlow(flow=self.flow)
        return Inverse((start,), f"{start.describe()} again")


class Mark(Change, frozen=True):
    """Put a mark on the time axis."""

    text: Annotated[str, Field(LINE, "Text of a mark on the time axis")]
    at: Moment | None = None
    """Moment of the mark; None stands for the moment at which the command takes effect."""
    name: Name | None = None
    """Name of the mark; None takes the next free one: ``m1``, ``m2`` …"""

    def describe(self) -> str:
        """Return the text of the mark."""
        return self.text

    def inverse(self, was: InForce) -> Inverse:
        """Remove the mark."""
        del was
        return Inverse((RemoveMark(name=self.name or ""),), f"mark {self.text!r} is removed")

    def redo(self, at: float) -> Command:
        """Put the mark where it was."""
        return self if self.at is not None else replace(self, at=at)


class ChangeMark(Change, frozen=True):
    """Change the text of a mark, or move it to another moment; None keeps either."""

    IN_SCENARIOS = False

    name: Name
    text: str | None = None
    at: Moment | None = None

    def describe(self) -> str:
        """Return the command as one short line."""
        moment = "" if self.at is None else f" moves to {format_clock(self.at)}"
        text = "" if self.text is None else f" reads: {self.text}"
        return f"mark {self.name}{moment}{' and' if moment and text else ''}{text}"

    def inverse(self, was: InForce) -> Inverse:
        """Restore the mark's text and moment."""
        mark = was.marks.get(self.name)
        return _mark_back(
            self.name, mark, mark and ChangeMark(name=self.name, text=mark.text, at=mark.at)
        )


class RemoveMark(Change, frozen=True):
    """Remove a mark from the time axis."""

    IN_SCENARIOS = False

    name: Name

    def describe(self) -> str:
        """Return the command as one short line."""
        return f"mark {self.name} is removed"

    def inverse(self, was: InForce) -> Inverse:
        """Put the mark back."""
        mark = was.marks.get(self.name)
        return _mark_back(self.name, mark, mark)


def _mark_back(name: str, mark: Mark | None, command: Command | None) -> Inverse:
    if mark is None or command is None:
        return Inverse(refusal=f"mark {name} is not known")
    return Inverse((command,), f"mark {mark.text!r} back at {format_clock(mark.at or 0.0)}")


CHANGES: tuple[type[Change], ...] = (
    SetCongestionControl,
    SetPath,
    SetQdisc,
    SetClasses,
    SetLink,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
    Mark,
    ChangeMark,
    RemoveMark,
)
"""All commands that change a running lab, other than starts and stops of traffic."""
