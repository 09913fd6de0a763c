"""The process of a capture: writes a capture program's packets to one bounded pcapng file.

``python -m ccplay.lab.capture_writer REQUEST`` runs in the namespace of the interface and writes
until SIGINT. It prints ``CaptureStarted`` as one line of JSON when it begins to capture, and
``CaptureEnded`` when the file is complete; the lab adds the moments. The file can be read at any
moment, however the process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from ccplay import __version__
from ccplay.files import writing
from ccplay.model.commands import StartCapture
from ccplay.model.events import CaptureEnded, CaptureStarted

# --- reads the pcap of capture programs, writes pcapng for Wireshark ------------------------------
# The formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

_SECTION, _INTERFACE, _PACKET, _STATISTICS = 0x0A0D0D0A, 1, 6, 5
_BYTE_ORDER = 0x1A2B3C4D
_LENGTH_UNKNOWN = (1 << 64) - 1

_OS, _APPLICATION = 3, 4
_IF_NAME, _IF_DESCRIPTION, _IF_RESOLUTION = 2, 3, 9
_FLAGS, _INBOUND, _OUTBOUND = 2, 1, 2
_RECEIVED, _DROPPED = 4, 5

_NANOSECONDS = 9
"""Value of ``if_tsresol`` for a resolution of 10^-9 s."""

_PACKET_HEAD = struct.Struct("=IIIIIII")
_PACKET_TAIL = struct.Struct("=HHIHHI")
"""End of a packet's block: the option ``epb_flags``, the end of options, and the block's length,
repeated."""


class CapturedPacket(NamedTuple):
    """A captured packet."""

    nanoseconds: int
    """Nanoseconds since the epoch."""
    data: bytes
    length: int
    """Length of the packet on the wire in bytes."""


def section(application: str, system: str) -> bytes:
    """Return the first block of a file: the program and the machine that wrote it."""
    body = struct.pack("=IHHQ", _BYTE_ORDER, 1, 0, _LENGTH_UNKNOWN)
    options = _text(_OS, system) + _text(_APPLICATION, application)
    return _block(_SECTION, body + options + _option(0, b""))


def interface(name: str, description: str, link_type: int, snaplen: int) -> bytes:
    """Return the block that describes the interface of the packets."""
    body = struct.pack("=HHI", link_type, 0, snaplen)
    options = _text(_IF_NAME, name) + _text(_IF_DESCRIPTION, description)
    options += _option(_IF_RESOLUTION, bytes([_NANOSECONDS]))
    return _block(_INTERFACE, body + options + _option(0, b""))


def packet(record: CapturedPacket, *, outbound: bool) -> bytes:
    """Return the block of one packet, with its direction at the interface."""
    data = record.data + bytes(-len(record.data) % 4)
    total = _PACKET_HEAD.size + len(data) + _PACKET_TAIL.size
    high, low = divmod(record.nanoseconds, 1 << 32)
    head = _PACKET_HEAD.pack(_PACKET, total, 0, high, low, len(record.data), record.length)
    way = _OUTBOUND if outbound else _INBOUND
    return head + data + _PACKET_TAIL.pack(_FLAGS, 4, way, 0, 0, total)


def statistics(nanoseconds: int, received: int, dropped: int) -> bytes:
    """Return the block that ends a capture: counts of packets received and of those dropped."""
    high, low = divmod(nanoseconds, 1 << 32)
    options = _option(_RECEIVED, struct.pack("=Q", received))
    options += _option(_DROPPED, struct.pack("=Q", dropped)) + _option(0, b"")
    return _block(_STATISTICS, struct.pack("=III", 0, high, low) + options)


class PcapStream:
    """A pcap stream being read; its header determines the byte order and the unit of time."""

    def __init__(self) -> None:
        self.link_type: int | None = None
        """Link type, one of ``LINKTYPE_``…; None until the stream's header has arrived."""
        self._rest = b""
        self._header = struct.Struct("=IIII")
        self._unit_ns = 1000

    def feed(self, data: bytes) -> Iterator[CapturedPacket]:
        """Process bytes and yield complete packets. Raises ``ValueError`` if this is not pcap."""
        data = self._rest + data
        at = 0
        if self.link_type is None:
            if len(data) < 24:
                self._rest = data
                return
            self._begin(data)
            at = 24
        size = self._header.size
        while at + size <= len(data):
            seconds, fraction, captured, length = self._header.unpack_from(data, at)
            end = at + size + captured
            if end > len(data):
                break
            when = seconds * 1_000_000_000 + fraction * self._unit_ns
            yield CapturedPacket(when, data[at + size : end], length)
            at = end
        self._rest = data[at:]

    def _begin(self, data: bytes) -> None:
        for order in "<>":
            (magic,) = struct.unpack_from(f"{order}I", data)
            if magic in _UNITS_NS:
                self._unit_ns = _UNITS_NS[magic]
                self._header = struct.Struct(f"{order}IIII")
                (self.link_type,) = struct.unpack_from(f"{order}I", data, 20)
                return
        raise ValueError("not a pcap stream")


