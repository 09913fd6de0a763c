"""Sockets of shared sessions: created, found and joined; and the stream that a spectator receives.

Whoever may connect is decided by the permissions of socket and folder, which are checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import grp
import os
import re
import stat
import struct
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from socket import AF_UNIX, MSG_PEEK, SHUT_RDWR, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

import msgspec

from ccplay.errors import CcplayError, RecordingError, UsageError, WireError
from ccplay.files.caller import state_folder
from ccplay.files.writing import Directory, is_safe, open_safe, sudo_caller
from ccplay.model.base import Command, Event
from ccplay.model.events import Ended, Log
from ccplay.model.samples import Sweep
from ccplay.share import frames
from ccplay.share.backlog import Unpacker
from ccplay.share.frames import (
    LONGEST_FRAME,
    AnyFrame,
    Board,
    Gap,
    Greeting,
    Over,
    Present,
    Shown,
    Wants,
)
from ccplay.stream import wire
from ccplay.stream.sources import RecordingLimits
from ccplay.stream.wire import UnknownEvent
from ccplay.units import format_clock
from ccplay.visible import printable

_SUFFIX = ".share"

_GROUPS = Path("/tmp")  # noqa: S108 - in it each user has a folder, whose owner is checked
"""Folder of users' folders for sockets of groups; runtime folders are closed to other users."""

_OF_USER = re.compile(r"ccplay-([0-9]{1,10})")

_WAITING = 512
"""Connections that the kernel queues until the server accepts them: a class joins all at once."""

_PEER = struct.Struct("3i")
"""``struct ucred``: process, user and group ID."""

_STALE_S = 10.0
"""Seconds after which a socket that refuses connections belongs to no server any more."""

PATIENCE_S = 10.0
"""Seconds that a server may take for its whole answer to a hello."""

_LIST_S = 5.0
"""Seconds that all servers together may take, asked side by side, when sessions are listed."""

_MOST_ASKED = 64
"""Greatest number of sockets asked in one folder."""

_THREADS = 256
"""Greatest number of sockets asked at the same moment."""


class Listener(msgspec.Struct, frozen=True):
    """A socket that spectators can connect to."""

    name: str
    """Name of the session for ``ccplay watch``."""
    path: Path
    socket: socket


class Shared(msgspec.Struct, frozen=True):
    """A session that can be watched."""

    name: str
    path: Path
    greeting: Greeting


def listen(label: str, group: str | None = None) -> Listener:
    """Make a socket for this user alone, or for the members of ``group``.

    Raises ``UsageError`` for a group that does not exist or does not have this user as a member,
    ``CcplayError`` if no socket can be made.
    """
    number = None if group is None else _number_of(group)
    label = re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")[:40] or "session"
    where = _own_folders()[0] if group is None else _GROUPS / f"ccplay-{_user()}"
    try:
        with open_safe(where, 0o700 if group is None else 0o755) as here:
            return _bind(here, label, number)
    except OSError as error:
        if group is not None and error.errno == errno.EPERM:
            raise UsageError(
                f"--share-group {group}: only its members and root can share with a group"
            ) from None
        raise CcplayError(
            f"can't share this session in {where}: {error.strerror or error}"
        ) from None


