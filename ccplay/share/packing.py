"""Chunks of the stream, compressed once for all spectators.

A context lasts two seconds and begins where spectators join: who has all of its chunks can read
them. Before each stands the line of a ``Packed`` frame with its length.
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
"""Neither header nor checksum: chunks are no files."""

_PACKED = b'{"share":"packed"'
"""Start of the line before a chunk."""


class Packer:
    """Compresses chunks."""

    def __init__(self) -> None:
        self._context = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
        self._begins = True

    def begin(self) -> None:
        """Let the next chunk be one that can be read without those before."""
        self._context = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
        self._begins = True

    def pack(self, lines: bytes) -> tuple[bytes, bool]:
        """Return a chunk packed, and whether it can be read without those before."""
        begins, self._begins = self._begins, False
        packed = self._context.compress(lines) + self._context.flush(zlib.Z_SYNC_FLUSH)
        return frames.encode(Packed(bytes=len(packed), begins=begins)) + packed, begins


class Unpacker:
    """Turns what a spectator receives into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = 0
        """Bytes of a chunk that are still to come, with those at hand."""
        self._context: zlib._Decompress | None = None

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are complete with ``data``, each with its end.

        Raises ``WireError`` for a line longer than in any stream, and for what can't be unpacked.
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

    def _unpacked(self, packed: bytes) -> list[bytes]:
        context = self._context
        assert context is not None  # noqa: S101 - ``_expect`` has seen to it
        try:
            lines = context.decompress(packed, wire.LONGEST_LINE)
        except zlib.error as error:
            raise WireError(f"a chunk can't be unpacked: {error}") from None
        if context.unconsumed_tail or not lines.endswith(b"\n"):
            raise WireError(f"a chunk of more than {wire.LONGEST_LINE:,} bytes, or cut off")
        return lines.splitlines(keepends=True)
