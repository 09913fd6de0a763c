"""What links do to packets: rate, queue, delay, jitter, loss; changed while traffic flows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import msgspec

from ccplay.errors import CommandError, LabError
from ccplay.lab import htb, offloads, qdiscs
from ccplay.lab.delayclient import LineDelay
from ccplay.lab.delays import Arrival, DelayEngine, Path
from ccplay.lab.netem import NetemDelay
from ccplay.lab.netlink import TC_H_ROOT
from ccplay.lab.rtnl import NetlinkError, RouteSocket
from ccplay.lab.topology import BuiltNetwork
from ccplay.model import Link, LinkChanged, LinkSetting, Qdisc
from ccplay.units import format_rate

OFFLOADS_ABOVE = 200_000_000
"""Bits per second: above it one core can't carry every frame alone through the path."""

LONGEST_DELAY_US = 10_000_000

_DEFAULT_QDISC = Qdisc(kind="pfifo", options={"limit": 100})
_FIRST_HANDLE, _LAST_HANDLE = 0x10, 0xFFFE


def delay_engine(name: str, tell: Callable[[str, str], None], seed: int) -> DelayEngine:
    """Return the engine ``netem`` or ``delay line``; ``tell`` takes a ``Log``'s level and text."""
    return NetemDelay() if name == "netem" else LineDelay(tell, seed)


class Shaper:
    """All links of a built network. Use with ``with``; one ``apply`` at a time."""

    def __init__(
        self,
        built: BuiltNetwork,
        engine: DelayEngine,
        clock: Callable[[], float],
    ) -> None:
        """``engine`` is the caller's to close."""
        self._built = built
        self._clock = clock
        self._engine = engine
        self._interfaces: dict[str, _Interface] = {}
        self._stack = ExitStack()
        self._offloads = False

    @property
    def processes(self) -> list[int]:
        """Processes whose CPU belongs to the lab."""
        return list(self._engine.processes)

    def stats(self) -> tuple[float, float] | None:
        """Return how late packets were let go, median and 99th percentile, microseconds.

        None where the kernel does it or nothing was delayed lately.
        """
        return self._engine.lateness()

    def __enter__(self) -> Self:
        """Take the interfaces over and turn their offloads off."""
        try:
            for number, link in enumerate(self._built.network.links, start=1):
                namespace = self._built.namespace(link.src)
                routes = self._stack.enter_context(RouteSocket(namespace))
                arrival = Arrival(
                    number,
                    link.name,
                    self._built.namespace(link.dst),
                    self._built.receiving_interface(link),
                )
                index = namespace.interface_index(link.interface)
                self._interfaces[link.name] = _Interface(link, arrival, routes, index)
            self._switch_offloads(on=False)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the sockets back; what was set stays with the namespaces."""
        self._stack.close()

    async def apply(self, link: Link, setting: LinkSetting) -> list[LinkChanged]:
        """Change what ``setting`` says of a link, leave the rest, and return what holds now.

        That is the link's own new truth, read back from the kernel, and that of every other link
        whose offloads changed with it. Raises ``CommandError`` or ``UnsupportedError`` before
        anything changed where the setting is impossible.
        """
        interface = self._interfaces[link.name]
        setting = self._check(link, setting)
        try:
            if setting.rate is not None or setting.qdisc is not None:
                interface.shape(setting.rate, setting.qdisc)
        except NetlinkError as error:
            raise LabError(f"link {link.name}: {error}") from error
        wanted = interface.path.changed(setting)
        if wanted != interface.path:
            interface.path = await self._engine.set(interface.arrival, wanted)
        interface.touched = True
        return [self._describe(each) for each in self._affected(interface)]

    def _check(self, link: Link, setting: LinkSetting) -> LinkSetting:
        """Return ``setting`` with its queue validated and tried.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        if setting.rate == 0:
            if link.name in self._built.network.bottlenecks:
                raise CommandError(f"link {link.name} is under study and can't be unlimited")
        elif setting.rate is not None:
            htb.check_rate(setting.rate)
        for name, value in (("delay", setting.delay_us), ("jitter", setting.jitter_us)):
            if value is not None and not 0 <= value <= LONGEST_DELAY_US:
                raise CommandError(f"a link's {name} goes from 0 to 10 s, not {value} µs")
        if setting.loss is not None and not 0 <= setting.loss <= 1:
            raise CommandError(f"a link's loss goes from 0 to 1, not {setting.loss}")
        if setting.qdisc is None:
            return setting
        qdisc = qdiscs.validate(setting.qdisc)
        qdiscs.rehearse(qdisc)
        return msgspec.structs.replace(setting, qdisc=qdisc)

    def _affected(self, changed: _Interface) -> list[_Interface]:
        """Return the interface, with all others where its rate switched their offloads."""
        if (on := self._wants_offloads()) == self._offloads:
            return [changed]
        self._switch_offloads(on=on)
        others = (each for each in self._interfaces.values() if each.touched)
        return [changed, *(each for each in others if each is not changed)]

    def _wants_offloads(self) -> bool:
        """Say whether all that is shaped is too fast to be carried frame by frame."""
        rates = [each.rate for each in self._interfaces.values() if each.rate]
        studied = [self._interfaces[name].rate for name in self._built.network.bottlenecks]
        return all(studied) and min(rates) > OFFLOADS_ABOVE

    def _switch_offloads(self, *, on: bool) -> None:
        for interface in self._interfaces.values():
            interface.switch_offloads(self._built, on=on)
        self._offloads = on

    def _describe(self, interface: _Interface) -> LinkChanged:
        path = interface.path
        return LinkChanged(
            t=self._clock(),
            link=interface.link.name,
            setting=LinkSetting(
                rate=interface.rate,
                delay_us=path.delay_us,
                jitter_us=path.jitter_us,
                loss=path.loss,
                qdisc=interface.qdisc,
            ),
            offloads=self._offloads,
            delay_engine=self._engine.name if path else "none",
        )


