"""A program in a host's network namespace: its ports, start, output and stop; how it is held."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import platform
import select
import signal
import socket
import struct
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from ccplay.errors import CommandError, LabError, UnsupportedError
from ccplay.lab.netns import Namespace

# --- port numbers of the lab's traffic, which identify its packets --------------------------------

SERVERS = range(5201, 10_000)
"""Ports of servers, beginning with iperf3's own: each flow has its own server."""

SENDERS = range(10_000, 32_000)
"""Ports to send from, below ``ip_local_port_range``, so that no other socket uses one by chance."""

WEB = range(80, 144)
"""Ports of every web server; each running download has its own."""

ECHOES = range(1, 1 << 16)
"""Identifiers of pings (RFC 792); given 0, ping(8) would choose one itself."""


class Ports:
    """Provides ports; one is reused only after all others."""

    def __init__(self) -> None:
        self._servers = itertools.cycle(SERVERS)
        self._senders = 0
        self._web = itertools.cycle(WEB)
        self._echoes = itertools.cycle(ECHOES)

    def server(self) -> int:
        """Return a port to listen on."""
        return next(self._servers)

    def web(self) -> int:
        """Return a port of a web server to fetch from."""
        return next(self._web)

    def echo(self) -> int:
        """Return an identifier for a ping."""
        return next(self._echoes)

    def senders(self, count: int) -> range:
        """Return ``count`` consecutive ports to send from."""
        if self._senders + count > len(SENDERS):
            self._senders = 0
        first = SENDERS[self._senders]
        self._senders += count
        return range(first, first + count)


# --- a program held at a system call, ready to send, until it is released -------------------------
# A seccomp filter of the program makes the kernel ask the lab about that call, see
# seccomp_unotify(2), and the program sleeps in it until the lab answers. By then nothing has been
# sent, and no time of a packet has been taken. A program that is never released dies with the lab.

_SET_MODE_FILTER = 1
_NEW_LISTENER, _SPEC_ALLOW = 1 << 3, 1 << 2
"""Flags of seccomp(2): notify us, and keep the processor as fast as without a filter."""

_USER_NOTIF, _ALLOW = 0x7FC00000, 0x7FFF0000
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
"""Instructions of classic BPF: BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET |
BPF_K."""
_NUMBER, _THIRD_ARGUMENT = 0, 32
"""Offsets in struct seccomp_data of the call's number, and of the lower half of its third argument,
which has 64 bits, on a little-endian machine."""

_INSTRUCTION = struct.Struct("HBBI")
_QUESTION, _ANSWER = struct.Struct("QII64x"), struct.Struct("QqiI")
"""struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h."""
_RECV, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

