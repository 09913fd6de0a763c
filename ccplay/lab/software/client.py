"""The lab's side of disciplines in software: their process, its orders and its counters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.packets import process
from ccplay.lab.packets.keeper import Keeper, Tell
from ccplay.lab.packets.process import PacketProcess
from ccplay.lab.queues.reading import Reading
from ccplay.lab.software import histogram, rules, runner
from ccplay.lab.software.board import Board, Slot
from ccplay.lab.software.messages import News, Order
from ccplay.model.disciplines import SUFFIX
from ccplay.model.values import Qdisc

SHARES = (0.5, 0.95, 0.99, 1.0)
"""Shares of a link's packets whose sojourn time is reported."""


class Egress(NamedTuple):
    """The sending end of a link."""

    number: int
    """Of the link, from 1."""
    link: str
    namespace: Namespace
    interface: str


class Software:
    """All disciplines in software of a lab, in one process. A process that dies is started again.

    Meanwhile packets wait in the kernel's own queue, at the link's rate; those that it held are
    lost.
    """

    def __init__(
        self,
        tell: Tell,
        seed: int,
        forked: PacketProcess | None = None,
        board: Board | None = None,
    ) -> None:
        """``tell`` shows faults; ``forked`` is the first process, which has ``board``."""
        self._tell = tell
        self._seed = seed
        self._board = board or Board()
        self._links: dict[int, _Link] = {}
        self._dropped: dict[int, int] = {}
        """By link what its queues dropped that have ended."""
        self._histograms: dict[int, list[int]] = {}
        """By link the sojourn times in queues that have ended; see ``histogram``."""
        self._removing: dict[int, asyncio.Task[None]] = {}
        """By link the removal of its rules."""
        self._generation = 0
        self._keeper = Keeper(
            "the disciplines' process",
            News,
            tell,
            launch=lambda: start(self._board),
            restore=self._restore,
            hear=self._hear,
            loss="a plain FIFO takes their place",
            forked=forked,
        )

    @property
    def processes(self) -> Iterable[int]:
        """The process, if it runs."""
        return self._keeper.pids

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second in microseconds; None: no packet."""
        return self._keeper.lateness

    def dropped(self, number: int) -> int:
        """Return the packets that were dropped in front of a link."""
        now = self.read(number)
        return self._dropped.get(number, 0) + (0 if now is None else now.counts.drops)

    def read(self, number: int) -> Reading | None:
        """Return what a link's queue has come to; None if it has none."""
        if (link := self._links.get(number)) is None:
            return None
        counts, values = link.slot.read(len(link.statistics))
        told = dict(zip(link.statistics, values, strict=True))
        return Reading(link.kind, link.generation, counts, told)

    def sojourn_us(self, number: int) -> list[float]:
        """Return ``SHARES`` of the sojourn times of a link's packets; empty without any."""
        counts = self._sojourns(number)
        found = [histogram.percentile(counts, share) for share in SHARES]
        return [round(each, 1) for each in found if each is not None]

    def _sojourns(self, number: int) -> list[int]:
        past, link = self._histograms.get(number), self._links.get(number)
        now = link.slot.histogram() if link is not None else [0] * histogram.PLACES
        return now if past is None else [sum(each) for each in zip(past, now, strict=True)]

    async def put(
        self, at: Egress, qdisc: Qdisc, rate: int, kernel_backlog: Callable[[], int]
    ) -> None:
        """Let a discipline decide on the packets of a link, or change the one that does.

        ``kernel_backlog`` returns the bytes that still wait in the kernel once no more come; the
        link is busy with them first. Raises ``LabError``.
        """
        order = Order(
            queue=at.number,
            pid=at.namespace.pid,
            kind=qdisc.kind.removesuffix(SUFFIX),
            options=qdisc.options,
            rate=rate,
            seed=self._seed + at.number,
        )
        if (link := self._links.get(at.number)) is not None:
            news = await self._ask(msgspec.structs.replace(order, do="change"))
            link.order, link.kind, link.statistics = order, qdisc.kind, news.statistics
            return
        await self._keeper.start()
        if (removing := self._removing.pop(at.number, None)) is not None:
            await removing
        try:
            news = await self._ask(order)
        except BaseException:
            # It may be open with a discipline that refuses its parameters.
            self._keeper.send(Order(queue=at.number, do="close"))
            raise
        self._generation += 1
        slot = self._board.slot(at.number - 1)
        link = _Link(at, order, qdisc.kind, news.statistics, slot, self._generation)
        try:
            await rules.add(at.namespace, at.interface, at.number)
        except BaseException:
            self._keeper.send(Order(queue=at.number, do="close"))
            raise
        self._links[at.number] = link
        self._keeper.send(Order(queue=at.number, do="begin", busy_s=kernel_backlog() * 8 / rate))

    async def end(self, at: Egress) -> Reading | None:
        """Give what waits to the kernel's queue, in order, and return the last counters.

        Later packets pass to it as they come, and soon no longer this way.

        Raises ``LabError``.
        """
        if at.number not in self._links:
            return None
        # A process that dies meanwhile holds no packets either.
        with contextlib.suppress(LabError):
            await self._keeper.ask(Order(queue=at.number, do="pass"))
        last = self.read(at.number)
        self._dropped[at.number] = self.dropped(at.number)
        self._histograms[at.number] = self._sojourns(at.number)
        del self._links[at.number]
        # Packets pass already: nobody has to wait for the rules to go.
        self._removing[at.number] = asyncio.create_task(self._remove(at))
        return last

    async def _remove(self, at: Egress) -> None:
        try:
            await rules.remove(at.namespace, at.interface, at.number)
        except LabError as error:
            self._tell("warning", f"link {at.link}: {error}", spoils=True)
        self._keeper.send(Order(queue=at.number, do="close"))

    async def close(self) -> None:
        """End the process."""
        await asyncio.gather(*self._removing.values())
        await self._keeper.close()

    async def _ask(self, order: Order) -> News:
        """Send an order and wait until it is done. Raises ``LabError`` with the reason."""
        news = await self._keeper.ask(order)
        if news.failed:
            raise LabError(f"the queue {order.kind}{SUFFIX} can't be used: {news.failed}")
        return news

    def _restore(self) -> None:
        """Open the queues of all links in a new process."""
        for link in self._links.values():
            self._generation += 1
            link.generation = self._generation
            self._keeper.send(link.order)
            self._keeper.send(Order(queue=link.order.queue, do="begin"))

    def _hear(self, news: News) -> None:
        link = self._links.get(news.queue)
        if news.fault and link is not None:
            link.kind, link.statistics = "pfifo", news.statistics
            text = f"link {link.at.link}: {news.fault}; a FIFO has taken its place"
            self._tell("error", text, spoils=True)


@dataclass(slots=True)
class _Link:
    """A link that has a discipline in software."""

    at: Egress
    order: Order
    kind: str
    statistics: list[str]
    slot: Slot
    generation: int


def fork() -> tuple[PacketProcess, Board]:
    """Fork a process for disciplines from one that has neither threads nor an event loop yet."""
    board = Board()
    return process.fork(lambda: runner.serve(board)), board


def start(board: Board) -> PacketProcess:
    """Start a process for disciplines of its own interpreter."""
    return process.start(runner.__name__, board.descriptor)
