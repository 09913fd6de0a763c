"""The archive of sessions: every live session is recorded, found and read.

The folder is limited in sessions and bytes: a new session replaces the oldest.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import stat
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from ccplay.errors import CcplayError, RecordingError, UsageError, WireError
from ccplay.files import writing
from ccplay.files.caller import state_folder
from ccplay.files.reading import open_regular
from ccplay.files.writing import Directory, open_safe
from ccplay.model.base import Event
from ccplay.model.events import Health, Hello
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import RecordingLimits, check_recording, complete_lines, recorded_events
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import FlowStarted
from ccplay.units import format_size

# --- reads the state at the end of a recording ----------------------------------------------------


def read_recording(path: Path) -> LabState:
    """Return the state at the end of a recording. Raises ``RecordingError``."""
    state = LabState()
    for event in recorded_events(path):
        state.apply(event)
    return state


# --- reads a recording around one moment, so that it can be shown before all of it is read --------

BEFORE_S, AFTER_S = 60.0, 30.0
"""Seconds read before and after the moment: more than the plots show at first."""


def preview(path: Path, t: float) -> LabState | None:
    """Return the state of a recording with only the samples around ``t``.

    Everything built, started, changed and marked until then is in the state. Returns None for an
    unreadable recording: reading all of it then reports the reason.
    """
    state, bounds = LabState(), RecordingLimits()
    try:
        with path.open("rb") as file:
            state.apply(wire.decode_hello(next(complete_lines(file)), str(path)))
            for line in complete_lines(file):
                if line.startswith(wire.SAMPLE_LINES):
                    moment = wire.moment_of_line(line)
                    if moment > t + AFTER_S:
                        break
                    # A block begins some seconds before its last sweep.
                    if moment < t - BEFORE_S:
                        continue
                event = wire.decode_event(line)
                bounds.check(event)
                state.apply(event)
    except (OSError, StopIteration, RecordingError, WireError):
        return None
    return state


# --- lists the recordings in a folder, from a quick look at each file -----------------------------

PATTERNS = ("*.ccplay", "runs/*.ccplay", "*/runs/*.ccplay")
"""Glob patterns of recordings in a folder and in its run directories."""

_MOST = 50
"""Greatest number of recordings listed."""

_FLOW_STARTED = b'{"event":"flow-started"'
"""First bytes of a line that reports the start of a flow."""

_HEAD, _TAIL_BYTES = 1 << 16, 1 << 18
"""Bytes read for a quick look, at the beginning and at the end of a recording."""


class Found(msgspec.Struct, frozen=True):
    """A recording in a list, and what is known of its content."""

    path: Path
    name: str
    """Path of the recording, relative to the folder that was searched."""
    size: int
    """Size of the recording in bytes."""
    began: datetime
    seconds: float | None = None
    """Seconds from the recording's start to its end; None if unknown after a quick look."""
    algorithms: tuple[str, ...] = ()
    """Congestion controls of all flows, or of the first ones after a quick look."""
    flows: int = 0
    """Number of flows that were started; 0 after a quick look."""
    problem: str = ""
    """Reason why the recording can't be read; empty if it can."""


def find(folder: Path) -> list[Found]:
    """Return the recordings below a folder, newest first; those that can't be read last."""
    paths = {path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()}
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST]
    found = [describe_recording(path, folder) for path in newest]
    return sorted(found, key=lambda each: (not each.problem, each.began), reverse=True)


def describe_recording(path: Path, folder: Path) -> Found:
    """Return what is known of a recording from its beginning and its end."""
    name = wire.printable(str(path.relative_to(folder)))
    facts = path.stat()
    began = datetime.fromtimestamp(facts.st_mtime).astimezone()
    try:
        check_recording(path)
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(facts.st_size - _TAIL_BYTES, 0))
            tail = file.read()
    except (CcplayError, OSError) as error:
        problem = str(error).removeprefix(f"{path}: ")
        return Found(path, name, facts.st_size, began, problem=problem)
    early = [event for line in head.split(b"\n")[:-1] if (event := _event(line))]
    hello = early[0] if early else None
    if isinstance(hello, Hello):
        began = datetime.fromtimestamp(hello.wall_time).astimezone()
    algorithms = [each.cc for each in early if isinstance(each, FlowStarted) and each.cc]
    last = _event(tail.rsplit(b"\n", 2)[-2]) if tail.count(b"\n") > 1 else None
    return Found(
        path,
        name,
        facts.st_size,
        began,
        seconds=last.t if last else None,
        algorithms=tuple(dict.fromkeys(algorithms)),
    )


def scan(path: Path, folder: Path) -> Found:
    """Return what is known of a recording, all of its flows included; reads every line."""
    found = describe_recording(path, folder)
    if found.problem:
        return found
    flows = []
    with contextlib.suppress(OSError, WireError), open_regular(path) as file:
        started = (line for line in complete_lines(file) if line.startswith(_FLOW_STARTED))
        flows = [event for line in started if isinstance(event := _event(line), FlowStarted)]
    algorithms = tuple(dict.fromkeys(each.cc for each in flows if each.cc))
    return replace(found, flows=len(flows), algorithms=algorithms)


