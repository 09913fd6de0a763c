"""Keeps the stream for spectators, compressed once for all of them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec.structs import replace

from ccplay.errors import RecordingError, WireError
from ccplay.files import writing
from ccplay.model.base import Event
from ccplay.model.events import Hello
from ccplay.share import frames
from ccplay.share.frames import Packed
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.wire import UnknownEvent

# --- removes what spectators must not learn: paths, and the user names in them --------------------

_PATH = re.compile(r"(?:(?<=[\s\"'(=:,\[])|^)(?:~[^/\s]*)?(?:/[^/\s\"'(),;:\]]+)+/?")
"""Pattern of an absolute path, or one that begins with ``~``, within a sentence."""

_encoder = msgspec.json.Encoder()


def shorten_paths(text: str) -> str:
    """Return a text with each path reduced to its last component."""
    return _PATH.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], text)


def remove_paths(line: bytes) -> bytes:
    """Return an event's line with paths removed from all its texts, keys of objects included."""
    if b"/" not in line:
        return line
    value = msgspec.json.decode(line)
    return _encoder.encode(_remove_paths(value)) + b"\n"


def _remove_paths(value: Any) -> Any:
    if isinstance(value, str):
        return shorten_paths(value)
    if isinstance(value, list):
        return [_remove_paths(each) for each in value]
    if isinstance(value, dict):
        return {shorten_paths(key): _remove_paths(each) for key, each in value.items()}
    return value


# --- compresses chunks of the stream once for all spectators --------------------------------------
# A context lasts two seconds and begins where spectators join; reading a chunk requires all chunks
# before it in its context. The line of a ``Packed`` frame with the length precedes each chunk.

_LEVEL = 6
_RAW = -zlib.MAX_WBITS
"""Window bits of zlib for raw deflate, without header and checksum."""

_PACKED = b'{"share":"packed"'
"""First bytes of the line before a chunk."""


class Packer:
    """Compresses chunks, each after those before it in its context."""

    def __init__(self) -> None:
        self._context = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
        self._begins = True

    def begin(self) -> None:
        """Begin a context: the next chunk can be read without those before it."""
        self._context = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
        self._begins = True

    def pack(self, lines: bytes) -> tuple[bytes, bool]:
        """Return a packed chunk, and whether it can be read without those before it."""
        begins, self._begins = self._begins, False
        packed = self._context.compress(lines) + self._context.flush(zlib.Z_SYNC_FLUSH)
        return frames.encode(Packed(bytes=len(packed), begins=begins)) + packed, begins


class Unpacker:
    """Splits what a spectator receives into lines, and unpacks chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = 0
        """Length in bytes of the chunk being received; 0 between chunks."""
        self._context: zlib._Decompress | None = None

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that ``data`` completes, newlines included.

        Raises ``WireError`` for a line longer than in any stream or a chunk that can't be unpacked.
        """
        self._rest += data
        while True:
            if self._wanted:
                if len(self._rest) < self._wanted:
                    return
                packed = bytes(self._rest[: self._wanted])
                del self._rest[: self._wanted]
                self._wanted = 0
                yield from self._unpacked(packed)
            end = self._rest.find(b"\n") + 1
            if not end:
                if len(self._rest) > wire.LONGEST_LINE:
                    raise WireError(f"a line of more than {wire.LONGEST_LINE:,} bytes")
                return
            line = bytes(self._rest[:end])
            del self._rest[:end]
            if line.startswith(_PACKED):
                self._expect(line)
            else:
                yield line

    def _expect(self, line: bytes) -> None:
        frame = frames.decode(line)
        if not isinstance(frame, Packed) or not 0 < frame.bytes <= wire.LONGEST_LINE:
            raise WireError("a chunk without a length")
        self._wanted = frame.bytes
        if frame.begins:
            self._context = zlib.decompressobj(_RAW)
        elif self._context is None:
            raise WireError("a chunk without those before it")

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        context = self._context
        assert context is not None  # noqa: S101 - ``_expect`` has seen to it
        try:
            lines = context.decompress(packed, wire.LONGEST_LINE)
        except zlib.error as error:
            raise WireError(f"a chunk can't be unpacked: {error}") from None
        if context.unconsumed_tail or not lines.endswith(b"\n"):
            raise WireError(f"a chunk of more than {wire.LONGEST_LINE:,} bytes, or cut off")
        # One at a time: a list of the shortest lines takes twenty times the bytes of all of them.
        begin = 0
        while begin < len(lines):
            end = lines.index(b"\n", begin) + 1
            yield lines[begin:end]
            begin = end


# --- keeps the stream for spectators: the past in a file, and the newest seconds in memory --------

LIVE_S = 0.14
"""Seconds of sweeps in a line that is sent live, which add to a spectator's delay."""

MOST_CHUNKS = 128
"""Greatest number of chunks in memory; a spectator too slow for the oldest one misses some."""

MOST_MEMORY = 32 << 20
"""Greatest number of bytes of the chunks in memory."""

MOST_KEPT = 64 << 20
"""Bytes of events other than samples kept in memory for spectators who join late or fall behind;
these spectators miss the events after that."""


class Chunk(msgspec.Struct):
    """Complete lines that are sent together."""

    lines: bytes
    packed: bytes
    """Compressed lines of the chunk; empty if there was no spectator to read them."""
    begins: bool
    """Whether the packed lines can be read without the previous chunk."""
    t: float
    """Moment of the newest event in or before the chunk, in seconds."""
    kept: int
    """Number of lines of ``Backlog.kept`` in this chunk and those before it."""


class _Pending(io.RawIOBase):
    """Holds written lines until they are taken."""

    def __init__(self) -> None:
        self._lines = b""

    def write(self, lines: Any) -> int:
        self._lines += lines
        return len(lines)

    def remove_lines(self) -> bytes:
        """Remove and return the lines."""
        lines, self._lines = self._lines, b""
        return lines


