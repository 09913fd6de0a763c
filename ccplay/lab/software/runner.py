"""The process that runs disciplines in software: receives packets, sends packets, obeys orders.

Its name is ``software queue``.
"""

from __future__ import annotations

import gc
import io
import select
import sys
import time

from ccplay.lab.custom import limits
from ccplay.lab.custom.printed import Printed
from ccplay.lab.network.netns import Namespace
from ccplay.lab.packets.loop import PacketLoop, run_as
from ccplay.lab.software.board import Board
from ccplay.lab.software.headers import HeaderQueue
from ccplay.lab.software.messages import News, Order
from ccplay.lab.software.serving import Served

NAME = b"software queue"
"""Name of the process, which is its comm in proc(5)."""

_BOARD = 3
"""Descriptor of the board in the process."""

_REST_S = 150e-6
"""Seconds before a packet is due in which arrivals do not wake the process."""

_PUBLISH_S = 1e-3
"""Seconds between two updates of the board while packets wait."""


class Runner(PacketLoop[Order]):
    """All disciplines in software of a lab."""

    def __init__(self, board: Board) -> None:
        super().__init__(Order)
        self._board = board
        self._printed = Printed()
        self._served: dict[int, Served] = {}
        self._versions: dict[int, int] = {}
        """Versions of the disciplines, by queue."""
        self._confined = False
        self._published = 0.0
        self._due = 0.0

    def work(self) -> select.epoll:
        """Read arrivals, send what is due, and return what to wait for next."""
        try:
            return self._work()
        except MemoryError as error:
            # It is in ccplay's own code, because a user's discipline has left no memory.
            if not self._confined:
                raise
            for served in self._served.values():
                served.give_up(error, time.monotonic())
        gc.collect()
        return self._work()

    def _work(self) -> select.epoll:
        clock = time.monotonic
        earliest, more = 0.0, False
        for number, served in self._served.items():
            more |= served.read(clock())
            served.send(clock(), self.lateness)
            if wake := served.wake:
                earliest = min(wake, earliest or wake)
            if served.fault:
                self._report_fault(number, served)
        now = clock()
        if printed := self._printed.take(now):
            self.send(News(queue=next(iter(self._served), 1), printed=printed))
        if now - self._published >= _PUBLISH_S or not earliest:
            self._published = now
            for served in self._served.values():
                served.publish()
        due = now if more else earliest
        # A timer set to a moment that is past has expired, and must be set again.
        if due != self._due or 0 < due <= now:
            self._due = due
            self.timer.set(due)
        return self.busy if more or 0 < earliest < now + _REST_S else self.idle

    def _report_fault(self, number: int, served: Served) -> None:
        version = self._versions[number]
        self.send(News(queue=number, fault=served.fault, version=version, statistics=served.names))
        served.fault = ""

    def obey(self, order: Order) -> None:
        """Carry out an order. Raises what a discipline raises if it refuses its parameters."""
        now = time.monotonic()
        served = self._served.get(order.queue)
        if order.do == "open" and order.queue:
            served = self._open(order)
        if served is None:
            self.send(News(queue=order.queue, do=order.do))
            return
        match order.do:
            case "open" | "change":
                if order.source:
                    self._confine()
                settings = order.kind, order.options, order.rate, order.seed
                served.change(*settings, now, source=order.source)
                self._versions[order.queue] = order.version
                if served.fault:
                    # The lab must know before the answer that a FIFO serves.
                    self._report_fault(order.queue, served)
            case "begin":
                served.begin(now + order.busy_s)
            case "pass":
                served.read(now)
                served.pass_on()
            case "close":
                self._close(order.queue)
        self.send(News(queue=order.queue, do=order.do, statistics=served.names))

    def _confine(self) -> None:
        """Limit this process before it runs a user's discipline for the first time."""
        if self._confined:
            return
        self._confined = True
        # What the discipline prints must not mix with the news on stdout.
        sys.stdout, sys.stdin = self._printed, io.StringIO()
        self.keep_news_apart()
        limits.confine(self._board.last_words())
        limits.watch()

    def _open(self, order: Order) -> Served:
        queue = HeaderQueue(Namespace(f"queue {order.queue}", order.pid), order.queue)
        served = Served(queue, self._board.slot(order.queue - 1))
        self._served[order.queue] = served
        self.idle.register(queue.fileno(), select.EPOLLIN)
        return served

    def _close(self, number: int) -> None:
        """Close a queue whose rule is gone, after sending its last packets."""
        served = self._served.pop(number)
        served.read(time.monotonic())
        served.pass_on()
        self.idle.unregister(served.queue.fileno())
        served.queue.close()


def serve() -> None:
    """Run disciplines until stdin ends."""
    run_as(NAME, lambda: Runner(Board(_BOARD)))


if __name__ == "__main__":
    serve()
