"""Builds the commands that start a lab, and forks later labs from one warm process."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from ccplay.errors import ROOT_REMEDY, LabError
from ccplay.files.writing import make_directory
from ccplay.model.disciplines import SUFFIX
from ccplay.stream import sources
from ccplay.stream.sources import LabProcess, spawn
from ccplay.stream.wire import GUEST_RUNS

# --- the commands that start a lab: as root, rootless, with sudo, in a guest, or over ssh ---------

UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""unshare(1) with private network, mounts and processes, which all end with the first process."""

ROOTLESS = ("--user", "--map-root-user")
"""Options of unshare(1) that make an ordinary user root inside a user namespace, and only there;
see user_namespaces(7)."""

# -P keeps the current directory, which may contain others' files, off the import path.
PYTHON = (sys.executable, "-P", "-m")
"""Words that run a module of ccplay, which follows them."""

_SERVER = "ccplay.lab"

_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "--")


def lab_argv(
    host: str | None = None, captures: Path | None = None, custom: Sequence[Path] = ()
) -> list[str]:
    """Return the command that starts a lab: here, or on ``host`` over ssh.

    ``captures`` is a directory on the lab's machine; None is the current one, or the home on
    ``host``. ``custom`` are files on the lab's machine: the user's congestion controls and
    disciplines. Raises ``LabError`` with the remedy if an ordinary user can't start a lab here.
    """
    if host is not None:
        # Without --, ssh(1) would read a name that starts with a dash as an option. Quoted,
        # because the remote command goes through a shell.
        place = ["--captures", str(captures)] if captures else []
        place += options_of(custom)
        command = shlex.join(["ccplay", "lab", *place, "--machine", host])
        return [*_SSH, host, command]
    return _in_namespaces(_server(captures, "", custom))


def options_of(custom: Sequence[Path]) -> list[str]:
    """Return the options that name the user's files: ``--discipline mine.py``."""
    options = ("--discipline" if path.suffix == SUFFIX else "--algorithm" for path in custom)
    return [word for pair in zip(options, map(str, custom), strict=True) for word in pair]


def topology_argv(host: str | None, file: Path | None, topo: str) -> list[str]:
    """Return the command that prints the network of a Mininet file: ``lab.mininet_file``.

    ``file`` is on ``host`` if there is one; None means Mininet's own topologies. Raises
    ``LabError`` with the remedy if an ordinary user can't make namespaces on this machine.
    """
    if host is not None:
        words = ["--custom", str(file)] if file else []
        return [*_SSH, host, shlex.join(["ccplay", "lab", *words, "--topo", topo])]
    return _in_namespaces(_mininet(file, topo))


def inner_topology_argv(file: Path | None, topo: str) -> list[str]:
    """Return the command that ``ccplay lab --topo`` executes in its place."""
    return _unshared(_mininet(file, topo), user=os.geteuid() != 0)


def _mininet(file: Path | None, topo: str) -> list[str]:
    return ["ccplay.lab.mininet_file", str(file.absolute()) if file else "", topo]


def _in_namespaces(module: Sequence[str]) -> list[str]:
    """Return the command that runs a Python module in its own namespaces on this machine."""
    if os.geteuid() == 0:
        return _unshared(module)
    if (refusal := rootless_refusal()) is None:
        return _unshared(module, user=True)
    if shutil.which("sudo") is None:
        raise LabError(f"a lab needs root here: {refusal}")
    return ["sudo", "-n", *_unshared(module)]


def _unshared(module: Sequence[str], *, user: bool = False) -> list[str]:
    """Return the command that runs a Python module in its own namespaces, ``user`` included."""
    return [*UNSHARE, *(ROOTLESS if user else ()), *PYTHON, *module]


def guest_argv(
    captures: Path | None = None, custom: Sequence[Path] = (), *, paced: bool = True
) -> list[str]:
    """Return the command that starts a lab under a full kernel, in a virtual machine of its own.

    The command needs no privilege. Captures and ``custom`` files are on this machine; ``paced``,
    see ``guest.boot.argv``. Raises ``LabError`` with the remedy if there is no guest.
    """
    # Imported late: most labs run on this kernel and must not wait for these imports.
    from platformdirs import user_cache_path  # noqa: PLC0415

    from ccplay.guest import boot  # noqa: PLC0415

    place = (captures or Path()).absolute()
    # Folders for captures, edited files and the objects of algorithms.
    kept = user_cache_path("ccplay")
    try:
        make_directory(kept)
    except OSError as error:
        raise LabError(f"can't write captures to {kept}: {error.strerror}") from None
    shared = dict.fromkeys([place, *(file.absolute().parent for file in custom), kept])
    if Path("/") in shared:
        raise LabError("a guest may not write to /: start ccplay in another directory")
    announced = ("sh", "-c", 'echo "$0" >&2; exec "$@"', GUEST_RUNS)
    lab = [*announced, *_unshared(_server(place, "", custom))]
    return boot.argv([*boot.environment(), *lab], list(shared), paced=paced)