_GENERIC = {"seccomp": 277, "connect": 203, "read": 63, "sched_yield": 124}
_CALLS = {
    "x86_64": {"seccomp": 317, "connect": 42, "read": 0, "sched_yield": 24},
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
"""Numbers of system calls by machine; newer machines have those of asm-generic/unistd.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Hold(msgspec.Struct, frozen=True):
    """The place at which a program is held."""

    call: str
    """Name of the system call; it must be rare, because the lab is asked each time."""
    passed: int = 0
    """Number of these calls that pass before the program is held."""
    octets: int | None = None
    """Length in bytes of the calls that count; None if every call counts."""


class Held:
    """A program under a filter. Call ``install`` in the child before exec, then ``attach``."""

    def __init__(self, hold: Hold, clock: Callable[[], float]) -> None:
        """Make the filter. Raises ``OSError`` on a machine whose system calls are unknown."""
        self._clock = clock
        calls = _CALLS.get(platform.machine())
        if calls is None:
            raise OSError(errno.ENOSYS, f"seccomp is not known on {platform.machine()}")
        self._seccomp = calls["seccomp"]
        number = calls[hold.call]
        wanted = [(_NUMBER, number)]
        if hold.octets is not None:
            wanted.append((_THIRD_ARGUMENT, hold.octets))
        code = [
            instruction
            for place, (offset, value) in enumerate(wanted)
            for instruction in (
                _INSTRUCTION.pack(_LOAD, 0, 0, offset),
                # On a mismatch, skip the remaining conditions and the notification.
                _INSTRUCTION.pack(_IF_EQUAL, 0, 2 * (len(wanted) - place) - 1, value),
            )
        ]
        code += [
            _INSTRUCTION.pack(_RETURN, 0, 0, _USER_NOTIF),
            _INSTRUCTION.pack(_RETURN, 0, 0, _ALLOW),
        ]
        self._instructions = ctypes.create_string_buffer(b"".join(code))
        # struct sock_fprog: number and address of the instructions.
        self._program = struct.pack("H6xQ", len(code), ctypes.addressof(self._instructions))
        self._to_pass = hold.passed
        self._ours, self._childs = socket.socketpair()
        self._listener: int | None = None
        self._waiting: int | None = None
        self._released = False
        self.approaching = asyncio.Event()
        """Event set when the program's next such call is the one at which it is held."""
        if not self._to_pass:
            self.approaching.set()
        self.arrived = asyncio.Event()
        """Event set when the program is held at its call; never if it ends before."""
        self.passed: float | None = None
        """Time of ``clock`` at which the program was let past its call; None before."""

    def install(self) -> None:
        """Install the filter in this process, between fork and exec. Raises ``OSError``."""
        flags = _NEW_LISTENER | _SPEC_ALLOW
        listener = _libc.syscall(self._seccomp, _SET_MODE_FILTER, flags, self._program)
        if listener < 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        socket.send_fds(self._childs, [b"."], [listener])

    def attach(self) -> None:
        """Receive the child's descriptor, and answer notifications. Raises ``OSError``."""
        self._ours.setblocking(False)
        _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        self.close()
        (self._listener,) = descriptors
        asyncio.get_running_loop().add_reader(self._listener, self._asked)

    def close(self) -> None:
        """Close the socket pair on which the child sends its descriptor."""
        self._ours.close()
        self._childs.close()

    def release(self) -> None:
        """Release the program, now or as soon as it reaches its call."""
        self._released = True
        if self._waiting is not None:
            question, self._waiting = self._waiting, None
            self.passed = self._clock()
            self._answer(question)

    def _end(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None

    def _asked(self) -> None:
        assert self._listener is not None  # noqa: S101 - it is what is read
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if not any(event & select.POLLIN for _, event in poll.poll(0)):
            # All have ended; on older kernels another request would never return.
            self._end()
            return
        question = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self._listener, _RECV, question)
        except OSError:
            # The program was killed before its notification was read.
            return
        number = _QUESTION.unpack(question)[0]
        if self._to_pass:
            self._to_pass -= 1
            if not self._to_pass:
                self.approaching.set()
        elif not self.arrived.is_set():
            self._waiting = number
            self.arrived.set()
            if self._released:
                self.release()
            return
        self._answer(number)

    def _answer(self, question: int) -> None:
        if self._listener is not None:
            # If it was killed meanwhile, no process receives the answer.
            with contextlib.suppress(OSError):
                answer = bytearray(_ANSWER.pack(question, 0, 0, _CONTINUE))
                fcntl.ioctl(self._listener, _SEND, answer)


# --- A program in a host's network namespace: its start, output and stop, and why it ended --------

_GRACE_S = 1.0
"""Seconds that a program may take to end after SIGINT before it is killed."""

_START_S = 20.0
"""Seconds to wait for a program's first output; an emulated guest may need 10."""

_PIDFD_GETFD = 438
"""Number of pidfd_getfd(2), the same on every architecture; asm-generic/unistd.h."""


class Program:
    """A running program; make one with ``start``."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._printed: deque[str] = deque(maxlen=8)
        self._silent = False
        self._listening = asyncio.create_task(self._listen())
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, namespace: Namespace, argv: Sequence[str], name: str = "", *, held: Held | None = None
    ) -> Self:
        """Start ``argv`` in the namespace. Raises ``LabError`` if nsenter(1) is not installed.

        ``name`` is the program's name if ``argv`` begins with another program. The program gets its
        own session, so that a Ctrl-C in the terminal does not reach it. ``held`` is where it waits.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                "nsenter",
                f"--net={namespace.path}",
                "--",
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
                preexec_fn=None if held is None else held.install,
            )
        except FileNotFoundError as error:
            raise LabError("nsenter is not installed (apt install util-linux)") from error
        return cls(name or argv[0].rpartition("/")[2], process)

    @classmethod
    async def start_server(
        cls,
        namespace: Namespace,
        argv: Sequence[str],
        name: str,
        *,
        what: str = "",
        says: str = "ready",
    ) -> Self:
        """Start a program and wait until it ``says`` on stdout that it listens.

        Raises ``LabError`` with its own message, after ``what`` it is, if it does not.
        """
        program = await cls.start(namespace, argv, name)
        if not await program.prints(says):
            await program.stop()
            raise LabError(f"{what or name}: {program.last_words()}")
        return program

    @property
    def pid(self) -> int:
        """PID of the program: nsenter(1) becomes the program itself."""
        return self._process.pid

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines that the program writes to stdout until it closes it."""
        assert self._process.stdout is not None  # noqa: S101 - ``start`` made it a pipe
        async for line in self._process.stdout:
            yield line.decode(errors="replace").rstrip("\n")

    async def prints(self, text: str) -> bool:
        """Read stdout until a line contains ``text``; return False at its end, or after 20 s."""
        try:
            async with asyncio.timeout(_START_S):
                async for line in self.lines():
                    if text in line:
                        return True
        except TimeoutError:
            self._silent = True
        return False

    def ignore_output(self) -> None:
        """Read and discard stdout from here on, so that a full pipe never stops the program."""
        self._draining = asyncio.create_task(self._drain())

    async def wait(self) -> int:
        """Wait until the program has ended and its messages are read; return its exit status."""
        status = await self._process.wait()
        # A child that it left behind may hold stderr open; its own messages have been read.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), 0.2)
        return status

    async def stop(self, grace_s: float = _GRACE_S) -> int:
        """End the program with SIGINT, or SIGKILL if needed; return its exit status."""
        self._signal(signal.SIGINT)
        try:
            return await asyncio.wait_for(asyncio.shield(self.wait()), grace_s)
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self) -> None:
        """Kill the program."""
        self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """Return why the program ended: its last message on stderr, its signal or exit status."""
        if self._silent:
            return f"{self.name} did not start within {_START_S:.0f} s"
        status = self._process.returncode
        if status is not None and status < 0:
            return f"{self.name} was killed by {signal.Signals(-status).name}"
        # iperf3's last line, which follows its reason.
        if printed := [each for each in self._printed if each != f"{self.name}: exiting"]:
            return printed[-1].removeprefix(f"{self.name}: ").removeprefix("error - ")
        return f"{self.name} ended with exit status {status}"

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - ``start`` made it a pipe
        async for line in self._process.stderr:
            if text := line.decode(errors="replace").strip():
                self._printed.append(text)

    async def _drain(self) -> None:
        async for _ in self.lines():
            pass


def script_argv(script: Path, *words: str) -> list[str]:
    """Return the command line of a program of ccplay that imports nothing of it."""
    # -I: nothing from the environment; -S: no site-packages, which take time to find.
    return [sys.executable, "-I", "-S", str(script), *words]


def sockets_of(pid: int) -> Generator[socket.socket]:
    """Yield a duplicate of every socket of a process, closed afterwards; pidfd_getfd(2).

    Raises ``CommandError`` if the process is gone, ``UnsupportedError`` if the kernel forbids it.
    """
    try:
        pidfd = os.pidfd_open(pid)
        numbers = [int(each.name) for each in os.scandir(f"/proc/{pid}/fd") if _is_socket(each)]
    except OSError as error:
        raise CommandError(f"process {pid} is gone: {error.strerror}") from error
    try:
        for number in numbers:
            copy = _libc.syscall(_PIDFD_GETFD, pidfd, number, 0)
            if copy >= 0:
                with socket.socket(fileno=copy) as connection:
                    yield connection
            elif ctypes.get_errno() == errno.EPERM:
                raise UnsupportedError(
                    f"the kernel does not let the lab access the sockets of process {pid} "
                    "(pidfd_getfd); sysctl kernel.yama.ptrace_scope=1 or start the lab as root"
                )
    finally:
        os.close(pidfd)


def ports_of(connection: socket.socket) -> tuple[int, int] | None:
    """Return local and remote port of a TCP connection over IP; None for other sockets."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        return connection.getsockname()[1], connection.getpeername()[1]
    except OSError:
        return None


def _is_socket(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return Path(entry).readlink().name.startswith("socket:")
    return False
