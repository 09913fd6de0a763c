"""The process behind a capture: a capture program's packets, rewritten to one bounded pcapng file.

``python -m ccplay.lab.capturer ORDER`` runs in the namespace of the interface and writes until
SIGINT. On stdout it says what became of it, one ``News`` in JSON a line: once packets are taken,
and once the file is complete. The file can be read at any moment, however the process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import msgspec

from ccplay import __version__
from ccplay.lab import pcapng

_READ = 1 << 16
_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""

_LISTENING = re.compile(r"listening on|^File: ")
"""What tcpdump and dumpcap say once they take packets."""

_DROPPED = re.compile(r"(\d+) packets? dropped by kernel|received/dropped .*: \d+/(\d+) ")
"""What tcpdump says at its end, and what dumpcap does."""

_libc = ctypes.CDLL(None)


class Order(msgspec.Struct, frozen=True):
    """What to capture, and where to."""

    program: list[str]
    """A command line that writes pcap to stdout until SIGINT."""
    grace_s: float
    """How long the program needs to hand on what it has seen."""
    interface: str
    description: str
    mac: str
    """The interface's own address: frames from it go out."""
    snaplen: int
    max_bytes: int
    directory: str
    stem: str
    """The file's name without its ending; where there is such a file it gets a number."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a capture."""

    path: str
    packets: int = 0
    bytes: int = 0
    dropped: int = 0
    full: bool = False
    error: str | None = None
    ended: bool = False


def main() -> None:
    """Capture until SIGINT, until the file is full or the program ends."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    try:
        path, descriptor = create(Path(order.directory), order.stem)
    except OSError as error:
        sys.exit(f"{order.directory}: {error.strerror}")
    with CaptureProgram(order) as program:
        if not program.listens():
            path.unlink()
            sys.exit(program.last_words())
        _say(News(path=str(path)))
        _say(_write(order, program, File(descriptor, order.max_bytes), str(path)))


def create(directory: Path, stem: str) -> tuple[Path, int]:
    """Make a new file, never through a symlink and never over another. Raises ``OSError``.

    What root writes under sudo(8) belongs to who called it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in range(1, 1000):
        path = directory / f"{stem}{'' if number == 1 else f'-{number}'}.pcapng"
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, flags, 0o644)
            break
    else:
        raise FileExistsError(17, f"{stem}.pcapng and 999 more exist")
    if (owner := os.environ.get("SUDO_UID", "")).isdecimal() and os.geteuid() == 0:
        group = os.environ.get("SUDO_GID", "")
        # Root of a user namespace may own nothing for others.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, int(owner), int(group) if group.isdecimal() else -1)
    return path, descriptor


class File:
    """A file that ends with a complete block, and before its bound."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        self.size = 0
        self.error: str | None = None
        """Why nothing can be written any more."""
        self._descriptor = descriptor
        self._room = max_bytes - pcapng.STATISTICS_SIZE

    def fits(self, waiting: int, block: bytes) -> bool:
        """Whether a block may follow ``waiting`` bytes that are not yet written."""
        return self.size + waiting + len(block) <= self._room

    def write(self, blocks: bytes) -> None:
        """Append complete blocks, all of them or, with an ``error``, none."""
        left = memoryview(blocks)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self.error = error.strerror
            os.ftruncate(self._descriptor, self.size)
        else:
            self.size += len(blocks)


def _write(order: Order, program: CaptureProgram, file: File, path: str) -> News:
    """Rewrite all that the program gives."""
    own = bytes.fromhex(order.mac.replace(":", ""))
    stream = pcapng.PcapStream()
    packets, full = 0, False
    while not full and file.error is None and (data := os.read(program.output, _READ)):
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
    program.stop()
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


class CaptureProgram:
    """tcpdump or dumpcap, running; SIGINT to us ends it, and our death does."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._said: list[str] = []
        self._listening = threading.Event()
        self._asked = False

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(
            self._order.program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - there are no threads yet
        )
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        signal.signal(signal.SIGINT, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    @property
    def output(self) -> int:
        """Where its pcap comes out."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout.fileno()

    def listens(self) -> bool:
        """Wait until it takes packets; False where it never will."""
        self._listening.wait(20.0)
        return any(_LISTENING.search(each) for each in self._said)

    def stop(self) -> None:
        """End it now, and wait until its last words are in."""
        self._asked = self._asked or self._process.poll() is None
        self._process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._process.kill()
        self._process.wait()
        self._hearing.join(1.0)

    def dropped(self) -> int:
        """Return how many packets the kernel had no room for."""
        found = [match for each in self._said if (match := _DROPPED.search(each))]
        return int(found[-1][1] or found[-1][2]) if found else 0

    def refusal(self) -> str | None:
        """Say why it ended where nobody asked it to."""
        return None if self._asked else self.last_words()

    def last_words(self) -> str:
        """Say what it said last, or how it was ended."""
        name = self._order.program[0].rpartition("/")[2]
        status = self._process.poll()
        if status is not None and status < 0:
            return f"{name} was killed by {signal.Signals(-status).name}"
        return self._said[-1] if self._said else f"{name} said nothing"

    def _end(self, *_: object) -> None:
        self._asked = True
        end = threading.Timer(self._order.grace_s, self._process.send_signal, (signal.SIGINT,))
        end.daemon = True
        end.start()

    def _hear(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - a pipe was asked for
        for line in self._process.stderr:
            if text := line.decode(errors="replace").strip():
                self._said.append(text)
                if _LISTENING.search(text):
                    self._listening.set()
        self._listening.set()


def _die_with_parent() -> None:
    _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _say(news: News) -> None:
    sys.stdout.write(msgspec.json.encode(news).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
