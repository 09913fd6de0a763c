"""Limits on the user's code: what it prints, its time, its memory, its processes.

While a discipline computes, no packet of any link leaves, so an endless loop would stop all links.
A timer checks twice per ``LIMIT_S`` whether the same call is still running, and interrupts it by an
exception at its current line; time in which the process waits for a core does not count. C code,
such as ``sum`` of an endless iterator, can't be interrupted: a thread ends the process after
``LONGEST_S``.

The kernel refuses a ``fork``, a program, a signal to another process, and memory beyond ``MEMORY``.
Python reports each as an exception in its line. If the process ends all the same, its last words
show the line: ``last_line`` reads them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import gc
import io
import os
import platform
import re
import resource
import signal
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ccplay.lab import child
from ccplay.lab.custom.loading import MEMORY, MisuseError, SourceError, file_of

# --- text that the user's own disciplines print: a few lines each second --------------------------

_MOST_LINES = 10
"""Largest number of lines reported in a second; further lines are counted."""

_MOST_CHARACTERS = 200


class Printed(io.TextIOBase):
    """A text file for ``print`` that keeps the lines until they are reported."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._unfinished = ""
        self._omitted = 0
        self._second = 0.0
        self._left = _MOST_LINES

    def writable(self) -> bool:
        """Return True: the file can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep text, whose lines are reported once they are complete."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        self._unfinished = self._unfinished[:_MOST_CHARACTERS]
        room = _MOST_LINES - len(self._lines)
        self._lines += [line[:_MOST_CHARACTERS] for line in lines[:room]]
        self._omitted += max(0, len(lines) - room)
        return len(text)

    def due_lines(self, now: float) -> str:
        """Return the lines to report at a moment in seconds; empty if there are none yet."""
        if not self._lines:
            return ""
        if now - self._second >= 1.0:
            self._second, self._left = now, _MOST_LINES
        if not self._left:
            return ""
        lines, self._lines = self._lines[: self._left], self._lines[self._left :]
        self._left -= len(lines)
        if self._omitted:
            lines.append(f"({self._omitted} more lines)")
            self._omitted = 0
        return "\n".join(lines)


# --- limits a user's own discipline: time of a call, memory, no processes -------------------------

LIMIT_S = 0.5
"""Seconds after which a call is interrupted, or up to half of that later."""

LONGEST_S = 2.0
"""Seconds after which a process ends whose call can't be interrupted."""

TIMEOUT = "Timeout"
"""First of a process's last words if it was ended after ``LONGEST_S``."""

_SCHEDULED = Path("/proc/self/schedstat")
"""File whose second number is the nanoseconds for which the main thread has waited for a core."""

_exit = os._exit


# --- time -----------------------------------------------------------------------------------


class _Call:
    """The state of the call that is running."""

    number = 0
    running = False
    seen = 0
    since = 0.0
    """Time at which the call was first seen, by the clock of ``_look``."""
    watched = False
    words = -1
    """Descriptor for the last words of a process; -1 if it may not be ended."""


def watch() -> None:
    """Start watching calls; works only in the main thread of a process."""
    if not _Call.watched:
        _Call.watched = True
        signal.signal(signal.SIGALRM, _look)
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S / 2, LIMIT_S / 2)


@contextmanager
def watched() -> Iterator[None]:
    """Watch calls during the block; works only in the main thread of a process."""
    before = signal.getsignal(signal.SIGALRM)
    watch()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _Call.watched = False


class Limited:
    """Limits the time of a block while calls are watched.

    The block raises ``TimeoutError`` at the line that is running then.
    """

    __slots__ = ("_busy",)

    def __init__(self, busy: memoryview | None = None) -> None:
        """``busy[0]`` is 1 during the block, which another process may read, otherwise 0."""
        self._busy = busy

    def __enter__(self) -> None:
        _Call.number += 1
        _Call.running = True
        if self._busy is not None:
            self._busy[0] = 1

    def __exit__(self, *_: object) -> None:
        _Call.running = False
        if self._busy is not None:
            self._busy[0] = 0


def _look(_number: int, _frame: FrameType | None) -> None:
    _postpone_end()
    if not _Call.running:
        return
    # A clock that stands still while the process waits for a core. Without CONFIG_SCHED_INFO the
    # kernel does not report that time.
    waited_ns = int(_SCHEDULED.read_text().split()[1]) if _SCHEDULED.exists() else 0
    now = time.monotonic() - waited_ns / 1e9
    if _Call.seen != _Call.number:
        _Call.seen, _Call.since = _Call.number, now
    # The second look after the first may be a little early.
    elif now - _Call.since > 0.98 * LIMIT_S:
        _Call.seen = 0
        raise TimeoutError(f"it is still computing after {LIMIT_S:g} s")


def _postpone_end() -> None:
    """Let the process end ``LONGEST_S`` from now, unless this is called again before."""
    if _Call.words >= 0:
        # Without memory for a thread, the earlier one would end the process, which is right.
        with contextlib.suppress(RuntimeError, MemoryError):
            faulthandler.dump_traceback_later(LONGEST_S, file=_Call.words, exit=True)


# --- memory and processes -------------------------------------------------------------------

