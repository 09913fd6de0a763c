"""Keeps a packet-holding process running: sends orders, receives news, restarts it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from ccplay.errors import LabError
from ccplay.lab.packets.messages import News, Order
from ccplay.lab.packets.process import PacketProcess

_ANSWER_S = 20.0
"""Seconds that an order may take. Most take milliseconds, but a new process first has to import,
which takes seconds when many labs start at once."""

_SHORT_LIFE_S = 1.0
"""Shortest life in seconds; a process that dies sooner twice in a row is not restarted."""

N = TypeVar("N", bound=News)


class Logger(Protocol):
    """Function that receives a message for the event log: a level as in ``Log``, and a text."""

    def __call__(self, level: str, text: str, *, spoils: bool = False) -> None:
        """Log the message; ``spoils`` is that of ``Log``."""


class _DiedError(LabError):
    """The process died before it answered an order."""


class Keeper(Generic[N]):
    """The lab's side of a packet-holding process, which is restarted if it dies."""

    def __init__(
        self,
        name: str,
        news: type[N],
        log: Logger,
        *,
        launch: Callable[[], PacketProcess],
        restore: Callable[[], None],
        on_news: Callable[[N], None],
        loss: str,
        forked: PacketProcess | None = None,
        blame: Callable[[int], str] = lambda _: "",
    ) -> None:
        """``name`` names the process in messages about its end and its faults; ``log`` logs them.

        ``launch`` starts a new process, ``restore`` then sends the orders of all its queues, and
        ``on_news`` receives news that answer no order. ``loss`` describes what no longer works if
        it keeps dying. ``forked`` is the first process, if it runs already. ``blame`` receives the
        exit code of one that died; if it returns the cause, it has logged and removed it.
        """
        self._name, self._loss = name, loss
        self._launch, self._restore, self._on_news, self._log = launch, restore, on_news, log
        self._blame = blame
        self._decoder = msgspec.json.Decoder(news)
        self._forked = forked
        self._process: PacketProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[tuple[int, str], asyncio.Future[N]] = {}
        self._closing = False
        self._short_lives = 0
        self._given_up = ""
        self._starting = asyncio.Lock()
        self.lateness: tuple[float, float] | None = None
        """Median and 99th percentile of the last second's lateness, in us; None without packets."""

    @property
    def pids(self) -> Iterable[int]:
        """Process ID of the running process; empty if none runs."""
        return () if self._process is None else (self._process.pid,)

    async def start(self) -> None:
        """Start the process unless it runs. Raises ``LabError`` if it keeps dying."""
        async with self._starting:
            if self._given_up:
                raise LabError(self._given_up)
            if self._process is None:
                started, self._forked = self._forked or self._launch(), None
                await started.connect()
                self._process = started
                self._reading = asyncio.create_task(self._listen(started))
                self._restore()

    async def ask(self, order: Order, longer_s: float = 0.0) -> N:
        """Send an order, and return the news that report its end or failure.

        If the process dies meanwhile, its successor receives the order once more. The order may
        take ``longer_s`` seconds more than others. Raises ``LabError`` if the process keeps dying
        or does not answer.
        """
        try:
            return await self._ask(order, longer_s)
        except _DiedError:
            if self._closing:
                raise
            return await self._ask(order, longer_s)

    async def _ask(self, order: Order, longer_s: float) -> N:
        # An order to a process that has died is lost.
        await self.start()
        future: asyncio.Future[N] = asyncio.get_running_loop().create_future()
        self._answers[order.queue, order.do] = future
        self.send(order)
        try:
            return await asyncio.wait_for(future, _ANSWER_S + longer_s)
        except TimeoutError:
            text = f"{self._name} doesn't answer (queue {order.queue}, {order.do})"
            raise LabError(text) from None
        finally:
            self._answers.pop((order.queue, order.do), None)

    def send(self, order: Order) -> None:
        """Send an order without waiting; it is lost if no process runs."""
        if self._process is not None:
            self._process.send(msgspec.json.encode(order))

    async def close(self) -> None:
        """End the process."""
        self._closing = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        elif self._forked is not None:
            self._forked.dismiss()
        if self._reading is not None:
            await self._reading

    async def _listen(self, running: PacketProcess) -> None:
        """Process news until the process ends."""
        born = time.monotonic()
        async for line in running.news():
            self._receive(self._decoder.decode(line))
        code = running.wait()
        self._process, self.lateness = None, None
        cause = "" if self._closing else self._blame(code)
        how = cause or (f"signal {-code}" if code < 0 else f"exit code {code}")
        for future in self._answers.values():
            if not future.done():
                why = f"{self._name} died ({how}) before it answered: try again"
                # What has ended it once is not asked again.
                future.set_exception(LabError(why) if cause else _DiedError(why))
        if cause:
            await self.start()
        elif not self._closing:
            await self._revive(how, time.monotonic() - born)

    def _receive(self, news: N) -> None:
        if not news.queue:
            late = news.late_p50_us, news.late_p99_us
            self.lateness = None if None in late else late  # type: ignore[assignment]
            return
        future = self._answers.get((news.queue, news.do))
        if future is None or future.done():
            if news.failed:
                self._log("error", f"{self._name}, queue {news.queue}: {news.failed}", spoils=True)
            self._on_news(news)
        else:
            future.set_result(news)

    async def _revive(self, how: str, life_s: float) -> None:
        self._short_lives = self._short_lives + 1 if life_s < _SHORT_LIFE_S else 0
        if self._short_lives > 1:
            self._given_up = f"{self._name} keeps dying ({how}): {self._loss}"
            self._log("error", self._given_up, spoils=True)
            return
        text = f"{self._name} died ({how}) and was started again: packets it held were lost"
        self._log("warning", text, spoils=True)
        await self.start()
