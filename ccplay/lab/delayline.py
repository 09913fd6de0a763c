"""The delay line: propagation delay, jitter and loss where the kernel has no netem.

A process of its own, ``python -m ccplay.lab.delayline``. Every link that is to be delayed has a
netfilter queue in its receiver's namespace. A packet's number is noted with the moment at which it
is due, and one verdict lets all go that are. Packets never overtake each other: jitter moves a
packet's moment, but to no earlier than that of the packet before it.

Orders come on stdin as JSON lines, news go to stdout: ``ready`` and ``drained`` with the number of
the queue, and every second ``Lateness``. The process ends with its stdin, or its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import select
import signal
import sys
import time
from collections import deque

import msgspec

from ccplay.lab.netns import Namespace
from ccplay.lab.nfqueue import PacketQueue


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do with a queue: hold packets so long, or with ``end`` drain it, then close it."""

    queue: int
    pid: int = 0
    """A process of the namespace."""
    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    seed: int = 0
    end: str = ""
    """``drain`` lets packets pass at once, ``close`` gives the queue back."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the delay line has to say: of a queue, or every second of its own punctuality."""

    ready: int = 0
    """The number of a queue that takes packets now."""
    drained: int = 0
    """The number of a queue that holds nothing any more."""
    failed: int = 0
    """The number of a queue that can't be had."""
    reason: str = ""
    late_p50_us: float | None = None
    """How late packets were released; None where none was."""
    late_p99_us: float | None = None
    packets: int = 0
    """Released over the second."""
    lost: int = 0
    """Dropped on purpose over the second."""


class Held:
    """The packets of one link under way."""

    def __init__(self, order: Order) -> None:
        self.queue = PacketQueue(Namespace(f"queue {order.queue}", order.pid), order.queue)
        self.number = order.queue
        self._random = random.Random(f"{order.seed}/{order.queue}").random  # noqa: S311
        self.due: deque[float] = deque()
        self._packets: deque[int] = deque()
        self._newest = 0.0
        self.lost = 0
        self.draining = False
        self.change(order)

    def change(self, order: Order) -> None:
        """Take a new setting for packets to come; those under way keep their moment."""
        self.draining = order.end == "drain"
        self._delay = 0.0 if self.draining else order.delay_us / 1e6
        self._jitter = 0.0 if self.draining else order.jitter_us / 1e6
        self._loss = 0.0 if self.draining else order.loss

    def take(self) -> None:
        """Note every packet that came."""
        next_packet, clock, chance = self.queue.next_packet, time.monotonic, self._random
        while (packet := next_packet()) is not None:
            if self._loss and chance() < self._loss:
                self.queue.drop(packet)
                self.lost += 1
                continue
            due = clock() + self._delay
            if self._jitter:
                due += (2.0 * chance() - 1.0) * self._jitter
            # A packet is never due before the one ahead of it, or they would change places.
            self._newest = due if due > self._newest else self._newest  # noqa: PLR1730 - hot
            self.due.append(self._newest)
            self._packets.append(packet)

    def release(self, now: float, lateness: Lateness) -> None:
        """Let go all that is due at ``now``."""
        due, packets, last = self.due, self._packets, None
        while due and due[0] <= now:
            lateness.add(now - due.popleft())
            last = packets.popleft()
        if last is not None:
            self.queue.release(last)


class Lateness:
    """How late packets were released, counted in steps of 10 us up to 10 ms."""

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
        """Return the lateness, in microseconds, that ``share`` of the packets kept within."""
        if not self.packets:
            return None
        left = share * self.packets
        for step, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return (step + 0.5) * self._STEP_S * 1e6
        return self._STEPS * self._STEP_S * 1e6

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
        self._due = 0.0

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return int(self._fd)

    def set(self, due: float) -> None:
        """Go off at ``due`` on the monotonic clock, at once where that is past; 0 is never."""
        if due == self._due:
            return
        self._due = due
        nanoseconds = int(due * self._NANOSECONDS)
        self._setting[2], self._setting[3] = divmod(nanoseconds, self._NANOSECONDS)
        self._libc.timerfd_settime(self._fd, self._ABSOLUTE, self._setting, None)

    def clear(self) -> None:
        """Note that it went off."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
        self._due = 0.0


class DelayLine:
    """The loop: packets in, packets out, an order now and then."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._by_descriptor: dict[int, Held] = {}
        self._lateness = Lateness()
        self._timer = Timer()
        self._epoll = select.epoll()
        self._orders = msgspec.json.Decoder(Order)
        self._news = msgspec.json.Encoder()
        self._unread = b""

    def run(self) -> None:
        """Work until stdin ends."""
        stdin, timer = sys.stdin.fileno(), self._timer.fileno()
        self._epoll.register(stdin, select.EPOLLIN)
        self._epoll.register(timer, select.EPOLLIN)
        os.set_blocking(sys.stdout.fileno(), False)  # noqa: FBT003 - Python's own signature
        clock, poll, queues = time.monotonic, self._epoll.poll, self._by_descriptor
        report_due = clock() + 1.0
        while True:
            for descriptor, _ in poll(1.0):
                if (held := queues.get(descriptor)) is not None:
                    held.take()
                elif descriptor == timer:
                    self._timer.clear()
                elif not self._obey(os.read(stdin, 1 << 16)):
                    return
            self._release()
            if (now := clock()) >= report_due:
                self._report()
                report_due = now + 1.0

    def _release(self) -> None:
        """Let go what is due, and set the timer to what is due next."""
        earliest = 0.0
        for held in self._held.values():
            held.release(time.monotonic(), self._lateness)
            if held.due:
                first = held.due[0]
                earliest = first if not earliest or first < earliest else earliest
            elif held.draining:
                held.draining = False
                self._tell(News(drained=held.number))
        self._timer.set(earliest)

    def _obey(self, data: bytes) -> bool:
        """Carry out what orders ``data`` completes; False where it is the end of them."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = self._orders.decode(line)
            if order.end == "close":
                self._close(order.queue)
            elif order.queue in self._held:
                self._held[order.queue].change(order)
            elif not order.end:
                self._open(order)
        return bool(data)

    def _open(self, order: Order) -> None:
        try:
            held = Held(order)
        except OSError as error:
            self._tell(News(failed=order.queue, reason=str(error)))
            return
        self._held[order.queue] = held
        self._by_descriptor[held.queue.fileno()] = held
        self._epoll.register(held.queue.fileno(), select.EPOLLIN)
        gc.collect()
        gc.freeze()
        self._tell(News(ready=order.queue))

    def _close(self, number: int) -> None:
        """Give a queue back whose rule is gone, after whatever came to the last."""
        if (held := self._held.pop(number, None)) is None:
            return
        held.take()
        held.release(float("inf"), Lateness())
        del self._by_descriptor[held.queue.fileno()]
        self._epoll.unregister(held.queue.fileno())
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
            held.lost = 0

    def _tell(self, news: News) -> None:
        # Who doesn't read us must not stop us.
        with contextlib.suppress(BlockingIOError):
            os.write(sys.stdout.fileno(), self._news.encode(news) + b"\n")


def main() -> None:
    """Be the delay line."""
    _die_with_parent()
    _ask_for_priority()
    # Nothing here makes cycles, and a collection in between would delay packets.
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        DelayLine().run()


def _die_with_parent() -> None:
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)


def _ask_for_priority() -> None:
    """Run before everything else where that is allowed, or a little ahead, or as all do."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(-10)


if __name__ == "__main__":
    main()
