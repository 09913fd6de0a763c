"""Contents by their digest: read once from a scenario's files, and sent to each lab that asks.

The side that reads the files has no privilege. A lab receives a content in pieces (``TraceData``,
each a line of the stream), and checks its digest and every number of it: ``ccplay/lab/traces``.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from pathlib import Path

from ccplay.files.reading import read_regular
from ccplay.model.base import Command
from ccplay.model.commands import Build, SetLink, TraceData
from ccplay.model.moving import Trace
from ccplay.trace import formats
from ccplay.trace.content import MOST_BYTES, TraceError, digest_of, pack

_PIECE = 1 << 20

files: dict[str, bytes] = {}
"""Packed contents of files that this process has read, by digest."""

LARGEST_COPIED = 8 << 20
"""Largest file in bytes that is kept as text too, and written beside the runs of its scenario."""


def load(trace: Trace, folder: Path, texts: dict[str, str]) -> Trace:
    """Read the files of a trace beside a scenario; return it with the digest of what they contain.

    ``texts`` receives the text of each file that is not too large, by its name. Raises
    ``TraceError`` with file, line and reason.
    """
    if not (trace.rate or trace.delay):
        return trace
    for name in filter(None, (trace.rate, trace.delay)):
        if not name.endswith(".parquet"):
            with contextlib.suppress(OSError, ValueError):
                texts[name] = read_regular(folder / name, LARGEST_COPIED).decode()
    content = formats.read(folder / trace.rate) if trace.rate else None
    if trace.delay:
        content = formats.with_delays(content, formats.read_delays(folder / trace.delay))
    assert content is not None  # noqa: S101 - one of the two files is there
    image = pack(content)
    digest = digest_of(image)
    if digest not in files:
        if sum(map(len, files.values())) + len(image) > MOST_BYTES:
            raise TraceError(f"{trace.rate or trace.delay}: the traces take more than 512 MiB")
        files[digest] = image
    return Trace(rate=trace.rate, delay=trace.delay, loop=trace.loop, digest=digest)


def data_of(digest: str) -> Iterator[TraceData]:
    """Yield the pieces of a content for a lab; none if this process has not read it."""
    if (image := files.get(digest)) is None:
        return
    packed = zlib.compress(image, 1)
    for begin in range(0, len(packed), _PIECE):
        end = begin + _PIECE
        yield TraceData(
            digest=digest, size=len(image), piece=packed[begin:end], last=end >= len(packed)
        )


# --- contents for a process that has not read the files: a worker of a cluster --------------------

SUFFIX = ".trace"
"""Suffix of the name of a content among the files that go with a run; before it is its digest."""


def packed_files() -> dict[str, bytes]:
    """Return all contents of files that this process has read, compressed, by name."""
    return {f"{digest}{SUFFIX}": zlib.compress(image, 1) for digest, image in files.items()}


def accept(name: str, packed: bytes) -> None:
    """Keep a content that came with a run. Raises ``TraceError`` if it is not what it is named."""
    digest = name.removesuffix(SUFFIX)
    if digest in files:
        return
    room = MOST_BYTES - sum(map(len, files.values()))
    try:
        image = zlib.decompressobj().decompress(packed, room + 1)
    except zlib.error as error:
        raise TraceError(f"a trace can't be unpacked: {error}") from None
    if len(image) > room:
        raise TraceError("the traces take more than 512 MiB")
    if digest_of(image) != digest:
        raise TraceError("a trace differs from its digest")
    files[digest] = image


def digests_of(command: Command) -> set[str]:
    """Return the digests of the contents that a lab needs for a command."""
    moved = {
        Build: lambda each: [setting.trace for setting in each.links.values()],
        SetLink: lambda each: [each.trace],
    }
    traces = moved.get(type(command), lambda _: [])(command)
    return {each.digest for each in traces if each is not None and each.digest}
