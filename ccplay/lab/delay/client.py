"""The lab's side of the delay line: its process, its orders and its firewall rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

import msgspec

from ccplay.assets import find_tool
from ccplay.errors import LabError
from ccplay.lab.delay import line
from ccplay.lab.delay.engines import Arrival, Impairment
from ccplay.lab.delay.messages import News, Order
from ccplay.lab.packets import process
from ccplay.lab.packets.keeper import Keeper, Logger
from ccplay.lab.packets.process import PacketProcess

TABLES = ("raw", "mangle")
"""Tables of iptables for a rule in PREROUTING, in order of preference; both precede routing."""


_FARTHEST = 4
"""Largest delay variation of a distribution's table, as a multiple of the jitter."""


class LineDelay:
    """The delay engine ``delay line``; its process is restarted if it dies.

    Until then packets pass without delay (``--queue-bypass``); packets that it held are lost.
    """

    name = "delay line"

    def __init__(self, log: Logger, seed: int, forked: PacketProcess | None = None) -> None:
        """``log`` logs faults and deaths of the process; ``forked`` is the first, if it runs."""
        self._seed = seed
        self._orders: dict[int, Order] = {}
        self._rules: dict[int, list[str]] = {}
        self._lossy: set[int] = set()
        """Numbers of links that are, or were, set to lose packets."""
        self._lock = asyncio.Lock()
        self._keeper = Keeper(
            "the delay line",
            News,
            log,
            launch=lambda: process.start(line.__name__),
            restore=self._restore,
            on_news=lambda _: None,
            loss="delay and loss are off",
            forked=forked,
        )

    @property
    def processes(self) -> Iterable[int]:
        """Process ID of the delay line; empty if it does not run."""
        return self._keeper.pids

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second's lateness, in us, or None.

        None means that no packets were released.
        """
        return self._keeper.lateness

    async def prepare(self) -> None:
        """Start the delay line; one that was not forked imports while the network is built."""
        await self._keeper.start()

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
            order = Order(
                queue=number,
                pid=arrival.namespace.pid,
                seed=self._seed,
                path=path,
            )
            try:
                await self._keeper.start()
                if number not in self._orders:
                    await self._open(order, arrival)
                else:
                    self._keeper.send(msgspec.structs.replace(order, do="change"))
            except LabError as error:
                raise LabError(f"link {arrival.name}: {error}") from None
            self._orders[number] = order
            if path.loses:
                self._lossy.add(number)
            return path

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost on purpose since its queue was opened.

        A process that dies loses its count, and its successor opens the queue again.
        """
        if arrival.number not in (self._lossy & self._orders.keys()):
            return 0
        return (await self._keeper.ask(Order(queue=arrival.number, do="count"))).lost

    async def close(self) -> None:
        """End the delay line."""
        await self._keeper.close()

    async def _open(self, order: Order, arrival: Arrival) -> None:
        """Open the queue of a link, and direct packets into it."""
        if failed := (await self._keeper.ask(order)).failed:
            raise LabError(f"the delay line can't open its queue: {failed}")
        # If the delay line dies from now on, its successor opens the queue again.
        self._orders[order.queue] = order
        try:
            self._rules[order.queue] = await _add_rule(arrival)
        except BaseException:
            self._close(order.queue)
            raise

    async def _end(self, arrival: Arrival) -> None:
        """Release held packets in order, then remove the rule."""
        number = arrival.number
        order = self._orders[number]
        longest_s = (order.path.delay_us + _FARTHEST * order.path.jitter_us) / 1e6
        # If the delay line dies meanwhile, it no longer holds packets.
        with contextlib.suppress(LabError):
            await self._keeper.ask(Order(queue=number, do="drain"), longest_s)
        try:
            await _iptables(arrival.namespace.path, "-D", self._rules[number])
        except BaseException:
            self._keeper.send(msgspec.structs.replace(order, do="change"))
            raise
        del self._rules[number]
        self._close(number)

    def _close(self, number: int) -> None:
        del self._orders[number]
        self._keeper.send(Order(queue=number, do="close"))

    def _restore(self) -> None:
        for order in self._orders.values():
            self._keeper.send(order)


async def _add_rule(arrival: Arrival) -> list[str]:
    """Direct packets that arrive on an interface into its queue; return the rule.

    Raises ``LabError``.
    """
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
    _, output = await rules.communicate()
    if rules.returncode:
        raise LabError(f"iptables-legacy on {rule[1]}: {output.decode(errors='replace').strip()}")


def rule_argv(verb: str, table: str, interface: str, queue: str) -> list[str]:
    """Return the command line that adds (``-A``) or deletes (``-D``) a rule, iptables(8).

    The rule sends packets arriving on an interface to the netfilter queue with this number.
    """
    return [
        *(find_tool("iptables-legacy") or "iptables-legacy", "-w", "-t", table),
        *(verb, "PREROUTING", "-i", interface),
        *("-j", "NFQUEUE", "--queue-num", queue, "--queue-bypass"),
    ]
