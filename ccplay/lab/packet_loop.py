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
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.child import Reply, Request, introduce
from ccplay.lab.netlink import ACK, REQUEST, attribute, failure, walk
from ccplay.lab.netns import Namespace

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


# --- one netfilter queue: receives the numbers of waiting packets and releases them ---------------
# The kernel copies only numbers (NFQNL_COPY_META), and the content of packets on request.
# include/uapi/linux/netfilter/nfnetlink_queue.h and net/netfilter/nfnetlink_queue.c define the
# messages.

_NETLINK_NETFILTER = 12
_SUBSYSTEM = 3 << 8
_VERDICT, _CONFIG, _VERDICT_BATCH = _SUBSYSTEM | 1, _SUBSYSTEM | 2, _SUBSYSTEM | 3

_CFG_COMMAND, _CFG_PARAMETERS, _CFG_MAX_LENGTH, _CFG_MASK, _CFG_FLAGS = 1, 2, 3, 4, 5
_BIND = struct.pack("!BxH", 1, 0)
_COPY_META = struct.pack("!IB", 0, 1)
_FAIL_OPEN, _GSO = 1, 4

_DROP, _ACCEPT = 0, 1
_VERDICT_HEADER = 2

_KIND_AT, _PACKET = 5, 3
"""Offset of the subsystem in a message, and its value for a packet."""

_TIMESTAMP = 4
_STAMP_HEADER = struct.pack("=HH", 20, _TIMESTAMP)

PAYLOAD = 10
"""Attribute ``NFQA_PAYLOAD``."""
_LONGEST = 2048
"""Number of bytes copied of a packet: more than any packet has without GSO."""

_MAX_LENGTH = 1 << 17
"""Largest number of packets that wait: full frames at 1 Gbit/s for 1.5 s."""

_SO_RCVBUFFORCE = 33
_NETLINK_NO_ENOBUFS = 5
_SOL_NETLINK = 270

_HEADER = struct.Struct("=IHHIIBBH")
_VERDICT_MESSAGE = struct.Struct("=IHHIIBBHHHII")


