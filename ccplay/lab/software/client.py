"""The lab's side of disciplines in software: their process, its orders and its counters."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ccplay.errors import LabError
from ccplay.lab.delay import process
from ccplay.lab.delay.engines import Tell
from ccplay.lab.delay.process import LineProcess
from ccplay.lab.network.netns import Namespace
from ccplay.lab.queues.reading import Reading
from ccplay.lab.software import histogram, rules, runner
from ccplay.lab.software.board import Board, Slot
from ccplay.lab.software.messages import News, Order
from ccplay.lab.software.sojourns import Sojourns
from ccplay.model.disciplines import SUFFIX
from ccplay.model.events import SojournTimes
from ccplay.model.values import Qdisc

SHARES = (0.5, 0.95, 0.99, 1.0)
"""Shares of a link's packets whose sojourn time is reported."""

_ANSWER_S = 20.0
"""Seconds that an order may take. It needs milliseconds, but a new process has to import first."""

_SHORT_LIFE_S = 1.0
"""Seconds of life; a process that dies sooner twice in a row is not started again."""


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
        forked: LineProcess | None = None,
        board: Board | None = None,
    ) -> None:
        """``tell`` shows faults; ``forked`` is the first process, which has ``board``."""
        self._tell = tell
        self._seed = seed
        self._forked = forked
        self._board = board or Board()
        self._process: LineProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._links: dict[int, _Link] = {}
        self._answers: dict[tuple[int, str], asyncio.Future[News]] = {}
        self._dropped: dict[int, int] = {}
        """By link what its queues dropped that have ended."""
        self._histograms: dict[int, list[int]] = {}
        """By link the sojourn times in queues that have ended; see ``histogram``."""
        self._spread = Sojourns()
        self._removing: dict[int, asyncio.Task[None]] = {}
        """By link the removal of its rules."""
        self._generation = 0
        self._lateness: tuple[float, float] | None = None
        self._closing = False
        self._short_lives = 0

    @property
    def processes(self) -> Iterable[int]:
        """The process, if it runs."""
        return () if self._process is None else (self._process.pid,)

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second in microseconds; None: no packet."""
        return self._lateness

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
        told |= self._spread.recent(link.at.link)
        return Reading(link.kind, link.generation, counts, told)

    def sojourn_times(self, t: float) -> list[SojournTimes]:
        """Return the sojourn times of all links' packets since the last call."""
        for link in self._links.values():
            self._settle(link)
        return self._spread.take(t)

    def _settle(self, link: _Link) -> None:
        """Count what its discipline has sent until now as its own."""
        number = link.at.number
        self._spread.count(number, link.at.link, link.kind, self._sojourns(number))

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
            self._settle(link)
            link.order, link.kind, link.statistics = order, qdisc.kind, news.statistics
            return
        if self._process is None:
            await self._start()
        if (removing := self._removing.pop(at.number, None)) is not None:
            await removing
        try:
            news = await self._ask(order)
        except BaseException:
            # It may be open with a discipline that refuses its parameters.
            self._send(Order(queue=at.number, do="close"))
            raise
        self._generation += 1
        slot = self._board.slot(at.number - 1)
        link = _Link(at, order, qdisc.kind, news.statistics, slot, self._generation)
        try:
            await rules.add(at.namespace, at.interface, at.number)
        except BaseException:
            self._send(Order(queue=at.number, do="close"))
            raise
        self._links[at.number] = link
        self._send(Order(queue=at.number, do="begin", busy_s=kernel_backlog() * 8 / rate))

    async def end(self, at: Egress) -> Reading | None:
        """Give what waits to the kernel's queue, in order, and return the last counters.

        Later packets pass to it as they come, and soon no longer this way.

        Raises ``LabError``.
        """
        if at.number not in self._links:
            return None
        # A process that dies meanwhile holds no packets either.
        with contextlib.suppress(LabError):
            await self._ask(Order(queue=at.number, do="pass"))
        last = self.read(at.number)
        self._dropped[at.number] = self.dropped(at.number)
        self._settle(self._links[at.number])
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
        self._send(Order(queue=at.number, do="close"))

    async def close(self) -> None:
        """End the process."""
        self._closing = True
        await asyncio.gather(*self._removing.values())
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        elif self._forked is not None:
            self._forked.dismiss()
        if self._reading is not None:
            await self._reading

    # --- the process ------------------------------------------------------------------------

    async def _ask(self, order: Order) -> News:
        """Send an order and wait until it is done. Raises ``LabError`` with the reason."""
        future: asyncio.Future[News] = asyncio.get_running_loop().create_future()
        self._answers[order.queue, order.do] = future
        self._send(order)
        try:
            news = await asyncio.wait_for(future, _ANSWER_S)
        except TimeoutError:
            raise LabError(f"the disciplines' process doesn't answer ({order.do})") from None
        finally:
            self._answers.pop((order.queue, order.do), None)
        if news.failed:
            raise LabError(f"the queue {order.kind}{SUFFIX} can't be used: {news.failed}")
        return news

    def _send(self, order: Order) -> None:
        if self._process is not None:
            self._process.send(msgspec.json.encode(order))

    async def _start(self) -> None:
        """Start the process and send it all current orders."""
        started, self._forked = self._forked or start(self._board), None
        await started.connect()
        self._process = started
        self._reading = asyncio.create_task(self._listen(started))
        for link in self._links.values():
            self._generation += 1
            link.generation = self._generation
            self._send(link.order)
            self._send(Order(queue=link.order.queue, do="begin"))

    async def _listen(self, running: LineProcess) -> None:
        """Process the news until it ends."""
        born = time.monotonic()
        decoder = msgspec.json.Decoder(News)
        async for line in running.news():
            self._hear(decoder.decode(line))
        code = running.wait()
        self._process, self._lateness = None, None
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        for future in self._answers.values():
            if not future.done():
                why = f"the disciplines' process died ({how}) before it answered: try again"
                future.set_exception(LabError(why))
        if not self._closing:
            await self._revive(how, time.monotonic() - born)

    async def _revive(self, how: str, life_s: float) -> None:
        self._short_lives = self._short_lives + 1 if life_s < _SHORT_LIFE_S else 0
        if self._short_lives > 1:
            text = f"the disciplines' process keeps dying ({how}): a plain FIFO takes their place"
            self._tell("error", text, spoils=True)
            return
        text = f"the disciplines' process died ({how}) and was started again: "
        self._tell("warning", f"{text}packets it held were lost", spoils=True)
        await self._start()

    def _hear(self, news: News) -> None:
        link = self._links.get(news.queue)
        if news.fault:
            if link is not None:
                link.kind, link.statistics = "pfifo", news.statistics
                text = f"link {link.at.link}: {news.fault}; a FIFO has taken its place"
                self._tell("error", text, spoils=True)
        elif news.done or news.failed:
            for what in (news.done,) if news.done else ("open", "change", "begin", "pass"):
                future = self._answers.get((news.queue, what))
                if future is not None and not future.done():
                    future.set_result(news)
        elif news.late_p50_us is None or news.late_p99_us is None:
            self._lateness = None
        else:
            self._lateness = news.late_p50_us, news.late_p99_us


@dataclass(slots=True)
class _Link:
    """A link that has a discipline in software."""

    at: Egress
    order: Order
    kind: str
    statistics: list[str]
    slot: Slot
    generation: int


def fork() -> tuple[LineProcess, Board]:
    """Fork a process for disciplines from one that has neither threads nor an event loop yet."""
    board = Board()
    return process.fork(lambda: runner.serve(board)), board


def start(board: Board) -> LineProcess:
    """Start a process for disciplines of its own interpreter."""
    return process.start(runner.__name__, board.descriptor)