class Backlog:
    """Everything shared so far; a spectator costs no more than a position in it."""

    def __init__(self) -> None:
        self.spool_bytes = 200_000_000
        """Greatest number of bytes of the past; spectators who join later miss what follows."""
        self.past = writing.create_unnamed()
        """File without a name that holds the past, in lines of two seconds."""
        self.past_end = 0
        """Bytes of the past that hold everything before chunk ``past_until``."""
        self.past_until = 0
        """Number of the first chunk that is not in the past."""
        self.past_kept = 0
        """Number of lines of ``kept`` that are in the past."""
        self.past_now = 0.0
        """Moment at which the past ends, in seconds."""
        self.first = 0
        """Number of the oldest chunk in memory."""
        self.chunks: deque[Chunk] = deque()
        self.kept: list[bytes] = []
        """Lines of all events other than samples."""
        self.chunked = 0
        """Number of lines of ``kept`` that are in chunks."""
        self.now = 0.0
        self.view = b""
        """Line of the presenter's newest view."""
        self.board = b""
        """Line of the lesson's page that the presenter shows."""
        self.packs = True
        """Whether chunks are packed, which is needless while nobody watches."""
        self._kept_bytes = 0
        self._memory = 0
        self._packer = Packer()
        self._recorder: Recorder | None = Recorder(Path("the past"), file=self.past)
        """What extends the past; None once it has reached ``spool_bytes``, or its disk is full."""
        self._pending = _Pending()
        self._live = Recorder(Path("live"), file=cast("BinaryIO", self._pending), block_s=LIVE_S)

    @property
    def end(self) -> int:
        """The number of the next chunk."""
        return self.first + len(self.chunks)

    def chunk(self, number: int) -> Chunk | None:
        """Return the chunk of this number; None if it is not in memory."""
        at = number - self.first
        return self.chunks[at] if 0 <= at < len(self.chunks) else None

    def put(self, event: Event | UnknownEvent) -> None:
        """Add an event of the stream."""
        if isinstance(event, Hello):
            event = replace(event, format=wire.FORMAT)
        if not isinstance(event, wire.SAMPLES):
            line = remove_paths(wire.encode(event))
            event = wire.decode_event(line)
            self._keep(line)
        self.now = max(self.now, event.t)
        self._live.put(event)
        if self._recorder is not None:
            try:
                self._recorder.put(event)
            except RecordingError:
                self._recorder = None

    def show(self, view: bytes) -> None:
        """Add the presenter's view, the line of a frame."""
        self.view = view
        self._append(view)

    def write_board(self, board: bytes) -> None:
        """Add the page of a lesson, the line of a frame."""
        self.board = board
        self._append(board)

    @property
    def shown(self) -> bytes:
        """The lines of what the presenter shows now, for spectators who join."""
        return self.view + self.board

    def make_chunk(self) -> None:
        """Make a chunk of the lines that are complete by now."""
        if lines := self._pending.remove_lines():
            self.chunked = len(self.kept)
            self._append(lines)

    def flush(self) -> None:
        """Make a chunk of everything so far, the unfinished block of sweeps included."""
        self._live.flush()
        self.make_chunk()

    def extend_past(self) -> None:
        """Extend the past up to now; spectators who join later read it from the file."""
        self.flush()
        if self._recorder is None:
            return
        try:
            self._recorder.flush()
            size = self.past.tell()
        except OSError:
            self._recorder = None
            return
        if size > self.spool_bytes:
            self._recorder = None
        else:
            self.past_end, self.past_until = size, self.end
            self.past_kept, self.past_now = self.chunked, self.now
            self._packer.begin()

    def preload(self, recording: int, size: int) -> None:
        """Begin with the first ``size`` bytes of a recording, given by its file descriptor.

        Stops before a line that can't be read, or exceeds ``spool_bytes``. Raises ``OSError``.
        """
        with open(os.dup(recording), "rb") as file:  # noqa: PTH123 - by descriptor
            file.seek(0)
            while size > 0 and (line := file.readline(wire.LONGEST_LINE)).endswith(b"\n"):
                size -= len(line)
                if self.past.tell() + len(line) > self.spool_bytes:
                    break
                try:
                    line = self._read(line)
                except _UNREADABLE:
                    break
                self.past.write(line)
            self.past.flush()
        self.past_end, self.chunked = self.past.tell(), len(self.kept)
        self.past_kept, self.past_now = self.chunked, self.now

    def _read(self, line: bytes) -> bytes:
        """Return a line of a recording without paths; keep it unless it holds samples."""
        if line.startswith(wire.SAMPLE_LINES):
            with contextlib.suppress(WireError):
                self.now = max(self.now, wire.moment_of_line(line))
            return line
        line = remove_paths(line)
        self._keep(line)
        return line

    def close(self) -> None:
        """Close the file of the past."""
        self.past.close()

    def _keep(self, line: bytes) -> None:
        if self._kept_bytes < MOST_KEPT:
            self._kept_bytes += len(line)
            self.kept.append(line)

    def _append(self, lines: bytes) -> None:
        packed, begins = b"", False
        if self.packs:
            packed, begins = self._packer.pack(lines)
        else:
            self._packer.begin()
        self.chunks.append(Chunk(lines, packed, begins, self.now, self.chunked))
        self._memory += len(lines) + len(packed)
        while len(self.chunks) > MOST_CHUNKS or (
            self._memory > MOST_MEMORY and len(self.chunks) > 1
        ):
            oldest = self.chunks.popleft()
            self._memory -= len(oldest.lines) + len(oldest.packed)
            self.first += 1


_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