class PacketQueue:
    """Netfilter queue ``number`` of a namespace; rules with ``-j NFQUEUE`` feed it."""

    def __init__(self, namespace: Namespace, number: int, copied: int = 0) -> None:
        """Bind the queue; ``copied`` bytes of each packet are copied with its number."""
        self._socket = namespace.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_NETFILTER
        )
        # Only the host's root may exceed net.core.rmem_max.
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_NO_ENOBUFS, 1)
        self._socket.bind((0, 0))
        # The queue's number is in network order, everything else in host order.
        self._queue = socket.htons(number)
        self._buffer = bytearray(4096)
        self._length = 0
        self._whole = False
        self._packet = _packet_layout(28)
        self.stamp = 0.0
        flags = _FAIL_OPEN | _GSO
        self._configure(_CFG_COMMAND, _BIND)
        self._configure(_CFG_PARAMETERS, struct.pack("!IB", copied, 2) if copied else _COPY_META)
        self._configure(_CFG_MAX_LENGTH, struct.pack("!I", _MAX_LENGTH))
        self._configure(_CFG_FLAGS, struct.pack("!I", flags), _CFG_MASK)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Unbind; the kernel drops waiting packets."""
        self._socket.close()

    def next_packet(self) -> int | None:
        """Return the number of the next packet; None if there is none yet.

        ``stamp`` is then its arrival in Unix time, or 0 if the kernel did not record it.
        """
        try:
            length = self._receive()
        except BlockingIOError:
            return None
        self._length = length
        packet, header, seconds, microseconds = self._packet.unpack_from(self._buffer)
        if header != _STAMP_HEADER:
            packet, seconds, microseconds = self._learn(length)
        self.stamp = seconds + microseconds * 1e-6
        return int(packet)

    def _receive(self) -> int:
        """Read the next packet's message into the buffer and return the message's length.

        Skips all other messages: errors of verdicts on packets that no longer exist, because the
        kernel drops those of an interface that goes down. Raises ``BlockingIOError`` without any.
        """
        length = self._socket.recv_into(self._buffer)
        while self._buffer[_KIND_AT] != _PACKET:
            length = self._socket.recv_into(self._buffer)
        return length

    def copy(self, *, whole: bool) -> None:
        """Copy later packets with their content and computed checksums, or without."""
        if whole == self._whole:
            return
        self._whole = whole
        copied = struct.pack("!IB", _LONGEST, 2) if whole else _COPY_META
        flags, mask = struct.pack("!I", 0 if whole else _GSO), struct.pack("!I", _GSO)
        # Without an acknowledgement: waiting for one would swallow packets that arrive meanwhile.
        self._ask(attribute(_CFG_PARAMETERS, copied), 0)
        self._ask(attribute(_CFG_FLAGS, flags) + attribute(_CFG_MASK, mask), 0)

    def content(self) -> bytes:
        """Return the content of ``next_packet``'s last packet, from its IP header on.

        It is empty if the packet was copied without its content.
        """
        begin, end = walk(self._buffer, _HEADER.size, self._length).get(PAYLOAD, (0, 0))
        return bytes(self._buffer[begin:end])

    def accept(self, packet: int, content: bytes | None = None) -> None:
        """Release one packet; ``content``, if any, replaces its own."""
        header = struct.pack("!II", _ACCEPT, packet)
        body = attribute(_VERDICT_HEADER, header)
        if content is not None:
            body += attribute(PAYLOAD, content)
        self._ask(body, 0, _VERDICT)

    def _learn(self, length: int) -> tuple[int, int, int]:
        """Find the offset of the timestamp in messages like this one.

        Returns the packet's number, and the seconds and microseconds of its timestamp, or 0, 0.
        """
        # NFQA_PACKET_HDR is the first attribute (nfqnl_build_packet_message); the number is at 24.
        (packet,) = struct.unpack_from("!I", self._buffer, 24)
        stamp, _ = walk(self._buffer, _HEADER.size, length).get(_TIMESTAMP, (0, 0))
        if not stamp:
            return packet, 0, 0
        self._packet = _packet_layout(stamp - 4)
        return (packet, *struct.unpack_from("!QQ", self._buffer, stamp))

    def release(self, last: int) -> None:
        """Release all packets up to number ``last``, in order."""
        self._decide(_VERDICT_BATCH, _ACCEPT, last)

    def drop(self, packet: int) -> None:
        """Drop one packet."""
        self._decide(_VERDICT, _DROP, packet)

    def _decide(self, kind: int, verdict: int, packet: int) -> None:
        self._socket.send(
            _VERDICT_MESSAGE.pack(
                32,
                kind,
                REQUEST,
                0,
                0,
                0,
                0,
                self._queue,
                12,
                _VERDICT_HEADER,
                socket.htonl(verdict),
                socket.htonl(packet),
            )
        )

    def _configure(self, setting: int, value: bytes, mask: int | None = None) -> None:
        """Send one setting and wait for the kernel's answer. Raises ``OSError`` if it refuses."""
        body = attribute(setting, value)
        if mask is not None:
            body += attribute(mask, value)
        self._socket.setblocking(True)
        self._ask(body, ACK)
        while True:
            answer = self._socket.recv(1 << 16)
            # Packets may arrive before the answer, once the queue is bound.
            if struct.unpack_from("=H", answer, 4)[0] == 2:
                break
        self._socket.setblocking(False)
        if number := failure(answer):
            raise OSError(number, f"netfilter queue: {os.strerror(number)}")

    def _ask(self, body: bytes, flags: int, kind: int = _CONFIG) -> None:
        length = _HEADER.size + len(body)
        head = _HEADER.pack(length, kind, REQUEST | flags, 0, 0, 0, 0, self._queue)
        self._socket.send(head + body)


def _packet_layout(stamp_at: int) -> struct.Struct:
    """Return the format of a message: the packet's number, its timestamp's header, and the time."""
    return struct.Struct(f"!24xI{stamp_at - 28}x4sQQ")


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
