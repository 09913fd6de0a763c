"""The settings of links: rate, queue, delay, jitter, loss; changed while traffic flows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, Self

from msgspec.structs import replace

from ccplay.errors import CcplayError, CommandError, LabError, UnsupportedError
from ccplay.lab import egress
from ccplay.lab.child import Child, Logger
from ccplay.lab.delay import LineDelay, NetemDelay
from ccplay.lab.delay_line import DelayEngine, check_path
from ccplay.lab.egress import Egress
from ccplay.lab.htb import Selection, check_classes
from ccplay.lab.netns import LinkEnd
from ccplay.lab.network import BuiltNetwork
from ccplay.lab.qdisc_counters import LinkQueues
from ccplay.lab.qdiscs import Leaf, choose_qdisc
from ccplay.lab.rtnl import Carried, NetlinkError, NetlinkSocket, carried
from ccplay.lab.software import Software
from ccplay.lab.traces import Moving, Traces
from ccplay.model.disciplines import NOT_OF_CLASS, is_software
from ccplay.model.events import InterfaceCounters, LinkChanged
from ccplay.model.network import Link, Network
from ccplay.model.quantities import check
from ccplay.model.values import LinkSetting, Qdisc

_TOLD_S = 0.02
"""Seconds within which all processes that hold packets are told when a trace begins."""

# --- the settings of each link when the network is built: defaults, changed by requested ones -----

DEFAULT_BOTTLENECK = LinkSetting(
    rate=10_000_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
)
"""Default rate, delay and queue of each observed link. Links that a topology's ``observed`` names
have no default delay; the others keep the one that they had before that key existed."""


def planned(network: Network, wanted: Mapping[str, LinkSetting]) -> list[tuple[Link, LinkSetting]]:
    """Return every link that has settings, and its defaults changed by all that are ``wanted``.

    Raises ``CommandError`` for an MTU of one direction only.
    """
    default = DEFAULT_BOTTLENECK
    if network.topology.observed:
        default = replace(default, delay_us=0)
    settings = dict.fromkeys(network.observed, default)
    for name, change in wanted.items():
        if change.mtu is not None and "->" in name:
            both = name.replace("->", "-")
            raise CommandError(f"link {name}: an MTU applies to both directions: name {both}")
        for link in network.resolve(name):
            settings[link.name] = settings.get(link.name, LinkSetting()).changed_by(change)
    return [(network.link(name), setting) for name, setting in settings.items()]


# --- the settings of links: rate, queue, delay, jitter, loss; changed while traffic flows ---------

OFFLOADS_ABOVE = 200_000_000
"""Rate in bits per second above which offloads are on: one core can't carry each frame alone."""


class HalfChangedError(LabError):
    """A command failed, and what it had changed by then could not all be changed back."""

    def __init__(self, changes: Sequence[LinkChanged], *lines: str) -> None:
        """Keep ``changes``, the states of all links that the command has touched."""
        super().__init__(*lines)
        self.changes = changes


class _Step(NamedTuple):
    """A part of a command: one link's change, and how to undo it."""

    interface: Egress
    do: Callable[[], Awaitable[list[Egress]]]
    undo: Callable[[], Awaitable[list[Egress]]]


def delay_engine(name: str, log: Logger, seed: int, forked: Child | None = None) -> DelayEngine:
    """Return the engine ``netem`` or ``delay line``; ``log`` receives level and text.

    ``forked`` is a delay line that waits for orders; it is ended if netem is chosen.
    """
    if name != "netem":
        return LineDelay(log, seed, forked)
    if forked is not None:
        forked.dismiss()
    return NetemDelay(seed)


