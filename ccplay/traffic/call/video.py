"""One direction of a video call: 25 frames a second over UDP at an adapted rate (NADA, RFC 8698).

Runs as a separate process in a host's namespace and imports nothing from ccplay: ``python video.py
receive PORT``, or ``send ADDRESS PORT SPORT RATE DURATION`` with the greatest rate in bit/s and 0
for no limit of time. Both processes read the machine's monotonic clock, so one-way delays are
exact. The receiver reports every 100 ms; for each report that arrives, the sender writes a line:
``seen SENT RECEIVED BYTES DELAY-SUM DELAY-MIN DELAY-MAX FREEZES FROZEN RATE``, all since the start,
with times in microseconds; at its end, ``sent PACKETS``.

A frame is shown when all of its packets have arrived. There is no retransmission, no error
correction and no jitter buffer, and losing a frame spoils no later one: a real decoder freezes more
often.
"""

from __future__ import annotations

import math
import select
import socket
import struct
import sys
import time
from collections import deque

FRAME_S = 1 / 25
"""Seconds between two frames."""

FREEZE_S = max(3 * FRAME_S, FRAME_S + 0.15)
"""Least time between two shown frames that counts as a freeze, as ``freezeCount`` of W3C's
Identifiers for WebRTC's Statistics API."""

_PAYLOAD = 1200
"""Most bytes of a packet."""
_HEADER = struct.Struct("!IIHHQ")
"""Number of the packet and of its frame, its place in the frame, the frame's packets, and the
moment of sending in nanoseconds."""
_REPORT = struct.Struct("!IIQQIIIQQddd")
"""What the receiver has counted, and for the sender's control: see ``VideoReceiver.report``."""

# Names and values of RFC 8698, Figure 3, in seconds and bit/s.
RMIN = 150_000.0
XREF, KAPPA, ETA, TAU, DELTA = 0.010, 0.5, 2.0, 0.5, 0.1
LOGWIN, QEPS, DFILT, GAMMA_MAX, QBOUND = 0.5, 0.010, 0.12, 0.5, 0.050
QTH, LAMBDA, PLRREF, DLOSS, ALPHA = 0.050, 0.5, 0.01, 0.010, 0.1
_TAPS = 15
"""Length of the minimum filter over samples of delay (section 5.1.1)."""


class VideoReceiver:
    """What has arrived, and its aggregate congestion signal (RFC 8698, sections 4.2 and 5.1)."""

    def __init__(self) -> None:
        self.sent = self.received = self.size = self.delay_sum_us = 0
        self.delay_min_us, self.delay_max_us = 0, 0
        self.freezes = self.frozen_us = 0
        self._recent: deque[tuple[float, int, float, int]] = deque()
        """Moment, number, delay and bytes of the packets that arrived within ``LOGWIN``."""
        self._delays: deque[float] = deque(maxlen=_TAPS)
        self._base = math.inf
        self._loss = 0.0
        self._lost_at = -math.inf
        self._frames: dict[int, int] = {}
        """Packets of a frame that have arrived, by the frame's number."""
        self._shown: float | None = None

    def arrive(self, now: float, packet: bytes) -> None:
        """Take in a packet that arrives at ``now``, in seconds of the monotonic clock."""
        number, frame, _, packets, sent_ns = _HEADER.unpack_from(packet)
        delay = max(now - sent_ns / 1e9, 0.0)
        delay_us = round(delay * 1e6)
        if number > self.sent:
            self._lost_at = now
        self.sent = max(self.sent, number + 1)
        self.received += 1
        self.size += len(packet)
        self.delay_sum_us += delay_us
        least = self.delay_min_us if self.received > 1 else delay_us
        self.delay_min_us, self.delay_max_us = (
            min(least, delay_us),
            max(self.delay_max_us, delay_us),
        )
        self._base = min(self._base, delay)
        self._delays.append(delay)
        self._recent.append((now, number, delay, len(packet)))
        self._frames[frame] = self._frames.get(frame, 0) + 1
        if self._frames[frame] == packets:
            self._show(now, frame)

    def _show(self, now: float, frame: int) -> None:
        # An older frame is never shown after a newer one.
        self._frames = {other: count for other, count in self._frames.items() if other > frame}
        if self._shown is not None and now - self._shown >= FREEZE_S:
            self.freezes += 1
            self.frozen_us += round((now - self._shown) * 1e6)
        self._shown = now

    def report(self, now: float) -> tuple[float, float, float]:
        """Return x_curr in s, rmode (0: ramp up, 1: gradual), and r_recv in bit/s, at ``now``."""
        while self._recent and self._recent[0][0] < now - LOGWIN:
            self._recent.popleft()
        if not self._recent:
            # Nothing arrives: as bad as every packet lost.
            self._loss += ALPHA * (1.0 - self._loss)
            return self._signal(now, QTH), 1.0, 0.0
        numbers = [number for _, number, _, _ in self._recent]
        lost = 1 - len(numbers) / (max(numbers) - min(numbers) + 1)
        self._loss += ALPHA * (max(lost, 0.0) - self._loss)
        ramps = lost <= 0 and all(each - self._base < QEPS for _, _, each, _ in self._recent)
        rate = sum(size for *_, size in self._recent) * 8 / LOGWIN
        return self._signal(now, min(self._delays) - self._base), float(not ramps), rate

    def _signal(self, now: float, queued: float) -> float:
        # Delay counts less once losses show that others fill the queue (equation 1).
        if queued >= QTH and now - self._lost_at < 7 * LOGWIN:
            queued = QTH * math.exp(-LAMBDA * (queued - QTH) / QTH)
        return queued + DLOSS * (self._loss / PLRREF) ** 2


