"""The lab's side of the delay line: its process, its orders and its firewall rules."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

import msgspec

from ccplay.assets import find_tool
from ccplay.errors import LabError
from ccplay.lab.delay import process
from ccplay.lab.delay.engines import Arrival, Impairment, Tell
from ccplay.lab.delay.messages import News, Order
from ccplay.lab.delay.process import LineProcess

_ANSWER_S = 20.0
"""Seconds that an order may take. It needs milliseconds, but a new process has to import first,
which takes seconds where many labs start at a time."""

_SHORT_LIFE_S = 1.0
"""Seconds of life; a delay line that dies sooner twice in a row is not started again."""

TABLES = ("raw", "mangle")
"""Tables for a rule in PREROUTING; both come before routing."""


class LineDelay:
    """The delay engine ``delay line``; a process that dies is started again.

    Until then packets pass without delay (``--queue-bypass``); those that it held are lost.
    """

    name = "delay line"

    def __init__(self, tell: Tell, seed: int, forked: LineProcess | None = None) -> None:
        """``tell`` shows when it dies; ``forked`` is the first process, where there is one."""
        self._tell = tell
        self._seed = seed
        self._forked = forked
        self._process: LineProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._orders: dict[int, Order] = {}
        self._rules: dict[int, list[str]] = {}
        self._waiting: dict[tuple[str, int], asyncio.Future[int]] = {}
        self._lateness: tuple[float, float] | None = None
        self._closing = False
        self._short_lives = 0
        self._lost_for_good = ""
        self._lock = asyncio.Lock()

    @property
    def processes(self) -> Iterable[int]:
        """The delay line's process, if it runs."""
        return () if self._process is None else (self._process.pid,)

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second in microseconds; None: no packet."""
        return self._lateness

    async def prepare(self) -> None:
        """Start the delay line; where it was not forked it imports while the network is built."""
        async with self._lock:
            if self._process is None:
                await self._start()

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Apply ``path`` to the packets of a link from now on.

        Raises ``LabError`` if the delay line or iptables fails.
        """
        async with self._lock:
            number = arrival.number
            if not path:
                if number in self._orders:
                    await self._end(arrival)
                return path
            if self._lost_for_good:
                raise LabError(f"link {arrival.name}: {self._lost_for_good}")
            order = Order(
                queue=number,
                pid=arrival.namespace.pid,
                delay_us=path.delay_us,
                jitter_us=path.jitter_us,
                loss=path.loss,
                seed=self._seed,
            )
            is_new = number not in self._orders
            if self._process is None:
                await self._start()
            self._orders[number] = order
            if is_new:
                try:
                    await self._ask(order, "ready")
                    self._rules[number] = await _add_rule(arrival)
                except BaseException:
                    del self._orders[number]
                    raise
            else:
                self._send(order)
            return path

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost since its process, or the link's delay, began."""
        if arrival.number not in self._orders:
            return 0
        return await self._ask(Order(queue=arrival.number, count=True), "counted")

    async def close(self) -> None:
        """End the delay line."""
        self._closing = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        if self._reading is not None:
            await self._reading

    async def _end(self, arrival: Arrival) -> None:
        """Release held packets in order, then remove the rule."""
        number = arrival.number
        order = self._orders[number]
        longest_s = (order.delay_us + order.jitter_us) / 1e6
        # A delay line that dies meanwhile holds no packets either.
        with contextlib.suppress(LabError):
            await self._ask(
                msgspec.structs.replace(order, end="drain"), "drained", _ANSWER_S + longest_s
            )
        del self._orders[number]
        await _iptables(arrival.namespace.path, "-D", self._rules.pop(number))
        self._send(Order(queue=number, end="close"))

    async def _ask(self, order: Order, answer: str, within_s: float = _ANSWER_S) -> int:
        """Send an order and wait until it is done; return its count."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[answer, order.queue] = future
        self._send(order)
        try:
            return await asyncio.wait_for(future, within_s)
        except TimeoutError:
            raise LabError(f"the delay line doesn't answer (queue {order.queue})") from None
        finally:
            self._waiting.pop((answer, order.queue), None)

    def _send(self, order: Order) -> None:
        if self._process is not None:
            self._process.send(msgspec.json.encode(order))

    # --- the process ------------------------------------------------------------------------

    async def _start(self) -> None:
        """Start the process and send it all current orders."""
        started, self._forked = self._forked or process.start(), None
        await started.connect()
        self._process = started
        self._reading = asyncio.create_task(self._listen(started))
        for order in self._orders.values():
            self._send(order)

    async def _listen(self, running: LineProcess) -> None:
        """Process the news of the delay line until it ends."""
        born = time.monotonic()
        decoder = msgspec.json.Decoder(News)
        async for line in running.news():
            self._hear(decoder.decode(line))
        code = running.wait()
        self._process, self._lateness = None, None
        for future in self._waiting.values():
            if not future.done():
                why = f"the delay line died ({_how(code)}) before it answered: try again"
                future.set_exception(LabError(why))
        if not self._closing:
            await self._revive(code, time.monotonic() - born)

    async def _revive(self, code: int, life_s: float) -> None:
        """Restart a dead delay line with all its orders."""
        how = _how(code)
        self._short_lives = self._short_lives + 1 if life_s < _SHORT_LIFE_S else 0
        if self._short_lives > 1:
            self._lost_for_good = f"the delay line keeps dying ({how}): delay and loss are off"
            self._tell("error", self._lost_for_good, spoils=True)
            return
        text = f"the delay line died ({how}) and was started again: packets it held were lost"
        self._tell("warning", text, spoils=True)
        await self.prepare()

    def _hear(self, news: News) -> None:
        for answer, number in (
            ("ready", news.ready),
            ("drained", news.drained),
            ("counted", news.counted),
        ):
            future = self._waiting.get((answer, number))
            if number and future is not None and not future.done():
                future.set_result(news.lost)
        if news.ready or news.drained or news.counted:
            return
        if news.failed:
            text = f"the delay line can't open queue {news.failed}: {news.reason}"
            future = self._waiting.get(("ready", news.failed))
            if future is not None and not future.done():
                future.set_exception(LabError(text))
            else:
                self._tell("error", text)
        elif news.late_p50_us is None or news.late_p99_us is None:
            self._lateness = None
        else:
            self._lateness = news.late_p50_us, news.late_p99_us


async def _add_rule(arrival: Arrival) -> list[str]:
    """Send packets arriving on an interface to its queue; return the rule. Raises ``LabError``."""
    problem = LabError("no table")
    for table in TABLES:
        rule = [table, arrival.interface, str(arrival.number)]
        try:
            await _iptables(arrival.namespace.path, "-A", rule)
        except LabError as error:
            problem = error
        else:
            return rule
    raise problem


async def _iptables(namespace: str, verb: str, rule: list[str]) -> None:
    rules = await asyncio.create_subprocess_exec(
        "nsenter",
        f"--net={namespace}",
        *rule_argv(verb, *rule),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await rules.communicate()
    if rules.returncode:
        raise LabError(f"iptables-legacy on {rule[1]}: {said.decode(errors='replace').strip()}")


def rule_argv(verb: str, table: str, interface: str, queue: str) -> list[str]:
    """Return the command line that adds (``-A``) or deletes (``-D``) a rule, iptables(8).

    The rule sends packets arriving on an interface to the netfilter queue with this number.
    """
    return [
        *(find_tool("iptables-legacy") or "iptables-legacy", "-w", "-t", table),
        *(verb, "PREROUTING", "-i", interface),
        *("-j", "NFQUEUE", "--queue-num", queue, "--queue-bypass"),
    ]


def _how(code: int) -> str:
    """Return what a process ended with, in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