def _event(line: bytes) -> Event | None:
    try:
        event = wire.decode_event(line)
    except WireError:
        return None
    return event if isinstance(event, Event) else None


# --- records a session in memory, until the user saves it as a file -------------------------------

_MOST_BYTES = 100_000_000


class Unsaved:
    """A recording in memory, up to 100 MB."""

    def __init__(self, title: str = "") -> None:
        """Begin an empty recording; its first line keeps ``title``."""
        self._file = io.BytesIO()
        self._recorder = Recorder(Path("memory"), title, self._file)
        self.lost = ""
        """Reason why the recording can't be saved; empty if it can."""
        self.path: Path | None = None
        """Path of the saved recording; None until it is saved."""

    def put(self, event: Event | UnknownEvent) -> None:
        """Record one event. Raises ``RecordingError`` once the recording is too long."""
        if isinstance(event, Health) and self._recorder.size > _MOST_BYTES:
            self.lost = f"the session has grown longer than {format_size(_MOST_BYTES)}"
            self._file.close()
            raise RecordingError(f"this session can't be saved as a recording: {self.lost}")
        self._recorder.put(event)

    def snapshot(self) -> BinaryIO | None:
        """Return a copy of the recording so far, open for reading; None once it is lost."""
        if self.lost:
            return None
        self._recorder.flush()
        file = writing.create_unnamed()
        file.write(self._file.getbuffer())
        file.flush()
        return file

    def close(self) -> None:
        """Do nothing: the recording stays in memory and can still be saved."""

    def write_to(self, path: Path, *, replace: bool = False) -> None:
        """Save the recording as a file.

        Raises ``OSError``; ``FileExistsError`` for an existing file without ``replace``.
        """
        self._recorder.flush()
        with writing.written(path, replace=replace) as file:
            file.write(self._file.getbuffer())
        self.path = path


# --- the archive: every live session is recorded automatically, in a folder of the user -----------

LAST = "last"
"""Name of the newest session on a command line."""

_FOLDER, _SUFFIX = "sessions", ".ccplay"

_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-([a-z0-9.-]+)\.ccplay")
"""Pattern of a session's file name, ``20261122-064833-playground.ccplay``: names sort by time."""

_NUMBERED = re.compile(r"@([1-9][0-9]{0,3})")


class Bounds(msgspec.Struct, frozen=True):
    """The limits of the archive."""

    sessions: int = 20
    bytes: int = 500_000_000
    """Greatest number of bytes of all sessions together."""
    longest: int = 200_000_000
    """Greatest number of bytes of one session; an hour of eight flows takes a quarter of that."""
    keep_free: int = 200_000_000
    """Bytes that are left free on the disk."""


BOUNDS = Bounds()


def folder() -> Path:
    """Return the folder of sessions: below ``$XDG_STATE_HOME``, or ``~/.local/state``.

    Under sudo(8) it is the caller's folder, so sessions are the same with sudo and without.
    """
    return state_folder() / _FOLDER


def sessions() -> list[Path]:
    """Return the recordings of the archive, newest first; none if it can't be read."""
    where = folder()
    try:
        names = sorted(filter(_NAME.fullmatch, os.listdir(where)), reverse=True)  # noqa: PTH208
    except OSError:
        return []
    return [path for name in names if (path := where / name).is_file() and not path.is_symlink()]


def earlier(own: Path | None) -> list[tuple[str, Path]]:
    """Return the five newest sessions except ``own``, each with a name for people."""
    there = [path for path in sessions() if path != own][:5]
    names = [f"session of {started(path):%m-%d %H:%M}" for path in there]
    return list(zip([f"{LAST} session", *names[1:]], there, strict=False))


def started(path: Path) -> datetime:
    """Return the local time at which a session began, from its name, or else its mtime."""
    try:
        return datetime.strptime(path.name[:15], "%Y%m%d-%H%M%S").astimezone()
    except ValueError:
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone()


def label_of(path: Path) -> str:
    """Return the scenario of a session in the archive, from the name of its file."""
    found = _NAME.fullmatch(path.name)
    return found[1] if found else path.stem


def named(word: str) -> Path:
    """Return the recording that a word of a command line stands for.

    ``last`` or ``@1`` is the newest session, ``@2`` the one before it; any other word is a path,
    and so is the name of an existing file. Raises ``UsageError`` if there is no such session.
    """
    found = _NUMBERED.fullmatch(word)
    path = Path(word)
    if (word != LAST and found is None) or os.path.lexists(path):
        return path
    number = int(found[1]) if found else 1
    there = sessions()
    if not there:
        raise UsageError(f"there is no {word} session: none is recorded in {folder()}")
    if number > len(there):
        raise UsageError(f"there is no session {word}: ccplay list sessions shows {len(there)}")
    return there[number - 1]