class ReferenceRate:
    """The reference rate of the sender (RFC 8698, section 4.3)."""

    def __init__(self, most: float) -> None:
        """Begin at the least rate; ``most`` is the greatest, in bit/s."""
        self.most, self.now = most, min(RMIN, most)
        self._signal = 0.0

    def learn(self, signal: float, *, ramps: bool, received: float, rtt: float) -> None:
        """Apply a report: x_curr in s, whether to ramp up, r_recv in bit/s, and the RTT in s."""
        if ramps:
            gamma = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))
            self.now = max(self.now, (1 + gamma) * received)
        else:
            offset = signal - XREF * self.most / self.now
            change = signal - self._signal
            self.now -= KAPPA * (DELTA / TAU) * (offset / TAU) * self.now
            self.now -= KAPPA * ETA * (change / TAU) * self.now
        self._signal = signal
        self.now = min(max(self.now, min(RMIN, self.most)), self.most)


def _receive(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("", port))
        print("ready", flush=True)
        packet, sender = listening.recvfrom(2048)
        seen, due = VideoReceiver(), time.monotonic() + DELTA
        seen.arrive(time.monotonic(), packet)
        while True:
            ready = select.select([listening], [], [], max(due - time.monotonic(), 0.0))[0]
            now = time.monotonic()
            if ready:
                seen.arrive(now, listening.recv(2048))
            if now >= due:
                due = max(due + DELTA, now)
                _answer(listening, sender, seen, now)


def _answer(
    listening: socket.socket, sender: tuple[str, int], seen: VideoReceiver, now: float
) -> None:
    signal, mode, rate = seen.report(now)
    counts = seen.sent, seen.received, seen.size, seen.delay_sum_us
    extremes = seen.delay_min_us, seen.delay_max_us, seen.freezes, seen.frozen_us
    report = _REPORT.pack(*counts, *extremes, time.monotonic_ns(), signal, mode, rate)
    try:
        listening.sendto(report, sender)
    except OSError:
        # There is no route at present.
        return


class _Sender:
    """The frames of one direction."""

    def __init__(self, connection: socket.socket, most: float) -> None:
        self._connection = connection
        self._rate = ReferenceRate(most)
        self.packets = 0

    def frame(self, number: int, due: float) -> None:
        """Send a frame, its packets spread over the time until the next one."""
        left = max(round(self._rate.now * FRAME_S / 8), _HEADER.size)
        packets = math.ceil(left / _PAYLOAD)
        for place in range(packets):
            size = max(left // (packets - place), _HEADER.size)
            left -= size
            self.listen(due + place * FRAME_S / packets)
            header = _HEADER.pack(self.packets, number, place, packets, time.monotonic_ns())
            self.packets += 1
            try:
                self._connection.send(header.ljust(size, b"\0"))
            except OSError:
                # There is no route at present, or the receiver is not reached: like a loss.
                continue

    def listen(self, until: float) -> None:
        """Apply the reports that arrive before ``until``."""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._connection], [], [], left)[0]:
                return
            try:
                report = self._connection.recv(2048)
            except OSError:
                continue
            *counts, answered_ns, signal, mode, received = _REPORT.unpack(report)
            rtt = (time.monotonic_ns() - answered_ns) / 1e9 + counts[3] / counts[1] / 1e6
            self._rate.learn(signal, ramps=not mode, received=received, rtt=rtt)
            print("seen", *counts, round(self._rate.now), flush=True)


def _send(address: tuple[str, int], sport: int, most: float, duration_s: float) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.bind(("", sport))
        # The lab holds the program at this call until the call's moment.
        connection.connect(address)
        sender, began, number = _Sender(connection, most), time.monotonic(), 0
        try:
            while not duration_s or number * FRAME_S < duration_s:
                sender.frame(number, began + number * FRAME_S)
                number += 1
            sender.listen(time.monotonic() + 3 * DELTA)
        except KeyboardInterrupt:
            pass
        print("sent", sender.packets, flush=True)


def main() -> None:
    """Receive, or send."""
    role, *words = sys.argv[1:]
    try:
        if role == "receive":
            _receive(int(words[0]))
        else:
            address, port, sport, most, duration_s = words
            _send((address, int(port)), int(sport), float(most), float(duration_s))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
