"""The loop of a packet-holding process: it receives packets, releases packets, obeys orders.

Orders arrive on stdin as JSON lines, and news leave on stdout. The process ends when its stdin
is closed, or with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.packets.lateness import Lateness
from ccplay.lab.packets.messages import News, Order

_ORDERS, _NEWS = 0, 1
"""Descriptors of stdin and stdout."""

O = TypeVar("O", bound=Order)  # noqa: E741 - the type of a process's orders


class Timer:
    """A timerfd(2): epoll's own timeout is too coarse."""

    _ABSOLUTE = 1
    _NANOSECONDS = 1_000_000_000

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._setting = (ctypes.c_long * 4)()

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return int(self._fd)

    def set(self, due: float) -> None:
        """Expire at ``due`` on the monotonic clock, immediately if that has passed; 0 means never.

        Discards an earlier expiry.
        """
        nanoseconds = int(due * self._NANOSECONDS)
        self._setting[2], self._setting[3] = divmod(nanoseconds, self._NANOSECONDS)
        self._libc.timerfd_settime(self._fd, self._ABSOLUTE, self._setting, None)


class PacketLoop(Generic[O]):
    """A loop that waits for packets, its timer and orders; subclasses hold the packets."""

    def __init__(self, orders: type[O]) -> None:
        self.lateness = Lateness()
        self.timer = Timer()
        # Orders and the timer end a wait on either set, packets only one on ``idle``.
        self.idle, self.busy = select.epoll(), select.epoll()
        for each in (self.idle, self.busy):
            each.register(_ORDERS, select.EPOLLIN)
            each.register(self.timer.fileno(), select.EPOLLIN)
        self._orders = msgspec.json.Decoder(orders)
        self._news = msgspec.json.Encoder()
        self._unread = b""
        self._to = _NEWS
        self._was_late = False

    def work(self) -> select.epoll:
        """Read arrivals, release due packets, and return which of the two sets to wait on."""
        raise NotImplementedError

    def obey(self, order: O) -> None:
        """Carry out an order, and report its end by ``send``."""
        raise NotImplementedError

    def run(self) -> None:
        """Work until stdin ends."""
        clock = time.monotonic
        os.set_blocking(self._to, False)
        report_due = clock() + 1.0
        waiting = self.idle
        while True:
            for descriptor, _ in waiting.poll(1.0):
                if descriptor == _ORDERS and not self._read_orders(os.read(_ORDERS, 1 << 16)):
                    return
            waiting = self.work()
            if (now := clock()) >= report_due:
                self._report()
                report_due = now + 1.0

    def send(self, news: News) -> None:
        """Write news to the lab."""
        # A lab that does not read must not stop the packets; the news are lost.
        with contextlib.suppress(BlockingIOError):
            os.write(self._to, self._news.encode(news) + b"\n")

    def keep_news_apart(self) -> None:
        """Write news to another descriptor than stdout, on which other code may write."""
        self._to = os.dup(_NEWS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, _NEWS)
        os.close(nothing)

    def _read_orders(self, data: bytes) -> bool:
        """Carry out the orders that ``data`` completes; return False at the end of stdin."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = self._orders.decode(line)
            try:
                self.obey(order)
            except (CcplayError, OSError, LookupError, ValueError) as error:
                failed = str(error) or repr(error)
                self.send(News(queue=order.queue, do=order.do, failed=failed))
        return bool(data)

    def _report(self) -> None:
        late = self.lateness
        p50, p99 = late.percentile_us(0.5), late.percentile_us(0.99)
        # Of consecutive seconds without packets, only the first is reported.
        if late.packets or self._was_late:
            self.send(News(late_p50_us=p50, late_p99_us=p99))
        self._was_late = bool(late.packets)
        late.clear()


def run_as(name: bytes, make: Callable[[], PacketLoop[Any]]) -> None:
    """Make a loop and run it, in a process named ``name`` in ps(1) and top(1).

    The process dies with its parent. It has real-time priority if that is allowed, otherwise a
    higher priority than it was started with.
    """
    _introduce(name)
    _ask_for_priority()
    # There are no cycles here, and garbage collection would delay packets.
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        make().run()


def _introduce(name: bytes) -> None:
    """Die with the parent, and set the name in ps(1), since a fork inherits that of the lab."""
    set_parent_death_signal, set_name = 1, 15
    libc = ctypes.CDLL(None)
    libc.prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    libc.prctl(set_name, name, 0, 0, 0)


def _ask_for_priority() -> None:
    """Run with real-time priority if allowed, else with a higher priority, else as started."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(-10)