_UNITS_NS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Nanoseconds in a stream's unit of time, by its magic number."""


def _block(kind: int, body: bytes) -> bytes:
    total = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + total + body + total


def _text(code: int, text: str) -> bytes:
    return _option(code, text.encode()[:0xFFFF])


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)


STATISTICS_SIZE = len(statistics(0, 0, 0))
"""Length of a statistics block in bytes."""


# --- the file of a capture, bounded in size -------------------------------------------------------


class File:
    """A file that ends with a complete block and never exceeds its bound."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.size = 0
        self.error: str | None = None
        """Reason why nothing more can be written; None if there is none."""
        self._descriptor = descriptor
        self._room = max_bytes - STATISTICS_SIZE

    def fits(self, waiting: int, block: bytes) -> bool:
        """Return whether a block fits after ``waiting`` bytes that are not yet written."""
        return self.size + waiting + len(block) <= self._room

    def write(self, blocks: bytes) -> None:
        """Append complete blocks: all of them, or none with an ``error``."""
        left = memoryview(blocks)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self.error = error.strerror
            os.ftruncate(self._descriptor, self.size)
        else:
            self.size += len(blocks)


# --- A running capture program, tcpdump or dumpcap, which writes pcap to a pipe until SIGINT ------

_DEATH_SIGNAL = 1
"""Option ``PR_SET_PDEATHSIG`` of prctl(2)."""

_LISTENING = re.compile(r"listening on|^File: ")
"""Pattern of the message that tcpdump or dumpcap prints once it captures packets."""

_DROPPED_BY_KERNEL = re.compile(r"(\d+) packets? dropped by kernel|received/dropped .*: \d+/(\d+) ")
"""Pattern of the number of dropped packets in the last message of tcpdump or of dumpcap."""

_libc = ctypes.CDLL(None)


class CaptureProgram:
    """A running tcpdump or dumpcap, which ends on SIGINT to this process, or with this process."""

    def __init__(self, argv: list[str], grace_s: float) -> None:
        self._argv, self._grace_s = argv, grace_s
        self._printed: list[str] = []
        self._listening = threading.Event()
        self._asked = False

    def __enter__(self) -> Self:
        """Start the program."""
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=partial(_libc.prctl, _DEATH_SIGNAL, signal.SIGKILL),  # noqa: PLW1509
        )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        signal.signal(signal.SIGINT, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()

    @property
    def output(self) -> int:
        """Descriptor of the pipe to which the program writes pcap."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout.fileno()

    def listens(self) -> bool:
        """Wait until the program captures packets; return False if it has ended or takes 20 s."""
        self._listening.wait(20.0)
        return any(_LISTENING.search(each) for each in self._printed)

    def stop(self, *, gone: bool) -> None:
        """End the program now, and wait for its last messages.

        ``gone`` is whether its output has ended already; the program may still be exiting.
        """
        if not gone:
            self._asked = True
            self._process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._process.kill()
        self._process.wait()
        self._reader.join(1.0)

    def dropped(self) -> int:
        """Return the number of packets that the kernel dropped."""
        found = [match for each in self._printed if (match := _DROPPED_BY_KERNEL.search(each))]
        return int(found[-1][1] or found[-1][2]) if found else 0

    def refusal(self) -> str | None:
        """Return why the program ended by itself; None if it was asked to end."""
        return None if self._asked else self.last_words()

    def last_words(self) -> str:
        """Return the program's last message, or how it was ended."""
        name = self._argv[0].rpartition("/")[2]
        status = self._process.poll()
        if status is not None and status < 0:
            return f"{name} was killed by {signal.Signals(-status).name}"
        return self._printed[-1] if self._printed else f"{name} ended without a message"

    def _end(self, *_: object) -> None:
        self._asked = True
        end = threading.Timer(self._grace_s, self._process.send_signal, (signal.SIGINT,))
        end.daemon = True
        end.start()

    def _read_output(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - a pipe was asked for
        for line in self._process.stderr:
            if text := line.decode(errors="replace").strip():
                self._printed.append(text)
                if _LISTENING.search(text):
                    self._listening.set()
        self._listening.set()


# --- the process of a capture: writes a capture program's packets to one bounded pcapng file ------

_READ = 1 << 16

_HELD_S = 0.02
"""Seconds for which a packet is held back; an older one may follow it, usually within 0.1 ms."""

_TIME = attrgetter("nanoseconds")


class CaptureRequest(msgspec.Struct, frozen=True):
    """The packets to capture, and the file for them."""

    command: StartCapture
    """Command with the names of the capture and of the directed link."""
    program: list[str]
    """Command line of a program that writes pcap to stdout until SIGINT."""
    grace_s: float
    """Seconds that the program needs to write the packets it has captured."""
    interface: str
    mac: str
    """MAC address of the interface; frames from this address are outgoing."""
    directory: str
    stem: str
    """Name of the file without its extension; if the file exists, a number is added."""


def main() -> None:
    """Capture until SIGINT, until the file is full, or until the capture program ends."""
    request = msgspec.json.decode(sys.argv[1], type=CaptureRequest)
    try:
        path, file = writing.create_numbered(Path(request.directory), request.stem, ".pcapng")
    except OSError as error:
        sys.exit(f"{request.directory}: {error.strerror} (choose a directory with --captures DIR)")
    with CaptureProgram(request.program, request.grace_s) as program:
        if not program.listens():
            path.unlink()
            sys.exit(program.last_words())
        name, link = request.command.capture or "", request.command.link
        _send(CaptureStarted(t=0, capture=name, link=link, path=str(path)))
        bounded = File(file.fileno(), request.command.max_bytes)
        _send(_write(request, program, bounded, str(path)))


def _write(request: CaptureRequest, program: CaptureProgram, file: File, path: str) -> CaptureEnded:
    """Write the program's packets to the file, and return the final report."""
    own = bytes.fromhex(request.mac.replace(":", ""))
    stream = PcapStream()
    packets, full, gone = 0, False, False
    for records in in_order(program.output, stream, max(request.grace_s, _HELD_S)):
        if not file.size and stream.link_type is not None:
            file.write(_head(request, stream.link_type))
        blocks = bytearray()
        for record in records:
            block = packet(record, outbound=record.data[6:12] == own)
            if full := not file.fits(len(blocks), block):
                break
            blocks += block
            packets += 1
        file.write(bytes(blocks))
        if full or file.error is not None:
            break
    else:
        gone = True
    program.stop(gone=gone)
    dropped = program.dropped()
    if file.size and file.error is None:
        file.write(statistics(time.time_ns(), packets + dropped, dropped))
    return CaptureEnded(
        t=0,
        capture=request.command.capture or "",
        path=path,
        packets=packets,
        bytes=file.size,
        dropped=dropped,
        full=full,
        error=file.error or program.refusal(),
    )


def in_order(output: int, stream: PcapStream, held_s: float) -> Iterator[list[CapturedPacket]]:
    """Yield the packets that a program writes to a pipe, in the order of their times.

    The kernel takes a packet's time before it queues the packet for the program (``netif_rx`` in
    net/core/dev.c, ``tpacket_rcv`` in net/packet/af_packet.c), so two that cross an interface at
    once, on two CPUs, may arrive in the wrong order. Each is held back for ``held_s`` seconds.
    """
    held: list[CapturedPacket] = []
    while True:
        if held and not select.select([output], [], [], held_s)[0]:
            yield held
            held = []
        if not (data := os.read(output, _READ)):
            break
        held = sorted([*held, *stream.feed(data)], key=_TIME)
        settled = held[-1].nanoseconds - round(held_s * 1e9) if held else 0
        count = bisect_left(held, settled, key=_TIME)
        yield held[:count]
        held = held[count:]
    yield held


def _head(request: CaptureRequest, link_type: int) -> bytes:
    system = f"{os.uname().sysname} {os.uname().release}"
    about = f"{request.command.link} as packets leave, and the other direction as they arrive"
    return section(f"ccplay {__version__}", system) + interface(
        request.interface, about, link_type, request.command.snaplen
    )


def _send(event: CaptureStarted | CaptureEnded) -> None:
    sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
