"""The process in which disciplines in software work: packets in, packets out, orders.

It is named ``software queue``. Like the delay line it is forked from the lab, reads orders as JSON
lines from stdin and writes news to stdout, and ends with its stdin or with its parent.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import select
import sys
import time

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.delay.line import Lateness, Timer, ask_for_priority, introduce
from ccplay.lab.network.netns import Namespace
from ccplay.lab.software import overdue
from ccplay.lab.software.board import Board
from ccplay.lab.software.headers import HeaderQueue
from ccplay.lab.software.messages import News, Order
from ccplay.lab.software.printed import Printed
from ccplay.lab.software.serving import Served

NAME = b"software queue"
"""Of the process, as comm in proc(5) has it."""

_ORDERS, _NEWS = 0, 1
"""Descriptors of its pipes."""

_BOARD = 3
"""Descriptor of the board in a process that was started anew."""

_REST_S = 150e-6
"""Seconds to the next packet that is due within which none is read that arrives."""

_PUBLISH_S = 1e-3
"""Seconds between two writings of the counters."""


class Runner:
    """The loop."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._printed = Printed()
        self._served: dict[int, Served] = {}
        self._lateness = Lateness()
        self._timer = Timer()
        # Two sets to wait on: any packet ends a wait on the first, only time one on the second.
        self._idle, self._busy = select.epoll(), select.epoll()
        for each in (self._idle, self._busy):
            each.register(_ORDERS, select.EPOLLIN)
            each.register(self._timer.fileno(), select.EPOLLIN)
        self._orders = msgspec.json.Decoder(Order)
        self._news = msgspec.json.Encoder()
        self._unread = b""
        self._published = 0.0
        self._due = 0.0

    def run(self) -> None:
        """Work until stdin ends."""
        stdin, clock = _ORDERS, time.monotonic
        os.set_blocking(_NEWS, False)
        # What a discipline of the user's own prints must not stand between the news.
        sys.stdout, sys.stdin = self._printed, io.StringIO()
        report_due = clock() + 1.0
        waiting = self._idle
        while True:
            for descriptor, _ in waiting.poll(1.0):
                if descriptor == stdin and not self._obey(os.read(stdin, 1 << 16)):
                    return
            waiting = self._work()
            if printed := self._printed.take(clock()):
                self._tell(News(printed=printed))
            if self._served and (now := clock()) >= report_due:
                self._report()
                report_due = now + 1.0

    def _work(self) -> select.epoll:
        """Read arrivals, send what is due, and return what to wait for next."""
        clock = time.monotonic
        earliest, more = 0.0, False
        for number, served in self._served.items():
            more |= served.read(clock())
            served.send(clock(), self._lateness)
            if wake := served.wake:
                earliest = min(wake, earliest or wake)
            if served.fault:
                self._tell(News(queue=number, fault=served.fault, statistics=served.names))
                served.fault = ""
        now = clock()
        if now - self._published >= _PUBLISH_S or not earliest:
            self._published = now
            for served in self._served.values():
                served.publish()
        due = now if more else earliest
        # The timer has expired where its moment is past.
        if due != self._due or 0 < due <= now:
            self._due = due
            self._timer.set(due)
        return self._busy if more or 0 < earliest < now + _REST_S else self._idle

    # --- orders and news --------------------------------------------------------------------

    def _obey(self, data: bytes) -> bool:
        """Carry out the orders that ``data`` completes; False at the end of orders."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = self._orders.decode(line)
            try:
                self._carry_out(order)
            except (CcplayError, OSError, LookupError, ValueError) as error:
                self._tell(News(queue=order.queue, failed=str(error) or repr(error)))
        return bool(data)

    def _carry_out(self, order: Order) -> None:
        now = time.monotonic()
        served = self._served.get(order.queue)
        if order.do == "open" and order.queue:
            served = self._open(order)
        if served is None:
            self._tell(News(queue=order.queue, done=order.do))
            return
        match order.do:
            case "open" | "change":
                if order.source:
                    overdue.watch()
                settings = order.kind, order.options, order.rate, order.seed
                served.change(*settings, now, source=order.source)
            case "begin":
                served.begin(now + order.busy_s)
            case "pass":
                served.read(now)
                served.pass_on()
            case "close":
                self._close(order.queue)
        self._tell(News(queue=order.queue, done=order.do, statistics=served.names))

    def _open(self, order: Order) -> Served:
        queue = HeaderQueue(Namespace(f"queue {order.queue}", order.pid), order.queue)
        served = Served(queue, self._board.slot(order.queue - 1))
        self._served[order.queue] = served
        self._idle.register(queue.fileno(), select.EPOLLIN)
        return served

    def _close(self, number: int) -> None:
        """Close a queue whose rule is gone, after its last packets."""
        served = self._served.pop(number)
        served.read(time.monotonic())
        served.pass_on()
        self._idle.unregister(served.queue.fileno())
        served.queue.close()

    def _report(self) -> None:
        lateness = self._lateness
        self._tell(
            News(late_p50_us=lateness.percentile_us(0.5), late_p99_us=lateness.percentile_us(0.99))
        )
        lateness.clear()

    def _tell(self, news: News) -> None:
        # A reader that does not read must not stop the packets.
        with contextlib.suppress(BlockingIOError):
            os.write(_NEWS, self._news.encode(news) + b"\n")


def serve(board: Board) -> None:
    """Run disciplines until stdin ends."""
    introduce(NAME)
    ask_for_priority()
    # No cycles arise here, and garbage collection would delay packets.
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        Runner(board).run()


if __name__ == "__main__":
    serve(Board(_BOARD))