def inner_argv(
    captures: Path | None = None, machine: str = "", custom: Sequence[Path] = ()
) -> list[str]:
    """Return the command that ``ccplay lab`` executes in its place: the server in its namespaces.

    Starting the server directly saves the start of another Python. ``machine`` is the name by
    which the user calls this machine.
    """
    return _unshared(_server(captures, machine, custom), user=os.geteuid() != 0)


def _server(captures: Path | None, machine: str, custom: Sequence[Path]) -> list[str]:
    files = [str(path.absolute()) for path in custom]
    given = captures or machine or files
    place = [str((captures or Path()).absolute()), machine] if given else []
    return [_SERVER, *place, *files]


def words_of(argv: Sequence[str]) -> tuple[bool, Sequence[str]] | None:
    """Return whether ``argv`` starts a lab in a user namespace, and its server's arguments.

    Returns None unless ``argv`` starts a lab on this machine, without sudo.
    """
    for user in (False, True):
        start = _unshared([_SERVER], user=user)
        if list(argv[: len(start)]) == start:
            return user, argv[len(start) :]
    return None


def ask_for_privilege(argv: Sequence[str]) -> None:
    """If ``argv`` uses sudo(8), let it ask for the password before a screen covers the terminal.

    Raises ``LabError`` if sudo refuses.
    """
    if argv[0] == "sudo" and subprocess.run(["sudo", "-v"], check=False).returncode != 0:
        raise LabError("sudo refused: start ccplay as root, or allow user namespaces")


def refusal() -> str | None:
    """Return why the current user can't start a lab here; None if they can."""
    return root_refusal() if os.geteuid() == 0 else rootless_refusal()


def root_refusal() -> str | None:
    """Return why even root can't start a lab here; None if it can."""
    if (refusal := _try("true")) is None:
        return None
    return f"{refusal} ({ROOT_REMEDY})"


def rootless_refusal() -> str | None:
    """Return why an ordinary user can't start a lab here; None if they can.

    A user namespace may lack its capabilities, so those are tried, too.
    """
    if (refusal := _try(*ROOTLESS, "ip", "link", "set", "lo", "up")) is None:
        return None
    for knob, bad, remedy in _KNOBS:
        path = Path("/proc/sys") / knob
        if path.exists() and path.read_text().strip() == bad:
            return f"{knob.replace('/', '.')} is {bad} (remedy: {remedy}, or use sudo)"
    return refusal


