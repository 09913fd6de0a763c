"""The process of a capture: writes a capture program's packets to one bounded pcapng file.

``python -m ccplay.lab.capture.writer ORDER`` runs in the namespace of the interface and writes
until SIGINT. It prints a ``News`` as one line of JSON when it begins to capture packets, and
another when the file is complete. The file can be read at any moment, however the process ends.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from ccplay import __version__
from ccplay.files import writing
from ccplay.lab.capture import pcapng
from ccplay.lab.capture.file import File
from ccplay.lab.capture.program import CaptureProgram

_READ = 1 << 16


class Order(msgspec.Struct, frozen=True):
    """The packets to capture, and the file for them."""

    program: list[str]
    """Command line of a program that writes pcap to stdout until SIGINT."""
    grace_s: float
    """Seconds that the program needs to write the packets it has captured."""
    interface: str
    description: str
    mac: str
    """MAC address of the interface; frames from this address are outgoing."""
    snaplen: int
    max_bytes: int
    directory: str
    stem: str
    """Name of the file without its extension; if the file exists, a number is added."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report of a capture."""

    path: str
    packets: int = 0
    bytes: int = 0
    dropped: int = 0
    full: bool = False
    error: str | None = None
    ended: bool = False


def main() -> None:
    """Capture until SIGINT, until the file is full, or until the capture program ends."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    try:
        path, file = writing.create_numbered(Path(order.directory), order.stem, ".pcapng")
    except OSError as error:
        sys.exit(f"{order.directory}: {error.strerror} (choose a directory with --captures DIR)")
    with CaptureProgram(order.program, order.grace_s) as program:
        if not program.listens():
            path.unlink()
            sys.exit(program.last_words())
        _send(News(path=str(path)))
        _send(_write(order, program, File(file.fileno(), order.max_bytes), str(path)))


def _write(order: Order, program: CaptureProgram, file: File, path: str) -> News:
    """Write the program's packets to the file, and return the final report."""
    own = bytes.fromhex(order.mac.replace(":", ""))
    stream = pcapng.PcapStream()
    packets, full, gone = 0, False, False
    while not (full or gone) and file.error is None:
        data = os.read(program.output, _READ)
        gone = not data
        records = list(stream.feed(data))
        if not file.size and stream.link_type is not None:
            file.write(_head(order, stream.link_type))
        blocks = bytearray()
        for record in records:
            block = pcapng.packet(record, outbound=record.data[6:12] == own)
            if full := not file.fits(len(blocks), block):
                break
            blocks += block
            packets += 1
        file.write(bytes(blocks))
    program.stop(gone=gone)
    dropped = program.dropped()
    if file.size and file.error is None:
        file.write(pcapng.statistics(time.time_ns(), packets + dropped, dropped))
    return News(
        path=path,
        packets=packets,
        bytes=file.size,
        dropped=dropped,
        full=full,
        error=file.error or program.refusal(),
        ended=True,
    )


def _head(order: Order, link_type: int) -> bytes:
    system = f"{os.uname().sysname} {os.uname().release}"
    return pcapng.section(f"ccplay {__version__}", system) + pcapng.interface(
        order.interface, order.description, link_type, order.snaplen
    )


def _send(news: News) -> None:
    sys.stdout.write(msgspec.json.encode(news).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
