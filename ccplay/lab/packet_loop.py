"""The loop of a packet-holding process, over netfilter queues.

Requests arrive on stdin as JSON lines, and replies leave on stdout. The process ends when its stdin
is closed, or with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.child import Reply, Request, introduce

# --- A histogram of the lateness of packets in one second -----------------------------------------


class Lateness:
    """Lateness of released packets, counted in steps of 10 us up to 10 ms."""

    _STEP_S = 10e-6
    _STEPS = 1024

    def __init__(self) -> None:
        self._counts = [0] * self._STEPS
        self.packets = 0

    def add(self, late_s: float) -> None:
        """Count one packet that was released ``late_s`` seconds late."""
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
        """Empty the histogram for a new second."""
        self._counts = [0] * self._STEPS
        self.packets = 0


# --- the loop of a packet-holding process: receives packets, releases packets, obeys requests -----

_REQUESTS, _REPLIES = 0, 1
"""Descriptors of stdin and stdout."""

O = TypeVar("O", bound=Request)  # noqa: E741 - the type of a process's requests


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
    """A loop that waits for packets, its timer and requests; subclasses hold the packets."""

    def __init__(self, requests: type[O]) -> None:
        self.lateness = Lateness()
        self.timer = Timer()
        # Requests and the timer end a wait on either set, packets only one on ``idle``.
        self.idle, self.busy = select.epoll(), select.epoll()
        for each in (self.idle, self.busy):
            each.register(_REQUESTS, select.EPOLLIN)
            each.register(self.timer.fileno(), select.EPOLLIN)
        self._requests = msgspec.json.Decoder(requests)
        self._encoder = msgspec.json.Encoder()
        self._unread = b""
        self._to = _REPLIES
        self._was_late = False

    def work(self) -> select.epoll:
        """Read arrivals, release due packets, and return which of the two sets to wait on."""
        raise NotImplementedError

    def obey(self, request: O) -> None:
        """Carry out a request, and report its end by ``send``."""
        raise NotImplementedError

    def run(self) -> None:
        """Work until stdin ends."""
        clock = time.monotonic
        os.set_blocking(self._to, False)
        report_due = clock() + 1.0
        waiting = self.idle
        while True:
            for descriptor, _ in waiting.poll(1.0):
                if descriptor == _REQUESTS and not self._read_requests(os.read(_REQUESTS, 1 << 16)):
                    return
            waiting = self.work()
            if (now := clock()) >= report_due:
                self._report()
                report_due = now + 1.0

    def send(self, reply: Reply) -> None:
        """Write a reply to the lab."""
        # A lab that does not read must not stop the packets; the reply is lost.
        with contextlib.suppress(BlockingIOError):
            os.write(self._to, self._encoder.encode(reply) + b"\n")

    def keep_replies_apart(self) -> None:
        """Write replies to another descriptor than stdout, on which other code may write."""
        self._to = os.dup(_REPLIES)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, _REPLIES)
        os.close(nothing)

    def _read_requests(self, data: bytes) -> bool:
        """Carry out the requests that ``data`` completes; return False at the end of stdin."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            request = self._requests.decode(line)
            try:
                self.obey(request)
            except (CcplayError, OSError, LookupError, ValueError) as error:
                failed = str(error) or repr(error)
                self.send(Reply(queue=request.queue, do=request.do, failed=failed))
        return bool(data)

    def _report(self) -> None:
        late = self.lateness
        p50, p99 = late.percentile_us(0.5), late.percentile_us(0.99)
        # Of consecutive seconds without packets, only the first is reported.
        if late.packets or self._was_late:
            self.send(Reply(late_p50_us=p50, late_p99_us=p99))
        self._was_late = bool(late.packets)
        late.clear()


def run_as(name: bytes, make: Callable[[], PacketLoop[Any]]) -> None:
    """Make a loop and run it, in a process named ``name`` in ps(1) and top(1).

    The process dies with its parent. It has real-time priority if that is allowed, otherwise a
    higher priority than it was started with.
    """
    introduce(name)
    _ask_for_priority()
    # There are no cycles here, and garbage collection would delay packets.
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        make().run()


def _ask_for_priority() -> None:
    """Run with real-time priority if allowed, else with a higher priority, else as started."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        with contextlib.suppress(OSError):
            os.nice(-10)