def _try(*words: str) -> str | None:
    """Run unshare(1) with a lab's options and ``words``; return its message if it fails."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        result = subprocess.run(
            [*UNSHARE, *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=5,
            env={**os.environ, "PATH": path},
        )
    except FileNotFoundError:
        return "unshare is not installed (apt install util-linux)"
    except subprocess.TimeoutExpired:
        return "unshare did not answer within 5 s"
    if result.returncode == 0:
        return None
    return result.stderr.strip() or "namespaces are not allowed"


_KNOBS = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
)


# --- forks labs from one warm process, because Python and imports take most of a lab's start ------

_DOOR = 3
"""File descriptor of the request socket in the warm process."""

_LAST_S = 1.0
"""Most seconds that ccplay waits at its end for the warm process, which ends after its last lab."""


class WarmLabs:
    """Starts labs: the first as its own program, all others as forks of one warm process."""

    def __init__(self, argv: Sequence[str] = (*PYTHON, "ccplay.lab.warm")) -> None:
        """Hold ``argv``, which starts the warm process when it is needed."""
        self._argv = argv
        self._labs = 0
        self._door: socket.socket | None = None
        self.process = 0
        """Process ID of the warm process; 0 before its first fork."""

    async def start(self, argv: Sequence[str]) -> LabProcess:
        """Start ``argv``, from the second on as a fork if it is a lab on this machine.

        Raises ``OSError``.
        """
        self._labs += 1
        if self._labs > 1 and (lab := words_of(argv)) is not None:
            # Forking fails if the environment is too long for a message or the process has died.
            with contextlib.suppress(OSError):
                return await self.fork(*lab)
        return await spawn(argv)

    def close(self) -> None:
        """End the warm process as soon as its labs have ended; wait for that up to a second."""
        if self._door is None:
            return
        atexit.unregister(self.close)
        self._door.close()
        self._door = None
        ended = os.pidfd_open(self.process)
        with contextlib.closing(select.epoll()) as waiting:
            waiting.register(ended, select.EPOLLIN)
            if waiting.poll(_LAST_S):
                os.waitpid(self.process, 0)
        os.close(ended)

    async def fork(self, user: bool, words: Sequence[str]) -> LabProcess:
        """Fork a lab whose server has the arguments ``words``, with ``user`` in a user namespace.

        Raises ``OSError``, also if the lab can't make its namespaces.
        """
        request = {"user": user, "arguments": list(words), "environment": dict(os.environ)}
        orders, output, errors, news = (_pipe() for _ in range(4))
        theirs = [orders[0], output[1], errors[1], news[1]]
        ours = [orders[1], output[0], errors[0], news[0]]
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            *standard, reports = (each.fileno() for each in theirs)
            socket.send_fds(
                self._warm(), [json.dumps(request).encode()], [*standard, here, reports]
            )
        except OSError:
            for each in ours:
                each.close()
            raise
        finally:
            os.close(here)
            for each in theirs:
                each.close()
        return await _forked(*ours)

    def _warm(self) -> socket.socket:
        """Return the socket to the warm process; start the process if there is none."""
        if self._door is None:
            self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self.process = os.posix_spawn(
                    self._argv[0],
                    list(self._argv),
                    os.environ,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, theirs.fileno(), _DOOR),
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                        (os.POSIX_SPAWN_DUP2, 0, 1),
                        # A lab that can't be forked is spawned instead, and reports the reason.
                        (os.POSIX_SPAWN_DUP2, 0, 2),
                    ],
                    setpgroup=0,
                )
            atexit.register(self.close)
        return self._door


def _pipe() -> tuple[FileIO, FileIO]:
    reader, writer = os.pipe()
    return FileIO(reader), FileIO(writer, "w")


class _News(asyncio.Protocol):
    """Receives a fork's reports on a pipe: its process ID, then the exit code of the lab."""

    def __init__(self) -> None:
        self._received = b""
        self.started = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Store what the fork writes; its first line is the process ID."""
        self._received += data
        if b"\n" in self._received and not self.started.done():
            self.started.set_result(int(self._received.split()[0]))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its name, too
        """Report the lab's exit code; if there is none, fork and lab were killed."""
        if not self.started.done():
            self.started.set_exception(ChildProcessError("no lab was forked"))
        _, *codes = self._received.split() or [b""]
        self.ended.set_result(int(codes[0]) if codes else -signal.SIGKILL)


class _Forked:
    """A lab that the warm process has forked, as a ``LabProcess``."""

    def __init__(
        self,
        stdin: asyncio.WriteTransport,
        stdout: tuple[asyncio.ReadTransport, asyncio.StreamReader],
        stderr: tuple[asyncio.ReadTransport, asyncio.StreamReader],
        news: _News,
        pid: int,
    ) -> None:
        self.stdin = stdin
        self.output, self.stdout = stdout
        self._errors, self.stderr = stderr
        self._news = news
        self.pid = pid

    async def wait(self) -> int:
        """Wait for the lab's end; return its exit code, or minus the signal that ended it."""
        return await asyncio.shield(self._news.ended)

    def kill(self) -> None:
        """Send SIGKILL, unless the lab has ended."""
        if not self._news.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes."""
        for each in (self.stdin, self.output, self._errors):
            each.close()


async def _forked(stdin: FileIO, stdout: FileIO, stderr: FileIO, news: FileIO) -> _Forked:
    """Wait until a lab runs behind these pipes. Raises ``OSError`` if none starts."""
    loop = asyncio.get_running_loop()
    orders, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdin)
    output, errors = await _reader(stdout), await _reader(stderr)
    _, reports = await loop.connect_read_pipe(_News, news)
    try:
        return _Forked(orders, output, errors, reports, await reports.started)
    except BaseException:
        # Closing its stdin ends a lab, also one that is still starting.
        for each in (orders, output[0], errors[0]):
            each.close()
        raise


async def _reader(file: FileIO) -> tuple[asyncio.ReadTransport, asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=sources.CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return transport, reader