class _Interface:
    """The sending end of a link, and what holds there."""

    def __init__(self, link: Link, arrival: Arrival, routes: RouteSocket, index: int) -> None:
        self.link = link
        self.arrival = arrival
        self.path = Path()
        self.rate = 0
        self.qdisc: Qdisc | None = None
        self.touched = False
        self._routes = routes
        self._index = index
        self._handle = 0
        self._asked: Qdisc | None = None

    def shape(self, rate: int | None, qdisc: Qdisc | None) -> None:
        """Set rate and queue where they are given, and read back what the kernel made of it."""
        if rate == 0:
            self._unshape(qdisc)
            return
        is_new = bool(rate) and not self.rate
        if is_new and self._handle:
            qdiscs.remove(self._routes, self._index, TC_H_ROOT)
            self._handle = 0
        parent = htb.CLASS if rate or self.rate else TC_H_ROOT
        if qdisc is None and is_new:
            qdisc = self._asked or _DEFAULT_QDISC
        if rate:
            htb.set_rate(self._routes, self._index, rate, new=is_new)
            self.rate = htb.read_rate(self._routes, self._index)
            if abs(self.rate - rate) >= 8:
                held = format_rate(self.rate)
                raise LabError(f"link {self.link.name}: {format_rate(rate)} became {held}")
        if qdisc is not None:
            self._attach(parent, qdisc)

    def _unshape(self, qdisc: Qdisc | None) -> None:
        """Take the rate away, and keep a queue only where one is asked for now."""
        qdiscs.remove(self._routes, self._index, TC_H_ROOT)
        self.rate, self.qdisc, self._handle, self._asked = 0, None, 0, None
        if qdisc is not None:
            self._attach(TC_H_ROOT, qdisc)

    def _attach(self, parent: int, qdisc: Qdisc) -> None:
        """Put the queue in place: where it can be changed it keeps its packets, or begins empty."""
        held = self._asked if self._handle else None
        change = qdiscs.changed(held, qdisc) if held is not None else None
        handle = self._next_handle() if change is None else self._handle
        qdiscs.attach(self._routes, self._index, parent, handle << 16, change or qdisc)
        self._handle, self._asked = handle, qdisc
        self.qdisc = qdiscs.read_back(self._routes, self._index, parent, qdisc)

    def _next_handle(self) -> int:
        """Return a handle of its own for a new queue: the kernel won't change a handle's kind."""
        return self._handle + 1 if _FIRST_HANDLE <= self._handle < _LAST_HANDLE else _FIRST_HANDLE

    def switch_offloads(self, built: BuiltNetwork, *, on: bool) -> None:
        """Turn the sending interface's offloads on or off; every interface sends on one link."""
        namespace = built.namespace(self.link.src)
        with namespace.socket(2, 2) as sock:
            offloads.switch(sock, [self.link.interface], on=on)