def _number_of(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise UsageError(f"--share-group {group}: there is no such group") from None


def _user() -> int:
    caller = sudo_caller()
    return os.geteuid() if caller is None else caller[0]


def _own_folders() -> list[Path]:
    """Return the folders for this user's own sockets, the preferred one first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "").strip()
    mine = Path("/run/user") / str(_user())
    found = [Path(runtime)] if Path(runtime).is_absolute() else []
    # A runtime folder must belong to this user, or under sudo to the caller.
    found = [
        each / "ccplay"
        for each in dict.fromkeys((*found, mine))
        if (facts := _status(each)) is not None and facts.st_uid == _user()
    ]
    return [*found, state_folder() / "share"]


def _status(folder: Path) -> os.stat_result | None:
    """Return the status of a folder; None if there is none, or a symlink in its place."""
    with contextlib.suppress(OSError):
        facts = folder.lstat()
        return facts if stat.S_ISDIR(facts.st_mode) else None
    return None


def _bind(here: Directory, label: str, group: int | None) -> Listener:
    _delete_stale(here)
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        # bind(2) gives the socket's mode to the file, so others can't connect at any moment.
        os.fchmod(connection.fileno(), 0o600)
        for number in count(1):
            name = f"{label}{'' if number == 1 else f'-{number}'}"
            place = f"/proc/self/fd/{here.descriptor}/{name}{_SUFFIX}"
            try:
                connection.bind(place)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if not _is_stale(place):
                    continue
                here.discard(f"{name}{_SUFFIX}")
                connection.bind(place)
            break
        _set_owners(here, f"{name}{_SUFFIX}", group)
        connection.listen(_WAITING)
    except BaseException:
        connection.close()
        raise
    return Listener(name, here.path / f"{name}{_SUFFIX}", connection)


def _delete_stale(here: Directory) -> None:
    """Delete the sockets of servers that were killed together with their presenter."""
    for name in os.listdir(here.descriptor):  # noqa: PTH208 - by descriptor
        with contextlib.suppress(OSError):
            facts = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
            ours = name.endswith(_SUFFIX) and stat.S_ISSOCK(facts.st_mode)
            # A younger one may be bound, but not listening yet.
            if ours and time.time() - facts.st_ctime > _STALE_S:
                place = f"/proc/self/fd/{here.descriptor}/{name}"
                if _is_stale(place):
                    here.discard(name)


def _set_owners(here: Directory, name: str, group: int | None) -> None:
    """Let sudo's caller and the group connect; delete the file and raise ``OSError`` on failure."""
    caller = sudo_caller()
    owner = -1 if caller is None else caller[0]
    try:
        if owner >= 0 or group is not None:
            os.chown(
                name,
                owner,
                -1 if group is None else group,
                dir_fd=here.descriptor,
                follow_symlinks=False,
            )
        if group is not None:
            Path(f"/proc/self/fd/{here.descriptor}/{name}").chmod(0o660)
    except OSError:
        here.discard(name)
        raise


def _is_stale(place: str) -> bool:
    """Whether nothing listens on a socket any more."""
    with socket(AF_UNIX, SOCK_STREAM) as trial:
        trial.settimeout(1.0)
        try:
            trial.connect(place)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def is_from_presenter(connection: socket) -> bool:
    """Return whether a process of the presenter or of root, not of the group, is the peer.

    The kernel reports the peer's user: see ``SO_PEERCRED`` in unix(7).
    """
    facts = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(facts)
    return user in (0, os.geteuid(), _user())


def list_shared() -> list[Shared]:
    """Return the sessions that this user can watch, the most recently shared first."""
    paths = list(_sockets())
    if not paths:
        return []
    ends = time.monotonic() + _LIST_S
    with ThreadPoolExecutor(min(len(paths), _THREADS)) as pool:
        found = [each for each in pool.map(partial(_greet, ends), paths) if each is not None]
    return sorted(found, key=lambda each: each.greeting.began, reverse=True)


def _greet(ends: float, path: Path) -> Shared | None:
    """Return the session on a socket; None if it can't be watched by the moment ``ends``."""
    try:
        connection, greeting = join(path, Wants.GREETING, max(ends - time.monotonic(), 0.01))
    except CcplayError:
        return None
    connection.close()
    return Shared(path.name.removesuffix(_SUFFIX), path, greeting)


def _sockets() -> Iterator[Path]:
    """Yield the sockets that only this user, root, or the owner of the folder can have made."""
    own = (
        each for each in _own_folders() if (facts := _status(each)) is not None and is_safe(facts)
    )
    for folder in (*own, *_folders_of_others()):
        with contextlib.suppress(OSError):
            owners = {0, folder.lstat().st_uid}
            names = os.listdir(folder)  # noqa: PTH208 - iterdir() starts later
            for name in sorted(each for each in names if each.endswith(_SUFFIX))[:_MOST_ASKED]:
                facts = (folder / name).lstat()
                open_to_all = facts.st_mode & stat.S_IWOTH
                if stat.S_ISSOCK(facts.st_mode) and facts.st_uid in owners and not open_to_all:
                    yield folder / name


def _folders_of_others() -> Iterator[Path]:
    """Yield the folders in which users share with groups, owned by the user in the name or root."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(_GROUPS)):  # noqa: PTH208 - the same
            match, facts = _OF_USER.fullmatch(name), _status(_GROUPS / name)
            if match is None or facts is None or facts.st_uid not in (int(match[1]), 0):
                continue
            if not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                yield _GROUPS / name


def find(word: str) -> Shared:
    """Return the session of this name, or on the socket at this path. Raises ``UsageError``."""
    there = list_shared()
    for each in there:
        if word in (each.name, str(each.path)):
            return each
    if "/" in word:
        connection, greeting = join(Path(word), Wants.GREETING)
        connection.close()
        return Shared(Path(word).name.removesuffix(_SUFFIX), Path(word), greeting)
    names = ", ".join(each.name for each in there)
    known = f"shared now: {names}" if names else "share one with: ccplay --share"
    raise UsageError(f"there is no shared session {printable(word)!r}; {known}")


def join(path: Path, wants: Wants, patience_s: float = PATIENCE_S) -> tuple[socket, Greeting]:
    """Connect to a shared session; return the connection and the server's greeting.

    Raises ``CcplayError`` with the reason if that is impossible.
    """
    ends = time.monotonic() + patience_s
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(patience_s)
    try:
        _connect(connection, path)
        connection.sendall(frames.encode_hello(wants))
        first = frames.decode(_first_line(connection, ends))
        connection.settimeout(None)
    except (OSError, WireError) as error:
        connection.close()
        reason = getattr(error, "strerror", None) or error
        raise CcplayError(f"can't watch {printable(path.name)}: {reason}") from None
    if isinstance(first, Greeting) and first.protocol == frames.PROTOCOL:
        return connection, first
    connection.close()
    reason = (
        first.reason if isinstance(first, Over) else "it is shared by another version of ccplay"
    )
    raise CcplayError(f"can't watch {printable(path.name)}: {reason}")


def _connect(connection: socket, path: Path) -> None:
    """Connect by the folder's descriptor, since the path may be too long for a socket address."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _first_line(connection: socket, ends: float) -> bytes:
    """Return the server's first line, all of it before the moment ``ends``, and nothing after it.

    Raises ``OSError`` and ``WireError``.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        left_s = ends - time.monotonic()
        if left_s <= 0:
            raise WireError("its server is too slow")
        connection.settimeout(left_s)
        there = connection.recv(LONGEST_FRAME, MSG_PEEK)
        if not there:
            raise WireError("its server does not answer")
        line += connection.recv(there.find(b"\n") + 1 or len(there))
        if len(line) > LONGEST_FRAME:
            raise WireError("its server does not follow ccplay's protocol")
    return bytes(line)


_CHUNK = 1 << 18

_NEXT_S = 60.0
"""Longest time in seconds to wait for the presenter's next network."""

_TRY_S = 0.2
"""Seconds between attempts to join it."""

_TRY_PATIENCE_S = 2.0
"""Seconds that its server may take to answer."""

_TURN_S = 0.01
"""Seconds for which the past is read before other tasks run."""


class WatchSource:
    """The stream from the server of a shared session, with the limits of a recording."""

    live = False

    def __init__(self, connection: socket, greeting: Greeting) -> None:
        """Hold a connection and its greeting, as ``sockets.join`` returns them."""
        self._place: tuple[Path, Wants] | None = None
        self.greeting = greeting
        self.view: Shown | None = None
        """The presenter's newest view; None before the first is received."""
        self.board: Board | None = None
        """Page of the presenter's lesson; None if there is none."""
        self.present = False
        """Whether the past has been read, so that further events happen now."""
        self._connection = connection
        self._limits = RecordingLimits()
        self._begun = self._ended = self._closing = False
        self.another = False
        """Whether the presenter has announced another network, under the same name."""
        self._now = 0.0

    @classmethod
    def join(cls, path: Path, wants: Wants, patience_s: float = PATIENCE_S) -> WatchSource:
        """Join the session on the socket at ``path``. Raises ``CcplayError``."""
        source = cls(*join(path, wants, patience_s))
        source._place = path, wants
        return source

    async def rejoin(self) -> WatchSource | None:
        """Join the next network after the end of this one, if the presenter has announced one.

        Return None if there is none, or if it is not shared within a minute.
        """
        if not self.another or self._place is None:
            return None
        until = time.monotonic() + _NEXT_S
        while time.monotonic() < until:
            with contextlib.suppress(CcplayError):
                return await asyncio.to_thread(WatchSource.join, *self._place, _TRY_PATIENCE_S)
            await asyncio.sleep(_TRY_S)
        return None

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        """Yield every event; if some were missed, an empty sweep and a message in their place.

        Raises ``CcplayError`` for an invalid stream.
        """
        turn_ends = time.monotonic() + _TURN_S
        try:
            async for line in self._lines():
                for event in self._read(line):
                    yield event
                if time.monotonic() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = time.monotonic() + _TURN_S
        except WireError as error:
            raise CcplayError(f"what the presenter's ccplay sends can't be read: {error}") from None
        except RecordingError as error:
            raise CcplayError(str(error)) from None
        finally:
            self._connection.close()
        if self._begun and not self._ended and not self._closing:
            yield Ended(t=self._now, reason="the connection to the presenter is lost")

    def send(self, command: Command) -> None:
        """Do nothing: spectators can't send anything to the lab."""

    def vote(self, question: int, choice: float) -> None:
        """Vote on the question of a lesson; the newest vote counts."""
        self._send(frames.encode_vote(question, choice))

    def vote_for(self, slot: int, question: int, choice: float) -> bool:
        """Vote for one of the browsers served; return whether the vote was sent."""
        return self._send(frames.encode_vote(question, choice, slot))

    def report(self, browsers: int) -> bool:
        """Report the number of browsers; return whether the report was sent."""
        return self._send(frames.encode_browsers(browsers))

    def _send(self, request: bytes) -> bool:
        try:
            # The kernel accepts so few bytes either completely or not at all.
            return self._connection.send(request) == len(request)
        except OSError:
            return False

    async def close(self) -> None:
        """End the connection, and with it the stream."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(SHUT_RDWR)

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield complete lines. Raises ``WireError`` for an invalid stream."""
        self._connection.setblocking(False)
        loop, unpacker = asyncio.get_running_loop(), Unpacker()
        while data := await _received(loop, self._connection):
            for line in unpacker.lines(data):
                yield line

    def _read(self, line: bytes) -> list[Event | UnknownEvent]:
        """Return the events of a line."""
        if line.startswith(frames.PREFIX):
            return self._read_frame(frames.decode(line))
        event = wire.decode_event(line) if self._begun else wire.decode_hello(line, "the stream")
        self._begun = True
        self._limits.check(event)
        self._now = max(self._now, event.t)
        self._ended = self._ended or isinstance(event, Ended)
        return [event]

    def _read_frame(self, frame: AnyFrame) -> list[Event | UnknownEvent]:
        if isinstance(frame, Shown):
            self.view = frame
        elif isinstance(frame, Board):
            self.board = frame if frame.page else None
        elif isinstance(frame, Present):
            self.present = True
        elif isinstance(frame, Over):
            self.another = frame.another
            if not self._begun or self._ended:
                return []
            self._ended = True
            return [Ended(t=self._now, reason=frame.reason)]
        elif isinstance(frame, Gap) and self._begun:
            since, until = format_clock(frame.since), format_clock(frame.until)
            text = f"missed {since} to {until}: this screen did not keep up with the session"
            found = [
                Sweep(t=max(frame.since, self._now)),
                Log(t=max(frame.until, self._now), level="warning", text=text),
            ]
            for event in found:
                self._limits.check(event)
            return [*found]
        return []


async def _received(loop: asyncio.AbstractEventLoop, connection: socket) -> bytes:
    """Return the next bytes; empty at the end of the connection, errors included."""
    try:
        return await loop.sock_recv(connection, _CHUNK)
    except OSError:
        return b""
