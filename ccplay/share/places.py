"""Creates and finds the sockets of shared sessions, and decides who may connect."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from socket import AF_UNIX, MSG_PEEK, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

import msgspec

from ccplay.errors import CcplayError, UsageError, WireError
from ccplay.files.caller import state_folder
from ccplay.files.writing import Directory, is_safe, sudo_caller
from ccplay.share import frames
from ccplay.share.frames import LONGEST_FRAME, Greeting, Over, Wants
from ccplay.visible import printable

_SUFFIX = ".share"

_GROUPS = Path("/tmp")  # noqa: S108 - in it each user has a folder, whose owner is checked
"""Folder of users' folders for sockets of groups; runtime folders are closed to other users."""

_OF_USER = re.compile(r"ccplay-([0-9]{1,10})")

_WAITING = 512
"""Connections that the kernel queues until the server accepts them: a class joins all at once."""

_PEER = struct.Struct("3i")
"""``struct ucred``: process, user and group ID."""

_SETTLED_S = 10.0
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
        with _open(where, mode=0o700 if group is None else 0o755) as here:
            return _bind(here, label, number)
    except PermissionError as error:
        if group is not None and error.errno == errno.EPERM:
            raise UsageError(
                f"--share-group {group}: only its members and root can share with a group"
            ) from None
        raise _impossible(where, error) from None
    except OSError as error:
        raise _impossible(where, error) from None


def _impossible(where: Path, error: OSError) -> CcplayError:
    return CcplayError(f"can't share this session in {where}: {error.strerror or error}")


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
    found = [each for each in dict.fromkeys((*found, mine)) if _belongs(each)]
    return [*(each / "ccplay" for each in found), state_folder() / "share"]


def _belongs(folder: Path) -> bool:
    """Whether a folder exists and belongs to this user, or under sudo to the caller."""
    with contextlib.suppress(OSError):
        facts = folder.lstat()
        return stat.S_ISDIR(facts.st_mode) and facts.st_uid == _user()
    return False


def _open(where: Path, mode: int) -> Directory:
    """Open a folder for sockets, created if missing. Raises ``OSError``."""
    with Directory(where.parent, make=True) as parent:
        here = parent.enter(where.name, mode=mode)
    if not is_safe(os.fstat(here.descriptor)):
        here.close()
        raise OSError(errno.EACCES, "other users can write there")
    return here


def _bind(here: Directory, label: str, group: int | None) -> Listener:
    _tidy(here)
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
        _give(here, f"{name}{_SUFFIX}", group)
        connection.listen(_WAITING)
    except BaseException:
        connection.close()
        raise
    return Listener(name, here.path / f"{name}{_SUFFIX}", connection)


def _tidy(here: Directory) -> None:
    """Delete the sockets of servers that were killed together with their presenter."""
    for name in os.listdir(here.descriptor):  # noqa: PTH208 - by descriptor
        with contextlib.suppress(OSError):
            facts = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
            ours = name.endswith(_SUFFIX) and stat.S_ISSOCK(facts.st_mode)
            # A younger one may be bound, but not listening yet.
            if ours and time.time() - facts.st_ctime > _SETTLED_S:
                place = f"/proc/self/fd/{here.descriptor}/{name}"
                if _is_stale(place):
                    here.discard(name)


def _give(here: Directory, name: str, group: int | None) -> None:
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


def is_presenters(connection: socket) -> bool:
    """Return whether a process of the presenter or of root, not of the group, is the peer.

    The kernel reports the peer's user: see ``SO_PEERCRED`` in unix(7).
    """
    facts = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(facts)
    return user in (0, os.geteuid(), _user())


def shared() -> list[Shared]:
    """Return the sessions that this user can watch, the most recently shared first."""
    paths = list(_sockets())
    if not paths:
        return []
    ends = time.monotonic() + _LIST_S
    with ThreadPoolExecutor(min(len(paths), _THREADS)) as pool:
        found = [each for each in pool.map(partial(_greeted, ends), paths) if each is not None]
    return sorted(found, key=lambda each: each.greeting.began, reverse=True)


def _greeted(ends: float, path: Path) -> Shared | None:
    """Return the session on a socket; None if it can't be watched by the moment ``ends``."""
    try:
        connection, greeting = join(path, Wants.GREETING, max(ends - time.monotonic(), 0.01))
    except CcplayError:
        return None
    connection.close()
    return Shared(path.name.removesuffix(_SUFFIX), path, greeting)


def _sockets() -> Iterator[Path]:
    """Yield the sockets that only this user, root, or the owner of the folder can have made."""
    for folder in (*filter(_is_closed, _own_folders()), *_folders_of_others()):
        with contextlib.suppress(OSError):
            owners = {0, folder.lstat().st_uid}
            names = os.listdir(folder)  # noqa: PTH208 - iterdir() starts later
            for name in sorted(each for each in names if each.endswith(_SUFFIX))[:_MOST_ASKED]:
                facts = (folder / name).lstat()
                open_to_all = facts.st_mode & stat.S_IWOTH
                if stat.S_ISSOCK(facts.st_mode) and facts.st_uid in owners and not open_to_all:
                    yield folder / name


def _is_closed(folder: Path) -> bool:
    """Whether a folder exists, and nobody but this user and root can write into it."""
    with contextlib.suppress(OSError):
        facts = folder.lstat()
        return stat.S_ISDIR(facts.st_mode) and is_safe(facts)
    return False


def _folders_of_others() -> Iterator[Path]:
    """Yield the folders in which users share with groups, owned by the user in the name or root."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(_GROUPS)):  # noqa: PTH208 - the same
            match, path = _OF_USER.fullmatch(name), _GROUPS / name
            with contextlib.suppress(OSError):
                facts = path.lstat()
                open_to_others = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                closed = stat.S_ISDIR(facts.st_mode) and not open_to_others
                if match and closed and facts.st_uid in (int(match[1]), 0):
                    yield path


def find(word: str) -> Shared:
    """Return the session of this name, or on the socket at this path. Raises ``UsageError``."""
    there = shared()
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