def word_of(path: Path) -> str:
    """Return the word of a command line for a session now: ``last``, ``@2`` …, or else its path."""
    there = sessions()
    number = there.index(path) + 1 if path in there else 0
    return {0: str(path), 1: LAST}.get(number, f"@{number}")


def is_running(path: Path) -> bool:
    """Whether a session is being recorded now."""
    try:
        with open_regular(path) as file:
            return not _lock(file, fcntl.LOCK_SH)
    except OSError:
        return False


def delete(paths: list[Path]) -> list[Path]:
    """Delete sessions of the archive; return those that could not be deleted.

    Running sessions and other users' files stay. Raises ``OSError``.
    """
    with _open() as here:
        return [path for path in paths if not _discard(here, path.name)]


class SessionRecorder:
    """Records one session into the archive, from its first event until a limit is reached."""

    def __init__(self, label: str, title: str = "", bounds: Bounds = BOUNDS) -> None:
        """Prepare a recording with ``label`` in the file's name; nothing is written yet."""
        self._label = re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")[:40] or "session"
        self._title = title
        self._bounds = bounds
        self._recorder: Recorder | None = None
        self._directory: Directory | None = None
        self.path: Path | None = None
        """Path of the recording; None before the first event."""

    def put(self, event: Event | UnknownEvent) -> None:
        """Record one event. Raises ``RecordingError`` with the reason once that is impossible."""
        if self._recorder is None:
            try:
                self._recorder = self._begin()
            except OSError as error:
                reason = error.strerror or error
                raise RecordingError(
                    f"this session is not recorded: can't write to {folder()}: {reason}"
                ) from None
        if isinstance(event, Health):
            self._check(self._recorder)
        self._recorder.put(event)

    def snapshot(self) -> BinaryIO | None:
        """Return the recording so far, open for reading; None before the first event."""
        return None if self._recorder is None else self._recorder.snapshot()

    def close(self) -> None:
        """Finish the recording."""
        if self._recorder is not None:
            self._recorder.close()
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _begin(self) -> Recorder:
        self._directory = here = _open()
        if (reason := self._shortage()) is not None:
            raise OSError(errno.ENOSPC, reason)
        _make_room(here, self._bounds)
        name, file = _create(here, f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{self._label}")
        # Held while recording, so that no other process deletes the file.
        _lock(file, fcntl.LOCK_EX)
        self.path = here.path / name
        return Recorder(self.path, self._title, file)

    def _check(self, recorder: Recorder) -> None:
        reason = self._shortage()
        if recorder.size > self._bounds.longest:
            reason = f"it has reached {format_size(self._bounds.longest)}"
        if reason is not None:
            raise RecordingError(f"the recording of this session ends here: {reason}")

    def _shortage(self) -> str | None:
        """Return why nothing more should be written to the disk; None if there is room."""
        if self._directory is None:
            return None
        disk = os.fstatvfs(self._directory.descriptor)
        if disk.f_bavail * disk.f_frsize >= self._bounds.keep_free:
            return None
        return f"less than {format_size(self._bounds.keep_free)} are free on its disk"


def _open() -> Directory:
    """Open the archive, created if missing. Raises ``OSError``."""
    where = folder()
    if not where.is_absolute():
        raise OSError(errno.ENOENT, "there is no home directory; set XDG_STATE_HOME")
    return open_safe(where)


def _create(here: Directory, stem: str) -> tuple[str, BinaryIO]:
    for number in count(1):
        name = f"{stem}{'' if number == 1 else f'-{number}'}{_SUFFIX}"
        with contextlib.suppress(FileExistsError):
            return name, here.create(name)
    raise AssertionError


def _make_room(here: Directory, bounds: Bounds) -> None:
    """Delete the oldest sessions until one more of the greatest size fits."""
    sizes: dict[str, int] = {}
    for name in sorted(filter(_NAME.fullmatch, os.listdir(here.descriptor))):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                sizes[name] = found.st_size
    for name in list(sizes):
        total = sum(sizes.values())
        if len(sizes) < bounds.sessions and total <= bounds.bytes - bounds.longest:
            return
        if _discard(here, name):
            del sizes[name]


def _discard(here: Directory, name: str) -> bool:
    """Delete a session and return True; return False for a running session or a foreign file."""
    try:
        with here.open(name) as file:
            if not _lock(file, fcntl.LOCK_EX):
                return False
    except FileNotFoundError:
        return True
    except OSError:
        # Not a session of this user: no regular file, or one that only its owner may read.
        return False
    here.discard(name)
    return True


def _lock(file: BinaryIO, kind: int) -> bool:
    """Lock a file without waiting; return False if another process holds a lock. See flock(2)."""
    try:
        fcntl.flock(file.fileno(), kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some network file systems have no locks.
        return True
    return True