class Shaper:
    """The settings of all links. Enter it with ``with``; await one ``apply`` at a time."""

    def __init__(
        self,
        built: BuiltNetwork,
        engine: DelayEngine,
        clock: Callable[[], float],
        software: Software | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Use ``engine`` and ``software``, None if unavailable, until the caller closes them."""
        self._built = built
        self._clock = clock
        self._engine = engine
        self._software = software
        self._traces = traces or Traces()
        self._interfaces: dict[str, Egress] = {}
        self._running: dict[tuple[str, str], Selection] = {}
        self._before: dict[str, Carried] = {}
        """Packets and bytes that the interfaces of each node had carried before ``with``."""
        self._stack = ExitStack()
        self._offloads = False

    @property
    def processes(self) -> list[int]:
        """Process IDs of the helpers whose CPU time counts as the lab's."""
        own = () if self._software is None else self._software.processes
        return [*self._engine.processes, *own]

    @property
    def rates(self) -> dict[str, int]:
        """Rates by link, in bits per second; 0 means unlimited, or that the link moves."""
        return {
            name: 0 if each.moving is not None and each.moving.content.paces else each.rate
            for name, each in self._interfaces.items()
        }

    async def count(self) -> InterfaceCounters:
        """Return the counters of every interface. Raises ``LabError`` or ``OSError``."""
        rows, sojourn_us = [], dict[str, list[float]]()
        now = _count_carried(self._built)
        every = self._interfaces.values()
        # Ask in parallel only about links with loss; a task for every link would take long.
        asked = [each for each in every if each.path.loses]
        answers = await asyncio.gather(*(self._engine.lost(each.arrival) for each in asked))
        lost_on = dict(zip((each.link.name for each in asked), answers, strict=True))
        drops: dict[str, dict[int, int]] = {}
        for name, each in self._interfaces.items():
            lost = lost_on[name] if each.path.loses else await self._engine.lost(each.arrival)
            node, interface = each.link.src, each.link.interface
            since = zip(now[node][interface], self._before[node][interface], strict=True)
            counted = [after - before for after, before in since]
            # One dump covers all interfaces of a node.
            if node not in drops:
                drops[node] = each.dropped()
            dropped = drops[node].get(each.index, 0)
            if self._software is not None:
                dropped += self._software.dropped(each.arrival.number)
                if times := self._software.sojourn_us(each.arrival.number):
                    sojourn_us[name] = times
            rows.append((interface, node, name, *counted, dropped, lost))
        names = InterfaceCounters.COLUMNS
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        return InterfaceCounters(t=self._clock(), sojourn_us=sojourn_us, **columns)

    def stats(self) -> tuple[float, float] | None:
        """Return the lateness of released packets: median and 99th percentile, in microseconds.

        It is that of the delay line or of disciplines in software, whichever is greater. None if
        the kernel does the work of both, or no packet waited recently.
        """
        own = None if self._software is None else self._software.lateness()
        return max((each for each in (self._engine.lateness(), own) if each), default=None)

    def __enter__(self) -> Self:
        """Open a netlink socket for each interface, and turn the interfaces' offloads off."""
        try:
            for number, link in enumerate(self._built.network.links, start=1):
                namespace = self._built.namespace(link.src)
                routes = self._stack.enter_context(NetlinkSocket(namespace))
                place = LinkEnd(number, link.name, namespace, link.interface)
                arrives_on = self._built.receiving_interface(link)
                arrival = LinkEnd(number, link.name, self._built.namespace(link.dst), arrives_on)
                index = namespace.interface_index(link.interface)
                self._interfaces[link.name] = Egress(link, place, arrival, routes, index)
            self._switch_offloads(on=False)
            self._before = _count_carried(self._built)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close sockets and markers; other settings end with the namespaces."""
        for interface in self._interfaces.values():
            if interface.marker is not None:
                interface.marker.close()
        self._stack.close()

    async def apply(self, link: Link, setting: LinkSetting) -> list[LinkChanged]:
        """Change the given settings of one link; see ``apply_to_all``."""
        return await self.apply_to_all([link], setting)

    async def apply_to_all(self, links: Sequence[Link], setting: LinkSetting) -> list[LinkChanged]:
        """Change the given settings of all links, keep the others, and return the new states.

        The states are read back from the kernel, for the links and for every other link that
        changed with them. Either all links change or none does. Raises ``CommandError`` or
        ``UnsupportedError`` for an impossible setting, before anything changes, and the exceptions
        of ``_carry_out``.
        """
        moving = await self._opened(links, setting)
        tried = [
            (self._interfaces[link.name], self._check(link, setting, moving)) for link in links
        ]
        self._check_offloads(links, setting)
        image = await asyncio.to_thread(egress.marker_program) if setting.mark else None
        steps = [
            _Step(
                interface,
                partial(self._change, interface, wanted, image, moving),
                partial(self._change, interface, interface.before(wanted), None, interface.moving),
            )
            for interface, wanted in tried
        ]
        return await _carry_out(steps, self.describe)

    async def queues_of_class(
        self, links: Sequence[Link], name: str, qdisc: Qdisc
    ) -> list[LinkChanged]:
        """Replace the queue of the class ``name`` of all links, and return the new states.

        Either all queues change or none does. Raises the exceptions of ``apply_to_all``.
        """

        async def put(interface: Egress, leaf: Leaf, wanted: Qdisc | None) -> list[Egress]:
            if wanted is not None:
                leaf.put(wanted)
            return [interface]

        steps = []
        for link in links:
            at = self._interfaces[link.name]
            leaf, wanted = at.queue_of_class(name), _choose_class_queue(self._software, link, qdisc)
            steps.append(
                _Step(at, partial(put, at, leaf, wanted), partial(put, at, leaf, leaf.asked))
            )
        return await _carry_out(steps, self.describe)

    async def _opened(self, links: Sequence[Link], setting: LinkSetting) -> Moving | None:
        """Return what a setting lets move its links; all of them begin at the same moment.

        Raises ``CommandError``, ``TraceError``, or ``UnsupportedError`` without netfilter queues.
        """
        if not setting.trace:
            return None
        if self._software is None:
            names = ", ".join(link.name for link in links)
            text = f"link {names}: a trace needs netfilter queues: see ccplay doctor"
            raise UnsupportedError(text)
        return await asyncio.to_thread(self._traces.open, setting.trace)

    async def start_traces(self) -> float:
        """Let everything that moves a link begin, and return when: the network is ready then.

        It is a moment of the monotonic clock. Raises ``LabError``.
        """
        moved = [(each, each.moving) for each in self._interfaces.values() if each.moving]
        start = time.monotonic() + (_TOLD_S if moved else 0.0)
        for interface, moving in moved:
            moving.restart(start)
            if self._software is not None:
                await self._software.restart(interface.arrival.number)
            if moving.content.impairs:
                await self._engine.set(interface.arrival, interface.path, moving)
        return start

    async def _change(
        self, interface: Egress, setting: LinkSetting, image: bytes | None, moving: Moving | None
    ) -> list[Egress]:
        """Change a link to a setting that was checked, and return every interface that changed.

        ``image`` is the marker's program, ``moving`` what moves the link if the setting says so.
        """
        was = interface.moving
        if setting.trace is not None:
            interface.moving = moving
        elif setting.rate == 0:
            interface.moving = None
        try:
            return await self._changed(interface, setting, image, was)
        except BaseException:
            interface.moving = was
            raise

    async def _changed(
        self, interface: Egress, setting: LinkSetting, image: bytes | None, was: Moving | None
    ) -> list[Egress]:
        await egress.shape_link(self._software, interface, setting, self._running.values())
        wanted = interface.path.changed(setting)
        moved = interface.moving is not was and any(
            each is not None and each.content.impairs for each in (interface.moving, was)
        )
        if wanted != interface.path or moved:
            moving = interface.moving
            interface.path = await self._engine.set(interface.arrival, wanted, moving)
        if setting.mtu is not None:
            # The receiving end drops packets that are too long.
            for end in (interface, self._opposite(interface)):
                end.set_mtu(setting.mtu)
        if setting.mark is not None:
            interface.set_mark(setting.mark, image)
        interface.touched = True
        affected = self._affected(interface)
        if setting.down is not None:
            affected += self._set_down(interface, down=setting.down)
        return affected

    def find_queues(self, link: str, queues: LinkQueues) -> None:
        """Let ``queues`` read what a link has now: its classes, marker and queue in software."""
        at, own = self._interfaces[link], self._software
        marker, number = at.marker, at.arrival.number
        queues.names = {each.leaf.parent: each.asked.name for each in at.classes}
        queues.marks = None if marker is None else lambda: marker.marks
        queues.software = None if own is None or at.served is None else lambda: own.read(number)

    def admit(self, packets: Selection) -> None:
        """Direct traffic that is about to start into its class, on all links with classes."""
        self._running[packets.kind, packets.name] = packets
        try:
            for interface in self._interfaces.values():
                interface.admit(packets)
        except NetlinkError as error:
            self.dismiss(packets.kind, packets.name)
            raise LabError(f"{packets.kind} {packets.name}: {error}") from error

    def dismiss(self, kind: str, name: str) -> None:
        """Remove the filters of traffic that has ended."""
        if self._running.pop((kind, name), None) is not None:
            for interface in self._interfaces.values():
                interface.dismiss(kind, name)

    def _check(self, link: Link, setting: LinkSetting, moving: Moving | None) -> LinkSetting:
        """Return ``setting`` with its queue validated and tried; ``moving`` is what it opened.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        check(setting, f"link {link.name}")
        if setting.rate == 0 and link.name in self._built.network.observed:
            raise CommandError(f"link {link.name} is under study and can't be unlimited")
        interface = self._interfaces[link.name]
        if setting.mark:
            if not (interface.rate if setting.rate is None else setting.rate):
                raise CommandError(f"link {link.name} has no rate, so no queue to mark in")
            egress.require_marking()
        fast = self._offloads if setting.rate is None else setting.rate > OFFLOADS_ABOVE
        check_path(link.name, interface.path.changed(setting), single=not fast)
        if setting.classes is None and setting.qdisc is not None:
            interface.queue_of_class(None)
        shared = setting.classes or (interface.classes if setting.classes is None else ())
        if shared and not (interface.rate if setting.rate is None else setting.rate):
            raise CommandError(f"link {link.name} has no rate for classes to share")
        if setting.qdisc is not None:
            qdisc = choose_qdisc(setting.qdisc, software=self._software is not None)
            setting = replace(setting, qdisc=qdisc)
        if setting.trace is None and setting.rate != 0:
            moving = interface.moving
        egress.check_queue(interface, setting, moving)
        if setting.classes:
            check_classes(link.name, setting.classes)
            own = setting.qdisc or interface.software
            if own is not None and is_software(own.kind):
                _check_own(link.name, own, setting)
            tried = [
                each
                if each.qdisc is None
                else replace(each, qdisc=_choose_class_queue(self._software, link, each.qdisc))
                for each in setting.classes
            ]
            setting = replace(setting, classes=tried)
        return setting

    def _set_down(self, interface: Egress, *, down: bool) -> list[Egress]:
        """Take the cable down or bring it up, and return the end that sends the other way."""
        self._built.routing.set_down(interface.link, down=down)
        other = self._opposite(interface)
        for each in (interface, other):
            each.down = self._built.routing.is_down(each.link)
        return [other]

    def _opposite(self, interface: Egress) -> Egress:
        """Return the end of a cable that sends the other way."""
        return self._interfaces[self._built.network.opposite(interface.link).name]

    def _check_offloads(self, links: Sequence[Link], setting: LinkSetting) -> None:
        """Raise ``CommandError`` if another link needs single packets, and offloads would be on."""
        if not setting.rate or self._offloads:
            return
        changed = {link.name: setting.rate for link in links}
        if _wants_offloads(self._built.network, self.rates | changed):
            for name in self._interfaces.keys() - changed.keys():
                check_path(name, self._interfaces[name].path, single=False)

    def _affected(self, changed: Egress) -> list[Egress]:
        """Return the changed interface, and all others with settings if their offloads changed."""
        if (on := _wants_offloads(self._built.network, self.rates)) == self._offloads:
            return [changed]
        self._switch_offloads(on=on)
        others = (each for each in self._interfaces.values() if each.touched)
        return [changed, *(each for each in others if each is not changed)]

    def _switch_offloads(self, *, on: bool) -> None:
        try:
            for interface in self._interfaces.values():
                interface.switch_offloads(on=on)
        except LabError:
            for interface in self._interfaces.values():
                interface.switch_offloads(on=not on)
            raise
        self._offloads = on

    def describe(self, link: str) -> LinkChanged:
        """Return the current state of a link."""
        interface = self._interfaces[link]
        path, served = interface.path, interface.qdisc
        if interface.served is not None and self._software is not None:
            # Its discipline in software may have failed.
            served = self._software.substitute(interface.arrival.number) or served
        return LinkChanged(
            t=self._clock(),
            link=interface.link.name,
            setting=LinkSetting(
                rate=interface.rate,
                **path.setting_fields(),
                qdisc=served,
                classes=[each.describe(interface.rate) for each in interface.classes] or None,
                mtu=interface.mtu,
                mark=interface.marks_from,
                down=interface.down,
                trace=None if interface.moving is None else interface.moving.trace,
            ),
            offloads=self._offloads,
            delay_engine=self._engine.name if path else "none",
        )


async def _carry_out(
    steps: Sequence[_Step], describe: Callable[[str], LinkChanged]
) -> list[LinkChanged]:
    """Carry out all steps, and return the new states; if one fails, undo it and those before it.

    Raises its exception, or ``LabError`` with what was lost; ``HalfChangedError`` if a step
    can't be undone.
    """
    affected: dict[str, None] = {}
    handles = {each.interface: each.interface.handles for each in steps}
    for number, step in enumerate(steps, 1):
        try:
            affected |= {each.link.name: None for each in await step.do()}
        except Exception as error:
            left = await _undo(steps[:number], affected)
            text = f"link {step.interface.link.name}: {error}"
            if isinstance(error, CcplayError) and str(error).startswith("link "):
                text = str(error)
            if left:
                changes = [describe(each) for each in affected]
                raise HalfChangedError(changes, "; ".join([text, *left])) from error
            emptied = [each.link.name for each, was in handles.items() if each.handles != was]
            if emptied:
                lost = f"packets that waited in the queue of {', '.join(emptied)} are lost"
                raise LabError(f"{text}; the links are as before, but {lost}") from error
            if isinstance(error, NetlinkError):
                raise LabError(text) from error
            raise
    return [describe(each) for each in affected]


async def _undo(steps: Sequence[_Step], affected: dict[str, None]) -> list[str]:
    """Undo steps, the last first; return a message for each that can't be undone.

    Adds the links that these change to ``affected``.
    """
    left = []
    for step in reversed(steps):
        name = step.interface.link.name
        affected[name] = None
        try:
            affected |= {each.link.name: None for each in await step.undo()}
        except Exception as error:  # noqa: BLE001 - the other links must be changed back
            left.append(f"link {name} can't be changed back: {error}")
    return left


def _wants_offloads(network: Network, rates: Mapping[str, int]) -> bool:
    """Return whether all shaped links are too fast to be carried frame by frame."""
    studied = [rates[name] for name in network.observed]
    return all(studied) and min(filter(None, rates.values())) > OFFLOADS_ABOVE


def _check_own(link: str, own: Qdisc, setting: LinkSetting) -> None:
    """Raise ``CommandError`` if a class would take over a link's queue in software."""
    without = next((each.name for each in setting.classes or () if each.qdisc is None), None)
    if setting.qdisc is not None or without is not None:
        who = "" if without is None else f" (class {without} has none of its own)"
        raise CommandError(f"link {link}: {own.kind} {NOT_OF_CLASS}{who}")


def _choose_class_queue(software: Software | None, link: Link, qdisc: Qdisc) -> Qdisc:
    """Return the queue of a class, which is always the kernel's. Raises ``CommandError``."""
    found = choose_qdisc(qdisc, software=software is not None)
    if is_software(found.kind):
        raise CommandError(f"link {link.name}: {found.kind} {NOT_OF_CLASS}")
    return found


def _count_carried(built: BuiltNetwork) -> dict[str, Carried]:
    """Return what the interfaces of each node have carried."""
    return {name: carried(each) for name, each in built.namespaces.items()}
