"""Finished runs on a worker's disk, by key, until the experiment that ordered them keeps them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from platformdirs import user_cache_path

from ccplay.errors import LabError, RecordingError
from ccplay.experiment.files import Folder
from ccplay.experiment.orders import Finished, Order
from ccplay.files.writing import Directory, passing_folder
from ccplay.visible import printable_json

_KEPT_S = 30 * 86_400.0
"""Seconds for which a finished run is kept if its experiment does not fetch it."""
_KEY = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}")
_CHUNK = 1 << 20
# Created once, at import: msgspec must not inspect a type in two threads at a time.
_FINISHED = msgspec.json.Decoder(Finished)


def key_of(experiment: str, order: Order, files: Mapping[str, bytes]) -> str:
    """Return the key of a run: the same order in the same experiment always has the same key."""
    digest = hashlib.sha256(msgspec.json.encode(order))
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{experiment}-{digest.hexdigest()[:32]}"


def valid(key: str) -> str:
    """Return a key received from another machine. Raises ``LabError`` if it is not a key."""
    if not _KEY.fullmatch(key):
        raise LabError(f"{key[:60]!r} is not the key of a run")
    return key


def pack(finished: Finished, recording: Path) -> bytes:
    """Return a finished run, with its recording if there is one, packed into bytes."""
    head = msgspec.json.encode(finished)
    squeeze = zlib.compressobj(1)
    parts = [len(head).to_bytes(4), head]
    with contextlib.suppress(FileNotFoundError), recording.open("rb") as file:
        while chunk := file.read(_CHUNK):
            parts.append(squeeze.compress(chunk))
    return b"".join([*parts, squeeze.flush()])


def unpack(packed: bytes, file: BinaryIO | None) -> Finished:
    """Return a finished run, and write its recording into ``file``.

    Raises ``RecordingError`` for anything but a packed run.
    """
    try:
        size = int.from_bytes(packed[:4])
        finished = _FINISHED.decode(printable_json(packed[4 : 4 + size]))
        expand, rest = zlib.decompressobj(), packed[4 + size :]
        while file is not None and (rest or not expand.eof):
            chunk = expand.decompress(rest, _CHUNK)
            rest = expand.unconsumed_tail
            if not chunk and not rest:
                break
            file.write(chunk)
    except (msgspec.MsgspecError, UnicodeError, zlib.error) as error:
        raise RecordingError(f"a worker's answer is not a finished run: {error}") from None
    return finished


def without_recording(packed: bytes) -> bytes:
    """Return a packed run without its recording, in the form that ``unpack`` reads."""
    return packed[: 4 + int.from_bytes(packed[:4])]


class Spool:
    """A folder of finished runs, shared by all workers of a user on a machine."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the folder, created if missing. Raises ``RecordingError``."""
        path = path or user_cache_path("ccplay") / "bench"
        self._folder = Folder.make(path)
        self._tidy()

    def keep(self, key: str, packed: bytes) -> None:
        """Write a finished run to the disk. Raises ``RecordingError``."""
        self._folder.write(key, packed)

    def fetch(self, key: str) -> bytes | None:
        """Return a finished run, packed; None if there is none with that key."""
        return self._folder.read(key)

    def keys(self, experiment: str) -> list[str]:
        """Return the keys of an experiment's finished runs."""
        return [name for name in self._folder.names() if name.startswith(f"{experiment}-")]

    def forget(self, keys: Iterable[str]) -> None:
        """Delete finished runs that are kept elsewhere."""
        for key in keys:
            self._folder.free(valid(key))

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Make a private folder for a run in progress; delete it afterwards."""
        with passing_folder(self._folder.path, ".run-") as made:
            yield made

    def place(self, name: str, content: bytes) -> Path:
        """Return the path of a file that came with an order, written unless it exists."""
        if Path(name).name != name or name in ("", ".", ".."):
            raise LabError(f"{name[:60]!r} is not a file name")
        digest = hashlib.sha256(content).hexdigest()
        with Directory(self._folder.path / "files" / digest, make=True) as there:
            with contextlib.suppress(FileExistsError), there.written(name) as file:
                file.write(content)
            return there.path / name

    def _tidy(self) -> None:
        """Delete runs that were not fetched for a long time."""
        for name in self._folder.names():
            path = self._folder.path / name
            with contextlib.suppress(OSError):
                if _KEY.fullmatch(name) and time.time() - path.lstat().st_mtime > _KEPT_S:
                    os.unlink(path)  # noqa: PTH108 - a symlink itself
