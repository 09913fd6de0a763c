"""The delay line: propagation delay, jitter and loss where the kernel has no netem.

A process of its own, named ``delay line``; ``process`` starts it. Every delayed link has a
netfilter queue in its receiver's namespace. It notes when each packet is due and releases all due
packets with one verdict, none of them early: no RTT is below the links' delays. Packets never
overtake each other: jitter moves a packet's moment, but not before that of the packet ahead.

The kernel timestamps arrivals, so packets need not be read at once: while some are in flight, new
ones are read together every few milliseconds, and wake-ups of a link are spaced. Wake-ups are
the main cost; this halves them at 10 Mbit/s and saves more at higher rates.

Orders arrive on stdin as JSON lines, and news leave on stdout. The process ends with its stdin, or
with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import select
import signal
import socket
import sys
import time
from collections import deque

import msgspec

from ccplay.lab.delay.messages import News, Order
from ccplay.lab.delay.nfqueue import PacketQueue
from ccplay.lab.network.netns import Namespace

NAME = b"delay line"
"""Of the process, as comm in proc(5) has it."""

_SO_TIMESTAMP = 29

_MOMENT_S = 200e-6
"""Seconds between two wake-ups of a link: the most that batching delays a packet."""

_READ_EVERY_S = 5e-3
"""Most seconds that packets wait to be read while others are in flight."""

_CREDIBLE_S = 1.0
"""Seconds; an older timestamp was taken before the clock was set, and is ignored."""


class Held:
    """The packets of one link in flight."""

    def __init__(self, order: Order) -> None:
        self.queue = PacketQueue(Namespace(f"queue {order.queue}", order.pid), order.queue)
        self.number = order.queue
        self._random = random.Random(f"{order.seed}/{order.queue}").random  # noqa: S311
        self.due: deque[float] = deque()
        self._rest = 0.0
        self._packets: deque[int] = deque()
        self._newest = 0.0
        self.lost = 0
        self.lost_before = 0
        """Before the second that ``lost`` counts."""
        self.draining = False
        self.change(order)

    def change(self, order: Order) -> None:
        """Use a new setting for later packets; those in flight keep their moment."""
        self.draining = order.end == "drain"
        self._delay = 0.0 if self.draining else order.delay_us / 1e6
        self._jitter = 0.0 if self.draining else order.jitter_us / 1e6
        self._loss = 0.0 if self.draining else order.loss

    @property
    def shortest_s(self) -> float:
        """Shortest delay of a later packet."""
        return max(0.0, self._delay - self._jitter)

    def take(self, epoch: float) -> None:
        """Record every packet that arrived. ``epoch`` is Unix time at 0 of the monotonic clock."""
        queue, chance = self.queue, self._random
        while (packet := queue.next_packet()) is not None:
            if self._loss and chance() < self._loss:
                queue.drop(packet)
                self.lost += 1
                continue
            came, now = queue.stamp - epoch, time.monotonic()
            if not now - _CREDIBLE_S < came < now:
                came = now
            due = came + self._delay
            if self._jitter:
                due += (2.0 * chance() - 1.0) * self._jitter
            # A packet is never due before the one ahead of it: packets stay in order.
            self._newest = max(due, self._newest)
            self.due.append(self._newest)
            self._packets.append(packet)

    @property
    def wake(self) -> float:
        """Next moment to release packets; 0 if there are none."""
        return max(self.due[0], self._rest) if self.due else 0.0

    def release(self, now: float, lateness: Lateness) -> None:
        """Release all packets due at ``now``."""
        due, packets, last = self.due, self._packets, None
        while due and due[0] <= now:
            lateness.add(now - due.popleft())
            last = packets.popleft()
        if last is not None:
            self.queue.release(last)
            self._rest = now + _MOMENT_S


class Lateness:
    """Lateness of released packets, counted in steps of 10 us up to 10 ms."""

    _STEP_S = 10e-6
    _STEPS = 1024

    def __init__(self) -> None:
        self._counts = [0] * self._STEPS
        self.packets = 0

    def add(self, late_s: float) -> None:
        """Count one packet."""
        step = int(late_s / self._STEP_S)
        self._counts[step if step < self._STEPS else -1] += 1
        self.packets += 1

    def percentile_us(self, share: float) -> float | None:
        """Return the lateness, in microseconds, that ``share`` of the packets did not exceed."""
        if not self.packets:
            return None
        left = share * self.packets
        for step, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return round((step + 0.5) * self._STEP_S * 1e6, 1)
        return round(self._STEPS * self._STEP_S * 1e6, 1)

    def clear(self) -> None:
        """Begin anew."""
        self._counts = [0] * self._STEPS
        self.packets = 0


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
        """Expire at ``due`` on the monotonic clock, immediately if that is past; 0 is never.

        Discards an earlier expiry.
        """
        nanoseconds = int(due * self._NANOSECONDS)
        self._setting[2], self._setting[3] = divmod(nanoseconds, self._NANOSECONDS)
        self._libc.timerfd_settime(self._fd, self._ABSOLUTE, self._setting, None)


class DelayLine:
    """The loop: packets in, packets out, an order now and then."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._lateness = Lateness()
        self._timer = Timer()
        self._next_read = 0.0
        # Two sets to wait on: any packet ends a wait on the first, only time one on the second.
        self._idle, self._busy = select.epoll(), select.epoll()
        for each in (self._idle, self._busy):
            each.register(sys.stdin.fileno(), select.EPOLLIN)
            each.register(self._timer.fileno(), select.EPOLLIN)
        # The kernel records arrival times for all packets while a socket asks for them.
        self._stamping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stamping.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMP, 1)
        self._orders = msgspec.json.Decoder(Order)
        self._news = msgspec.json.Encoder()
        self._unread = b""

    def run(self) -> None:
        """Work until stdin ends."""
        stdin, clock = sys.stdin.fileno(), time.monotonic
        os.set_blocking(sys.stdout.fileno(), False)
        report_due = clock() + 1.0
        waiting = self._idle
        while True:
            for descriptor, _ in waiting.poll(1.0):
                if descriptor == stdin and not self._obey(os.read(stdin, 1 << 16)):
                    return
            waiting = self._work(clock())
            if (now := clock()) >= report_due:
                self._report()
                report_due = now + 1.0

    def _work(self, now: float) -> select.epoll:
        """Read arrivals, release due packets, and return what to wait for next."""
        held_ones = self._held.values()
        if now >= self._next_read:
            epoch = time.time() - time.monotonic()
            shortest_s = _READ_EVERY_S * 2
            for held in held_ones:
                held.take(epoch)
                shortest_s = min(shortest_s, held.shortest_s)
            # Half of the shortest delay: the next packet is read well before it is due.
            self._next_read = now + shortest_s / 2 if shortest_s > 4 * _MOMENT_S else 0.0
        earliest = 0.0
        for held in held_ones:
            held.release(time.monotonic(), self._lateness)
            if wake := held.wake:
                earliest = min(wake, earliest or wake)
            elif held.draining:
                held.draining = False
                self._tell(News(drained=held.number))
        if not earliest or not self._next_read:
            self._next_read = 0.0
            self._timer.set(earliest)
            return self._idle
        self._timer.set(min(earliest, self._next_read))
        return self._busy

    def _obey(self, data: bytes) -> bool:
        """Carry out the orders that ``data`` completes; False at the end of orders."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = self._orders.decode(line)
            if order.count:
                self._count(order.queue)
            elif order.end == "close":
                self._close(order.queue)
            elif order.queue in self._held:
                self._held[order.queue].change(order)
                self._next_read = 0.0
            elif not order.end:
                self._open(order)
        return bool(data)

    def _count(self, number: int) -> None:
        held = self._held.get(number)
        lost = 0 if held is None else held.lost_before + held.lost
        self._tell(News(counted=number, lost=lost))

    def _open(self, order: Order) -> None:
        try:
            held = Held(order)
        except OSError as error:
            self._tell(News(failed=order.queue, reason=str(error)))
            return
        self._held[order.queue] = held
        self._idle.register(held.queue.fileno(), select.EPOLLIN)
        self._tell(News(ready=order.queue))

    def _close(self, number: int) -> None:
        """Close a queue whose rule is gone, after its last packets."""
        if (held := self._held.pop(number, None)) is None:
            return
        held.take(0.0)
        held.release(float("inf"), Lateness())
        self._idle.unregister(held.queue.fileno())
        held.queue.close()

    def _report(self) -> None:
        lateness = self._lateness
        self._tell(
            News(
                late_p50_us=lateness.percentile_us(0.5),
                late_p99_us=lateness.percentile_us(0.99),
                packets=lateness.packets,
                lost=sum(held.lost for held in self._held.values()),
            )
        )
        lateness.clear()
        for held in self._held.values():
            held.lost_before += held.lost
            held.lost = 0

    def _tell(self, news: News) -> None:
        # A reader that does not read must not stop the line.
        with contextlib.suppress(BlockingIOError):
            os.write(sys.stdout.fileno(), self._news.encode(news) + b"\n")


def main() -> None:
    """Run the delay line until stdin ends."""
    introduce(NAME)
    ask_for_priority()
    # No cycles arise here, and garbage collection would delay packets.
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        DelayLine().run()


def introduce(name: bytes) -> None:
    """Die with the parent; and bear a name in ps(1) and top(1), for a fork has the lab's."""
    set_parent_death_signal, set_name = 1, 15
    libc = ctypes.CDLL(None)
    libc.prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    libc.prctl(set_name, name, 0, 0, 0)


def ask_for_priority() -> None:
    """Run with real-time priority if allowed, else with a higher priority, else as started."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(-10)


if __name__ == "__main__":
    main()
