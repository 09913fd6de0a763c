"""Compresses chunks of the stream once for all spectators.

A context lasts two seconds and begins where spectators join; reading a chunk requires all chunks
before it in its context. The line of a ``Packed`` frame with the length precedes each chunk.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ccplay.errors import WireError
from ccplay.share import frames
from ccplay.share.frames import Packed
from ccplay.stream import wire

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