_LOAD, _IF_EQUAL, _IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions of classic BPF: BPF_LD | BPF_W | BPF_ABS, BPF_JMP with BPF_JEQ and BPF_JSET, each |
BPF_K, BPF_RET | BPF_K."""
_NUMBER, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 16, 32
"""Offsets in struct seccomp_data, of arguments their lower half on a little-endian machine."""
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 1 << 2
_SET_NO_NEW_PRIVS = 38
_CLONE_THREAD = 0x10000
_INSTRUCTION = struct.Struct("HBBI")

_CALLS = {
    "seccomp": (317, 277),
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "pidfd_send_signal": (424, 424),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
}
"""Numbers of system calls: of x86-64, and of asm-generic/unistd.h, which newer machines have."""
_MACHINES = {"x86_64": 0, "aarch64": 1, "riscv64": 1}
"""Columns of ``_CALLS``."""


def confine(words: int) -> None:
    """Limit this process until its end; ``words`` is the descriptor for its last words.

    Must be called before it has other threads.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()
    # A kernel without seccomp grants other processes; the limits of memory and time hold.
    with contextlib.suppress(OSError):
        _refuse_processes()
    os._exit = _refuse_exit  # type: ignore[assignment]
    _Call.words = words
    faulthandler.enable(file=words)
    _postpone_end()


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + MEMORY if most == resource.RLIM_INFINITY else min(used + MEMORY, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _refuse_processes() -> None:
    """Let calls that make or signal processes fail. Raises ``OSError`` without seccomp."""
    column = _MACHINES.get(platform.machine())
    if column is None:
        raise OSError(errno.ENOSYS, f"seccomp is not known on {platform.machine()}")
    calls = {name: each for name, row in _CALLS.items() if (each := row[column]) is not None}
    refused = _INSTRUCTION.pack(_RETURN, 0, 0, _ERRNO | errno.EPERM)
    allowed = _INSTRUCTION.pack(_RETURN, 0, 0, _ALLOW)

    def when(call: str, *then: bytes) -> list[bytes]:
        return [_INSTRUCTION.pack(_IF_EQUAL, 0, len(then), calls[call]), *then]

    code = [_INSTRUCTION.pack(_LOAD, 0, 0, _NUMBER)]
    for call in calls.keys() - {"seccomp", "clone", "clone3", "prlimit64"}:
        code += when(call, refused)
    # The C library then falls back on clone, whose flags the filter can read.
    code += when("clone3", _INSTRUCTION.pack(_RETURN, 0, 0, _ERRNO | errno.ENOSYS))
    # A thread is allowed: numerical libraries have some.
    flags = _INSTRUCTION.pack(_LOAD, 0, 0, _FIRST_ARGUMENT)
    thread = _INSTRUCTION.pack(_IF_SET, 0, 1, _CLONE_THREAD)
    code += when("clone", flags, thread, allowed, refused)
    # Without a new limit, the call only reads the present one.
    limit = _INSTRUCTION.pack(_LOAD, 0, 0, _THIRD_ARGUMENT)
    none = _INSTRUCTION.pack(_IF_EQUAL, 0, 1, 0)
    code += [*when("prlimit64", limit, none, allowed, refused), allowed]
    instructions = ctypes.create_string_buffer(b"".join(code))
    # struct sock_fprog: number and address of the instructions.
    program = struct.pack("H6xQ", len(code), ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(calls["seccomp"], _SET_MODE_FILTER, _SPEC_ALLOW, program) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _refuse_exit(code: int) -> NoReturn:
    """Take the place of ``os._exit``, which would end the process without a word of the line."""
    if _Call.running:
        raise MisuseError(f"os._exit({code!r}) would end the process that serves the link")
    _exit(code)


def last_line(words: str, name: str) -> int | None:
    """Return the innermost line of a discipline in a process's last words; None without one."""
    found = re.search(rf'File "{re.escape(file_of(name))}", line (\d+)', words)
    return int(found[1]) if found else None


def explain_end(words: str, status: int) -> str:
    """Return how a process ended, from its last words and its exit code; a signal is negative."""
    if words.startswith(TIMEOUT):
        return f"it is still computing after {LONGEST_S:g} s, in code that can't be interrupted"
    if status < 0:
        return f"it ended its process by signal {-status} ({_signal_name(-status)})"
    return f"it ended its process with exit code {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "real-time"


# --- a process of its own -------------------------------------------------------------------


def run_alone(name: str, work: Callable[[], bytes], within_s: float) -> bytes:
    """Return the result of ``work``, which a new process computes under all limits.

    ``work`` runs code of the discipline ``name``. Raises ``SourceError`` if the process ends
    before, or is not ready ``within_s`` seconds from now.
    """
    last = os.memfd_create("last words")
    with warnings.catch_warnings():
        # The child runs nothing but the discipline, and waits for no lock of another thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        running = child.fork(lambda: _work_confined(work), last)
    try:
        result = running.read_all(time.monotonic() + within_s)
    finally:
        status = running.dismiss()
        words = os.pread(last, 1 << 16, 0).decode(errors="replace")
        os.close(last)
    if result is None:
        why = f"its trial takes longer than {within_s:g} s"
        raise SourceError(name, last_line(words, name), why)
    if not result.endswith(b"\n"):
        raise SourceError(name, last_line(words, name), explain_end(words, status))
    return result


def _work_confined(work: Callable[[], bytes]) -> None:
    """Write the result of ``work`` to stdout; descriptor 3 is for the last words."""
    child.introduce(b"ccplay-trial")
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    results, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    gc.freeze()
    confine(3)
    with watched():
        result = work()
    with os.fdopen(results, "wb") as file:
        file.write(result.replace(b"\n", b" ") + b"\n")
